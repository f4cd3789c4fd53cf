"""The types of the values in a contract file: what each becomes, its parser, and how an editor can tell that it is written right.

The parser alone decides. An editor reads YAML by itself and sees `2.0` as a number and `300ms` as a text, so a JSON Schema (`schema`)
has to take both where the parser reads the text of either. Source: specification, sections 1 and 3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator

from ledger.contract.diagnostic import Refusal
from ledger.contract.scalar import (
    CONTRACT_ID,
    DAY,
    DECIMAL,
    DURATION,
    EXACT,
    IDENTIFIER,
    INSTANT,
    INTEGER,
    SHA256,
    Span,
    Threshold,
    currencies,
    parse_contract_id,
    parse_count,
    parse_currency,
    parse_day,
    parse_decimal,
    parse_duration,
    parse_exact,
    parse_factor,
    parse_identifier,
    parse_instant,
    parse_line,
    parse_multiplier,
    parse_percentile,
    parse_sha256,
    parse_share,
    parse_span,
    parse_term,
    parse_threshold,
    parse_timezone,
    parse_tolerance,
    parse_version_number,
    parse_yes_no,
    timezones,
)

JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """How a value is written, as a JSON Schema; it takes the place of what follows from the type."""

    schema: Callable[[], JsonSchema]

    def __get_pydantic_json_schema__(self, core_schema: object, handler: object) -> JsonSchema:
        return self.schema()


@dataclass(frozen=True, slots=True)
class Holding:
    """What a JSON Schema says in addition about a list or keys."""

    more: tuple[tuple[str, object], ...]

    def __get_pydantic_json_schema__(self, core_schema: object, handler: Callable[[Any], JsonSchema]) -> JsonSchema:
        return {**handler(core_schema), **dict(self.more)}


def _text(pattern: str, what: str, *examples: str, numbers: str | None = None, **limits: object) -> Written:
    """A text of this pattern; or, where the parser reads the digits of a number too, an `integer` or `number` within the limits."""
    schema: JsonSchema = {
        "type": "string" if numbers is None else ["string", numbers],
        "pattern": f"^(?:{pattern})$",
        "patternErrorMessage": f"Expected {what}.",
        **limits,
        "description": what[0].upper() + what[1:] + ".",
        # An editor proposes these: a number as a number, and none that it would show in quotes.
        "examples": [int(text) if numbers and text.isdigit() else text for text in examples if not (numbers and "." in text)],
    }
    return Written(lambda: schema)


def _words(pattern: str, what: str, **limits: object) -> Written:
    """A name or line, which may look like a number or like true and false."""
    schema: JsonSchema = {
        "type": ["string", "number", "boolean"],
        "pattern": f"^(?:{pattern})$",
        "patternErrorMessage": f"Expected {what}.",
        **limits,
        "description": what[0].upper() + what[1:] + ".",
    }
    return Written(lambda: schema)


def _listed(words: Callable[[], Any], what: str, *more: object) -> Written:
    return Written(lambda: {"enum": [*sorted(words()), *more], "description": what[0].upper() + what[1:] + "."})


def _or_none(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    """The parser that also reads `none`."""

    def parse_or_none(value: object) -> Any:
        if value == "none":
            return None
        try:
            return parse(value)
        except Refusal as refusal:
            raise Refusal(refusal.code, f"none or {refusal.expected}", refusal.cure) from None

    return parse_or_none


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A list of at least one entry, none of them twice."""
    if not values:
        raise Refusal("empty_list", "a list of at least one entry", "add an entry", found="an empty list")
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise Refusal("repeated_entry", "a list without repetition", "remove one of them", found=f"`{value}` twice")
        seen.add(value)
    return values


def not_empty(values: Any) -> Any:
    """The list or mapping, which must hold something."""
    if not values:
        raise Refusal("empty_list", "at least one entry", "add an entry", found="nothing")
    return values


_SPAN = rf" *(?:(?:<=|<|>=|>) *{DURATION.pattern}|{DURATION.pattern} *\.\.<? *{DURATION.pattern}) *"
_POSITIVE = r"(?=[0-9]*[1-9])"

