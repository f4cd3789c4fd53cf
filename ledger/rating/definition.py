"""A latency definition as exact SQL: integers only, one rounding at the end.

Every value is carried as an integer numerator over a constant denominator, so nothing is divided before the last step. Source:
specification, section 3 ("Expressions").
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm
from typing import assert_never

from sqlglot import exp

from ledger.contract.expression import (
    Arithmetic,
    Choice,
    Comparison,
    Condition,
    Definition,
    Extreme,
    Literal_,
    Logic,
    Name,
    Node,
    Not,
    RatioComparison,
)
from ledger.rating import sql

# No measured value exceeds this: three durations of 30 days in microseconds, or 10^12 tokens.
_LARGEST_MEASURED = 10**13
_BIGINT_LIMIT = 2**62
_DECIMAL_LIMIT = 10**38


class DefinitionTooLarge(ValueError):
    """The numbers that a definition needs do not fit 38 digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio:
    """`numerator / denominator`, with an upper bound of the numerator's size."""

    numerator: exp.Expr
    denominator: int
    bound: int

    def over(self, denominator: int) -> "_Ratio":
        factor = denominator // self.denominator
        if factor == 1:
            return self
        numerator = exp.Mul(this=exp.paren(self.numerator.copy()), expression=sql.number(factor))
        return _Ratio(numerator=numerator, denominator=denominator, bound=self.bound * factor)


def latency_us(definition: Definition, measured: Callable[[str], exp.Expr]) -> exp.Expr:
    """The latency in whole microseconds, half even, null as the specification says. `measured` gives the SQL of each name."""
    largest = _Compiler(measured, wide=False)
    value = largest.value(definition.tree)
    bound = max(largest.bound, value.bound * 2)
    if bound >= _DECIMAL_LIMIT:
        raise DefinitionTooLarge(f"the definition '{definition.text}' needs numbers of more than 38 digits")
    compiler = largest
    if bound >= _BIGINT_LIMIT:
        compiler = _Compiler(measured, wide=True)
        value = compiler.value(definition.tree)
    rounded = _half_even(value)
    known = [sql.is_known(measured(name)) for name in sorted(compiler.names)]
    positive = [exp.GT(this=exp.paren(divisor.copy()), expression=sql.number(0)) for divisor in compiler.divisors]
    not_negative = exp.GTE(this=exp.paren(value.numerator.copy()), expression=sql.number(0))
    return sql.choose([(sql.both(*known, *positive, not_negative), exp.cast(rounded, "bigint"))])


def _half_even(value: _Ratio) -> exp.Expr:
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


class _Compiler:
    """One walk over a definition's tree, which also gathers the names and divisors that must be known and positive."""

    def __init__(self, measured: Callable[[str], exp.Expr], *, wide: bool) -> None:
        self.measured = measured
        self.wide = wide
        self.names: set[str] = set()
        self.divisors: list[exp.Expr] = []
        self.bound = 0

    def value(self, node: Node) -> _Ratio:
        ratio = self._value(node)
        self.bound = max(self.bound, ratio.bound)
        return ratio

    def _value(self, node: Node) -> _Ratio:
        match node:
            case Name(name=name):
                self.names.add(name)
                leaf = self.measured(name)
                return _Ratio(numerator=self._widened(leaf), denominator=1, bound=_LARGEST_MEASURED)
            case Literal_(value=constant):
                return _Ratio(
                    numerator=self._widened(sql.number(constant.numerator)),
                    denominator=constant.denominator,
                    bound=abs(constant.numerator),
                )
            case Arithmetic(op="*", left=left, right=right):
                a, b = self.value(left), self.value(right)
                product = exp.Mul(this=exp.paren(a.numerator), expression=exp.paren(b.numerator))
                return _Ratio(numerator=product, denominator=a.denominator * b.denominator, bound=a.bound * b.bound)
            case Arithmetic(op=op, left=left, right=right):
                a, b = self._aligned(self.value(left), self.value(right))
                kind = exp.Add if op == "+" else exp.Sub
                total = kind(this=exp.paren(a.numerator), expression=exp.paren(b.numerator))
                return _Ratio(numerator=total, denominator=a.denominator, bound=a.bound + b.bound)
            case Extreme(op=op, operands=operands):
                aligned = self._aligned(*(self.value(operand) for operand in operands))
                pick = exp.Least if op == "min" else exp.Greatest
                numerators = [ratio.numerator for ratio in aligned]
                picked = pick(this=numerators[0], expressions=numerators[1:]) if len(numerators) > 1 else numerators[0]
                return _Ratio(numerator=picked, denominator=aligned[0].denominator, bound=max(r.bound for r in aligned))
            case Choice(condition=condition, then=then, otherwise=otherwise):
                test = self.condition(condition)
                a, b = self._aligned(self.value(then), self.value(otherwise))
                return _Ratio(
                    numerator=sql.choose([(test, a.numerator)], b.numerator), denominator=a.denominator, bound=max(a.bound, b.bound)
                )
            case _:
                assert_never(node)

    def condition(self, node: Condition) -> exp.Expr:
        match node:
            case Comparison(op=op, left=left, right=right):
                a, b = self._aligned(self.value(left), self.value(right))
                return sql.COMPARE[op](this=exp.paren(a.numerator), expression=exp.paren(b.numerator))
            case RatioComparison(op=op, dividend=dividend, divisor=divisor, literal=literal):
                over = self.value(divisor)
                self.divisors.append(over.numerator)
                scaled = _Ratio(
                    numerator=exp.Mul(this=exp.paren(over.numerator.copy()), expression=self._widened(sql.number(literal.numerator))),
                    denominator=over.denominator * literal.denominator,
                    bound=over.bound * abs(literal.numerator),
                )
                a, b = self._aligned(self.value(dividend), scaled)
                return sql.COMPARE[op](this=exp.paren(a.numerator), expression=exp.paren(b.numerator))
            case Logic(op=op, operands=operands):
                tests = [self.condition(operand) for operand in operands]
                return exp.paren(sql.both(*tests) if op == "and" else sql.either(*tests))
            case Not(operand=operand):
                return exp.Not(this=exp.paren(self.condition(operand)))
            case _:
                assert_never(node)

    def _aligned(self, *ratios: _Ratio) -> list[_Ratio]:
        common = lcm(*(ratio.denominator for ratio in ratios))
        aligned = [ratio.over(common) for ratio in ratios]
        self.bound = max(self.bound, *(ratio.bound for ratio in aligned))
        return aligned

    def _widened(self, leaf: exp.Expr) -> exp.Expr:
        # Constants too, since an engine would multiply two small ones in 32 bits.
        return exp.cast(leaf, "decimal(38, 0)" if self.wide else "bigint")
