"""Scalars of a contract file: from the text that stands in the file to an exact value, by the type that the key wants.

Every scalar arrives as text and nothing is guessed: `NO` is not false, `010` is not eight. Each type here is an annotated type with
its parser; a parser raises ValueError in words a reader of contracts understands. Source: specification, sections 1 and 3.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator

UNIT_US: dict[str, int] = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}

_DURATION = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(us|ms|s|m|h|d)")
_DECIMAL = re.compile(r"\d{1,18}(?:\.\d{1,12})?")
_INTEGER = re.compile(r"\d{1,18}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a single value is expected here")
    return value


def parse_duration(value: object) -> int:
    """Microseconds of a duration such as `300ms` or `8.3s`; a bare number or a fraction of a microsecond is refused."""
    match = _DURATION.fullmatch(_text(value))
    if not match:
        raise ValueError("a duration with its unit, such as 300ms, 8.3s, 5m, 1h or 30d")
    microseconds = Fraction(match[1]) * UNIT_US[match[2]]
    if microseconds.denominator != 1:
        raise ValueError("a duration of whole microseconds")
    return int(microseconds)


def parse_decimal(value: object) -> Decimal:
    """A decimal without sign or exponent, at most 12 digits after the point; keeps the zeros that the file writes."""
    text = _text(value)
    if not _DECIMAL.fullmatch(text):
        raise ValueError("a decimal number such as 2.00, at most 12 digits after the point")
    return Decimal(text)


def parse_multiplier(value: object) -> Decimal:
    """A factor on a price: `2.0`, or `30%` for Decimal("0.3")."""
    text = _text(value)
    return parse_share(text) if text.endswith("%") else parse_decimal(text)


def parse_share(value: object) -> Decimal:
    """A percentage, as a share: `120%` is Decimal("1.2")."""
    text = _text(value)
    if not text.endswith("%") or not _DECIMAL.fullmatch(text[:-1]):
        raise ValueError("a percentage such as 30%")
    return Decimal(text[:-1]).scaleb(-2)


def parse_factor(value: object) -> int:
    """A whole factor such as `2x`, at least 1."""
    text = _text(value)
    if not text.endswith("x") or not _INTEGER.fullmatch(text[:-1]) or int(text[:-1]) < 1:
        raise ValueError("a positive whole factor such as 2x")
    return int(text[:-1])


def parse_count(value: object) -> int:
    """A whole number of 0 or more."""
    text = _text(value)
    if not _INTEGER.fullmatch(text):
        raise ValueError("a whole number such as 16000")
    return int(text)


def parse_version_number(value: object) -> int:
    """A whole number of 1 or more."""
    number = parse_count(value)
    if number < 1:
        raise ValueError("a version number of 1 or more")
    return number


def parse_percentile(value: object) -> Decimal:
    """A percentile above 0 and below 100, as a share: `99.9` is Decimal("0.999")."""
    number = parse_decimal(value)
    if not 0 < number < 100:
        raise ValueError("a percentile above 0 and below 100")
    return number.scaleb(-2)


def parse_day(value: object) -> date:
    """A day such as `2026-05-06`."""
    text = _text(value)
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("a day such as 2026-05-06")
    return date.fromisoformat(text)


def parse_instant(value: object) -> datetime:
    """An RFC 3339 instant with an offset, in UTC."""
    text = _text(value)
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})", text)
    if not match or int(match[2]) > 23 or int(match[3]) > 59 or int(match[4]) > 59:
        raise ValueError("an instant with its offset, such as 2026-05-03T10:00:00+08:00")
    return datetime.fromisoformat(text.upper()).astimezone(UTC)


def parse_yes_no(value: object) -> bool:
    """`yes`, `no`, `true` or `false`."""
    text = _text(value)
    if text not in ("yes", "no", "true", "false"):
        raise ValueError("yes or no")
    return text in ("yes", "true")


def parse_identifier(value: object) -> str:
    """A name that the file uses for a thing: letters, digits and `. _ : / -`, at most 100."""
    text = _text(value)
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("a name of letters, digits and . _ : / -")
    return text


def parse_line(value: object) -> str:
    """One line of text, not empty, without control characters, at most 200 characters."""
    text = _text(value)
    if not text.strip() or len(text) > 200 or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise ValueError("one line of text of 1 to 200 characters")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The latencies of a tier, half open in whole microseconds: from_us <= L < until_us; until_us None has no end."""

    text: str
    from_us: int
    until_us: int | None


