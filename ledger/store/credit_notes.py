"""Credits on demand: each an issued document and the line of a closed period that it credits, kept once.

Which of them a later period has carried in stands in the basis of that closing alone. Source: specification, section 8; decision records
issued-documents and credits-on-demand.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ledger.settlement.partial_credit import LineCredit
from ledger.store.closings import IssuedDocument, keep_document
from ledger.store.connection import Connection, execute, fetch_as


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCredit:
    """A credit note as it is issued: the line of a closed period that it credits, and why."""

    contract_id: str
    period: str
    credit: LineCredit
    reason: str
    document: IssuedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditNoteRow:
    """What there is to know of a credit note: `invoice` is the document that it credits, `carried_into` the period that has carried it in
    (None: none yet). Net and tax are integer minor units, not below 0."""

    tax_id: str
    number_text: str
    issued_on: date
    author: str
    contract_id: str
    period: str
    invoice: str
    line_position: int
    tokens: int | None
    net_minor: int
    tax_minor: int
    currency: str
    minor_digits: int
    reason: str
    carried_into: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedDocument:
    """Whose document has a number, and the period that it closes; None of a credit on demand."""

    tax_id: str
    contract_id: str | None
    period: str | None


def documents_numbered(connection: Connection, number_text: str, tax_id: str | None) -> list[NumberedDocument]:
    """The documents of that number, by provider: of one, or of all."""
    return fetch_as(
        connection,
        NumberedDocument,
        "SELECT tax_id, contract_id, period FROM issued_document LEFT JOIN closing USING (tax_id, number_text) "
        "WHERE number_text = %(number_text)s AND (%(tax_id)s::varchar IS NULL OR tax_id = %(tax_id)s) ORDER BY tax_id",
        {"number_text": number_text, "tax_id": tax_id},
    )


def keep_credit_note(connection: Connection, issued: IssuedCredit) -> None:
    """Issues the document and credits its line."""
    keep_document(connection, issued.document)
    credit = issued.credit
    execute(
        connection,
        "INSERT INTO credit_note (tax_id, number_text, contract_id, period, line_position, tokens, net_minor, tax_minor, reason) VALUES "
        "(%(tax_id)s, %(number_text)s, %(contract_id)s, %(period)s, %(position)s, %(tokens)s, %(net_minor)s, %(tax_minor)s, %(reason)s)",
        {
            "tax_id": issued.document.tax_id,
            "number_text": issued.document.number_text,
            "contract_id": issued.contract_id,
            "period": issued.period,
            "position": credit.position,
            "tokens": credit.tokens,
            "net_minor": credit.net_minor,
            "tax_minor": credit.tax_minor,
            "reason": issued.reason,
        },
    )


def credits_of(connection: Connection, contract_id: str, period: str) -> list[LineCredit]:
    """All credits of the lines of a closed period, in the order of issue."""
    return [
        LineCredit(position=row.line_position, tokens=row.tokens, net_minor=row.net_minor, tax_minor=row.tax_minor)
        for row in credit_notes(connection, contract_id)
        if row.period == period
    ]


def notes_to_carry(connection: Connection, contract_ids: Sequence[str]) -> dict[str, list[CreditNoteRow]]:
    """The credit notes of the contracts that no period has carried in so far, by contract and in the order of issue."""
    found: defaultdict[str, list[CreditNoteRow]] = defaultdict(list)
    for row in _rows(connection, contract_ids):
        if row.carried_into is None:
            found[row.contract_id].append(row)
    return found


def credit_notes(connection: Connection, contract_id: str | None = None) -> list[CreditNoteRow]:
    """The credit notes of a contract, or of all, by contract and in the order of issue."""
    return _rows(connection, None if contract_id is None else [contract_id])


def _rows(connection: Connection, contract_ids: Sequence[str] | None) -> list[CreditNoteRow]:
    return fetch_as(
        connection,
        _row,
        "SELECT note.tax_id, note.number_text, note_document.issued_on, note_document.author, note.contract_id, note.period, "
        "closing.number_text AS invoice, line_position, tokens, net_minor, tax_minor, currency, minor_digits, reason, "
        "(SELECT min(carrying.period) FROM closing carrying WHERE carrying.contract_id = note.contract_id AND carrying.basis @> "
        "jsonb_build_object('credit_notes', jsonb_build_array(jsonb_build_object('tax_id', note.tax_id, 'number', note.number_text)))) "
        "AS carried_into FROM credit_note note JOIN issued_document note_document USING (tax_id, number_text) "
        "JOIN closing USING (tax_id, contract_id, period) "
        "WHERE %(contract_ids)s::varchar[] IS NULL OR note.contract_id = ANY (%(contract_ids)s) "
        "ORDER BY note.contract_id, note.tax_id, note_document.position",
        {"contract_ids": None if contract_ids is None else list(contract_ids)},
    )


def _row(**columns: Any) -> CreditNoteRow:
    exact = {name: int(columns[name]) for name in ("net_minor", "tax_minor")}
    return CreditNoteRow(**columns | exact | {"tokens": None if columns["tokens"] is None else int(columns["tokens"])})
