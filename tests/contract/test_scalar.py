"""Scalars: from text to exact values, and no further than the specification goes."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ledger.contract import scalar
from ledger.contract.diagnostic import Refusal

READ: list[tuple[Callable[[object], Any], str, Any]] = [
    (scalar.parse_duration, "0ms", 0),
    (scalar.parse_duration, "1us", 1),
    (scalar.parse_duration, "0.001ms", 1),
    (scalar.parse_duration, "8.3s", 8_300_000),
    (scalar.parse_duration, "5m", 300_000_000),
    (scalar.parse_duration, "36500d", 36_500 * 86_400_000_000),
    (scalar.parse_decimal, "0.0015", Decimal("0.0015")),
    (scalar.parse_decimal, "010", Decimal(10)),
    (scalar.parse_decimal, "999999999999999.999999999999", Decimal("999999999999999.999999999999")),
    (scalar.parse_multiplier, "30%", Decimal("0.3")),
    (scalar.parse_multiplier, "999999999999999.999999999999%", Decimal("9999999999999.99999999999999")),
    (scalar.parse_share, "120%", Decimal("1.2")),
    (scalar.parse_factor, "2x", 2),
    (scalar.parse_count, "010", 10),
    (scalar.parse_percentile, "99.9", Decimal("0.999")),
    (scalar.parse_day, "2028-02-29", date(2028, 2, 29)),
    (scalar.parse_instant, "2026-05-03T10:00:00+08:00", datetime(2026, 5, 3, 2, tzinfo=UTC)),
    (scalar.parse_instant, "2026-05-03t10:00:00.5z", datetime(2026, 5, 3, 10, 0, 0, 500_000, tzinfo=UTC)),
    (scalar.parse_yes_no, "no", False),
    (scalar.parse_yes_no, "true", True),
    (scalar.parse_line, "推理服务 é", "推理服务 é"),
    (scalar.parse_currency, "JPY", "JPY"),
    (scalar.parse_timezone, "America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    (scalar.parse_sha256, "A" * 64, "a" * 64),
]

REFUSED: list[tuple[Callable[[object], Any], str]] = [
    *(
        (scalar.parse_duration, text)
        for text in ("300", "ms", "-1ms", "+1ms", "1 ms", "1MS", "1e3ms", ".5s", "5.s", "0.0001ms", "36501d", "1w", "٣ms", "")
    ),
    *(
        (scalar.parse_decimal, text)
        for text in ("-1", "+1", "1e3", "1,5", "1_000", ".5", "1.", "NaN", "Infinity", "0x1F", "1234567890123456", "٨", " 1", "")
    ),
    *((scalar.parse_decimal, text) for text in ("0.1234567890123", "1%", "2x")),
    *((scalar.parse_multiplier, text) for text in ("2x", "30 %", "-30%", "%", "none")),
    *((scalar.parse_share, text) for text in ("0.3", "30", "30%%", "-5%", "٣%")),
    *((scalar.parse_factor, text) for text in ("2", "0x", "-2x", "1.5x", "x", "2X", "200%")),
    *((scalar.parse_count, text) for text in ("16k", "1.0", "-1", "1_000", "1e3", "9" * 13, "")),
    *((scalar.parse_percentile, text) for text in ("0", "100", "99%", "p99", "-1")),
    *(
        (scalar.parse_day, text)
        for text in ("2026-02-29", "2026-2-1", "20260201", "2026-13-01", "0001-01-01", "9999-12-31", "2026-05-06T00:00:00Z", "2026-W01")
    ),
    *(
        (scalar.parse_instant, text)
        for text in ("2026-05-03T10:00:00", "2026-05-03", "2026-05-03T24:00:00Z", "2026-05-03T10:00:60Z", "2026-02-30T10:00:00Z")
    ),
    *(
        (scalar.parse_instant, text)
        for text in (
            "2026-05-03T10:00:00+99:99",
            "0001-01-01T00:00:00+08:00",
            "1746230400",
            "2026-05-03T10:00Z",
            "2026-05-03T10:00:00.0000001Z",
        )
    ),
    *((scalar.parse_yes_no, text) for text in ("YES", "on", "1", "y", "")),
    *((scalar.parse_identifier, text) for text in ("", "a b", "-a", "é", "a" * 101, "a\n")),
    *((scalar.parse_line, text) for text in ("", " a", "a ", "a\nb", "a\x00b", "a\u2028b", "\ud800", "a\u202eb", "a" * 201)),
    *((scalar.parse_currency, text) for text in ("cny", "RMB", "XXX", "", "CNY ")),
    *((scalar.parse_timezone, text) for text in ("asia/shanghai", "UTC+8", "+08:00", "CST", "../etc/passwd", "")),
    *((scalar.parse_sha256, text) for text in ("0" * 63, "0" * 65, "g" * 64, "")),
    *(
        (scalar.parse_span, text)
        for text in (
            "",
            "<",
            "< 0ms",
            "100",
            "300ms .. 100ms",
            "100ms ..< 100ms",
            "100ms - 300ms",
            "100ms...300ms",
            "=> 1ms",
            "100ms .. ",
            "< 100ms < 200ms",
        )
    ),
    *((scalar.parse_threshold, text) for text in ("16000", "> 16k", "> -1", "> 1.5", "== 5", "> 9999999999999")),
]


def named(value: object) -> str:
    return getattr(value, "__name__", repr(value)[:40])


@pytest.mark.parametrize(("parse", "text", "value"), READ, ids=named)
def test_a_text_is_read_exactly(parse: Callable[[object], Any], text: str, value: Any) -> None:
    assert parse(text) == value
    assert type(parse(text)) is type(value)


@pytest.mark.parametrize(("parse", "text"), REFUSED, ids=named)
def test_any_other_text_is_refused_with_what_to_do(parse: Callable[[object], Any], text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        parse(text)
    assert refusal.value.code and refusal.value.expected and refusal.value.cure


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("< 100ms", (0, 99_999), (100_000,)),
        ("<= 100ms", (0, 100_000), (100_001,)),
        ("> 300ms", (300_001, 10**15), (300_000,)),
        (">= 300ms", (300_000, 10**15), (299_999,)),
        ("100ms .. 300ms", (100_000, 300_000), (99_999, 300_001)),
        ("100ms..300ms", (100_000, 300_000), (99_999, 300_001)),
        ("100ms ..< 300ms", (100_000, 299_999), (99_999, 300_000)),
        ("0.5s..<1.5s", (500_000, 1_499_999), (499_999, 1_500_000)),
        ("100ms .. 100ms", (100_000,), (99_999, 100_001)),
        (">=0ms", (0, 10**15), ()),
    ],
)
def test_each_way_to_write_a_tier_holds_the_latencies_that_it_says(text: str, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    span = scalar.parse_span(text)
    held = [us for us in (*inside, *outside) if span.from_us <= us and (span.until_us is None or us < span.until_us)]
    assert held == list(inside)


@pytest.mark.parametrize(("currency", "digits"), [("CNY", 2), ("JPY", 0), ("KWD", 3), ("HUF", 2), ("IDR", 2)])
def test_a_currency_has_the_digits_of_iso_4217(currency: str, digits: int) -> None:
    assert scalar.currency_digits(currency) == digits


@pytest.mark.parametrize("text", ["0ms", "1us", "999us", "1ms", "99.001ms", "8300ms", "1m", "25h", "36500d", "1000.001ms"])
def test_a_duration_is_shown_so_that_it_reads_back(text: str) -> None:
    assert scalar.duration_text(scalar.parse_duration(text)) == text


@pytest.mark.parametrize(
    ("parse", "text", "cure"),
    [
        (scalar.parse_duration, "30 days", "did you mean `30d`?"),
        (scalar.parse_duration, "1 hour", "did you mean `1h`?"),
        (scalar.parse_duration, "365天", "did you mean `365d`?"),
        (scalar.parse_duration, "300MS", "did you mean `300ms`?"),
        (scalar.parse_duration, "1M", "write a number and one of us ms s m h d, without a space"),  # months, or minutes
        (scalar.parse_term, "30", "add the unit that is meant, for example 30d or 30h"),
        (scalar.parse_tolerance, "1.2", "did you mean `120%`?"),
        (scalar.parse_tolerance, "120", "did you mean `120%`?"),
        (scalar.parse_day, "2026/07/01", "did you mean `2026-07-01`?"),
        (scalar.parse_day, "2026-7-1", "did you mean `2026-07-01`?"),
        (scalar.parse_day, "2026年7月1日", "did you mean `2026-07-01`?"),
        (scalar.parse_day, "2026/02/30", "write year, month and day of a day that exists"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_is_written_as_people_do_is_told_as_a_contract_writes_it(parse: Callable[[str], object], text: str, cure: str) -> None:
    with pytest.raises(Refusal) as refusal:
        parse(text)
    assert refusal.value.cure == cure
