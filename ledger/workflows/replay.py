"""Replays a recorded month under contracts that need not be stored: contracts in, the statement of the month under each out.

A contract is taken as if in force for the whole month, since the question is what it would cost. All are settled from one snapshot, the
events of their accounts are classified anew, and the transaction is undone: nothing is written. Source: specification, section 9.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from ledger.contract.model import Contract
from ledger.contract.scalar import currency_digits
from ledger.documents.replay_words import ReplayNote
from ledger.errors import LedgerError
from ledger.rating.plans import plans_of
from ledger.rating.postgres import PostgresEngine, current_events
from ledger.rating.postgres_cells import PostgresCells, made_cells
from ledger.rating.rated_period import RatedPeriod, rate_periods
from ledger.rating.recorded import Coverage
from ledger.rating.terms import Terms, terms_of
from ledger.settlement.calendar import month_days
from ledger.settlement.period import Period, contract_period
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import ChangedAfterwards, Statement, Unresolved
from ledger.store.cells import traffic_of
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.intervals import stored_intervals
from ledger.store.overview import months_of_accounts
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.plans import breakers_and_loads
from ledger.workflows.rate import added_words, unrated_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A contract to replay, and what messages call it: the name of its file."""

    name: str
    contract: Contract


class ReplayRefused(LedgerError):
    """The month cannot be settled under a contract, or not be compared."""


def replay_month(database: Database, month: str, candidates: Sequence[Candidate]) -> tuple[Statement, ...]:
    """The statements of the month `2026-05` under each, in order, carried in nothing. Windows that have not ended are not judged.

    Raises ReplayRefused if a contract knows no price for what was used, or its accounts have no requests in the month.
    """
    now = database.now()
    periods = {str(place): _period(one.contract, month) for place, one in enumerate(candidates)}
    with _undone(database) as connection:
        rated = rate_periods(_cells(connection, periods), periods, now)
        statements = []
        for (key, terms), one in zip(periods.items(), candidates, strict=True):
            if unrated := rated[key].judged.unrated:
                problem = unrated_words(connection, terms, unrated)
                raise ReplayRefused(f"{one.name}: {problem}", cure=added_words(unrated))
            statement = _statement(terms, rated[key], is_test=database.is_test)
            if not statement.events.total:
                accounts = one.contract.parties.customer.accounts
                problem = f"{one.name}: there are no requests of {', '.join(accounts)} in {month}, so there is nothing to replay"
                raise ReplayRefused(problem, cure=_months_words(connection, accounts))
            statements.append(statement)
    return tuple(statements)


def replay_notes(month: str, candidates: Sequence[Candidate]) -> list[ReplayNote]:
    """What a reader of the figures must know: contracts that the month is not in force under, in whole or in part."""
    first_on, next_on = month_days(month)
    notes = []
    for one in candidates:
        effective = one.contract.effective
        if effective.start > first_on or (effective.until is not None and effective.until < next_on):
            values = {"name": one.name, "first": str(effective.start), "month": month}
            if effective.until is None:
                notes.append(ReplayNote("note_from", values))
            else:
                notes.append(ReplayNote("note_span", values | {"last": str(effective.until - timedelta(days=1))}))
    return notes


def unended_notes(database: Database, statements: Sequence[Statement]) -> list[ReplayNote]:
    """What a reader must know if the month of the statements, at least one, is not over in the zone of each."""
    if database.now() >= max(one.end for one in statements):
        return []
    return [ReplayNote("note_running", {"month": statements[0].period})]


