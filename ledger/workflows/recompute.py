"""Recompute: what is kept of days is put anew from their events, by the plans of the contracts that cover them.

Takes a transaction and the days. Who only reads cells does not need this module, nor what it brings. Source: architecture, "The one idea";
decision record kept-cells.
"""

from collections.abc import Collection, Sequence

from sqlglot import exp

from ledger.contract.model import Contract
from ledger.fault_point import fault_point
from ledger.instant import MICROSECOND
from ledger.rating import sql
from ledger.rating.plan import Breaker, Coverage, ModelLoad, Plan, plans_of
from ledger.rating.postgres import PostgresEngine, cold_start_events, current_events
from ledger.settlement.calendar import days_touched
from ledger.store.cells import KEPT, ContractDay, Spans, coverage, lock_cells, remove_days, remove_ranked, traffic_of, unranked_days
from ledger.store.connection import Connection
from ledger.store.contracts import stored_versions
from ledger.store.database import Database
from ledger.store.intervals import Interval, stored_intervals


def recompute_days(connection: Connection, spans: Spans) -> None:
    """Put the cells of the days that the spans touch anew, but for their cold starts; the caller holds the lock of the cells."""
    contracts = contracts_of(connection, spans)
    days = whole_days(spans, contracts)
    fault_point("recompute.before_remove")
    remove_days(connection, days)
    engine = PostgresEngine(connection)
    engine.prefer_hashing()
    events = current_events(any_withdrawn=engine.any_withdrawn())
    add_cells(engine, stored_plans(connection, days, contracts, events, with_traffic=True))
    fault_point("recompute.before_commit")


def rank_days(connection: Connection, unranked: Collection[ContractDay]) -> None:
    """Rank the cold starts of these days; the caller holds the lock of the cells. One that is stale is ranked again when it is computed."""
    contracts = contracts_of(connection, {contract_id for contract_id, _ in unranked})
    starts: Spans = {}
    for contract_id, start in sorted(unranked):
        starts.setdefault(contract_id, []).append((start, start + MICROSECOND))
    days = whole_days(starts, contracts)
    remove_ranked(connection, days)
    add_ranked(PostgresEngine(connection), stored_plans(connection, days, contracts, listed_events(days)))
    fault_point("rank.before_commit")


def rank_where_needed(database: Database, days: Collection[ContractDay]) -> None:
    """Rank the cold starts of those of the days that need it. Nobody waits if none does."""
    contract_ids, starts = {contract_id for contract_id, _ in days}, {start for _, start in days}
    span = contract_ids, min(starts), max(starts) + MICROSECOND
    with database.begin() as connection:
        if not unranked_days(connection, *span) & set(days):
            return
    with database.begin() as connection:
        lock_cells(connection)
        if unranked := unranked_days(connection, *span) & set(days):
            rank_days(connection, unranked)


def add_cells(engine: PostgresEngine, plans: Sequence[Plan], *, prefix: str = "") -> None:
    """Add what the plans compute of the events that the engine sees to `cell` and `cold_start_event`, their names behind the prefix."""
    for number, plan in enumerate(plans):
        for table, query in (("cell", plan.summed()), ("cold_start_event", plan.cold_starts())):
            if query is not None:
                # A table that is made of a query may be computed in parallel, rows that are added to one may not.
                engine.keep(f"fresh_{table}_{number}", query)
                engine.add(f"{prefix}{table}", KEPT[table], sql.everything(f"fresh_{table}_{number}", KEPT[table]))


def add_ranked(engine: PostgresEngine, plans: Sequence[Plan], *, prefix: str = "") -> None:
    """Add the cells of listed events, which the plans are about, to `delayed_cell`, its name behind the prefix."""
    for query in (plan.delayed() for plan in plans):
        if query is not None:
            engine.add(f"{prefix}delayed_cell", KEPT["delayed_cell"], query)


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


def stored_plans(
    connection: Connection, days: Spans, contracts: dict[tuple[str, int], Contract], events: exp.Query, *, with_traffic: bool = False
) -> list[Plan]:
    """The plans of what accounts the contracts cover on these days, over these events. If those are all events, not just a few that are
    listed, plans are told which traffic there is besides theirs."""
    clipped = [
        Coverage(account=one.account, contract_id=one.contract_id, version=one.version, start=max(one.start, start), end=last)
        for one in coverage(connection)
        for start, end in days.get(one.contract_id, ())
        for last in [end if one.end is None else min(one.end, end)]
        if max(one.start, start) < last
    ]
    if not clipped:
        return []
    first, last = min(one.start for one in clipped), max(one.end for one in clipped)
    traffic = traffic_of(connection, first, last) if with_traffic else None
    return plans_of(contracts, clipped, *breakers_and_loads(stored_intervals(connection)), events, traffic)


def listed_events(days: Spans, *, listed_in: str = "cold_start_event") -> exp.Query:
    """The standing events that are listed as possible cold starts of these days, of which there is at least one."""
    spans = [span for pieces in days.values() for span in pieces]
    return cold_start_events(min(start for start, _ in spans), max(end for _, end in spans), listed_in=listed_in)


def breakers_and_loads(intervals: Sequence[Interval]) -> tuple[list[Breaker], list[ModelLoad]]:
    """Recorded intervals as the plan takes them."""
    breakers = [Breaker(node=i.node, start=i.starts_at, end=i.ends_at) for i in intervals if i.kind == "circuit_breaker"]
    loads = [
        ModelLoad(interval_id=i.interval_id, node=i.node, model=i.model, start=i.starts_at, end=i.ends_at)
        for i in intervals
        if i.kind == "model_load" and i.node is not None and i.model is not None
    ]
    return breakers, loads
