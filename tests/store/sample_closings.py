"""Closed periods that are whole, as they are kept: one line each unless given, numbered and sealed as the ones before them demand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256

from ledger.documents.settlement_json import canonical_bytes
from ledger.settlement.journal import Posting
from ledger.settlement.numbering import Series, number_text
from ledger.settlement.partial_credit import LineCredit
from ledger.settlement.statement import InvoiceLine, LineKind, PostedLine, TaxTerms
from ledger.store.closings import Closing, IssuedDocument, chain_head, closed_periods, issued_file, next_number
from ledger.store.connection import Connection
from ledger.store.credit_notes import IssuedCredit, notes_to_carry
from ledger.store.numbering import numbering_format
from ledger.store.settlements import keep_run

TAX_ID = "91310000TEST"
TAX = TaxTerms(rate=Decimal("0.06"), credits_outside_scope=False)
USAGE = InvoiceLine(
    kind=LineKind.USAGE,
    version=1,
    model="deepseek-v4",
    variant=None,
    queue="standard",
    forfeited=False,
    band="fast",
    token="input",
    quantity=1_000_000,
    rate=Decimal("2.00"),
    multiplier=Decimal("2.0"),
    amount_minor=400,
)
ISSUED_AT = datetime(2026, 12, 31, 16, 30, tzinfo=UTC)


def kept_run(connection: Connection, period: str = "2026-05") -> int:
    """A run that saw what is there."""
    return keep_run(connection, period=period, contract_hashes={}, timezone_data="2026a", settled_at=ISSUED_AT, author="test")


def whole_credit(connection: Connection, closing: Closing, net_minor: int, *, tokens: int | None = None, position: int = 1) -> IssuedCredit:
    """A credit of a line of the closed period that can be issued next, not yet kept; without tax."""
    credited = closing.document
    number = next_number(connection, credited.tax_id, Series.CREDIT_NOTE, credited.year)
    chained = chain_head(connection, credited.tax_id)
    assert chained is not None
    printed = number_text(numbering_format(connection, credited.tax_id, Series.CREDIT_NOTE), credited.year, number)
    amounts = {name: format(Decimal(f"{minor}e-2"), "f") for name, minor in {"net": net_minor, "tax": 0, "total": net_minor}.items()}
    content = {
        "credit_note": printed,
        "contract": closing.contract_id,
        "period": closing.period,
        "invoice": credited.number_text,
        "currency": credited.currency,
        "line": {"position": position},
        "tokens": tokens,
        "credit": amounts,
    }
    sealed = canonical_bytes({"previous_seal": chained[1], "number": printed, "settlement": content})
    postings = (
        Posting(account="credit_notes:revenue", amount_minor=net_minor, memo="credit"),
        Posting(account="balance", amount_minor=-net_minor, memo="credit"),
    )
    document = replace(
        credited,
        series=Series.CREDIT_NOTE,
        number=number,
        number_text=printed,
        position=chained[0] + 1,
        total_minor=-net_minor,
        content=canonical_bytes(content).decode(),
        previous_seal=chained[1],
        seal=sha256(sealed).hexdigest(),
        sealed=sealed,
        postings=postings,
        files=(issued_file("credit.json", canonical_bytes(content)),),
    )
    credit = LineCredit(position=position, tokens=tokens, net_minor=net_minor, tax_minor=0)
    return IssuedCredit(contract_id=closing.contract_id, period=closing.period, credit=credit, reason="as agreed", document=document)


def whole_closing(
    connection: Connection,
    period: str,
    lines: Sequence[PostedLine] = (PostedLine(line=USAGE, tax=TAX),),
    *,
    contract_id: str = "acme",
    tax_id: str = TAX_ID,
    issued_on: date = date(2027, 1, 1),
    run_id: int | None = None,
) -> Closing:
    """A period that can be closed next, not yet kept; without tax, so that its total is the sum of its lines."""
    total_minor = sum(posted.line.amount_minor for posted in lines)
    series, year = Series.CREDIT_NOTE if total_minor < 0 else Series.INVOICE, issued_on.year
    number = next_number(connection, tax_id, series, year)
    position, seal = chain_head(connection, tax_id) or (0, None)
    printed = number_text(numbering_format(connection, tax_id, series), year, number)
    before = closed_periods(connection, [contract_id]).get(contract_id, ())
    notes = notes_to_carry(connection, [contract_id]).get(contract_id, [])
    carried_in_minor = (before[-1].carried_out_minor if before else 0) + sum(note.net_minor + note.tax_minor for note in notes)
    carried_out_minor = max(carried_in_minor - total_minor, 0)
    amounts = {"net": total_minor, "total": total_minor, "carried_in": carried_in_minor, "carried_out": carried_out_minor}
    totals = {name: format(Decimal(f"{amount_minor}e-2"), "f") for name, amount_minor in amounts.items()}
    content = {"contract": contract_id, "period": period, "state": "closed", "currency": "CNY", "totals": totals}
    sealed = canonical_bytes({"previous_seal": seal, "tax_id": tax_id, "number": printed, "settlement": content})
    document = IssuedDocument(
        tax_id=tax_id,
        series=series,
        year=year,
        number=number,
        number_text=printed,
        position=position + 1,
        currency="CNY",
        minor_digits=2,
        total_minor=total_minor,
        issued_at=ISSUED_AT,
        issued_on=issued_on,
        author="test",
        content=canonical_bytes(content).decode(),
        previous_seal=seal,
        seal=sha256(sealed).hexdigest(),
        sealed=sealed,
        postings=(
            Posting(account="receivable", amount_minor=total_minor, memo="due"),
            Posting(account="revenue", amount_minor=-total_minor, memo="usage"),
        ),
        files=(issued_file("invoice.html", b"<p>\xe5\x8f\x91\xe7\xa5\xa8"), issued_file("settlement.json", canonical_bytes(content))),
    )
    return Closing(
        contract_id=contract_id,
        period=period,
        run_id=kept_run(connection, period) if run_id is None else run_id,
        digest="0" * 64,
        basis={
            "months": {period: {"pieces": [["2026-04-30T16:00:00Z"]]}},
            "credit_notes": [{"tax_id": note.tax_id, "number": note.number_text} for note in notes],
        },
        contract_hashes={1: "a" * 64, 12: "b" * 64},
        carried_out_minor=carried_out_minor,
        lines=tuple(lines),
        document=document,
    )
