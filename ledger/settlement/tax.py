"""Tax on lines: on their net, or where credits are damages and no price reduction, on their net without credits.

Takes lines and the terms by which they are taxed, gives minor units, rounded once. Source: specification, section 8.
"""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from ledger.contract.model import Contract, Rounding
from ledger.settlement.money import to_minor
from ledger.settlement.statement import InvoiceLine, LineKind, TaxTerms

CREDITS = (LineKind.CREDIT, LineKind.CAP)


def tax_terms(contract: Contract) -> TaxTerms:
    """How a version taxes the lines of its period; it is the period's last."""
    rate = Decimal(0) if contract.money.tax is None else contract.money.tax.rate
    return TaxTerms(rate=rate, credits_outside_scope=contract.refund.tax == "outside_scope")


def tax_of(lines: Iterable[InvoiceLine], terms: TaxTerms, minor_digits: int, rounding: Rounding) -> int:
    """The tax on the lines of a document whose own lines are taxed by `terms`, rounded once; adjustments of a month with another rate are
    taxed by themselves. An adjustment counts as what it adjusts, by the terms of its month."""
    taxable: dict[tuple[str, Decimal], int] = {}
    for line in lines:
        month, by = ("", terms) if line.of is None else (line.of.period, line.of.tax)
        if not (by.credits_outside_scope and line.origin in CREDITS):
            together = "" if by.rate == terms.rate else month, by.rate
            taxable[together] = taxable.get(together, 0) + line.amount_minor
    return sum(to_minor(Fraction(rate) * base / 10**minor_digits, minor_digits, rounding) for (_, rate), base in taxable.items())
