"""Journal entries, so that a test writes only what it is about."""

from datetime import date
from typing import Any

from ledger.settlement.journal import JournalEntry, Posting


def entry(*postings: tuple[str, int], **changes: Any) -> JournalEntry:
    """The entry of an invoice to Acme Bank: accounts and amounts, or what is given."""
    values: dict[str, Any] = {
        "booked_on": date(2026, 6, 3),
        "number": "INV-2026-000001",
        "contract": "acme-bank-llm",
        "customer": "Acme Bank",
        "currency": "CNY",
        "minor_digits": 2,
        "postings": tuple(Posting(account=account, amount_minor=amount, memo="2026-05") for account, amount in postings),
    }
    return JournalEntry(**(values | changes))
