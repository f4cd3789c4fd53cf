"""Closes a month: each draft that is still true becomes an issued document, with its number, journal, stored files and seal.

One transaction a contract: a close that is killed leaves whole contracts, and the same command goes on. Source: specification, section 8;
decision record issued-documents.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import tzdata

from ledger.documents.invoice import invoice_html
from ledger.documents.lines_csv import lines_csv
from ledger.documents.settlement_json import statement_to_json
from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.settlement.journal import statement_postings
from ledger.settlement.numbering import Series
from ledger.settlement.statement import PostedLine, Statement
from ledger.settlement.tax import tax_terms
from ledger.store.closings import Closing, closings_of_period, keep_closing
from ledger.store.connection import Connection
from ledger.store.contracts import keep_readings
from ledger.store.database import Database
from ledger.store.settle_lock import one_settlement_at_a_time
from ledger.store.settlements import KeptDraft, keep_run, kept_drafts, remove_draft
from ledger.workflows.basis import basis_of
from ledger.workflows.issue import Issued, sealed_document, take_number
from ledger.workflows.settle import seen_versions
from ledger.workflows.statements import Stated, Stopped, know_stored, state_contracts
from ledger.workflows.to_settle import contracts_to_settle, snapshot_to_settle
from ledger.workflows.verify_cells import verify_cells

# What a draft says of rows that wait and of changes after the month's end is issued as it is when the month is closed.
NOT_COMPARED = ("unresolved", "changed_afterwards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What `close` did: the documents issued, those that were issued before, the contracts that were not closed."""

    period: str
    issued: tuple[Closing, ...]
    issued_before: tuple[Closing, ...]
    stopped: tuple[Stopped, ...]


class NothingToClose(LedgerError):
    """No contract has a draft of the month, and none has closed it."""


def drafts_to_close(database: Database, period: str, contract_id: str | None = None) -> Sequence[KeptDraft]:
    """The drafts that a close would issue, by contract, provisional ones among them. Raises NothingToClose if there is nothing to close or
    closed."""
    with database.begin() as connection:
        drafts = kept_drafts(connection, period, contract_id)
        if not drafts and not closings_of_period(connection, period, contract_id):
            found = f"no contract has a draft of {period}" if contract_id is None else f"contract {contract_id} has no draft of {period}"
            only = "" if contract_id is None else f" --contract {contract_id}"
            raise NothingToClose(found, cure=f"settle first: ledger settle {period}{only}", exit_code=1)
        return drafts


def close_period(
    database: Database,
    period: str,
    *,
    author: str,
    contract_id: str | None = None,
    agreed: Sequence[KeptDraft] | None = None,
    dry_run: bool = False,
    on_contract: Callable[[str, int, int], None] = lambda contract_id, position, count: None,
    on_waiting: Callable[[str], None] = lambda holder: None,
) -> Closed:
    """Closes the month of every contract that has a draft, or of one. Contracts that cannot be closed are reported and do not hold up the
    others. What was closed before is left as it is.

    If somebody agreed to drafts, no other is issued. A dry run finds what cannot be closed, and issues nothing.
    """
    with database.begin() as connection:
        keep_readings(connection)
    with nullcontext() if dry_run else one_settlement_at_a_time(database, on_waiting):
        drafts = drafts_to_close(database, period, contract_id)
        proven = _Proven(database)
        is_agreed = None if agreed is None else {(one.contract_id, one.document) for one in agreed}
        stopped = []
        for position, draft in enumerate(drafts, start=1):
            on_contract(draft.contract_id, position, len(drafts))
            if is_agreed is not None and (draft.contract_id, draft.document) not in is_agreed:
                problem = f"its draft of {period} is not the one that was shown"
                stopped.append(Stopped(contract_id=draft.contract_id, problem=problem, cure=f"look at it again: ledger close {period}"))
            elif stop := _close(database, period, draft, author, proven, dry_run=dry_run):
                stopped.append(stop)
        with database.begin() as connection:
            closed = closings_of_period(connection, period, contract_id)
    new = {draft.contract_id for draft in drafts}
    return Closed(
        period=period,
        issued=tuple(one for one in closed if one.contract_id in new),
        issued_before=tuple(one for one in closed if one.contract_id not in new),
        stopped=tuple(stopped),
    )