def compare_replays(database: Database, month: str, old: Candidate, new: Candidate) -> tuple[tuple[Statement, Statement], list[ReplayNote]]:
    """The month under both, and notes. Raises ReplayRefused if what they give cannot be compared."""
    before, after = old.contract, new.contract
    if before.money.currency != after.money.currency:
        problem = f"{old.name} is in {before.money.currency} and {new.name} in {after.money.currency}: their amounts cannot be compared"
        raise ReplayRefused(problem, cure="replay contracts of one currency")
    accounts, others = (set(one.parties.customer.accounts) for one in (before, after))
    if not accounts & others:
        problem = f"{old.name} and {new.name} are contracts of different customers: they have no account in common"
        raise ReplayRefused(problem, cure="replay contracts of one customer")
    notes = replay_notes(month, [old, new])
    for one, alone in ((old, accounts - others), (new, others - accounts)):
        notes += [ReplayNote("note_only", {"name": one.name, "account": account}) for account in sorted(alone)]
    zone, other_zone = before.calendar.timezone, after.calendar.timezone
    if zone != other_zone:
        values = {"month": month, "zone": zone, "name": old.name, "other_zone": other_zone, "other_name": new.name}
        notes.append(ReplayNote("note_zones", values))
    first, second = replay_month(database, month, [old, new])
    return (first, second), [*notes, *unended_notes(database, [first, second])]


def _months_words(connection: Connection, accounts: Sequence[str]) -> str:
    """Where there are requests of the accounts, if not in the month that was asked for."""
    months = sorted({one.month for one in months_of_accounts(connection) if one.account in accounts})
    if not months:
        return "there are none in any month: check the accounts of the contract; ledger status lists those that have requests"
    return f"there are requests of {'it' if len(accounts) == 1 else 'them'} in {', '.join(months)} (months of UTC)"


def _period(contract: Contract, month: str) -> Period:
    """The month with the contract in force from its first day to its last."""
    first_on, next_on = month_days(month)
    effective = contract.effective.model_copy(update={"start": first_on, "until": next_on})
    period = contract_period([contract.model_copy(update={"effective": effective, "replaces": None})], month)
    assert period is not None, "no zone skips a month"
    return period


@contextmanager
def _undone(database: Database) -> Iterator[Connection]:
    """A snapshot for one's own temporary tables: whatever is done in it is undone."""
    with any_snapshot(database) as connection:
        try:
            yield connection
        finally:
            connection.rollback()


def _cells(connection: Connection, periods: Mapping[str, Period]) -> PostgresCells:
    """The cells of the periods, by their key, made of the standing events; once for those that classify the same requests alike."""
    engine = PostgresEngine(connection)
    engine.prefer_hashing()
    events = current_events(any_withdrawn=engine.any_withdrawn())
    breakers, loads = breakers_and_loads(stored_intervals(connection))
    made: dict[tuple[Terms, tuple[str, ...]], list[str]] = {}
    tables: dict[tuple[str, int], list[str]] = {}
    for key, period in periods.items():
        contract, accounts = period.last, period.last.parties.customer.accounts
        alike = (terms_of(contract), tuple(sorted(accounts)))
        if alike not in made:
            coverage = [
                Coverage(account=account, contract_id=key, version=contract.version, start=period.start, end=period.end)
                for account in accounts
            ]
            traffic = traffic_of(connection, period.start, period.end)
            (plan,) = plans_of({(key, contract.version): contract}, coverage, breakers, loads, events, traffic)
            queries = {f"replayed_cell_{key}": plan.summed(), f"replayed_delayed_cell_{key}": plan.delayed()}
            made[alike] = []
            for name, query in queries.items():
                if query is not None:
                    engine.keep(name, query)
                    made[alike].append(name)
        tables[key, contract.version] = made[alike]
    return made_cells(connection, tables)


def _statement(terms: Period, rated: RatedPeriod, *, is_test: bool) -> Statement:
    surroundings = Surroundings(
        state="replayed",
        contract_hashes={},
        minor_digits=currency_digits(terms.last.money.currency),
        unresolved=Unresolved(),
        changed_afterwards=ChangedAfterwards(),
        is_test=is_test,
    )
    return settle(terms, rated.judged.cells, rated.judged.judgement, rated.refunded, rated.percentiles_us, surroundings)
