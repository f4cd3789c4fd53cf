"""Settles a month: one snapshot of the database in, a statement per contract out, drafts and documents kept.

Source: specification, sections 8 ("Life of a period") and 9.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import tzdata

from ledger.contract.scalar import currency_digits
from ledger.documents.invoice import invoice_html
from ledger.documents.settlement_json import canonical_bytes, statement_to_json
from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.instant import MICROSECOND
from ledger.rating.rated_period import RatedPeriod
from ledger.settlement.calendar import month_anywhere
from ledger.settlement.cell import Cell
from ledger.settlement.period import Period
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import ChangedAfterwards, Statement, Unresolved
from ledger.settlement.windows import BreachedWindow
from ledger.store.approvals import approvals_of, missing_roles
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, keep_readings
from ledger.store.database import Database
from ledger.store.intervals import Interval, stored_intervals
from ledger.store.settlements import (
    Draft,
    count_changed_afterwards,
    count_unassigned,
    count_unresolved,
    keep_drafts,
    one_settlement_at_a_time,
)
from ledger.workflows.approve import approve_commands
from ledger.workflows.freshen import any_snapshot, fresh_snapshot
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.rate import rate_stored, unrated_cure, unrated_words

NAMED_ACCOUNTS = 5

_InForce: TypeAlias = list[tuple[list[StoredVersion], Period]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A contract that was not settled, why, and what to do about it."""

    contract_id: str
    problem: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What `settle` did: a statement for each contract that could be settled, the others, warnings, and the files written."""

    period: str
    statements: tuple[Statement, ...]
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
) -> Settled:
    """Settles the month `period` (`2026-05`) of every contract in force in it, or of one.

    A dry run computes the same and keeps nothing; it may take the events of an `archive` instead of the database's, and then says nothing
    of what waits or was changed in the database. Contracts that cannot be settled are reported and do not hold up the others. `on_contract`
    is told (contract id, position from 1, how many) before each.
    """
    now = database.now()
    with database.begin() as connection:
        keep_readings(connection)
    of_contracts = None if contract_id is None else [contract_id]
    snapshot = fresh_snapshot(database, *month_anywhere(period), of_contracts) if archive is None else any_snapshot(database)
    with one_settlement_at_a_time(database), snapshot as connection:
        in_force = _in_force(connection, period, contract_id)
        contracts, stopped, warnings = _to_settle(connection, in_force, now, provisional=provisional, dry_run=dry_run)
        periods, intervals = [terms for _, terms in contracts], stored_intervals(connection)
        if archive is None:
            rated, noted = rate_stored(connection, periods, now), _note(connection, periods)
        else:
            from ledger.workflows.rate_archive import rate_archived  # with DuckDB, and what plans need

            rated, noted = rate_archived(archive, periods, intervals, now), _Noted()
        statements: list[Statement] = []
        drafts: list[Draft] = []
        for position, (versions, terms) in enumerate(contracts, start=1):
            on_contract(terms.last.id, position, len(contracts))
            one = rated[terms.last.id]
            if one.judged.unrated:
                problem = unrated_words(None if archive else connection, terms, one.judged.unrated)
                stopped.append(Stopped(contract_id=terms.last.id, problem=problem, cure=unrated_cure(one.judged.unrated)))
                continue
            surroundings = Surroundings(
                state="provisional" if provisional else "draft",
                contract_hashes=_hashes(versions, terms),
                minor_digits=currency_digits(terms.last.money.currency),
                unresolved=replace(noted.unresolved.get(terms.last.id, Unresolved()), unassigned=sum(noted.unassigned_of(terms).values())),
                changed_afterwards=noted.changed_afterwards.get(terms.last.id, ChangedAfterwards()),
                is_test=database.is_test,
            )
            statement = settle(terms, one.judged.cells, one.judged.judgement, one.refunded, one.percentiles_us, surroundings)
            statements.append(statement)
            drafts.append(_draft(statement, one))
            warnings += _breaker_warnings(terms, intervals)
            warnings += [line for line in _unassigned_warnings(noted.unassigned_of(terms)) if line not in warnings]
            fault_point("settle.after_contract")
        if not dry_run and drafts:
            seen = {terms.last.id: {str(one.contract.version): one.content_sha256 for one in versions} for versions, terms in contracts}
            timezone_data = tzdata.__version__
            keep_drafts(connection, drafts, period=period, contract_hashes=seen, timezone_data=timezone_data, settled_at=now, author=author)
            fault_point("settle.before_commit")
    fault_point("settle.after_commit")
    files = [] if dry_run or output is None or not statements else _write_documents(output / period, statements, drafts)
    return Settled(period=period, statements=tuple(statements), stopped=tuple(stopped), warnings=tuple(warnings), files=tuple(files))


def _in_force(connection: Connection, period: str, contract_id: str | None) -> _InForce:
    """The contracts in force in the period. Raises NothingToSettle if there is none."""
    in_force = contracts_in_force(connection, period, contract_id)
    if not in_force:
        what = "no contract" if contract_id is None else f"no version of contract {contract_id}"
        raise NothingToSettle(f"{what} is in force in {period}", cure="see: ledger contract list", exit_code=1)
    return in_force


def _to_settle(
    connection: Connection, in_force: _InForce, now: datetime, *, provisional: bool, dry_run: bool
) -> tuple[_InForce, list[Stopped], list[str]]:
    """Of the contracts those that can be settled, and why the others cannot yet: their month is not over, or a version lacks an approval.
    Of the latter no more than warnings if what is settled cannot be issued."""
    unapproved = _unapproved(connection, in_force)
    stopped = [] if provisional else [early for _, terms in in_force if (early := _too_early(terms, now))]
    warnings = []
    if provisional or dry_run:
        warnings = [f"{one.contract_id} cannot be settled finally yet: {one.problem}" for one in unapproved]
    else:
        stopped = sorted([*stopped, *unapproved], key=attrgetter("contract_id"))
    waiting = {one.contract_id for one in stopped}
    return [(versions, terms) for versions, terms in in_force if terms.last.id not in waiting], stopped, warnings


def _unapproved(connection: Connection, in_force: _InForce) -> list[Stopped]:
    """The contracts with a version in force in the period that lacks an approval; one query for all of them."""
    settled = [[one for one in versions if one.contract.version in terms.by_version] for versions, terms in in_force]
    given = approvals_of(connection, [version for versions in settled for version in versions])
    found = []
    for versions, (_, terms) in zip(settled, in_force, strict=True):
        missing = [(version, roles) for version in versions if (roles := missing_roles(version, given[version.content_sha256]))]
        if missing:
            lacks = [f"version {version.contract.version} that of {' and '.join(roles)}" for version, roles in missing]
            commands = [command for version, roles in missing for command in approve_commands(version, roles)]
            problem = f"what is in force in {terms.name} lacks approval: {', '.join(lacks)}"
            found.append(Stopped(contract_id=terms.last.id, problem=problem, cure="\n  ".join(commands)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """What the database says of periods besides their events: by contract, and by span the events of accounts that no contract covers."""

    unresolved: Mapping[str, Unresolved] = field(default_factory=dict)
    changed_afterwards: Mapping[str, ChangedAfterwards] = field(default_factory=dict)
    unassigned: Mapping[tuple[datetime, datetime], dict[str, int]] = field(default_factory=dict)

    def unassigned_of(self, terms: Period) -> dict[str, int]:
        """The events that no contract covers in the month, by account."""
        return self.unassigned.get((terms.start, terms.end), {})


def _note(connection: Connection, periods: Sequence[Period]) -> _Noted:
    spans = {(terms.start, terms.end) for terms in periods}  # contracts of one zone share theirs
    return _Noted(
        unresolved=count_unresolved(connection, periods),
        changed_afterwards=count_changed_afterwards(connection, periods),
        unassigned={span: count_unassigned(connection, *span) for span in spans},
    )


def _too_early(terms: Period, now: datetime) -> Stopped | None:
    calendar = terms.last.calendar
    settles_at = terms.end + calendar.grace_us * MICROSECOND
    if now >= settles_at:
        return None
    return Stopped(
        contract_id=terms.last.id,
        problem=f"{terms.name} ends in {calendar.timezone} at {_utc(terms.end)} and has its grace until {_utc(settles_at)}",
        cure="settle again then, or now with --provisional",
    )


def _utc(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def _draft(statement: Statement, rated: RatedPeriod) -> Draft:
    return Draft(
        contract_id=statement.contract.id,
        state=statement.state,
        digest=_digest(rated),
        day_starts=tuple(start for piece in rated.judged.period.pieces for start in piece.days.starts),
        document=canonical_bytes(statement_to_json(statement)).decode(),
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


def _digest(rated: RatedPeriod) -> str:
    """SHA-256 of all that the money follows from. Events that differ without changing any of it give the same digest."""
    judgement = rated.judged.judgement
    sums, windows = attrgetter(*Cell.__slots__), attrgetter(*BreachedWindow.__slots__)
    cells = [sorted([str(value) for value in sums(cell)] for cell in group) for group in (rated.judged.cells, rated.refunded)]
    breaches = [[*map(str, windows(window)), str(rated.percentiles_us[window])] for window in judgement.breaches]
    return sha256(json.dumps([*cells, str(judgement.counts), breaches]).encode()).hexdigest()


def _hashes(versions: Sequence[StoredVersion], terms: Period) -> dict[int, str]:
    """The content hash of each version in force in the period."""
    hashes = {stored.contract.version: stored.content_sha256 for stored in versions}
    return {piece.contract.version: hashes[piece.contract.version] for piece in terms.pieces}


def _write_documents(folder: Path, statements: Sequence[Statement], drafts: Sequence[Draft]) -> list[Path]:
    """Writes each draft's JSON and its statement as an invoice; a file is whole or not there, and can be written again from the draft."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for statement, draft in zip(statements, drafts, strict=True):
            name = quote(statement.contract.id, safe="")
            for suffix, content in (
                (".json", draft.document.encode()),
                (".html", invoice_html(statement).encode()),
            ):
                path = folder / f"{name}{suffix}"
                unfinished = path.with_name(f".{path.name}.unfinished")
                unfinished.write_bytes(content)
                fault_point("settle.before_file")
                unfinished.replace(path)
                written.append(path)
    except OSError as error:
        raise LedgerError(
            f"the drafts are kept, but {error.filename or folder} could not be written: {error.strerror}",
            cure="make room or give another folder with --output, and settle again",
            exit_code=4,
        ) from error
    return written
