"""Which contracts are settled in a month, and why others are not: for drafts, and again for what is issued.

Takes a snapshot of the database and a month. Source: specification, section 8 ("Life of a period"); section 3 (`require_approvals`).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from ledger.errors import LedgerError
from ledger.instant import MICROSECOND, instant_text
from ledger.settlement.calendar import month_anywhere
from ledger.settlement.period import Period, contract_period, ended_period
from ledger.store.approvals import approvals_of, missing_roles
from ledger.store.closings import ClosedPeriod, Closing, closed_periods, closings_of_period
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, stored_versions
from ledger.store.database import Database
from ledger.workflows.approve import approve_commands
from ledger.workflows.carried import Settling
from ledger.workflows.freshen import fresh_snapshot
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.statements import Stopped


class NothingToSettle(LedgerError):
    """No contract, or not the one that was asked for, is in force in the period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSettle:
    """The contracts that can be settled, those of them whose month is closed already, and why others cannot be settled yet."""

    settling: tuple[Settling, ...]
    closed: tuple[Closing, ...]
    stopped: tuple[Stopped, ...]
    warnings: tuple[str, ...]


def snapshot_to_settle(database: Database, period: str, contract_ids: Sequence[str] | None) -> AbstractContextManager[Connection]:
    """A fresh snapshot of all that the month of these contracts (None: of all) follows from, closed months that it may adjust included."""
    return fresh_snapshot(database, *_span_to_settle(database, period, contract_ids), contract_ids)


def _span_to_settle(database: Database, period: str, contract_ids: Sequence[str] | None) -> tuple[datetime, datetime]:
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
    unapproved = why_unapproved(connection, still_open, closed)
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


def why_unapproved(connection: Connection, settling: Sequence[Settling], closed: Mapping[str, Mapping[str, ClosedPeriod]]) -> list[Stopped]:
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


def settles_at(terms: Period) -> datetime:
    """When the month is over and has had its grace."""
    return terms.end + terms.last.calendar.grace_us * MICROSECOND


def _too_early(terms: Period, now: datetime) -> Stopped | None:
    ends = f"{terms.name} ends in {terms.last.calendar.timezone} at {instant_text(terms.end)}"
    if now >= settles_at(terms):
        return None
    return Stopped(
        contract_id=terms.last.id,
        problem=f"{ends} and has its grace until {instant_text(settles_at(terms))}",
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
