"""Credits a line of an issued document on demand: a document of its own, whose amount the next month that is closed sets off.

Takes the number of the document, the line, and an amount or tokens. What was issued stays. Source: specification, section 8; decision
records credits-on-demand and issued-documents.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

from psycopg import IsolationLevel

from ledger.documents.credit_note import CreditNote, credit_note_html, credit_note_to_json
from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.settlement.journal import credit_note_postings
from ledger.settlement.numbering import Series
from ledger.settlement.partial_credit import CreditedDocument, CreditRefused, LineCredit, credit_by_amount, credit_by_tokens
from ledger.settlement.statement import InvoiceLine
from ledger.settlement.tax import tax_terms
from ledger.store.closings import Closing, IssuedDocument, closing_of, issued_files, posted_lines
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, stored_versions
from ledger.store.credit_notes import CreditNoteRow, IssuedCredit, credit_notes, credits_of, documents_numbered, keep_credit_note
from ledger.store.database import Database
from ledger.store.settle_lock import one_settlement_at_a_time
from ledger.workflows.issue import Issued, sealed_document, take_number
from ledger.workflows.issued_files import write_files

FOLDER = "credit-notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditAsked:
    """What is to be credited: of the document `number` (of the provider `tax_id`, None: of whichever has it) the line at `position`, from
    1, by an amount net of tax in the currency's unit or by tokens. The other of the two is None."""

    number: str
    tax_id: str | None
    position: int
    amount: Decimal | None
    tokens: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedCredit:
    """A credit note that was issued, and the files written of it."""

    note: CreditNote
    document: IssuedDocument
    files: tuple[Path, ...]


def preview_credit(database: Database, asked: CreditAsked) -> CreditNote:
    """What would be issued now. Raises LedgerError if there is no such document, CreditRefused if it is too much."""
    with _snapshot(database) as connection:
        return _note(connection, asked, is_test=database.is_test)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditableLine:
    """A line of an issued document, and what was credited of it so far: minor units net of tax, and tokens where it was by tokens."""

    line: InvoiceLine
    credited_minor: int
    credited_tokens: int


def creditable_lines(database: Database, number: str, tax_id: str | None) -> tuple[Closing, list[CreditableLine]]:
    """The document of that number, and its lines in their order. Raises LedgerError if there is no such document."""
    with database.begin() as connection:
        closing = _credited(connection, number, tax_id)
        credits = credits_of(connection, closing.contract_id, closing.period)
    lines = []
    for position, posted in enumerate(closing.lines, start=1):
        of_line = [credit for credit in credits if credit.position == position]
        credited_tokens = sum(credit.tokens or 0 for credit in of_line)
        credited_minor = sum(credit.net_minor for credit in of_line)
        lines.append(CreditableLine(line=posted.line, credited_minor=credited_minor, credited_tokens=credited_tokens))
    return closing, lines


def create_credit(
    database: Database,
    asked: CreditAsked,
    *,
    author: str,
    output: Path,
    on_waiting: Callable[[str], None] = lambda holder: None,
) -> CreatedCredit:
    """Issues the credit note, and writes its files into the folder `credit-notes`. Raises as `preview_credit` does.

    Calling it again issues another one.
    """
    with one_settlement_at_a_time(database, on_waiting):
        with _snapshot(database) as connection:  # taken after the lock: an older one would not see the last number
            note = _note(connection, asked, is_test=database.is_test)
            document = _issue(connection, note, database, author)
            fault_point("credit.before_commit")
        fault_point("credit.after_commit")
        contents = {file.name: file.content for file in document.files}
        what = f"{document.number_text} is issued and kept"
        cure = "make room or name another folder, and write its files: ledger credit-note list --output DIR"
        files = write_files(output / FOLDER, contents, what=what, cure=cure)
    return CreatedCredit(note=note, document=document, files=tuple(files))


def list_credit_notes(database: Database, contract_id: str | None = None, output: Path | None = None) -> list[CreditNoteRow]:
    """The credit notes of a contract, or of all, by contract and in the order of issue; into a folder their files are written again."""
    with database.begin() as connection:
        found = credit_notes(connection, contract_id)
        if output is not None:
            contents = {file.name: file.content for row in found for file in issued_files(connection, row.tax_id, row.number_text)}
            write_files(output / FOLDER, contents, what="what is issued is kept")
        return found