_SPAN = re.compile(r"\s*(?:(?P<op><=|<|>=|>)\s*(?P<edge>\S+)|(?P<low>\S+)\s*(?P<dots>\.\.<|\.\.)\s*(?P<high>\S+))\s*")


def parse_span(value: object) -> Span:
    """`< a`, `<= a`, `> a`, `>= a`, `a .. b` (both included) or `a ..< b`. Whole microseconds make every span half open."""
    text = _text(value)
    match = _SPAN.fullmatch(text)
    if not match:
        raise ValueError("a latency span such as '< 100ms', '100ms .. 300ms', '100ms ..< 300ms' or '> 300ms'")
    if match["op"]:
        edge = parse_duration(match["edge"])
        bounds: dict[str, tuple[int, int | None]] = {"<": (0, edge), "<=": (0, edge + 1), ">": (edge + 1, None), ">=": (edge, None)}
        low, high = bounds[match["op"]]
    else:
        low, high = parse_duration(match["low"]), parse_duration(match["high"]) + (match["dots"] == "..")
    if high is not None and low >= high:
        raise ValueError("a latency span that holds at least one latency")
    return Span(text=text, from_us=low, until_us=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A comparison of a token count: `count op tokens`."""

    op: Literal["<", "<=", ">", ">="]
    tokens: int


def parse_threshold(value: object) -> Threshold:
    """A comparison such as `> 16000`; `16k` is refused because it may mean 16000 or 16384."""
    text = _text(value)
    match = re.fullmatch(r"\s*(<=|<|>=|>)\s*(\d{1,13})\s*", text)
    if not match:
        raise ValueError("a comparison such as '> 16000' (write 16000 or 16384, not 16k)")
    op: Any = match[1]
    return Threshold(op=op, tokens=int(match[2]))


def _or_none(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    """The parser that also reads `none`."""
    return lambda value: None if value == "none" else parse(value)


def _unique(values: Sequence[Hashable]) -> Any:
    if not isinstance(values, list | tuple) or len(set(values)) != len(values) or not values:
        raise ValueError("a list of at least one name, none twice")
    return values


Duration = Annotated[int, PlainValidator(parse_duration)]
Rate = Annotated[Decimal, PlainValidator(parse_decimal)]
Amount = Annotated[Decimal, PlainValidator(parse_decimal)]
OptionalAmount = Annotated[Decimal | None, PlainValidator(_or_none(parse_decimal))]
Multiplier = Annotated[Decimal, PlainValidator(parse_multiplier)]
Share = Annotated[Decimal, PlainValidator(parse_share)]
OptionalShare = Annotated[Decimal | None, PlainValidator(_or_none(parse_share))]
Factor = Annotated[int, PlainValidator(parse_factor)]
Count = Annotated[int, PlainValidator(parse_count)]
OptionalCount = Annotated[int | None, PlainValidator(_or_none(parse_count))]
VersionNumber = Annotated[int, PlainValidator(parse_version_number)]
Percentile = Annotated[Decimal, PlainValidator(parse_percentile)]
Day = Annotated[date, PlainValidator(parse_day)]
Instant = Annotated[datetime, PlainValidator(parse_instant)]
YesNo = Annotated[bool, PlainValidator(parse_yes_no)]
Identifier = Annotated[str, PlainValidator(parse_identifier)]
Line = Annotated[str, PlainValidator(parse_line)]
Clause = Annotated[str | None, PlainValidator(parse_line)]
Accounts = Annotated[tuple[Line, ...], BeforeValidator(_unique)]
Currency = Annotated[str, PlainValidator(parse_line)]
Timezone = Annotated[str, PlainValidator(parse_line)]
Sha256 = Annotated[str, PlainValidator(parse_line)]
LatencySpan = Annotated[Span, PlainValidator(parse_span)]
TokenComparison = Annotated[Threshold, PlainValidator(parse_threshold)]
