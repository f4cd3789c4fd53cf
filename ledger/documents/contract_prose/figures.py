"""Numbers and names of a contract as text, the same in every language: exact, as the file writes them where it does.

A name stands in quotation marks and cannot end them: the marks inside it, and characters that act instead of showing, become escapes.
"""

from decimal import Decimal
from fractions import Fraction

from ledger.contract.fact import FactCode, Facts, Written
from ledger.contract.scalar import DURATION, UNIT_US, parse_duration, parse_span
from ledger.documents.contract_prose.illustration import Charge
from ledger.documents.number import grouped_amount, grouped_count
from ledger.printable import printable
from ledger.settlement.money import exact_decimal


def quoted(name: str) -> str:
    """The name in quotation marks.

    >>> quoted("a\\u201d b")
    '“a\\\\u201d b”'
    """
    return f"“{printable(name).replace('“', _escape('“')).replace('”', _escape('”'))}”"


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}"


def number_text(number: Written[int] | Written[Decimal]) -> str:
    """A number as the file writes it, thousands grouped: `2.0`, `30%`, `16,000`; the `x` of a factor is left to the words."""
    percent = "%" if number.text.endswith("%") else ""
    return f"{Decimal(number.text.rstrip('%x')):,f}{percent}"


def is_share(number: Written[Decimal]) -> bool:
    """Whether the file writes it as a percentage."""
    return number.text.endswith("%")


def grouped_rate(rate: Decimal) -> str:
    """A rate with the zeros that the contract writes, thousands grouped."""
    return f"{rate:,f}"


def exact_text(number: Fraction | Decimal) -> str:
    """A number that a decimal can hold, in full, without trailing zeros.

    >>> exact_text(Fraction(3, 500)), exact_text(Decimal("1200.50"))
    ('0.006', '1,200.5')
    """
    text = f"{exact_decimal(number) if isinstance(number, Fraction) else number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_parts(duration: Written[int] | int) -> tuple[str, str]:
    """Number and unit (us ms s m h d) of a duration; one that the contract does not write is in ms, and from a second on in s.

    >>> duration_parts(300_001), duration_parts(60_000_001), duration_parts(Written(86_400_000_000, "24h"))
    (('300.001', 'ms'), ('60.000001', 's'), ('24', 'h'))
    """
    if isinstance(duration, int):
        unit = "s" if duration >= UNIT_US["s"] else "ms"
        return exact_text(Fraction(duration, UNIT_US[unit])), unit
    match = DURATION.fullmatch(duration.text)
    assert match is not None, "a sound contract has no other durations"
    number = Decimal(match[1])
    return (f"{number:,f}", match[2])


def span_parts(text: str) -> tuple[str, tuple[Written[int], ...]]:
    """The sign of a tier (< <= > >= .. ..<) and the durations that it writes, the lower one first."""
    sign, edges = parse_span(text).written
    return sign, tuple(Written(parse_duration(edge), edge) for edge in edges)


def currency_of(facts: Facts) -> str:
    """The code of the contract's currency."""
    return str(facts.of(FactCode.CURRENCY)["currency"])


def money_text(minor: int, facts: Facts) -> str:
    """An amount in the contract's currency, of minor units: `1,234.50 CNY`."""
    return f"{grouped_amount(minor, facts.of(FactCode.CURRENCY)['digits'])} {currency_of(facts)}"


def sum_text(charge: Charge, facts: Facts) -> str:
    """The sum that gives the charge, before rounding."""
    products = " + ".join(f"{grouped_count(count)} × {grouped_rate(rate)}" for _, count, rate in charge.tokens)
    products = f"({products})" if len(charge.tokens) > 1 else products
    return f"{products} ÷ 1,000,000 × {exact_text(charge.multiplier)} = {exact_text(charge.amount)} {currency_of(facts)}"
