"""Settles a month: one snapshot of the database in, a statement per contract out, drafts and documents kept.

Source: specification, sections 8 ("Life of a period") and 9.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

import tzdata

from ledger.documents.invoice import invoice_html
from ledger.documents.number import currency_amount
from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.instant import MICROSECOND, instant_text
from ledger.settlement.calendar import month_anywhere
from ledger.settlement.period import Period, contract_period, ended_period
from ledger.settlement.statement import NotBilled, Statement
from ledger.store.approvals import approvals_of, missing_roles
from ledger.store.closings import ClosedPeriod, Closing, closed_periods, closings_of_period
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, keep_readings, stored_versions
from ledger.store.database import Database
from ledger.store.intervals import Interval, stored_intervals
from ledger.store.settle_lock import one_settlement_at_a_time
from ledger.store.settlements import Draft, keep_drafts
from ledger.workflows.approve import approve_commands
from ledger.workflows.carried import Carried, Settling
from ledger.workflows.freshen import any_snapshot, fresh_snapshot
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.issued_files import write_files
from ledger.workflows.statements import Known, Stated, Stopped, know_stored, state_contracts

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


class NothingToSettle(LedgerError):
    """No contract, or not the one that was asked for, is in force in the period."""


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
        snapshot = (
            fresh_snapshot(database, *span_to_settle(database, period, of_contracts), of_contracts)
            if archive is None
            else any_snapshot(database)
        )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSettle:
    """The contracts that can be settled, those of them whose month is closed already, and why others cannot be settled yet."""

    settling: tuple[Settling, ...]
    closed: tuple[Closing, ...]
    stopped: tuple[Stopped, ...]
    warnings: tuple[str, ...]


def span_to_settle(database: Database, period: str, contract_ids: Sequence[str] | None) -> tuple[datetime, datetime]:
    """From the first closed month to the period: what may be adjusted has to be fresh too."""
    with database.begin() as connection:
        closed = closed_periods(connection, contract_ids)
    first = min((one.period for months in closed.values() for one in months), default=period)
    return month_anywhere(min(first, period))[0], month_anywhere(period)[1]


def contracts_to_settle(
    connection: Connection, period: str, contract_id: str | None, now: datetime, *, provisional: bool = False, dry_run: bool = False
) -> ToSettle:
    """Who is settled. A month that is not over, or before one that is closed, or a version that lacks an approval, stops a contract, the
    latter two only where what is settled is kept and can be issued. Raises NothingToSettle if there is no contract."""
    of_contracts = None if contract_id is None else [contract_id]
    closed = {key: {one.period: one for one in months} for key, months in closed_periods(connection, of_contracts).items()}
    in_force: list[Settling] = [*contracts_in_force(connection, period, contract_id), *_ended(connection, period, list(closed))]
    if not in_force:
        what = "no contract" if contract_id is None else f"no version of contract {contract_id}"
        raise NothingToSettle(f"{what} is in force in {period}", cure="see: ledger contract list", exit_code=1)
    done = closings_of_period(connection, period, contract_id)
    is_done = {one.contract_id for one in done}
    still_open = sorted((one for one in in_force if one[1].last.id not in is_done), key=lambda one: one[1].last.id)
    unapproved = _unapproved(connection, still_open, closed)
    passed_by = [late for _, terms in still_open if (late := _passed_by(terms, closed.get(terms.last.id, {})))]
    stopped = [] if provisional else [early for _, terms in still_open if (early := _too_early(terms, now))]
    warnings = [f"{one.contract_id} can only be looked at: {one.problem}" for one in passed_by if dry_run]
    stopped += [] if dry_run else passed_by
    if provisional or dry_run:
        warnings += [f"{one.contract_id} cannot be settled finally yet: {one.problem}" for one in unapproved]
    else:
        stopped += unapproved
    waiting = {one.contract_id for one in stopped}
    return ToSettle(
        settling=tuple(one for one in still_open if one[1].last.id not in waiting),
        closed=done,
        stopped=tuple(stopped),
        warnings=tuple(warnings),
    )


def _ended(connection: Connection, period: str, contract_ids: Sequence[str]) -> list[Settling]:
    """Of contracts with closed months those that have ended before the period: they have one while there is something to adjust."""
    found: list[Settling] = []
    for _, group in groupby(stored_versions(connection, contract_ids), key=lambda one: one.contract.id):
        versions = list(group)
        if terms := ended_period([one.contract for one in versions], period):
            found.append((versions, terms))
    return found


def _know_archived(connection: Connection, settling: Sequence[Settling], archive: Path, now: datetime) -> Known:
    from ledger.workflows.rate_archive import rate_archived  # with DuckDB, and what plans need

    return Known(rated=rate_archived(archive, [terms for _, terms in settling], stored_intervals(connection), now))


def _unapproved(connection: Connection, settling: Sequence[Settling], closed: Mapping[str, Mapping[str, ClosedPeriod]]) -> list[Stopped]:
    """The contracts with a version in force in the period, or in a closed month that it may adjust, that lacks an approval; one query for
    all of them."""
    settled = [_used(versions, terms, closed.get(terms.last.id, {})) for versions, terms in settling]
    given = approvals_of(connection, [version for versions in settled for version in versions])
    found = []
    for versions, (_, terms) in zip(settled, settling, strict=True):
        missing = [(version, roles) for version in versions if (roles := missing_roles(version, given[version.content_sha256]))]
        if missing:
            lacks = [f"version {version.contract.version} that of {' and '.join(roles)}" for version, roles in missing]
            commands = [command for version, roles in missing for command in approve_commands(version, roles)]
            problem = f"what is in force in {terms.name} lacks approval: {', '.join(lacks)}"
            found.append(Stopped(contract_id=terms.last.id, problem=problem, cure="\n  ".join(commands)))
    return found


def _used(versions: Sequence[StoredVersion], terms: Period, closed: Iterable[str]) -> list[StoredVersion]:
    contracts = [one.contract for one in versions]
    used = set(terms.by_version)
    for month in closed:
        used |= set(before.by_version) if (before := contract_period(contracts, month)) else set()
    return [one for one in versions if one.contract.version in used]


def _too_early(terms: Period, now: datetime) -> Stopped | None:
    calendar = terms.last.calendar
    settles_at = terms.end + calendar.grace_us * MICROSECOND
    if now >= settles_at:
        return None
    return Stopped(
        contract_id=terms.last.id,
        problem=f"{terms.name} ends in {calendar.timezone} at {instant_text(terms.end)} and has its grace until {instant_text(settles_at)}",
        cure="settle again then, or now with --provisional",
    )


def _passed_by(terms: Period, closed: Iterable[str]) -> Stopped | None:
    """Why a month is not settled any more after which another was closed."""
    if (last := max(closed, default=terms.name)) <= terms.name:
        return None
    contract_id, month = terms.last.id, terms.name
    return Stopped(
        contract_id=contract_id,
        problem=f"{last} is closed, and no month closes after a later one: {month} counts as settled elsewhere",
        cure=f"look at it with --dry-run; a draft of it is taken back by: ledger reopen {month} --contract {contract_id}",
    )


def _warnings(connection: Connection, settling: Sequence[Settling], stated: Sequence[Stated], known: Known) -> Iterator[str]:
    """What finance has to know beside the statements, each said once."""
    intervals = stored_intervals(connection)
    by_contract = {terms.last.id: terms for _, terms in settling}
    said: set[str] = set()
    for one in stated:
        terms = by_contract[one.statement.contract.id]
        lines = [*_carried_warnings(one.statement, known.carried.get(terms.last.id, Carried())), *_breaker_warnings(terms, intervals)]
        yield from [line for line in [*lines, *_unassigned_warnings(known.noted.unassigned_of(terms))] if line not in said]
        said |= set(lines) | set(_unassigned_warnings(known.noted.unassigned_of(terms)))


def _carried_warnings(statement: Statement, carried: Carried) -> Iterator[str]:
    contract_id, currency = statement.contract.id, statement.contract.money.currency
    if carried.waits_for:
        yield f"{contract_id}: adjustments and the balance of credit are in {statement.period} when {carried.waits_for} is closed"
    for one in statement.reported:
        amount, why = currency_amount(one.gross_minor, statement.minor_digits, currency), NOT_BILLED_WORDS[one.reason]
        yield f"{contract_id}: {one.period} ({one.invoice}) would now differ by {amount}, which is not billed: {why}"


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
    """Writes each draft's JSON and its statement as an invoice."""
    contents: dict[str, bytes] = {}
    for one in stated:
        name = quote(one.statement.contract.id, safe="")
        contents |= {f"{name}.json": one.document, f"{name}.html": invoice_html(one.statement).encode()}
    return write_files(folder, contents, what="the drafts are kept")
