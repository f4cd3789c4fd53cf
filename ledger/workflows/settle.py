"""Settles a month: one snapshot of the database in, a statement per contract out, drafts and documents kept.

Source: specification, sections 8 ("Life of a period") and 9.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

import tzdata

from ledger.documents.invoice import invoice_html
from ledger.documents.lines_csv import lines_csv
from ledger.documents.number import plain_amount
from ledger.fault_point import fault_point
from ledger.settlement.period import Period
from ledger.settlement.statement import NotBilled, Statement
from ledger.store.closings import Closing, closing_of, posted_lines
from ledger.store.connection import Connection
from ledger.store.contracts import keep_readings
from ledger.store.credit_notes import credit_notes
from ledger.store.database import Database
from ledger.store.intervals import Interval, stored_intervals
from ledger.store.settle_lock import one_settlement_at_a_time
from ledger.store.settlements import Draft, keep_drafts
from ledger.workflows.carried import Carried, Settling
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.issued_files import write_files
from ledger.workflows.statements import Known, Stated, Stopped, know_stored, state_contracts
from ledger.workflows.to_settle import contracts_to_settle, snapshot_to_settle

NAMED_ACCOUNTS = 5
NOT_BILLED_WORDS = {
    NotBilled.TOO_LATE: "the time for corrections has passed (calendar: corrections)",
    NotBilled.CHARGES_MORE: "a correction may not charge more (calendar: corrections)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What `settle` did: a statement for each contract that could be settled, those whose month is closed already, the others, warnings,
    and the files written."""

    period: str
    statements: tuple[Statement, ...]
    closed: tuple[Closing, ...]
    stopped: tuple[Stopped, ...]
    warnings: tuple[str, ...]
    files: tuple[Path, ...]


def settle_period(
    database: Database,
    period: str,
    *,
    author: str,
    output: Path | None,
    contract_id: str | None = None,
    provisional: bool = False,
    dry_run: bool = False,
    archive: Path | None = None,
    on_contract: Callable[[str, int, int], None] = lambda contract_id, position, count: None,
    on_waiting: Callable[[str], None] = lambda holder: None,
) -> Settled:
    """Settles the month `period` (`2026-05`) of every contract in force in it and of those that have ended and are adjusted, or of one.

    A dry run computes the same and keeps nothing; it may take the events of an `archive` instead of the database's, and then says nothing
    of what waits or was changed in the database, and carries nothing in. Contracts that cannot be settled are reported and do not hold up
    the others; a month that is closed stays as it is. `on_contract` is told (contract id, position from 1, how many) before each,
    `on_waiting` who settles meanwhile.
    """
    now = database.now()
    with database.begin() as connection:
        keep_readings(connection)
    with nullcontext() if dry_run else one_settlement_at_a_time(database, on_waiting):
        of_contracts = None if contract_id is None else [contract_id]
        snapshot = snapshot_to_settle(database, period, of_contracts) if archive is None else any_snapshot(database)
        with snapshot as connection:
            to_settle = contracts_to_settle(connection, period, contract_id, now, provisional=provisional, dry_run=dry_run)
            known = (
                know_stored(connection, to_settle.settling, now)
                if archive is None
                else _know_archived(connection, to_settle.settling, archive, now)
            )
            state = "provisional" if provisional else "draft"
            stated, stopped = [], [*to_settle.stopped]
            for one in state_contracts(to_settle.settling, known, state=state, is_test=database.is_test, on_contract=on_contract):
                if isinstance(one, Stated):
                    stated.append(one)
                else:
                    stopped.append(one)
                fault_point("settle.after_contract")
            warnings = [*to_settle.warnings, *_warnings(connection, to_settle.settling, stated, known)]
            if stated and not dry_run:
                _keep(connection, period, to_settle.settling, stated, now, author)
                fault_point("settle.before_commit")
        fault_point("settle.after_commit")
        files = [] if dry_run or output is None else _write_drafts(output / period, stated)
    return Settled(
        period=period,
        statements=tuple(one.statement for one in stated),
        closed=to_settle.closed,
        stopped=tuple(sorted(stopped, key=attrgetter("contract_id"))),
        warnings=tuple(warnings),
        files=tuple(files),
    )


def _know_archived(connection: Connection, settling: Sequence[Settling], archive: Path, now: datetime) -> Known:
    from ledger.workflows.rate_archive import rate_archived  # with DuckDB, and what plans need

    return Known(rated=rate_archived(archive, [terms for _, terms in settling], stored_intervals(connection), now))


