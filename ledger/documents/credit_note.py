"""A credit on demand of one line of an issued document: the page that the customer reads, and its JSON.

Takes a CreditNote, gives HTML in the manner of the invoice, or plain dicts. Source: specification, section 8; decision record
credits-on-demand.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any

from ledger.contract.model import Contract
from ledger.documents.invoice import ORIGINS, Issue, day_words, issue_words, line_words, parties_words
from ledger.documents.local_time import month_words
from ledger.documents.number import amount_text, currency_amount, decimal_text, grouped_amount, grouped_count, percent_text, rate_text
from ledger.documents.settlement_json import line_to_json
from ledger.documents.templates import render_page
from ledger.printable import printable
from ledger.settlement.calendar import day_start, month_days
from ledger.settlement.partial_credit import LineCredit
from ledger.settlement.statement import InvoiceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditNote:
    """A credit of a line of the document `invoice`, which closed the period on the local day given. `contract` is the version by which
    that document was issued, of the content hash given."""

    contract: Contract
    content_sha256: str
    period: str
    invoice: str
    invoice_issued_on: date
    line: InvoiceLine
    credit: LineCredit
    reason: str
    minor_digits: int
    is_test: bool

    @property
    def total_minor(self) -> int:
        """What is credited with tax, not below 0."""
        return self.credit.net_minor + self.credit.tax_minor


def credit_note_html(note: CreditNote, issue: Issue) -> str:
    """The credit note as one HTML page."""
    return render_page("credit_note.html.j2", _page(note, issue))


def credit_note_to_json(note: CreditNote, number: str, issued_on: date) -> dict[str, Any]:
    """The credit note as one object; what is credited is above 0."""
    contract, credit = note.contract, note.credit
    amounts = {"net": credit.net_minor, "tax": credit.tax_minor, "total": note.total_minor}
    return {
        "credit_note": number,
        "issued_on": issued_on.isoformat(),
        "contract": contract.id,
        "version": contract.version,
        "period": note.period,
        "invoice": note.invoice,
        "timezone": contract.calendar.timezone,
        "currency": contract.money.currency,
        "line": {"position": credit.position, **line_to_json(note.line, note.minor_digits)},
        "tokens": credit.tokens,
        "credit": {name: amount_text(minor, note.minor_digits) for name, minor in amounts.items()},
        "reason": note.reason,
    }


def _page(note: CreditNote, issue: Issue) -> dict[str, Any]:
    contract, zone, line, credit = note.contract, note.contract.calendar.timezone, note.line, note.credit
    tax = contract.money.tax
    return {
        "issue": issue_words(issue),
        "title": "Credit note",
        "is_test": note.is_test,
        **parties_words(contract),
        "customer_is": "Credited to",
        "currency": contract.money.currency,
        "invoice": note.invoice,
        "invoice_issued_on": day_words(note.invoice_issued_on),
        "month": month_words(day_start(zone, month_days(note.period)[0]), zone),
        "amount": currency_amount(note.total_minor, note.minor_digits, contract.money.currency),
        "reason": printable(note.reason),
        "line": {
            "position": str(credit.position),
            "words": line_words(line),
            "origin": ORIGINS[line.origin],
            "adjusts": "" if line.of is None else line.of.invoice,
            "tokens": "" if line.quantity is None else grouped_count(line.quantity),
            "rate": "" if line.rate is None else rate_text(line.rate),
            "multiplier": "" if line.multiplier is None else f"× {decimal_text(line.multiplier)}",
            "amount": grouped_amount(line.amount_minor, note.minor_digits),
        },
        "credited_tokens": "" if credit.tokens is None else grouped_count(credit.tokens),
        "net": grouped_amount(credit.net_minor, note.minor_digits),
        "tax": grouped_amount(credit.tax_minor, note.minor_digits),
        "tax_name": "" if tax is None and not credit.tax_minor else printable(tax.name) if tax else "Tax",
        "tax_rate": "" if tax is None or line.of is not None else percent_text(tax.rate),
        "total": grouped_amount(note.total_minor, note.minor_digits),
        "contract": {"id": contract.id, "version": str(contract.version), "sha256": note.content_sha256},
    }
