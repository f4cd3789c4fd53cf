"""Tax on lines: on their net, or where credits are damages and no price reduction, on their net without credits.

Takes lines and the terms by which they are taxed, gives minor units, rounded once. Source: specification, section 8.
"""

from collections.abc import Iterable, Sequence
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


def tax_of(lines: Sequence[InvoiceLine], terms: TaxTerms, minor_digits: int, rounding: Rounding) -> int:
    """The tax on the lines of a document whose own lines are taxed by `terms`: with these, the adjustments that are taxed alike are one sum
    to be taxed; those taxed otherwise are one of their own for each month."""
    together = [line for line in lines if line.of is None or line.of.tax == terms]
    others = lines_by_tax([line for line in lines if line.of is not None and line.of.tax != terms])
    taxed = [(terms, together), *((other, of_month) for (_, other), of_month in others.items())]
    return sum(tax_on(some, some_terms, minor_digits, rounding) for some_terms, some in taxed)


def lines_by_tax(adjustments: Sequence[InvoiceLine]) -> dict[tuple[str, TaxTerms], list[InvoiceLine]]:
    """The adjustments by the month that they are of and the terms that tax them."""
    found: dict[tuple[str, TaxTerms], list[InvoiceLine]] = {}
    for line in adjustments:
        assert line.of is not None, "an adjustment is of something"
        found.setdefault((line.of.period, line.of.tax), []).append(line)
    return found
