"""Expressions of a mapping: the text that computes one canonical column, checked against a whitelist and compiled for DuckDB.

Takes a SQL-like text and gives a tree that reads only the columns of a record, all of them text. Numbers are exact decimals: a text that
is no number stays as it is, so that the event rules refuse it by name. Source: specification, section 2; `docs/operators-ingest.md`.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

LONGEST = 2_000  # characters
DEEPEST = 50  # nested parentheses, calls and operators
MOST_PARTS = 5_000  # of what is computed; a part that is asked for more than once is written as often, and so grows with every level
MOST_TERMS = 9  # of a sum of numbers below 10^19, so that it fits into the 20 digits before the point
RECORD_COLUMN = "#record"
FILE_STEM_COLUMN = "#file_stem"

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
_ORDER = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARISONS = (exp.EQ, exp.NEQ, *_ORDER)
# The functions that compiled expressions call. A number is at most 10^19 and keeps 18 digits after the point; null if the text is none.
# DuckDB's own cast of a text to so wide a decimal takes 50 times as long.
MACROS = (
    r"""CREATE MACRO number_of(x) AS CASE WHEN regexp_full_match(x, '-?[0-9]{1,18}(\.[0-9]{1,18})?') THEN
    (abs(split_part(x, '.', 1)::BIGINT)::DECIMAL(37, 18) + rpad(split_part(x, '.', 2), 18, '0')::BIGINT::DECIMAL(19, 0)
        * 0.000000000000000001::DECIMAL(18, 18)) * CASE WHEN x[1] = '-' THEN -1 ELSE 1 END
    WHEN length(x) <= 100 AND regexp_full_match(x, '-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?') THEN try_cast(x AS DECIMAL(37, 18)) END""",
    # The sum of numbers with commas or colons between them; null if one of them is `-`, not known. An offending text stays as it is.
    r"""CREATE MACRO sum_of(x) AS CASE WHEN NOT regexp_matches(x, '[,:-]') THEN x
    ELSE list_transform([regexp_split_to_array(x, '\s*[,:]\s*')], lambda parts: CASE WHEN list_contains(parts, '-') THEN NULL
        WHEN list_bool_and(list_transform(parts, lambda part: number_of(part) IS NOT NULL))
        THEN rtrim(rtrim(list_sum(list_transform(parts, lambda part: number_of(part)))::VARCHAR, '0'), '.') ELSE x END)[1] END""",
)
_PLAIN_PATTERN = re.compile(r"(?:[^\\({]|\\[.dws^$|()*+?{}\[\]\\-]|\((?!\?)|\(\?:)*")
_POSSESSIVE = re.compile(r"[*+?]\+")
_UNREADABLE = frozenset('"\0')  # in a name: no path to a field of JSON can have them
_POSITION = re.compile(r"[0-9]{1,9}")
_PLAIN_NUMBER = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?")


class ExpressionRefused(ValueError):
    """The text is outside what a mapping may write; the message says what was found."""


Path = tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A DuckDB expression and the fields of the source that it reads, by their path. Its value is a text; a condition's, a boolean.

    It is compiled when it is first needed.
    """

    _compile: Callable[[], tuple[exp.Expr, frozenset[Path]]]

    @property
    def sql(self) -> exp.Expr:
        """The expression."""
        return self._compiled[0]

    @property
    def paths(self) -> frozenset[Path]:
        """The fields."""
        return self._compiled[1]

    def check(self) -> None:
        """Raises ExpressionRefused, in words, if what was written is outside the whitelist."""
        _ = self._compiled

    @cached_property
    def _compiled(self) -> tuple[exp.Expr, frozenset[Path]]:
        return self._compile()


def field_key(path: Path) -> str:
    """The name under which a field is read and kept: `a.b` for b inside a."""
    return ".".join(path)


def field_column(path: Path) -> str:
    """The name of the field's column in DuckDB, which does not tell large letters from small ones: a large one has a mark before it."""
    return ".".join("".join(f"^{letter}" if letter in "^." or letter.isupper() else letter for letter in name) for name in path)


def expression(text: str) -> Compiled:
    """The expression that is written so."""
    return _compiled_by(_Compiler.text, text)


def condition(text: str) -> Compiled:
    """The condition that is written so, which is true, false or null."""
    return _compiled_by(_Compiler.condition, text)


def _compiled_by(rule: "Callable[[_Compiler, exp.Expr], exp.Expr]", text: str) -> Compiled:
    def compiled() -> tuple[exp.Expr, frozenset[Path]]:
        compiler = _Compiler(written=text)
        return rule(compiler, _parsed(text)), frozenset(compiler.paths)

    return Compiled(compiled)


