"""Latency definitions: the text of an expression to a typed tree, unit-checked. The plan compiles the tree to SQL.

Values are exact rationals: a duration in microseconds, a number of tokens, or a bare number. Null rules (specification, section 3,
"Expressions"): any null name anywhere in the expression makes it null, as does a ratio whose divisor is zero or negative, also in the
branch of `if` that is not taken; a negative result is null. The result is rounded half even to the microsecond, once, at the end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import PlainValidator

from ledger.contract.diagnostic import Refusal
from ledger.contract.scalar import parse_decimal, parse_duration, text_of
from ledger.contract.suggestion import did_you_mean
from ledger.contract.types import Written

NAMES: dict[str, Literal["duration", "number"]] = {
    "queue": "duration",
    "prefill": "duration",
    "decode": "duration",
    "inference": "duration",
    "ttft": "duration",
    "e2e": "duration",
    "input_tokens": "number",
    "output_tokens": "number",
    "cached_input_tokens": "number",
}
BUILT_IN: dict[str, str] = {"end_to_end": "e2e", "inference": "inference", "first_token": "ttft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A measured quantity of the event, one of NAMES; durations are the derived ones of specification section 2."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal_:
    """A constant: microseconds for a duration, else a plain number. Division by a literal is multiplication by its inverse."""

    value: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """`left op right` with op one of + - *."""

    op: Literal["+", "-", "*"]
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The smallest (`min`) or largest (`max`) of its operands, at least one."""

    op: Literal["min", "max"]
    operands: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`if(condition, then, otherwise)`."""

    condition: "Condition"
    then: "Node"
    otherwise: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`left op right`, both of one unit."""

    op: Literal["<", "<=", ">", ">=", "==", "!="]
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioComparison:
    """`dividend / divisor op literal`, decided as `dividend op literal * divisor`; null unless divisor > 0."""

    op: Literal["<", "<=", ">", ">=", "==", "!="]
    dividend: "Node"
    divisor: "Node"
    literal: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic:
    """`and` or `or` of at least two conditions."""

    op: Literal["and", "or"]
    operands: tuple["Condition", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """The negation of a condition."""

    operand: "Condition"


Node = Name | Literal_ | Arithmetic | Extreme | Choice
Condition = Comparison | RatioComparison | Logic | Not


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A latency definition: its text as written and its tree, whose unit is duration."""

    text: str
    tree: Node


Unit = Literal["duration", "number", "condition"]
MAX_SYMBOLS = 100  # bounds the depth of the tree, and so of every walk over it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio:
    """A division by something else than a literal; it lives only until the comparison that it is one side of."""

    dividend: Node
    divisor: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Typed:
    """A part of the expression with its unit and the place where it stands."""

    unit: Unit
    tree: Node | Condition | _Ratio
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Symbol:
    """A word, a literal or a sign of the text; the end of the text is the empty one."""

    text: str
    offset: int


_SYMBOL = re.compile(r"[0-9]+(?:\.[0-9]+)?[A-Za-z0-9_.]*|[A-Za-z_][A-Za-z0-9_]*|<=|>=|==|!=|[-+*/<>(),]")
_LITERAL = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)")
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_POWER = {"or": 1, "and": 2, **dict.fromkeys(_COMPARED, 4), "+": 5, "-": 5, "*": 6, "/": 6}
_NOT_POWER = 3
_CALLS = ("min", "max", "if")


def _refusal(offset: int, found: str, expected: str, cure: str) -> Refusal:
    return Refusal("bad_expression", expected, cure, found=found, offset=offset)


def _symbols(text: str) -> list[_Symbol]:
    symbols: list[_Symbol] = []
    offset = 0
    while offset < len(text):
        if text[offset] in " \n":
            offset += 1
            continue
        match = _SYMBOL.match(text, offset)
        if not match:
            raise _refusal(offset, f"the character {text[offset]!a}", "a name, a literal or one of + - * / < > = ( ) ,", "remove it")
        symbols.append(_Symbol(text=match[0], offset=offset))
        offset = match.end()
        if len(symbols) > MAX_SYMBOLS:
            raise _refusal(match.start(), f"more than {MAX_SYMBOLS} words and signs", "a short definition", "simplify it")
    return [*symbols, _Symbol(text="", offset=len(text))]


class _Parser:
    """Operator precedence over the symbols, lowest first: or, and, not, comparison, + and -, * and /."""

    def __init__(self, text: str) -> None:
        self._symbols = _symbols(text)
        self._position = 0

    def whole(self) -> _Typed:
        typed = self._operation(1)
        if self._next.text:
            raise self._unexpected("the end of the definition or an operator")
        return typed

    @property
    def _next(self) -> _Symbol:
        return self._symbols[self._position]

    def _take(self) -> _Symbol:
        symbol = self._next
        self._position += 1
        return symbol

    def _expect(self, text: str) -> None:
        if self._next.text != text:
            raise self._unexpected(f"`{text}`")
        self._take()

    def _unexpected(self, expected: str) -> Refusal:
        symbol = self._next
        return _refusal(symbol.offset, f"`{symbol.text[:40]}`" if symbol.text else "the end", expected, "correct the definition")

    def _operation(self, power: int) -> _Typed:
        left = self._operand()
        while _POWER.get(self._next.text, 0) >= power:
            sign = self._take()
            right = self._operation(_POWER[sign.text] + 1)
            left = _combined(sign, left, right)
        return left

    def _operand(self) -> _Typed:
        symbol = self._next
        if symbol.text == "not":
            self._take()
            operand = _condition(self._operation(_NOT_POWER))
            return _Typed(unit="condition", tree=Not(operand=operand), offset=symbol.offset)
        if symbol.text == "(":
            self._take()
            typed = self._operation(1)
            self._expect(")")
            return typed
        if symbol.text in _CALLS:
            self._take()
            return self._call(symbol)
        if symbol.text in NAMES:
            self._take()
            return _Typed(unit=NAMES[symbol.text], tree=Name(name=symbol.text), offset=symbol.offset)
        if symbol.text[:1].isdigit():
            self._take()
            return _literal(symbol)
        if symbol.text[:1].isalpha() or symbol.text[:1] == "_":
            raise _unknown_name(symbol)
        raise self._unexpected("a name, a literal, `(`, `not`, `min`, `max` or `if`")

    def _call(self, symbol: _Symbol) -> _Typed:
        self._expect("(")
        arguments = [self._operation(1)]
        while self._next.text == ",":
            self._take()
            arguments.append(self._operation(1))
        self._expect(")")
        if symbol.text == "if":
            if len(arguments) != 3:
                raise _refusal(symbol.offset, f"`if` of {len(arguments)} parts", "three", "write if(condition, then, otherwise)")
            condition, then, otherwise = arguments
            unit = _same_unit([then, otherwise])
            tree: Node = Choice(condition=_condition(condition), then=_quantity(then), otherwise=_quantity(otherwise))
        else:
            unit = _same_unit(arguments)
            op: Literal["min", "max"] = "min" if symbol.text == "min" else "max"
            tree = Extreme(op=op, operands=tuple(_quantity(argument) for argument in arguments))
        return _Typed(unit=unit, tree=tree, offset=symbol.offset)


def _literal(symbol: _Symbol) -> _Typed:
    match = _LITERAL.fullmatch(symbol.text)
    try:
        if match and match[2]:
            return _Typed(unit="duration", tree=Literal_(value=Fraction(parse_duration(symbol.text))), offset=symbol.offset)
        return _Typed(unit="number", tree=Literal_(value=Fraction(parse_decimal(symbol.text))), offset=symbol.offset)
    except Refusal as refusal:
        expected = "a decimal such as 0.30 or a duration such as 50ms"
        raise _refusal(symbol.offset, f"`{symbol.text[:40]}`", expected, refusal.cure) from None


def _unknown_name(symbol: _Symbol) -> Refusal:
    known = [*NAMES, *_CALLS, "and", "or", "not"]
    cure = did_you_mean(symbol.text, known, "only measured quantities of the request can be used")
    return _refusal(symbol.offset, f"`{symbol.text[:40]}`", f"one of {', '.join(NAMES)}", cure)


def _condition(typed: _Typed) -> Condition:
    if not isinstance(typed.tree, Comparison | RatioComparison | Logic | Not):
        raise _refusal(typed.offset, f"a {typed.unit}", "a condition", "compare it with something, for example `queue > 10ms`")
    return typed.tree


def _quantity(typed: _Typed) -> Node:
    if isinstance(typed.tree, _Ratio):
        cure = "compare the quotient with a literal, for example `inference / e2e < 0.30`, or divide by a literal"
        raise _refusal(typed.offset, "a quotient of measured quantities", "a quotient compared with a literal", cure)
    if isinstance(typed.tree, Comparison | RatioComparison | Logic | Not):
        raise _refusal(typed.offset, "a condition", "a duration or a number", "use a condition only in `if`, `and`, `or` and `not`")
    return typed.tree


def _same_unit(parts: Sequence[_Typed]) -> Unit:
    for part in parts:
        if part.unit != parts[0].unit:
            cure = "give a duration its unit, as in 50ms, and a number none"
            raise _refusal(part.offset, f"a {part.unit} beside a {parts[0].unit}", f"a {parts[0].unit}", cure)
    return parts[0].unit


def _combined(sign: _Symbol, left: _Typed, right: _Typed) -> _Typed:
    """The operation of one sign, unit-checked."""
    if sign.text in ("and", "or"):
        return _logic(sign, left, right)
    if sign.text in _COMPARED:
        return _comparison(sign, left, right)
    if sign.text == "/":
        return _quotient(sign, left, right)
    if sign.text == "*":
        if left.unit == right.unit == "duration":
            raise _refusal(sign.offset, "a duration times a duration", "a duration times a number", "multiply by a number")
        unit: Unit = "duration" if "duration" in (left.unit, right.unit) else "number"
        tree = Arithmetic(op="*", left=_quantity(left), right=_quantity(right))
    else:
        op: Literal["+", "-"] = "+" if sign.text == "+" else "-"
        tree = Arithmetic(op=op, left=_quantity(left), right=_quantity(right))
        unit = _same_unit([left, right])
    return _Typed(unit=unit, tree=tree, offset=left.offset)


def _logic(sign: _Symbol, left: _Typed, right: _Typed) -> _Typed:
    op: Literal["and", "or"] = "and" if sign.text == "and" else "or"
    first, last = _condition(left), _condition(right)
    before = first.operands if isinstance(first, Logic) and first.op == op else (first,)
    return _Typed(unit="condition", tree=Logic(op=op, operands=(*before, last)), offset=left.offset)


def _comparison(sign: _Symbol, left: _Typed, right: _Typed) -> _Typed:
    op: Any = sign.text
    if isinstance(right.tree, _Ratio) and isinstance(left.tree, Literal_):
        left, right, op = right, left, _MIRRORED[op]
    if isinstance(left.tree, _Ratio):
        if not isinstance(right.tree, Literal_):
            cure = "compare a quotient with a literal only, or multiply instead"
            raise _refusal(right.offset, "a quotient compared with a measured quantity", "a literal", cure)
        _same_unit([left, right])
        tree: Condition = RatioComparison(op=op, dividend=left.tree.dividend, divisor=left.tree.divisor, literal=right.tree.value)
    else:
        tree = Comparison(op=op, left=_quantity(left), right=_quantity(right))
        _same_unit([left, right])
    return _Typed(unit="condition", tree=tree, offset=left.offset)


def _quotient(sign: _Symbol, left: _Typed, right: _Typed) -> _Typed:
    dividend, divisor = _quantity(left), _quantity(right)
    if left.unit == "number" and right.unit == "duration":
        raise _refusal(sign.offset, "a number divided by a duration", "a quotient that is a number or a duration", "divide by a number")
    unit: Unit = "number" if left.unit == right.unit else "duration"
    if not isinstance(divisor, Literal_):
        return _Typed(unit=unit, tree=_Ratio(dividend=dividend, divisor=divisor), offset=left.offset)
    if divisor.value == 0:
        raise _refusal(right.offset, "a division by zero", "a divisor other than zero", "correct the divisor")
    inverse = Literal_(value=1 / divisor.value)
    return _Typed(unit=unit, tree=Arithmetic(op="*", left=dividend, right=inverse), offset=left.offset)


def words_of(definition: str) -> tuple[str, ...]:
    """The quantities and functions that the text of a definition uses, each once, in order.

    >>> words_of("max(e2e - queue, e2e * 0.5)")
    ('max', 'e2e', 'queue')
    """
    return tuple(dict.fromkeys(word for word in _SYMBOL.findall(definition) if word in NAMES or word in _CALLS))


def parse_definition(value: object) -> Definition:
    """The definition that the text writes. Raises Refusal, with the offset, for anything outside the grammar or of another unit.

    >>> parse_definition("e2e - queue").tree
    Arithmetic(op='-', left=Name(name='e2e'), right=Name(name='queue'))
    """
    text = text_of(value)
    typed = _Parser(text).whole()
    if typed.unit != "duration":
        raise _refusal(0, f"a {typed.unit}", "a definition whose result is a duration", "a latency is a duration: correct the units")
    return Definition(text=text, tree=_quantity(typed))


WRITTEN = Written(lambda: {"type": "string", "description": "The span of a request that is its latency, for example: e2e - queue."})
Expression = Annotated[Definition, PlainValidator(parse_definition), WRITTEN]