def _snapshot(database: Database) -> AbstractContextManager[Connection]:
    return database.begin(IsolationLevel.REPEATABLE_READ)


def _note(connection: Connection, asked: CreditAsked, *, is_test: bool) -> CreditNote:
    closing = _credited(connection, asked.number, asked.tax_id)
    version = _version(connection, closing)
    credit = _credit(connection, closing, version, asked)
    return CreditNote(
        contract=version.contract,
        content_sha256=version.content_sha256,
        period=closing.period,
        invoice=closing.document.number_text,
        invoice_issued_on=closing.document.issued_on,
        line=closing.lines[credit.position - 1].line,
        credit=credit,
        reason=asked.reason,
        minor_digits=closing.document.minor_digits,
        is_test=is_test,
    )


def _credited(connection: Connection, number: str, tax_id: str | None) -> Closing:
    """The closed period that was issued by that number."""
    found = documents_numbered(connection, number, tax_id)
    of_provider = "" if tax_id is None else f" of {tax_id}"
    if not found:
        cure = "the number stands on the invoice, and in: ledger journal export --to csv"
        raise LedgerError(f"no document{of_provider} has the number {number}", cure=cure)
    if len(found) > 1:
        cure = f"say whose it is: {' or '.join(f'--provider {one.tax_id}' for one in found)}"
        raise LedgerError(f"several providers have a document {number}", cure=cure, exit_code=2)
    [one] = found
    if one.contract_id is None or one.period is None:
        raise LedgerError(f"{number} is a credit on demand itself", cure="name the document whose line is to be credited")
    closing = closing_of(connection, one.contract_id, one.period)
    assert closing is not None, "its number was found"
    return closing


def _version(connection: Connection, closing: Closing) -> StoredVersion:
    """The version of the contract that was in force last in the closed period."""
    version = json.loads(closing.document.content)["version"]
    [stored] = [one for one in stored_versions(connection, closing.contract_id) if one.contract.version == version]
    return stored


def _credit(connection: Connection, closing: Closing, version: StoredVersion, asked: CreditAsked) -> LineCredit:
    posted, digits = posted_lines(connection, closing.contract_id), closing.document.minor_digits
    document = CreditedDocument(
        lines=tuple(one.line for one in closing.lines),
        terms=tax_terms(version.contract),
        adjusted_later=tuple(one.line for one in posted.get(closing.period, ()) if one.line.of is not None),
        minor_digits=digits,
        rounding=version.contract.money.rounding,
    )
    before = credits_of(connection, closing.contract_id, closing.period)
    if asked.tokens is not None:
        return credit_by_tokens(document, before, asked.position, asked.tokens)
    assert asked.amount is not None, "an amount or tokens"
    exact_minor = Fraction(asked.amount) * 10**digits
    if exact_minor.denominator != 1:
        currency = closing.document.currency
        cure = f"credit an amount with at most {digits} digits after the point" if digits else "credit a whole amount"
        raise CreditRefused(f"{asked.amount:f} is no amount of {currency}", cure=cure)
    return credit_by_amount(document, before, asked.position, int(exact_minor))


def _issue(connection: Connection, note: CreditNote, database: Database, author: str) -> IssuedDocument:
    now, credit = database.now(), note.credit
    numbered = take_number(connection, note.contract, Series.CREDIT_NOTE, now)
    issued = Issued(
        name=f"{note.contract.id}-{numbered.text}",
        content=credit_note_to_json(note, numbered.text, numbered.issued_on),
        contract_hashes={note.contract.version: note.content_sha256},
        postings=credit_note_postings(note.line, note.invoice, credit.net_minor, credit.tax_minor),
        total_minor=-note.total_minor,
        minor_digits=note.minor_digits,
    )
    document = sealed_document(numbered, issued, note.contract, now, author, partial(credit_note_html, note))
    kept = IssuedCredit(contract_id=note.contract.id, period=note.period, credit=credit, reason=note.reason, document=document)
    keep_credit_note(connection, kept)
    fault_point("credit.after_keep")
    return document
