"""Exact numbers as text: for machines (section 9's JSON) and for people (thousands grouped, currency in front). Nothing here rounds.

Amounts come in as integer minor units with the currency's number of digits. Source: specification, sections 1 and 9.
"""

from decimal import Decimal

from ledger.settlement.money import from_minor


def amount_text(minor: int, digits: int) -> str:
    """The amount with exactly `digits` digits after the point: -1234 with 2 digits is `-12.34`."""
    return format(from_minor(minor, digits), "f")


def rate_text(rate: Decimal) -> str:
    """A rate as the contract writes it, trailing zeros kept and never an exponent."""
    return format(rate, "f")


def decimal_text(number: Decimal) -> str:
    """A decimal without exponent and trailing zeros: `2`, `0.3`."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def grouped_amount(minor: int, digits: int) -> str:
    """The amount with thousands grouped and no currency: `-1,234.50`."""
    return format(from_minor(minor, digits), ",f")


def plain_amount(minor: int, digits: int, currency: str) -> str:
    """The amount after its currency's code, in lines of a terminal: `CNY 1,234.50`, `JPY -1,234`."""
    return f"{currency} {grouped_amount(minor, digits)}"


def currency_amount(minor: int, digits: int, currency: str) -> str:
    """The same in a document, where the space does not break."""
    return plain_amount(minor, digits, currency).replace(" ", "\xa0")


def grouped_count(count: int) -> str:
    """A whole number with thousands grouped: `1,234,567`."""
    return f"{count:,}"


def percent_text(share: Decimal) -> str:
    """A share as a percentage: Decimal("0.3") is `30%`."""
    return f"{decimal_text(share.scaleb(2))}%"
