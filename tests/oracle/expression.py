"""Latency definitions: the text of an expression and an event's values to microseconds or null. Source: specification, section 3.

Everything is exact (Fraction). Nothing is decided lazily: "any null name that the expression uses makes it null, as does a null
comparison, also in the branch of `if` that is not taken", so the whole expression is worked out and the first null ends it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
WORDS = re.compile(r"\s*(?:(\d+(?:\.\d+)?)(us|ms|s|m|h|d)?(?![\w.])|([A-Za-z_]\w*)|(<=|>=|==|!=|[<>+\-*/(),]))")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
NAMES = ("queue", "prefill", "decode", "inference", "ttft", "e2e", "input_tokens", "output_tokens", "cached_input_tokens")


class Null(Exception):
    """The expression is null."""


@dataclass(frozen=True)
class Ratio:
    """`dividend / divisor` with a divisor that is no literal; it may only stand beside a comparison with a literal."""

    dividend: Fraction
    divisor: Fraction


def evaluate(text: str, values: Mapping[str, int | None]) -> int | None:
    """Microseconds, rounded half even; None when a name or a comparison is null, or the result is negative."""
    reader = Reader(words_of(text), values)
    try:
        result = reader.sum()
    except Null:
        return None
    assert reader.at_end(), f"cannot read {text!r}"
    assert isinstance(result, Fraction)
    if result < 0:
        return None  # "a negative result is null": the exact one, a quarter of a microsecond below zero too
    return round(result)  # half even


def words_of(text: str) -> list[str | Fraction]:
    """Names and signs as text, literals as numbers (durations in microseconds)."""
    words: list[str | Fraction] = []
    at = 0
    while text[at:].strip():
        match = WORDS.match(text, at)
        assert match, f"cannot read {text[at:]!r}"
        number, unit, name, sign = match.groups()
        words.append(Fraction(number) * UNIT_US[unit or "us"] if number else name or sign)
        at = match.end()
    return words


class Reader:
    """Reads and works out one expression from left to right, weakest binding first: or, and, not, comparison, + -, * /."""

    def __init__(self, words: list[str | Fraction], values: Mapping[str, int | None]) -> None:
        self.words = words
        self.values = values
        self.at = 0

    def at_end(self) -> bool:
        return self.at == len(self.words)

    def next(self) -> str | Fraction | None:
        return None if self.at_end() else self.words[self.at]

    def take(self, *wanted: str) -> str | None:
        word = self.next()
        if isinstance(word, str) and word in wanted:
            self.at += 1
            return word
        return None

    def expect(self, word: str) -> None:
        assert self.take(word), f"{word} expected at {self.words[self.at :]}"

    def condition(self) -> bool:
        holds = self.conjunction()
        while self.take("or"):
            right = self.conjunction()  # worked out whatever the left side says: a null in it counts
            holds = holds or right
        return holds

    def conjunction(self) -> bool:
        holds = self.negation()
        while self.take("and"):
            right = self.negation()
            holds = holds and right
        return holds

    def negation(self) -> bool:
        if self.take("not"):
            return not self.negation()
        if self.next() == "(" and self.parenthesis_holds_a_condition():
            self.expect("(")
            holds = self.condition()
            self.expect(")")
            return holds
        return self.comparison()

    def parenthesis_holds_a_condition(self) -> bool:
        """Whether a comparison, `and`, `or` or `not` stands directly inside the parenthesis that opens here."""
        depth = 0
        for word in self.words[self.at :]:
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return False
            if depth == 1 and isinstance(word, str) and word in (*COMPARISONS, "and", "or", "not"):
                return True
        return False

    def comparison(self) -> bool:
        left = self.sum(ratio_allowed=True)
        sign = self.take(*COMPARISONS)
        assert sign, "a comparison is expected"
        right = self.sum(ratio_allowed=True)
        # "/ as one side of a comparison with a literal (then it is compared by multiplication, so nothing is rounded;
        # division by zero makes the comparison null); a divisor below zero makes the comparison null"
        if isinstance(left, Ratio) and isinstance(right, Fraction):
            low, high, divisor = left.dividend, right * left.divisor, left.divisor
        elif isinstance(right, Ratio) and isinstance(left, Fraction):
            low, high, divisor = left * right.divisor, right.dividend, right.divisor
        else:
            assert isinstance(left, Fraction) and isinstance(right, Fraction), "two ratios cannot be compared"
            low, high, divisor = left, right, Fraction(1)
        if divisor <= 0:
            raise Null
        return {
            "<": low < high,
            "<=": low <= high,
            ">": low > high,
            ">=": low >= high,
            "==": low == high,
            "!=": low != high,
        }[sign]

    def sum(self, ratio_allowed: bool = False) -> Fraction | Ratio:
        result = self.product(ratio_allowed)
        while sign := self.take("+", "-"):
            right = self.product()
            assert isinstance(result, Fraction) and isinstance(right, Fraction)
            result = result + right if sign == "+" else result - right
        return result

    def product(self, ratio_allowed: bool = False) -> Fraction | Ratio:
        result: Fraction | Ratio = self.value()
        while sign := self.take("*", "/"):
            by_literal = isinstance(self.next(), Fraction)
            right = self.value()
            assert isinstance(result, Fraction), "a ratio stands alone beside its comparison"
            if sign == "*":
                result *= right
            elif by_literal:
                result /= right
            else:
                assert ratio_allowed, "division only by a literal, or beside a comparison"
                result = Ratio(result, right)
        return result

    def value(self) -> Fraction:
        word = self.next()
        assert word is not None, "the expression ends too early"
        self.at += 1
        if isinstance(word, Fraction):
            return word
        if word == "(":
            inside = self.sum()
            self.expect(")")
            assert isinstance(inside, Fraction)
            return inside
        if word == "if":
            self.expect("(")
            holds = self.condition()
            self.expect(",")
            then = self.sum()
            self.expect(",")
            otherwise = self.sum()
            self.expect(")")
            assert isinstance(then, Fraction) and isinstance(otherwise, Fraction)
            return then if holds else otherwise
        if word in ("min", "max"):
            self.expect("(")
            operands = [self.sum()]
            while self.take(","):
                operands.append(self.sum())
            self.expect(")")
            return (min if word == "min" else max)(operand for operand in operands if isinstance(operand, Fraction))
        assert word in NAMES, f"unknown name {word}"
        measured = self.values[word]
        if measured is None:
            raise Null
        return Fraction(measured)
