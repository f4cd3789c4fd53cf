"""The one rounding of a line."""

from decimal import Decimal
from fractions import Fraction

import pytest

from ledger.contract.model import Rounding
from ledger.settlement.money import exact_product, to_minor


@pytest.mark.parametrize(
    ("amount", "digits", "half_up", "half_even"),
    [
        ("0.005", 2, 1, 0),
        ("0.015", 2, 2, 2),
        ("-0.005", 2, -1, 0),
        ("-0.015", 2, -2, -2),
        ("0.0049999999999", 2, 0, 0),
        ("0.5", 0, 1, 0),
        ("2.5", 0, 3, 2),
        ("0.0005", 3, 1, 0),
        ("123456789012345678901234567890.125", 2, 12345678901234567890123456789013, 12345678901234567890123456789012),
    ],
)
def test_halves_go_away_from_zero_or_to_the_even_neighbour(amount: str, digits: int, half_up: int, half_even: int) -> None:
    assert to_minor(Fraction(amount), digits, Rounding.HALF_UP) == half_up
    assert to_minor(Fraction(amount), digits, Rounding.HALF_EVEN) == half_even


def test_products_keep_every_digit() -> None:
    longest = Decimal("999999999999999999.999999999999")
    assert exact_product(longest, longest) == Decimal("999999999999999999999999999998000000.000000000000000000000001")
