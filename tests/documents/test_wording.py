"""Rules of a contract in words."""

import pytest

from ledger.contract.scalar import parse_span
from ledger.documents.wording import duration_words, milliseconds, span_words, window_words
from ledger.printable import printable


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ("< 100ms", "below 100 ms"),
        ("<= 1.5s", "up to 1.5 s"),
        ("> 300ms", "above 300 ms"),
        (">= 1m", "at least 1 m"),
        ("100ms .. 300ms", "100 ms to 300 ms"),
        ("100ms..<300ms", "100 ms to just below 300 ms"),
    ],
)
def test_a_span_is_told_as_the_contract_writes_it(span: str, words: str) -> None:
    assert span_words(parse_span(span)) == words


@pytest.mark.parametrize(
    ("duration_us", "words"),
    [
        (300_000, "300 ms"),
        (8_300_000, "8.3 s"),
        (60_000_000, "1 minute"),
        (5_400_000_000, "90 minutes"),
        (30 * 86_400_000_000, "30 days"),
        (1, "0.001 ms"),
        (0, "0 ms"),
    ],
)
def test_a_duration_is_exact_and_in_its_largest_even_unit(duration_us: int, words: str) -> None:
    assert duration_words(duration_us) == words


def test_milliseconds_keep_every_microsecond() -> None:
    assert [milliseconds(us) for us in (1_046_002, 300_000, 7)] == ["1,046.002", "300.000", "0.007"]


def test_windows_are_told_as_people_say_them() -> None:
    assert [window_words(window) for window in ("1h", "5m", "1d", "month")] == ["hour", "5 minutes", "day", "month"]


def test_a_name_keeps_every_letter_and_loses_what_acts() -> None:
    assert printable("上海 Acmé – (Bank)") == "上海 Acmé – (Bank)"
    assert printable("a\x1bb\u200fc") == "a\\u001bb\\u200fc"