def _parsed(text: str) -> exp.Expr:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    too_large = ExpressionRefused(f"an expression of more than {LONGEST} characters or {DEEPEST} levels")
    if len(text) > LONGEST or deepest > DEEPEST:
        raise too_large
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except RecursionError as error:
        raise too_large from error
    except SqlglotError as error:
        raise ExpressionRefused(f"{text!r}, which cannot be read") from error
    if len(trees) != 1 or trees[0] is None:
        raise ExpressionRefused(f"{text!r}, which is not one expression")
    tree = trees[0]
    assert isinstance(tree, exp.Expr)
    level, depth = [tree], 0
    while level:
        level, depth = [part for node in level for part in node.iter_expressions()], depth + 1
        if depth > DEEPEST:
            raise too_large
    return tree


def constant(text: str) -> Compiled:
    """The expression that is this text for every row."""
    return Compiled(lambda: (exp.Literal.string(text), frozenset()))


@dataclass(slots=True)
class _Compiler:
    written: str
    paths: set[Path] = field(default_factory=set)
    parts: int = 0  # of what is made, about

    def _count(self, parts: int = 1) -> None:
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise ExpressionRefused(f"{self.written!r}, which becomes more than {MOST_PARTS} parts, since some are computed repeatedly")

    def _again(self, part: exp.Expr) -> exp.Expr:
        self._count(sum(1 for _ in part.walk()))
        return part.copy()

    def text(self, node: exp.Expr) -> exp.Expr:
        """The node as text; null stays null."""
        self._count()
        match node:
            case exp.Column() | exp.Dot():
                return self._field(node)
            case exp.Literal():
                return exp.Literal.string(str(node.this))
            case exp.Boolean():
                return exp.Literal.string("true" if node.this else "false")
            case exp.Null():
                return exp.cast(exp.null(), "TEXT")
            case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return exp.Literal.string(f"-{node.this.this}")
            case exp.Paren():
                return exp.paren(self.text(node.this))
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._arithmetic(node)
            case exp.DPipe():
                return exp.paren(exp.DPipe(this=self.text(node.left), expression=self.text(node.right), safe=True))
            case exp.Case() if node.this is None:
                return self._choice(node.args["ifs"], node.args.get("default"))
            case exp.If():
                return self._choice([node], node.args.get("false"))
            case exp.Coalesce():
                return exp.func("coalesce", *(self.text(part) for part in [node.this, *node.expressions]))
            case exp.Nullif():
                equal = exp.EQ(this=node.this, expression=node.expression)
                return exp.case().when(self.condition(equal), exp.cast(exp.null(), "TEXT")).else_(self.text(node.this))
            case exp.Lower():
                return exp.func("lower", self.text(node.this))
            case exp.Replace() if node.args.get("replacement") is not None:
                return exp.func("replace", self.text(node.this), self.text(node.expression), self.text(node.args["replacement"]))
            case exp.SplitPart() if node.args.get("part_index") is not None and node.args.get("part_index_zero_as_one") is None:
                return exp.func("split_part", self.text(node.this), self.text(node.args["delimiter"]), self._position(node))
            case exp.RegexpExtract() if node.args.get("position") is None and node.args.get("parameters") is None:
                return self._extracted(node)
            case exp.RowNumber() if node.this is None:
                return exp.cast(exp.column(RECORD_COLUMN, quoted=True), "TEXT")
            case exp.Anonymous() if str(node.this).lower() == "elapsed_us" and len(node.expressions) == 2:
                return exp.func("elapsed_us", *(self.text(part) for part in node.expressions))
            case exp.Anonymous() if str(node.this).lower() in ("instant_us", "sum_of") and len(node.expressions) == 1:
                return exp.func(str(node.this).lower(), self.text(node.expressions[0]))
            case exp.Anonymous() if str(node.this).lower() == "file_stem" and not node.expressions:
                return exp.column(FILE_STEM_COLUMN, quoted=True)
            case _:
                raise ExpressionRefused(f"{node.sql('duckdb')!r}, which a mapping may not use")

    def condition(self, node: exp.Expr) -> exp.Expr:
        """The node as a condition: true, false or null."""
        self._count()
        match node:
            case exp.Paren():
                return exp.paren(self.condition(node.this))
            case exp.And() | exp.Or():
                return exp.paren(type(node)(this=self.condition(node.left), expression=self.condition(node.right)))
            case exp.Not():
                return exp.Not(this=exp.paren(self.condition(node.this)))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return exp.paren(exp.Is(this=self.text(node.this), expression=exp.null()))
            case exp.In() if node.expressions:
                parts = [self.condition(exp.EQ(this=node.this, expression=part)) for part in node.expressions]
                return exp.paren(exp.or_(*parts))
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                if isinstance(node, _ORDER) or _is_number(node.left) or _is_number(node.right):
                    left, right = self._number(node.left), self._number(node.right)
                else:
                    left, right = self.text(node.left), self.text(node.right)
                return exp.paren(type(node)(this=left, expression=right))
            case _:
                raise ExpressionRefused(f"{node.sql('duckdb')!r}, where a condition is needed")

    def _field(self, node: exp.Column | exp.Dot) -> exp.Expr:
        if any(not isinstance(part, exp.Column | exp.Dot | exp.Identifier) for part in node.walk()):
            raise ExpressionRefused(f"{node.sql('duckdb')!r}, which is no field")
        path = tuple(part.name for part in node.parts)
        if any(not name or name.startswith("#") or name == "*" or not _UNREADABLE.isdisjoint(name) for name in path):
            raise ExpressionRefused(f"{node.sql('duckdb')!r}, which is no field")
        self.paths.add(path)
        return exp.column(field_column(path), quoted=True)

    def _number(self, node: exp.Expr) -> exp.Expr:
        node = _inside(node)
        if isinstance(node, exp.Literal) and not node.is_string:
            # As narrow as it is written, so that a product keeps the 18 digits after the point of its other side.
            match = _PLAIN_NUMBER.fullmatch(str(node.this))
            if not match:
                raise ExpressionRefused(f"{node.this}, which is not a plain number of at most 12 and 6 digits")
            fraction = len(match[2] or "")
            return exp.cast(exp.Literal.string(str(node.this)), f"DECIMAL({len(match[1]) + fraction}, {fraction})")
        return exp.func("number_of", self.text(node))

    def _arithmetic(self, node: exp.Expr) -> exp.Expr:
        """The exact result as text. Null if a part is null; the offending part's own text if one is no number."""
        leaves: list[exp.Expr] = []

        def value(part: exp.Expr) -> exp.Expr:
            part = _inside(part)
            if isinstance(part, exp.Mul) and not any(isinstance(_inside(side), exp.Literal) for side in (part.left, part.right)):
                raise ExpressionRefused(f"{part.sql('duckdb')!r}, where neither side is a plain number")
            if isinstance(part, _ARITHMETIC):
                return exp.paren(type(part)(this=value(part.left), expression=value(part.right)))
            if not _is_number(part):
                leaves.append(self.text(part))
            return self._number(part)

        total = value(node)
        if len(leaves) > MOST_TERMS:
            raise ExpressionRefused(f"{node.sql('duckdb')!r}, which has more than {MOST_TERMS} terms")
        # TRY goes row by row, so it stands only where a number can become too large.
        result = exp.cast(exp.func("try", total) if node.find(exp.Mul) else total, "TEXT")
        trimmed = exp.func("rtrim", exp.func("rtrim", result, exp.Literal.string("0")), exp.Literal.string("."))
        computed = exp.func("coalesce", trimmed, exp.Literal.string("a number out of range"))
        if not leaves:
            return computed
        choice = exp.case()
        for leaf in leaves:
            empty = exp.func("nullif", self._again(leaf), exp.Literal.string(""))
            choice = choice.when(empty.is_(exp.null()), exp.cast(exp.null(), "TEXT"))
        for leaf in leaves:
            choice = choice.when(exp.func("number_of", self._again(leaf)).is_(exp.null()), self._again(leaf))
        return choice.else_(computed)

    def _choice(self, branches: list[exp.Expr], otherwise: exp.Expr | None) -> exp.Expr:
        choice = exp.case()
        for branch in branches:
            choice = choice.when(self.condition(branch.this), self.text(branch.args["true"]))
        return choice.else_(self.text(otherwise) if otherwise is not None else exp.cast(exp.null(), "TEXT"))

    def _extracted(self, node: exp.RegexpExtract) -> exp.Expr:
        """What the pattern's one group matches; null if the pattern does not match. It takes linear time, whatever the pattern."""
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or _groups(str(pattern.this)) != 1:
            raise ExpressionRefused(f"{node.sql('duckdb')!r}, whose pattern is not a text with one group such as '^id-(.*)$'")
        text = self.text(node.this)
        found = exp.RegexpExtract(this=text, expression=pattern.copy(), group=exp.Literal.number(1))
        return exp.case().when(exp.func("regexp_matches", self._again(text), pattern.copy()), found).else_(exp.cast(exp.null(), "TEXT"))

    def _position(self, node: exp.SplitPart) -> exp.Expr:
        position = node.args["part_index"]
        if not isinstance(position, exp.Literal) or not _POSITION.fullmatch(str(position.this)):
            raise ExpressionRefused(f"{node.sql('duckdb')!r}, whose position is not a whole number such as 1")
        return exp.Literal.number(str(position.this))


def _groups(pattern: str) -> int | None:
    """How many groups the pattern has; None if it is none, or uses more than what every dialect of patterns reads alike."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # of sets inside sets, which are not read alike
            return re.compile(pattern).groups if _PLAIN_PATTERN.fullmatch(pattern) and not _POSSESSIVE.search(pattern) else None
    except (re.error, FutureWarning):
        return None


def _inside(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_number(node: exp.Expr) -> bool:
    node = _inside(node)
    if isinstance(node, exp.Neg):
        node = node.this
    return isinstance(node, _ARITHMETIC) or (isinstance(node, exp.Literal) and not node.is_string)
