"""Short names for the SQL syntax tree: every statement of the plan is built from these, never from pasted text.

Source: architecture, "The one idea" (the plan names no engine, a dialect does).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlglot import exp

from ledger.instant import MICROSECOND

COMPARE: dict[str, type[exp.Binary]] = {"<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "==": exp.EQ, "!=": exp.NEQ}

_TIMESTAMPTZ = exp.DataType.build("timestamptz")  # once: building one reads its name like a query


def column(name: str, table: str | None = None) -> exp.Column:
    """A column, quoted so that no name is taken for a keyword."""
    return exp.column(name, table=table, quoted=True)


def text(value: str) -> exp.Expr:
    """A text constant."""
    return exp.Literal.string(value)


def number(value: int) -> exp.Expr:
    """A whole number constant."""
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def boolean(value: bool) -> exp.Expr:
    """A truth value."""
    return exp.Boolean(this=value)


def instant(value: datetime) -> exp.Expr:
    """An instant constant, aware."""
    return exp.Cast(this=text(value.isoformat()), to=_TIMESTAMPTZ.copy())


def span(value: timedelta) -> exp.Expr:
    """A span of elapsed time, in whole microseconds so that no engine has to know what a day is."""
    return exp.Interval(this=text(str(value // MICROSECOND)), unit=exp.var("MICROSECOND"))


def named(expression: exp.Expr, name: str) -> exp.Expr:
    """`expression AS name`. Takes the expression over: give a copy if it is used elsewhere."""
    return exp.alias_(expression, name, quoted=True, copy=False)


def null() -> exp.Expr:
    """The unknown value."""
    return exp.Null()


def is_null(expression: exp.Expr) -> exp.Expr:
    """`expression IS NULL`."""
    return exp.Is(this=expression.copy(), expression=exp.Null())


def is_known(expression: exp.Expr) -> exp.Expr:
    """`expression IS NOT NULL`."""
    return exp.Not(this=is_null(expression))


def both(*conditions: exp.Expr) -> exp.Expr:
    """All conditions; none is true."""
    return exp.and_(*(c.copy() for c in conditions), copy=False) if conditions else boolean(True)


def either(*conditions: exp.Expr) -> exp.Expr:
    """Any of the conditions; none is false."""
    return exp.or_(*(c.copy() for c in conditions), copy=False) if conditions else boolean(False)


def among(expression: exp.Expr, values: Sequence[str]) -> exp.Expr:
    """`expression IN (values)`; false for no values."""
    return exp.In(this=expression.copy(), expressions=[text(v) for v in values]) if values else boolean(False)


def choose(branches: Iterable[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None = None) -> exp.Expr:
    """`CASE WHEN condition THEN value ... ELSE otherwise END`; just `otherwise` without branches."""
    case = exp.Case()
    for condition, value in branches:
        case = case.when(condition.copy(), value.copy(), copy=False)
    if not case.args.get("ifs"):
        return (otherwise or exp.Null()).copy()
    return case.else_(otherwise.copy(), copy=False) if otherwise is not None else case


def known_or(expression: exp.Expr, default: exp.Expr) -> exp.Expr:
    """`COALESCE(expression, default)`."""
    return exp.Coalesce(this=expression.copy(), expressions=[default.copy()])


def added(*summands: exp.Expr) -> exp.Expr:
    """The sum of one or more expressions in a row."""
    first, *others = summands
    for other in others:
        first = exp.Add(this=first, expression=other)
    return first


def everything(relation: str, columns: Sequence[str]) -> exp.Select:
    """These columns of every row of a relation."""
    return exp.select(*map(column, columns)).from_(relation)


def all_of_each(queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of all queries, of which there is at least one."""
    if len(queries) == 1:
        return queries[0]
    # Each in brackets of its own: a query may begin with WITH.
    return exp.union(
        *(exp.select(exp.Star()).from_(query.subquery(f"part_{number}", copy=False)) for number, query in enumerate(queries)),
        distinct=False,
        copy=False,
    )


def rows(columns: Sequence[tuple[str, str]], values: Sequence[Sequence[exp.Expr]]) -> exp.Select:
    """A constant relation of at least one row: columns as (name, type), values row by row."""
    table = exp.Values(
        expressions=[exp.Tuple(expressions=list(row)) for row in values],
        alias=exp.TableAlias(this=exp.to_identifier("row", quoted=True), columns=[exp.to_identifier(n, quoted=True) for n, _ in columns]),
    )
    return exp.select(*(named(exp.cast(column(name), kind, copy=False), name) for name, kind in columns)).from_(table, copy=False)
