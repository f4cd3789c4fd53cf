"""Exact amounts and their one rounding: a rational amount in, integer minor units out; and back.

Source: specification, sections 1 and 5.
"""

from decimal import Context, Decimal, Inexact
from fractions import Fraction
from math import floor

from ledger.contract.model import Rounding

# Products of a contract's decimals, never rounded: 100 digits hold them, and a loss would stop us.
_EXACT = Context(prec=100, traps=[Inexact])


def exact_product(a: Decimal, b: Decimal) -> Decimal:
    """`a x b`, every digit of it.

    >>> exact_product(Decimal("0.3"), Decimal("3.0"))
    Decimal('0.90')
    """
    return _EXACT.multiply(a, b)


def without_trailing_zeros(value: Decimal) -> Decimal:
    """The same number in its shortest form.

    >>> without_trailing_zeros(Decimal("2.00"))
    Decimal('2')
    """
    return value.normalize(_EXACT)


def exact_decimal(amount: Fraction) -> Decimal:
    """The same number as a decimal; its denominator divides a power of ten, as that of every product of a contract's decimals.

    >>> exact_decimal(Fraction(3, 500))
    Decimal('0.006')
    """
    return _EXACT.divide(Decimal(amount.numerator), Decimal(amount.denominator))


def to_minor(amount: Fraction, minor_digits: int, rounding: Rounding) -> int:
    """The amount in minor units, rounded once: half away from zero, or half to the even neighbour.

    >>> to_minor(Fraction(-1, 200), 2, Rounding.HALF_UP), to_minor(Fraction(1, 200), 2, Rounding.HALF_EVEN)
    (-1, 0)
    """
    scaled: Fraction = amount * 10**minor_digits
    if rounding is Rounding.HALF_EVEN:
        return round(scaled)
    whole = floor(abs(scaled) + Fraction(1, 2))
    return whole if scaled >= 0 else -whole


def from_minor(amount_minor: int, minor_digits: int) -> Decimal:
    """The amount in the currency's unit, with all its digits.

    >>> from_minor(-1230, 2)
    Decimal('-12.30')
    """
    return _EXACT.scaleb(Decimal(amount_minor), -minor_digits)
