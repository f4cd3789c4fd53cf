"""A latency definition as exact SQL: integers only, one rounding at the end.

The steps are those of `contract/whole_numbers`, which also says how large their numbers become. Source: specification, section 3
("Expressions").
"""

from collections.abc import Callable, Sequence
from typing import Literal

from sqlglot import exp

from ledger.contract.expression import Definition
from ledger.contract.whole_numbers import MOST_DIGITS, Ratio, size_of, walk
from ledger.errors import LedgerError
from ledger.rating import sql

_BIGINT_LIMIT = 2**62


class DefinitionTooLarge(LedgerError):
    """The numbers that a definition needs do not fit 38 digits: one that was stored before `contract check` refused it."""

    def __init__(self, definition: Definition) -> None:
        super().__init__(
            f"the latency definition `{definition.text}` needs numbers of more than {MOST_DIGITS} digits",
            cure="add a version with a shorter definition that `replaces` this one",
        )


def latency_us(definition: Definition, measured: Callable[[str], exp.Expr]) -> exp.Expr:
    """The latency in whole microseconds, half even, null as the specification says. `measured` gives the SQL of each name."""
    step = size_of(definition.tree).step
    if step >= 10**MOST_DIGITS:
        raise DefinitionTooLarge(definition)
    written = _Sql(measured, "decimal(38, 0)" if step >= _BIGINT_LIMIT else "bigint")
    value = walk(definition.tree, written)
    known = [sql.is_known(measured(name)) for name in sorted(written.names)]
    positive = [exp.GT(this=exp.paren(divisor.copy()), expression=sql.number(0)) for divisor in written.divisors]
    not_negative = exp.GTE(this=exp.paren(value.numerator.copy()), expression=sql.number(0))
    return sql.choose([(sql.both(*known, *positive, not_negative), exp.cast(_half_even(value), "bigint"))])


def _half_even(value: Ratio[exp.Expr]) -> exp.Expr:
    """The quotient of a numerator of 0 or more, rounded half even to a whole number."""
    if value.denominator == 1:
        return value.numerator
    numerator, denominator = exp.paren(value.numerator.copy()), sql.number(value.denominator)
    whole = exp.IntDiv(this=numerator.copy(), expression=denominator.copy())
    rest_twice = exp.Mul(this=sql.number(2), expression=exp.paren(exp.Mod(this=numerator.copy(), expression=denominator.copy())))
    odd = exp.EQ(this=exp.Mod(this=exp.paren(whole.copy()), expression=sql.number(2)), expression=sql.number(1))
    up = sql.either(
        exp.GT(this=rest_twice.copy(), expression=denominator.copy()),
        sql.both(exp.EQ(this=rest_twice.copy(), expression=denominator.copy()), odd),
    )
    return exp.Add(this=whole, expression=sql.choose([(up, sql.number(1))], sql.number(0)))


class _Sql:
    """The arithmetic of SQL, which also gathers the names that must be known and the divisors that must be positive."""

    def __init__(self, measured: Callable[[str], exp.Expr], number_type: str) -> None:
        self._measured = measured
        self._number_type = number_type
        self.names: set[str] = set()
        self.divisors: list[exp.Expr] = []

    def measured(self, name: str) -> exp.Expr:
        self.names.add(name)
        return exp.cast(self._measured(name), self._number_type)

    def constant(self, value: int) -> exp.Expr:
        # Typed too, since an engine would multiply two small ones in 32 bits.
        return exp.cast(sql.number(value), self._number_type)

    def computed(self, op: Literal["+", "-", "*"], left: exp.Expr, right: exp.Expr) -> exp.Expr:
        kind = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[op]
        return kind(this=exp.paren(left.copy()), expression=exp.paren(right.copy()))

    def extreme(self, op: Literal["min", "max"], operands: Sequence[exp.Expr]) -> exp.Expr:
        pick = exp.Least if op == "min" else exp.Greatest
        return pick(this=operands[0], expressions=list(operands[1:]))

    def chosen(self, condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
        return sql.choose([(condition, then)], otherwise)

    def compared(self, op: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return sql.COMPARE[op](this=exp.paren(left), expression=exp.paren(right))

    def joined(self, op: Literal["and", "or"], operands: Sequence[exp.Expr]) -> exp.Expr:
        return exp.paren(sql.both(*operands) if op == "and" else sql.either(*operands))

    def negated(self, operand: exp.Expr) -> exp.Expr:
        return exp.Not(this=exp.paren(operand))

    def must_be_positive(self, divisor: exp.Expr) -> None:
        self.divisors.append(divisor)