Duration = Annotated[
    int, PlainValidator(parse_duration), _text(DURATION.pattern, "a duration with its unit: us, ms, s, m, h or d", "300ms", "1h", "365d")
]
Term = Annotated[
    int, PlainValidator(parse_term), _text(DURATION.pattern, "a duration with its unit: us, ms, s, m, h or d", "30d", "24h", "365d")
]
OptionalDuration = Annotated[
    int | None,
    PlainValidator(_or_none(parse_duration)),
    _text(f"none|{DURATION.pattern}", "none, or a duration with its unit: us, ms, s, m, h or d", "none", "500ms"),
]
Rate = Annotated[
    Decimal,
    PlainValidator(parse_decimal),
    _text(
        DECIMAL.pattern,
        "a price per 1,000,000 tokens, at most 12 digits after the point",
        "2.00",
        "0.0015",
        numbers="number",
        minimum=0,
    ),
]
ExactAmount = Annotated[
    Decimal, PlainValidator(parse_exact), _text(EXACT.pattern, "an exact amount, before rounding", "0.006", numbers="number", minimum=0)
]
OptionalAmount = Annotated[
    Decimal | None,
    PlainValidator(_or_none(parse_decimal)),
    _text(f"none|{DECIMAL.pattern}", "none, or an amount of the currency", "none", "200.00", numbers="number", minimum=0),
]
Multiplier = Annotated[
    Decimal,
    PlainValidator(parse_multiplier),
    _text(f"(?:{DECIMAL.pattern})%?", "a factor on the rate, such as 2.0 or 30%", "2.0", "30%", numbers="number", minimum=0),
]
OptionalMultiplier = Annotated[
    Decimal | None,
    PlainValidator(_or_none(parse_multiplier)),
    _text(f"none|(?:{DECIMAL.pattern})%?", "none, or a factor on the rate, such as 2.0 or 30%", "3.0", "none", numbers="number", minimum=0),
]
Share = Annotated[Decimal, PlainValidator(parse_share), _text(f"(?:{DECIMAL.pattern})%", "a percentage, such as 6%", "6%", "120%")]
Tolerance = Annotated[
    Decimal, PlainValidator(parse_tolerance), _text(f"(?:{DECIMAL.pattern})%", "a percentage, such as 120%", "120%", "150%")
]
OptionalShare = Annotated[
    Decimal | None,
    PlainValidator(_or_none(parse_share)),
    _text(f"none|(?:{DECIMAL.pattern})%", "none, or a percentage, such as 100%", "100%", "none"),
]
Factor = Annotated[
    int, PlainValidator(parse_factor), _text(f"{_POSITIVE}{INTEGER.pattern}x", "a whole factor of at least 1, such as 2x", "1x", "2x")
]
Count = Annotated[
    int, PlainValidator(parse_count), _text(INTEGER.pattern, "a whole number, such as 16000", "100", numbers="integer", minimum=0)
]
OptionalCount = Annotated[
    int | None,
    PlainValidator(_or_none(parse_count)),
    _text(f"none|{INTEGER.pattern}", "none, or a whole number, such as 16000", "none", numbers="integer", minimum=0),
]
VersionNumber = Annotated[
    int,
    PlainValidator(parse_version_number),
    _text(f"{_POSITIVE}[0-9]{{1,9}}", "a version number of 1 or more", "1", numbers="integer", minimum=1),
]
Percentile = Annotated[
    Decimal,
    PlainValidator(parse_percentile),
    _text(
        DECIMAL.pattern,
        "a percentile above 0 and below 100, without p or %",
        "99",
        "99.9",
        numbers="number",
        exclusiveMinimum=0,
        exclusiveMaximum=100,
    ),
]
Day = Annotated[date, PlainValidator(parse_day), _text(DAY.pattern, "a day of the contract's time zone, such as 2026-05-06", "2026-01-01")]
Instant = Annotated[
    datetime,
    PlainValidator(parse_instant),
    _text(INSTANT.pattern, "an instant with its offset from UTC, such as 2026-05-03T10:00:00+08:00", "2026-05-03T10:00:00+08:00"),
]
YesNo = Annotated[bool, PlainValidator(parse_yes_no), _listed(lambda: ("yes", "no", "true", "false"), "yes or no", True, False)]
Identifier = Annotated[
    str, PlainValidator(parse_identifier), _words(IDENTIFIER.pattern, "a name of at most 100 letters a to z, digits and . _ : / -")
]
ContractId = Annotated[
    str, PlainValidator(parse_contract_id), _words(CONTRACT_ID.pattern, "a name of at most 100 letters a to z, digits and . _ -")
]
_LINE = _words(r"\S|\S.*\S", "one line of text of 1 to 200 characters", maxLength=200)
Line = Annotated[str, PlainValidator(parse_line), _LINE]
Clause = Annotated[
    str | None, PlainValidator(parse_line), _words(r"\S|\S.*\S", "the clause of the signed agreement that this follows", maxLength=200)
]
Currency = Annotated[str, PlainValidator(parse_currency), _listed(currencies, "a currency by its code of ISO 4217, such as CNY")]
Timezone = Annotated[str, PlainValidator(parse_timezone), _listed(timezones, "a time zone by its IANA name, such as Asia/Shanghai")]
Sha256 = Annotated[
    str,
    PlainValidator(parse_sha256),
    _text(SHA256.pattern, "the SHA-256 checksum of the signed document: 64 digits and letters a to f", numbers="number"),
]
LatencySpan = Annotated[
    Span,
    PlainValidator(parse_span),
    _text(_SPAN, "the latencies of a tier: < a, <= a, > a, >= a, a .. b or a ..< b", "< 100ms", "100ms .. 300ms", "> 300ms"),
]
TokenComparison = Annotated[
    Threshold,
    PlainValidator(parse_threshold),
    _text(r" *(?:<=|<|>=|>) *[0-9]{1,12} *", "a comparison with a number of tokens, such as > 16000", "> 16000", "> 16384"),
]
_SOME, _SET = Holding((("minItems", 1),)), Holding((("minItems", 1), ("uniqueItems", True)))
Lines = Annotated[tuple[Line, ...], AfterValidator(not_empty), _SOME]
DistinctLines = Annotated[tuple[Line, ...], AfterValidator(_distinct), _SET]
DistinctNames = Annotated[tuple[Identifier, ...], AfterValidator(_distinct), _SET]