def _warnings(connection: Connection, settling: Sequence[Settling], stated: Sequence[Stated], known: Known) -> list[str]:
    """What finance has to know beside the statements, each said once."""
    intervals = stored_intervals(connection)
    by_contract = {terms.last.id: terms for _, terms in settling}
    found: list[str] = []
    for one in stated:
        terms = by_contract[one.statement.contract.id]
        found += _carried_warnings(one.statement, known.carried.get(terms.last.id, Carried()))
        found += _credited_warnings(connection, one.statement)
        found += _breaker_warnings(terms, intervals)
    for terms in by_contract.values():  # also of a contract that has ended and gets no statement
        found += _unassigned_warnings(known.noted.unassigned_of(terms))
    return list(dict.fromkeys(found))


def _carried_warnings(statement: Statement, carried: Carried) -> Iterator[str]:
    contract_id, currency = statement.contract.id, statement.contract.money.currency
    if carried.waits_for:
        yield f"{contract_id}: adjustments and the balance of credit are in {statement.period} when {carried.waits_for} is closed"
    for one in statement.reported:
        amount, why = plain_amount(one.gross_minor, statement.minor_digits, currency), NOT_BILLED_WORDS[one.reason]
        yield f"{contract_id}: {one.period} ({one.invoice}) would now differ by {amount}, which is not billed: {why}"


def _credited_warnings(connection: Connection, statement: Statement) -> Iterator[str]:
    """Documents of which more was credited on demand than is left of them by the statement's adjustments: credits are issued for good."""
    contract, adjusted = statement.contract, {line.of.period for line in statement.lines if line.of is not None}
    notes = [note for note in credit_notes(connection, contract.id) if note.period in adjusted] if adjusted else []
    posted = posted_lines(connection, contract.id, statement.period) if notes else {}
    for period, invoice in sorted({(note.period, note.invoice) for note in notes}):
        closing = closing_of(connection, contract.id, period)
        assert closing is not None, "it was credited"
        adjustments = [one.line for one in posted.get(period, ()) if one.line.of is not None]
        adjustments += [line for line in statement.lines if line.of is not None and line.of.period == period]
        left_minor = sum(line.amount_minor for line in (*(one.line for one in closing.lines), *adjustments))
        credited_minor = sum(note.net_minor for note in notes if note.period == period)
        if credited_minor > left_minor:
            left, credited = (
                plain_amount(minor, statement.minor_digits, contract.money.currency) for minor in (left_minor, credited_minor)
            )
            yield (
                f"{contract.id}: {invoice} comes to {left} with the adjustments of this month, and {credited} of it "
                "is credited on demand already, both net of tax"
            )


def _unassigned_warnings(by_account: dict[str, int]) -> list[str]:
    """Accounts without a contract, by name."""
    if not by_account:
        return []
    named = [f"{account} ({count:,})" for account, count in list(by_account.items())[:NAMED_ACCOUNTS]]
    more = f" and {len(by_account) - NAMED_ACCOUNTS} more" if len(by_account) > NAMED_ACCOUNTS else ""
    return [f"no contract covers the requests of {', '.join(named)}{more}; add the accounts to a contract"]


def _breaker_warnings(terms: Period, intervals: Sequence[Interval]) -> list[str]:
    spans = [(i.starts_at, i.ends_at) for i in intervals if i.kind == "circuit_breaker"]
    if not spans:
        return []
    from ledger.contract.lint import lint_breaker_share

    return [
        f"{terms.last.id}: {finding.code}: {finding.found}; expected {finding.expected}; {finding.cure}"
        for finding in lint_breaker_share(terms.last, spans, terms.start, terms.end)
    ]


def seen_versions(settling: Sequence[Settling]) -> dict[str, dict[str, str]]:
    """The content hash of every version of the contracts, by contract and version."""
    return {terms.last.id: {str(one.contract.version): one.content_sha256 for one in versions} for versions, terms in settling}


def _keep(connection: Connection, period: str, settling: Sequence[Settling], stated: Sequence[Stated], now: datetime, author: str) -> None:
    drafts = [
        Draft(
            contract_id=one.statement.contract.id,
            state=one.statement.state,
            digest=one.digest,
            day_starts=one.day_starts,
            document=one.document.decode(),
        )
        for one in stated
    ]
    seen, timezone_data = seen_versions(settling), tzdata.__version__
    keep_drafts(connection, drafts, period=period, contract_hashes=seen, timezone_data=timezone_data, settled_at=now, author=author)


def _write_drafts(folder: Path, stated: Sequence[Stated]) -> list[Path]:
    """Writes each draft's JSON, its statement as an invoice, and its lines as CSV."""
    contents: dict[str, bytes] = {}
    for one in stated:
        name = quote(one.statement.contract.id, safe="")
        page = invoice_html(one.statement).encode()
        contents |= {f"{name}.json": one.document, f"{name}.html": page, f"{name}.csv": lines_csv(one.statement)}
    return write_files(folder, contents, what="the drafts are kept")
