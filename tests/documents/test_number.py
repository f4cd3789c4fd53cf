"""Numbers as text: every digit, in groups of three, never rounded."""

import pytest

from ledger.documents.number import currency_amount, grouped_amount, grouped_count


@pytest.mark.parametrize(
    ("minor", "digits", "text"),
    [
        (0, 2, "0.00"),
        (5, 2, "0.05"),
        (-5, 3, "-0.005"),
        (99_999, 2, "999.99"),
        (100_000, 2, "1,000.00"),
        (-123_450, 2, "-1,234.50"),
        (1_234_567, 0, "1,234,567"),
        (-1_000, 0, "-1,000"),
        (12_345_678_901_234_567_890, 4, "1,234,567,890,123,456.7890"),
        (10**37 + 7, 2, "100,000,000,000,000,000,000,000,000,000,000,000.07"),
    ],
)
def test_an_amount_has_exactly_the_digits_of_its_currency(minor: int, digits: int, text: str) -> None:
    assert grouped_amount(minor, digits) == text
    assert currency_amount(minor, digits, "XTS") == f"XTS\xa0{text}"


def test_counts_are_grouped() -> None:
    assert [grouped_count(count) for count in (0, 999, 1000, 1_234_567)] == ["0", "999", "1,000", "1,234,567"]
