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


def tax_on(lines: Iterable[InvoiceLine], terms: TaxTerms, minor_digits: int, rounding: Rounding) -> int:
    """The tax on lines together. Adjustments count as what they adjust: those of credits are credits."""
    taxable = sum(line.amount_minor for line in lines if not (terms.credits_outside_scope and line.origin in CREDITS))
    return to_minor(Fraction(terms.rate) * taxable / 10**minor_digits, minor_digits, rounding)
