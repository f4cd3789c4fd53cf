"""Scalars of a contract file: from the text that stands in the file to an exact value, by the type that the key wants.

Every scalar arrives as text and nothing is guessed: `NO` is not false, `010` is ten. A parser raises Refusal in words a reader of
contracts understands. Source: specification, sections 1 and 3.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ledger.contract.diagnostic import Refusal
from ledger.contract.suggestion import day_meant, duration_meant
from ledger.printable import brief

UNIT_US: dict[str, int] = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
LONGEST_US = 36_500 * UNIT_US["d"]
YEARS = range(1970, 3000)

DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(us|ms|s|m|h|d)")
DECIMAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?")
EXACT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,40})?")
INTEGER = re.compile(r"[0-9]{1,12}")
DAY = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}")
INSTANT = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})")
IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
CONTRACT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SHA256 = re.compile(r"[0-9a-fA-F]{64}")

# Characters that make a text look like another one: they turn the direction of writing.
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def text_of(value: object) -> str:
    """The text of a scalar; a list or mapping is refused."""
    if not isinstance(value, str):
        raise Refusal("wrong_kind", "a single value", "write one value here, not a list or keys")
    return value


def parse_duration(value: object) -> int:
    """Microseconds of a duration such as `300ms` or `8.3s`; a bare number or a fraction of a microsecond is refused."""
    text = text_of(value)
    match = DURATION.fullmatch(text)
    if not match:
        bare = DECIMAL.fullmatch(text)
        added = f"add the unit that is meant, for example {text}ms or {text}s"
        meant = duration_meant(text)
        otherwise = f"did you mean `{meant}`?" if meant else "write a number and one of us ms s m h d, without a space"
        cure = added if bare else otherwise
        raise Refusal("bad_duration", "a duration with its unit, such as 300ms, 8.3s, 5m, 1h or 30d", cure)
    microseconds = Fraction(match[1]) * UNIT_US[match[2]]
    if microseconds.denominator != 1:
        raise Refusal("bad_duration", "a duration of whole microseconds", "round it to a microsecond")
    if microseconds > LONGEST_US:
        raise Refusal("bad_duration", "a duration of at most 36500d", "write a shorter duration")
    return int(microseconds)


def parse_term(value: object) -> int:
    """The same of a term that is agreed in days or hours: a bare number is told to be days."""
    try:
        return parse_duration(value)
    except Refusal as refusal:
        text = text_of(value)
        cure = f"add the unit that is meant, for example {text}d or {text}h" if DECIMAL.fullmatch(text) else refusal.cure
        raise Refusal(refusal.code, refusal.expected, cure) from None


def duration_text(duration_us: int) -> str:
    """A duration as a contract writes it, exact.

    >>> duration_text(300_001), duration_text(8_300_000), duration_text(3_600_000_000), duration_text(0)
    ('300.001ms', '8300ms', '1h', '0ms')
    """
    if duration_us == 0 or (duration_us > 1000 and duration_us % 1000):
        return f"{Decimal(duration_us).scaleb(-3).normalize():f}ms"
    unit = next(unit for unit in reversed(UNIT_US) if duration_us % UNIT_US[unit] == 0)
    return f"{duration_us // UNIT_US[unit]}{unit}"


def parse_decimal(value: object) -> Decimal:
    """A decimal without sign or exponent, at most 12 digits after the point; keeps the zeros that the file writes."""
    text = text_of(value)
    if not DECIMAL.fullmatch(text):
        cure = "write digits with a point for decimals: no sign, no exponent, no comma, no spaces"
        raise Refusal("bad_number", "a decimal number such as 2.00, at most 15 digits before and 12 after the point", cure)
    return Decimal(text)


def parse_exact(value: object) -> Decimal:
    """An amount before rounding: a decimal with up to 40 digits after the point."""
    text = text_of(value)
    if not EXACT.fullmatch(text):
        raise Refusal("bad_number", "an exact amount such as 0.006", "write digits with a point for decimals")
    return Decimal(text)


def microseconds_text(value: object, *, key: str) -> str:
    """The whole microseconds of a bare number whose unit, ms or s, ends the key; rounded half even. Refusal names the key."""
    text = text_of(value)
    if not DECIMAL.fullmatch(text):
        raise Refusal("bad_number", "a decimal number such as 12.5", "write digits only", found=f"`{brief(text)}`", key=key)
    return str(round(Fraction(text) * UNIT_US[key.rpartition("_")[2]]))


def parse_multiplier(value: object) -> Decimal:
    """A factor on a price: `2.0`, or `30%` for Decimal("0.3")."""
    text = text_of(value)
    number = text.removesuffix("%")
    if not DECIMAL.fullmatch(number):
        raise Refusal("bad_multiplier", "a multiplier such as 2.0 or 30%", "write 2.0 for twice the rate or 30% for a share of it")
    return Decimal(number).scaleb(-2) if text.endswith("%") else Decimal(number)


def parse_share(value: object) -> Decimal:
    """A percentage, as a share: `120%` is Decimal("1.2")."""
    text = text_of(value)
    if not text.endswith("%") or not DECIMAL.fullmatch(text[:-1]):
        bare = DECIMAL.fullmatch(text)
        cure = "write a number and %, without a space"
        if bare:
            share = f"{Decimal(text).scaleb(2).normalize():f}%"
            cure = f"did you mean `{text}%`?" if Decimal(text) > 1 else f"write {share}, or {text}% if that is meant"
        raise Refusal("bad_percentage", "a percentage such as 30%", cure)
    return Decimal(text[:-1]).scaleb(-2)


def parse_tolerance(value: object) -> Decimal:
    """The same of a tolerance, of which 1.2 is 120% and never 1.2%."""
    try:
        return parse_share(value)
    except Refusal as refusal:
        text = text_of(value)
        is_factor = DECIMAL.fullmatch(text) and 1 <= Decimal(text) < 10
        cure = f"did you mean `{Decimal(text).scaleb(2).normalize():f}%`?" if is_factor else refusal.cure
        raise Refusal(refusal.code, refusal.expected, cure) from None


def parse_factor(value: object) -> int:
    """A whole factor such as `2x`, at least 1."""
    text = text_of(value)
    if not text.endswith("x") or not INTEGER.fullmatch(text[:-1]) or int(text[:-1]) < 1:
        cure = f"did you mean `{text}x`?" if INTEGER.fullmatch(text) and int(text) else "write a whole number of at least 1 and x"
        raise Refusal("bad_factor", "a positive whole factor such as 2x", cure)
    return int(text[:-1])


def parse_count(value: object) -> int:
    """A whole number of 0 or more, at most 12 digits."""
    text = text_of(value)
    if not INTEGER.fullmatch(text):
        abbreviated = re.fullmatch(r"[0-9]{1,9}k", text)
        exact = f"{text[:-1]}000 or {int(text[:-1]) * 1024}" if abbreviated else ""
        raise Refusal("bad_count", "a whole number such as 16000", f"write {exact}" if exact else "write digits only")
    return int(text)


def parse_version_number(value: object) -> int:
    """A whole number of 1 or more."""
    text = text_of(value)
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise Refusal("bad_version", "a version number of 1 or more", "write a whole number such as 1")
    return int(text)


def parse_percentile(value: object) -> Decimal:
    """A percentile above 0 and below 100, as a share: `99.9` is Decimal("0.999")."""
    text = text_of(value)
    if not DECIMAL.fullmatch(text) or not 0 < Decimal(text) < 100:
        raise Refusal("bad_percentile", "a percentile above 0 and below 100", "write a number such as 99 or 99.9, without p or %")
    return Decimal(text).scaleb(-2)


def parse_day(value: object) -> date:
    """A day such as `2026-05-06`, of the years 1970 to 2999."""
    text = text_of(value)
    match = DAY.fullmatch(text)
    try:
        if match and int(match[1]) in YEARS:
            return date.fromisoformat(match[0])
    except ValueError:
        pass
    cure = "write year, month and day of a day that exists"
    if not match and (meant := day_meant(text)):
        cure = f"did you mean `{meant}`?"
    raise Refusal("bad_day", "a day of the calendar such as 2026-05-06", cure)


def parse_instant(value: object) -> datetime:
    """An RFC 3339 instant with an offset, in UTC."""
    match = INSTANT.fullmatch(text_of(value))
    try:
        if match and int(match[1]) in YEARS and int(match[2]) < 24 and int(match[3]) < 60 and int(match[4]) < 60:
            return datetime.fromisoformat(match[0].upper()).astimezone(UTC)
    except ValueError:
        pass
    cure = "write an instant that exists, with Z or +hh:mm"
    if not match and (naive := INSTANT.fullmatch(f"{value}Z")):
        cure = f"add the offset from UTC that is meant, for example {naive[0][:-1]}+08:00"
    elif not match and (midnight := INSTANT.fullmatch(f"{value}T00:00:00Z")):
        cure = f"say when that day begins, for example {midnight[0][:-1]}+08:00"
    raise Refusal("bad_instant", "an instant with its offset, such as 2026-05-03T10:00:00+08:00", cure)


def parse_yes_no(value: object) -> bool:
    """`yes`, `no`, `true` or `false`."""
    text = text_of(value)
    if text not in ("yes", "no", "true", "false"):
        meant = {"on": "yes", "off": "no"}.get(text.lower(), text.lower())
        known = meant in ("yes", "no", "true", "false")
        raise Refusal("bad_yes_no", "yes or no", f"did you mean `{meant}`?" if known else "write yes or no")
    return text in ("yes", "true")


def parse_identifier(value: object) -> str:
    """A name that the file uses for a thing: letters, digits and `. _ : / -`, at most 100."""
    text = text_of(value)
    if not IDENTIFIER.fullmatch(text):
        cure = "begin with a letter or digit; use no spaces and at most 100 characters"
        raise Refusal("bad_name", "a name of the letters a to z, digits and . _ : / -", cure)
    return text


def parse_contract_id(value: object) -> str:
    """A name without `/` and `:`, since files are called after it."""
    text = text_of(value)
    if not CONTRACT_ID.fullmatch(text):
        cure = "begin with a letter or digit; use no spaces, no slashes and at most 100 characters"
        raise Refusal("bad_name", "a name of the letters a to z, digits and . _ -", cure)
    return text


def parse_line(value: object) -> str:
    """One line of text of 1 to 200 characters, without control characters and without spaces at its ends."""
    text = text_of(value)
    unprintable = any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in TURNING for c in text)
    if not text or len(text) > 200 or unprintable or text != text.strip():
        cure = "remove line breaks, control characters and spaces at the ends"
        cure = f"shorten it to 200 characters: it has {len(text)}" if len(text) > 200 else cure if text else "write the text"
        raise Refusal("bad_text", "one line of text of 1 to 200 characters", cure)
    return text


def parse_currency(value: object) -> str:
    """An ISO 4217 code that has a minor unit, such as `CNY`."""
    text = text_of(value)
    if text not in currencies():
        meant = "CNY" if text.upper() == "RMB" else text.upper()
        cure = f"did you mean `{meant}`?" if meant in currencies() else "write its code of three letters"
        raise Refusal("bad_currency", "a currency by its code of ISO 4217, such as CNY, EUR or USD", cure)
    return text


def currency_digits(currency: str) -> int:
    """The number of digits after the point in amounts of a currency: CNY 2, JPY 0, KWD 3."""
    return currencies()[currency]


@cache
def currencies() -> dict[str, int]:
    """The digits after the point of every currency that has a minor unit."""
    import iso4217  # reads XML, and most commands read no currency

    return {currency.code: currency.exponent for currency in iso4217.Currency if currency.exponent is not None}


def parse_timezone(value: object) -> str:
    """A zone of the IANA database, such as `Asia/Shanghai`."""
    text = text_of(value)
    if text not in timezones():
        by_lower = {zone.lower(): zone for zone in timezones()}
        near = get_close_matches(text[:40].lower(), by_lower, n=1, cutoff=17 / 20)  # Asia/Beijing is not near Asia/Beirut
        otherwise = "write the zone's region and city; an abbreviation or an offset is not a zone"
        cure = f"did you mean `{by_lower[near[0]]}`?" if near else otherwise
        raise Refusal("bad_timezone", "a time zone by its name in the IANA database, such as Asia/Shanghai", cure)
    return text


@cache
def timezones() -> frozenset[str]:
    """The names that the installed tzdata package lists."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def parse_sha256(value: object) -> str:
    """A SHA-256 in 64 hexadecimal digits, in lower case."""
    text = text_of(value)
    if not SHA256.fullmatch(text):
        raise Refusal(
            "bad_sha256", "a SHA-256 checksum: 64 digits and letters a to f", "copy what `sha256sum` prints for the signed document"
        )
    return text.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The latencies of a tier, half open in whole microseconds: from_us <= L < until_us; until_us None has no end."""

    text: str
    from_us: int
    until_us: int | None

    @property
    def written(self) -> tuple[str, tuple[str, ...]]:
        """Its sign (< <= > >= .. ..<), and the durations that the text names, the lower one first.

        >>> parse_span("0.1s..300ms").written
        ('..', ('0.1s', '300ms'))
        """
        match = _SPAN.fullmatch(self.text)
        assert match is not None
        return match["op"] or match["dots"], tuple(match[name] for name in ("edge", "low", "high") if match[name])

    @property
    def edges_us(self) -> tuple[int, ...]:
        """The latencies that the text names, the lower one first, whether they are inside or not.

        >>> parse_span("0.1s..300ms").edges_us, parse_span("> 300ms").edges_us
        ((100000, 300000), (300000,))
        """
        return tuple(map(parse_duration, self.written[1]))


_SPAN = re.compile(
    r" *(?:(?P<op><=|<|>=|>) *(?P<edge>[0-9][^ ]*)"
    r"|(?P<low>[0-9][0-9a-z]*(?:\.[0-9][0-9a-z]*)?) *(?P<dots>\.\.<|\.\.) *(?P<high>[^ ]+)) *"
)


def parse_span(value: object) -> Span:
    """`< a`, `<= a`, `> a`, `>= a`, `a .. b` (both included) or `a ..< b`. Whole microseconds make every span half open.

    >>> parse_span("100ms .. 300ms")
    Span(text='100ms .. 300ms', from_us=100000, until_us=300001)
    """
    text = text_of(value)
    match = _SPAN.fullmatch(text)
    if not match:
        cure = "write one of < a, <= a, > a, >= a, a .. b or a ..< b with durations"
        raise Refusal("bad_latency", "latencies such as '< 100ms', '100ms .. 300ms' or '> 300ms'", cure)
    low, high = _bounds(match)
    if high is not None and low >= high:
        raise Refusal("bad_latency", "latencies from a lower to a higher edge", "write the lower edge first; no request can have these")
    return Span(text=text, from_us=low, until_us=high)


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    if not match["op"]:
        return parse_duration(match["low"]), parse_duration(match["high"]) + (match["dots"] == "..")
    edge = parse_duration(match["edge"])
    bounds: dict[str, tuple[int, int | None]] = {"<": (0, edge), "<=": (0, edge + 1), ">": (edge + 1, None), ">=": (edge, None)}
    return bounds[match["op"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A comparison of a token count: `count op tokens`."""

    op: Literal["<", "<=", ">", ">="]
    tokens: int


def parse_threshold(value: object) -> Threshold:
    """A comparison such as `> 16000`; `16k` is refused because it may mean 16000 or 16384."""
    text = text_of(value)
    match = re.fullmatch(r" *(<=|<|>=|>) *([0-9]{1,12}) *", text)
    if not match:
        abbreviated = re.fullmatch(r" *(?:<=|<|>=|>)? *([0-9]{1,9})[kK] *", text)
        cure = f"write {abbreviated[1]}000 or {int(abbreviated[1]) * 1024}" if abbreviated else "write one of < <= > >= and a whole number"
        raise Refusal("bad_comparison", "a comparison such as '> 16000'", cure)
    op: Any = match[1]
    return Threshold(op=op, tokens=int(match[2]))
