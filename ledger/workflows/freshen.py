"""Freshen: what is stale of the kept cells is computed from the events again, before anything is settled from it.

Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from ledger.contract.model import Contract
from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.rating import sql
from ledger.rating.plan import CELL_COLUMNS, COLD_START_COLUMNS, Coverage, Plan, plans_of
from ledger.rating.postgres import PostgresEngine, current_events
from ledger.settlement.calendar import days_touched
from ledger.store.cells import Spans, coverage, lock_cells, lock_for_deltas, remove_days, stale_spans
from ledger.store.contracts import stored_versions
from ledger.store.database import Database
from ledger.store.intervals import stored_intervals
from ledger.workflows.rate import breakers_and_loads

ATTEMPTS = 20
MICROSECOND = timedelta(microseconds=1)


@contextmanager
def fresh_snapshot(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> Iterator[Connection]:
    """A transaction that sees one state of the database, in which nothing of these contracts (None: of any) is stale in [start, end).

    Committed at the end of the block. Raises LedgerError if events are changed faster than they can be computed.
    """
    engine = database.engine
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        for _ in range(ATTEMPTS):
            freshen(database, start, end, contract_ids)
            with engine.begin() as guard:
                lock_for_deltas(guard)  # nothing can become stale until the snapshot is taken
                if not stale_spans(guard, contract_ids, start, end):
                    transaction = connection.begin()
                    connection.execute(text("SELECT 1"))
                    break
        else:
            raise LedgerError(
                "events are changed faster than they can be settled", cure="settle again when the corrections are done", exit_code=4
            )
        with transaction:
            yield connection


@contextmanager
def any_snapshot(database: Database) -> Iterator[Connection]:
    """A transaction that sees one state of the database, whatever is stale in it: for those who do not read kept cells, or doubt them."""
    with database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        yield connection


def freshen(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> None:
    """Compute again what is stale of these contracts (None: of all) in [start, end). Loads wait meanwhile with what they add."""
    with database.engine.connect() as connection:
        if not stale_spans(connection, contract_ids, start, end):
            return
    with database.engine.begin() as connection:
        lock_cells(connection)
        spans = stale_spans(connection, contract_ids, start, end)
        if not spans:  # somebody else computed them while this one waited for the lock
            return
        contracts = contracts_of(connection, spans)
        days = whole_days(spans, contracts)
        fault_point("freshen.before_remove")
        remove_days(connection, days)
        plans = stored_plans(connection, days, contracts)
        engine = PostgresEngine(connection)
        engine.prefer_hashing()
        add_cells(engine, plans)
        fault_point("freshen.before_commit")


KEPT = {"cell": CELL_COLUMNS, "cold_start_event": COLD_START_COLUMNS}  # what is kept of events: tables with their columns


def add_cells(engine: PostgresEngine, plans: Sequence[Plan], *, prefix: str = "") -> None:
    """Add what is kept of the events that the engine sees, computed by the plans, to the tables of KEPT, their names behind the prefix."""
    for number, plan in enumerate(plans):
        for table, query in (("cell", plan.summed()), ("cold_start_event", plan.cold_starts())):
            if query is not None:
                # A table that is made of a query may be computed in parallel, rows that are added to one may not.
                engine.keep(f"fresh_{table}_{number}", query)
                engine.add(f"{prefix}{table}", KEPT[table], sql.everything(f"fresh_{table}_{number}", KEPT[table]))


def contracts_of(connection: Connection, contract_ids: Collection[str]) -> dict[tuple[str, int], Contract]:
    """All versions of these contracts, by contract and version."""
    return {(one.contract.id, one.contract.version): one.contract for one in stored_versions(connection, contract_ids)}


def whole_days(spans: Spans, contracts: dict[tuple[str, int], Contract]) -> Spans:
    """The local days that the spans touch, each once."""
    zones = {contract.id: contract.calendar.timezone for contract in contracts.values()}
    days: Spans = {}
    for contract_id, pieces in spans.items():
        merged = days.setdefault(contract_id, [])
        for start, end in pieces:
            touched = days_touched(zones[contract_id], start, max(end, start + MICROSECOND))  # somebody may have marked one instant
            first, last = touched.starts[0], touched.end
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
            else:
                merged.append((first, last))
    return days


def stored_plans(connection: Connection, days: Spans, contracts: dict[tuple[str, int], Contract]) -> list[Plan]:
    """The plans of what accounts the contracts cover on these days, over the standing events that the connection sees."""
    clipped = [
        Coverage(account=one.account, contract_id=one.contract_id, version=one.version, start=max(one.start, start), end=last)
        for one in coverage(connection)
        for start, end in days.get(one.contract_id, ())
        for last in [end if one.end is None else min(one.end, end)]
        if max(one.start, start) < last
    ]
    events = current_events(any_withdrawn=PostgresEngine(connection).any_withdrawn())
    return plans_of(contracts, clipped, *breakers_and_loads(stored_intervals(connection)), events)
