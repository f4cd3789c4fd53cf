"""Latency definitions: the text of an expression to a typed tree, unit-checked. The plan compiles the tree to SQL.

Values are exact rationals: a duration in microseconds, a number of tokens, or a bare number. Null rules (specification, section 3,
"Expressions"): any null name anywhere in the expression makes it null, as does a ratio whose divisor is zero or negative, also in the
branch of `if` that is not taken; a negative result is null. The result is rounded half even to the microsecond, once, at the end.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import PlainValidator

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


def parse_definition(text: object) -> Definition:
    """The definition that the text writes. Raises ValueError for anything outside the grammar or of another unit than duration."""
    raise NotImplementedError


Expression = Annotated[Definition, PlainValidator(parse_definition)]
