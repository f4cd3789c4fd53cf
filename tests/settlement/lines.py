"""Invoice lines of any kind, so that a test writes only what it is about."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from ledger.settlement.statement import Adjusted, InvoiceLine, LineKind, TaxTerms

SIX_PERCENT = TaxTerms(rate=Decimal("0.06"), credits_outside_scope=False)


def usage(amount_minor: int, **changes: Any) -> InvoiceLine:
    """Input tokens of the standard tier, which came to the amount."""
    values: dict[str, Any] = {
        "kind": LineKind.USAGE,
        "version": 1,
        "model": "deepseek-v4",
        "variant": None,
        "queue": "standard",
        "forfeited": False,
        "band": "standard",
        "token": "input",
        "quantity": 1_000,
        "rate": Decimal("2.00"),
        "multiplier": Decimal(1),
        "amount_minor": amount_minor,
    }
    return InvoiceLine(**(values | changes))


def credit(amount_minor: int) -> InvoiceLine:
    """A refund of input tokens at the base rate; the amount is below 0."""
    return usage(amount_minor, kind=LineKind.CREDIT, queue=None, band="refund")


def adjustment(line: InvoiceLine, period: str = "2026-04", tax: TaxTerms = SIX_PERCENT) -> InvoiceLine:
    """The line as a difference of a closed month."""
    of = Adjusted(period=period, invoice=f"INV-{period}", kind=line.kind, tax=tax, causes=(), causes_total=0)
    return replace(line, kind=LineKind.ADJUSTMENT, of=of)