def _close(database: Database, period: str, draft: KeptDraft, author: str, proven: "_Proven", *, dry_run: bool) -> Stopped | None:
    """Closes one contract's month in a transaction of its own, or says why not; a dry run only looks whether it could."""
    contract_id, now = draft.contract_id, database.now()

    def stopped(problem: str, cure: str) -> Stopped:
        return Stopped(contract_id=contract_id, problem=problem, cure=cure)

    if draft.state != "draft":
        return stopped(f"its draft of {period} is provisional", f"settle it finally: ledger settle {period} --contract {contract_id}")
    with snapshot_to_settle(database, period, [contract_id]) as connection:
        to_settle = contracts_to_settle(connection, period, contract_id, now)
        if to_settle.stopped:
            return to_settle.stopped[0]
        known = know_stored(connection, to_settle.settling, draft.settled_at)
        if waits_for := known.carried[contract_id].waits_for:
            return stopped(f"{waits_for} is not closed", f"close the months in order: ledger close {waits_for}")
        stated = next(state_contracts(to_settle.settling, known, state="draft", is_test=database.is_test), None)
        if isinstance(stated, Stopped):
            return stated
        if stated is None or not _is_as_drafted(draft, stated):
            return stopped(
                f"its draft of {period} is older than the data", f"settle again: ledger settle {period} --contract {contract_id}"
            )
        fault_point("close.after_compare")
        if differing := proven.differing(contract_id, _months_of(stated.statement)):
            return stopped(f"the sums kept of {', '.join(differing)} are not what its requests give", "see: ledger verify --cells")
        if dry_run:
            return None
        run_id = keep_run(
            connection,
            period=period,
            contract_hashes=seen_versions(to_settle.settling),
            timezone_data=tzdata.__version__,
            settled_at=draft.settled_at,
            author=author,
        )
        closed = replace(stated, statement=replace(stated.statement, state="closed"))
        carried = known.carried[contract_id]
        months = [*(terms for _, terms in to_settle.settling), *carried.months]
        _issue(connection, closed, basis_of(months, carried.credit_notes), run_id, now, author)
        fault_point("close.before_commit")
    fault_point("close.after_commit")
    return None


def _is_as_drafted(draft: KeptDraft, stated: Stated) -> bool:
    """Whether the draft says what a settlement would say now. A digest alone would not do: it is of events, and not of terms."""
    before, now = (
        {key: value for key, value in document.items() if key not in NOT_COMPARED}
        for document in (json.loads(draft.document), json.loads(stated.document))
    )
    return bool(before == now and draft.digest == stated.digest and draft.day_starts == stated.day_starts)


def _months_of(statement: Statement) -> set[str]:
    """The months whose requests the money of the statement follows from."""
    return {statement.period, *(line.of.period for line in statement.lines if line.of is not None)}


class _Proven:
    """Which kept cells are what their requests give: asked once for each month, since it reads all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._differing: dict[str, tuple[tuple[str, date], ...]] = {}

    def differing(self, contract_id: str, months: set[str]) -> list[str]:
        """The days of the contract in the months whose cells are not what their requests give."""
        for month in sorted(months - set(self._differing)):
            self._differing[month] = verify_cells(self._database, month).differing
        return [day.isoformat() for month in sorted(months) for other, day in self._differing[month] if other == contract_id]


def _issue(connection: Connection, stated: Stated, basis: Mapping[str, Any], run_id: int, now: datetime, author: str) -> None:
    """Numbers, seals and keeps a closed statement, computed from this basis: all of it is committed together."""
    statement, contract = stated.statement, stated.statement.contract
    series = Series.CREDIT_NOTE if statement.totals.total < 0 else Series.INVOICE
    issued = Issued(
        name=contract.id,
        content=statement_to_json(statement),
        contract_hashes=statement.contract_hashes,
        postings=statement_postings(statement),
        total_minor=statement.totals.total,
        minor_digits=statement.minor_digits,
        lines=lines_csv(statement),
    )
    numbered = take_number(connection, contract, series, now)
    closing = Closing(
        contract_id=contract.id,
        period=statement.period,
        run_id=run_id,
        digest=stated.digest,
        basis=basis,
        contract_hashes=statement.contract_hashes,
        carried_out_minor=statement.totals.carried_out,
        lines=posted_as(statement),
        document=sealed_document(numbered, issued, contract, now, author, partial(invoice_html, statement)),
    )
    keep_closing(connection, closing)
    fault_point("close.after_keep")


def posted_as(statement: Statement) -> tuple[PostedLine, ...]:
    """The lines of a statement as they are posted: each with how it is taxed."""
    terms = tax_terms(statement.contract)
    return tuple(PostedLine(line=line, tax=terms if line.of is None else line.of.tax) for line in statement.lines)


def reopen_period(database: Database, period: str, contract_id: str) -> None:
    """Takes the draft of a contract's month back. Raises LedgerError if there is none, or the month is closed."""
    with one_settlement_at_a_time(database), database.begin() as connection:
        if closed := closings_of_period(connection, period, contract_id):
            number = closed[0].document.number_text
            cure = "correct what is wrong where it lies: the difference is adjusted in the month that is open"
            raise LedgerError(f"{period} of {contract_id} is closed as {number}, and stays so", cure=cure, exit_code=1)
        if not remove_draft(connection, contract_id, period):
            raise LedgerError(f"contract {contract_id} has no draft of {period}", cure="see: ledger status", exit_code=1)
