"""A latency definition as steps on whole numbers, and how large they can become: its tree in, what some arithmetic makes of the steps out.

Every value is carried as an integer numerator over a constant denominator, so nothing is divided before the last step. The arithmetic is
given by whoever walks: that of SQL makes the expression that engines compute (`rating/definition`), that of spans says here what the
largest number is. Source: specification, section 3 ("Expressions"); of the largest measurements, section 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Generic, Literal, Protocol, TypeVar, assert_never

from ledger.contract.expression import (
    Arithmetic,
    Choice,
    Comparison,
    Condition,
    Extreme,
    Literal_,
    Logic,
    Name,
    Node,
    Not,
    RatioComparison,
)

Number = TypeVar("Number")
Truth = TypeVar("Truth")

MOST_DIGITS = 38  # of a whole number that every engine has
LARGEST_RESULT_US = 2**63 - 1
LONGEST_MEASURED_US = 30 * 86_400 * 1_000_000
MOST_TOKENS = 10**12
# Times of a request that may be derived are as many measured ones added.
LARGEST = {
    name: times * LONGEST_MEASURED_US
    for name, times in {"queue": 1, "prefill": 1, "decode": 1, "inference": 2, "ttft": 2, "e2e": 3}.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Generic[Number]):
    """`numerator / denominator`; the denominator is above 0."""

    numerator: Number
    denominator: int


class Steps(Protocol[Number, Truth]):
    """An arithmetic of whole numbers."""

    def measured(self, name: str) -> Number:
        """One of NAMES."""

    def constant(self, value: int) -> Number:
        """A whole number."""

    def computed(self, op: Literal["+", "-", "*"], left: Number, right: Number) -> Number:
        """The sum, the difference or the product."""

    def extreme(self, op: Literal["min", "max"], operands: Sequence[Number]) -> Number:
        """The smallest or the largest of two or more."""

    def chosen(self, condition: Truth, then: Number, otherwise: Number) -> Number:
        """The one or the other."""

    def compared(self, op: str, left: Number, right: Number) -> Truth:
        """Whether the comparison holds."""

    def joined(self, op: Literal["and", "or"], operands: Sequence[Truth]) -> Truth:
        """Whether all hold, or one."""

    def negated(self, operand: Truth) -> Truth:
        """Whether it does not hold."""

    def must_be_positive(self, divisor: Number) -> None:
        """The whole definition is null unless this is above 0."""


def walk(node: Node, steps: Steps[Number, Truth]) -> Ratio[Number]:
    """What the arithmetic makes of the definition."""
    match node:
        case Name(name=name):
            return Ratio(numerator=steps.measured(name), denominator=1)
        case Literal_(value=constant):
            return Ratio(numerator=steps.constant(constant.numerator), denominator=constant.denominator)
        case Arithmetic(op="*", left=left, right=right):
            a, b = walk(left, steps), walk(right, steps)
            return Ratio(numerator=steps.computed("*", a.numerator, b.numerator), denominator=a.denominator * b.denominator)
        case Arithmetic(op=op, left=left, right=right):
            (one, other), common = _aligned(steps, walk(left, steps), walk(right, steps))
            return Ratio(numerator=steps.computed(op, one, other), denominator=common)
        case Extreme(op=op, operands=operands):
            numerators, common = _aligned(steps, *(walk(operand, steps) for operand in operands))
            picked = steps.extreme(op, numerators) if len(numerators) > 1 else numerators[0]
            return Ratio(numerator=picked, denominator=common)
        case Choice(condition=condition, then=then, otherwise=otherwise):
            test = _condition(condition, steps)
            (one, other), common = _aligned(steps, walk(then, steps), walk(otherwise, steps))
            return Ratio(numerator=steps.chosen(test, one, other), denominator=common)
        case _:
            assert_never(node)


def _condition(node: Condition, steps: Steps[Number, Truth]) -> Truth:
    match node:
        case Comparison(op=op, left=left, right=right):
            (one, other), _ = _aligned(steps, walk(left, steps), walk(right, steps))
            return steps.compared(op, one, other)
        case RatioComparison(op=op, dividend=dividend, divisor=divisor, literal=literal):
            over = walk(divisor, steps)
            steps.must_be_positive(over.numerator)
            scaled = Ratio(
                numerator=steps.computed("*", over.numerator, steps.constant(literal.numerator)),
                denominator=over.denominator * literal.denominator,
            )
            (one, other), _ = _aligned(steps, walk(dividend, steps), scaled)
            return steps.compared(op, one, other)
        case Logic(op=op, operands=operands):
            return steps.joined(op, [_condition(operand, steps) for operand in operands])
        case Not(operand=operand):
            return steps.negated(_condition(operand, steps))
        case _:
            assert_never(node)


def _aligned(steps: Steps[Number, Truth], *ratios: Ratio[Number]) -> tuple[list[Number], int]:
    """The numerators over the least common denominator, and this."""
    common = lcm(*(ratio.denominator for ratio in ratios))
    factors = [common // ratio.denominator for ratio in ratios]
    numerators = [
        ratio.numerator if factor == 1 else steps.computed("*", ratio.numerator, steps.constant(factor))
        for ratio, factor in zip(ratios, factors, strict=True)
    ]
    return numerators, common


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """`step` is the largest number, without its sign, that computing a definition can come to; `result_us` what it can be at most."""

    step: int
    result_us: int


def size_of(tree: Node) -> Size:
    """How large numbers become, of requests that can be.

    >>> from ledger.contract.expression import parse_definition
    >>> size_of(parse_definition("queue * 0.5").tree)
    Size(step=2592000000000, result_us=1296000000000)
    """
    spans = _Spans()
    value = walk(tree, spans)
    _, highest = value.numerator
    # The last step doubles what the division leaves, which is less than the denominator.
    step = max(spans.largest, highest, 2 * value.denominator if value.denominator > 1 else 1)
    return Size(step=step, result_us=max(round(Fraction(highest, value.denominator)), 0))


_Span = tuple[int, int]  # from the lowest number to the highest, both included


class _Spans:
    """The arithmetic of what numbers can be; a condition says nothing."""

    def __init__(self) -> None:
        self.largest = 0

    def measured(self, name: str) -> _Span:
        return self._seen(0, LARGEST.get(name, MOST_TOKENS))

    def constant(self, value: int) -> _Span:
        return self._seen(value, value)

    def computed(self, op: Literal["+", "-", "*"], left: _Span, right: _Span) -> _Span:
        match op:
            case "+":
                return self._seen(left[0] + right[0], left[1] + right[1])
            case "-":
                return self._seen(left[0] - right[1], left[1] - right[0])
            case "*":
                products = [one * other for one, other in product(left, right)]
                return self._seen(min(products), max(products))

    def extreme(self, op: Literal["min", "max"], operands: Sequence[_Span]) -> _Span:
        pick = min if op == "min" else max
        return pick(low for low, _ in operands), pick(high for _, high in operands)

    def chosen(self, condition: None, then: _Span, otherwise: _Span) -> _Span:
        return min(then[0], otherwise[0]), max(then[1], otherwise[1])

    def compared(self, op: str, left: _Span, right: _Span) -> None:
        return None

    def joined(self, op: Literal["and", "or"], operands: Sequence[None]) -> None:
        return None

    def negated(self, operand: None) -> None:
        return None

    def must_be_positive(self, divisor: _Span) -> None:
        return None

    def _seen(self, low: int, high: int) -> _Span:
        self.largest = max(self.largest, abs(low), abs(high))
        return low, high
