"""Recompute: what is kept of days is put anew from their events, by the plans of the contracts that cover them.

Takes a transaction and the days. Who only reads cells does not need this module, nor what it brings. Source: architecture, "The one idea";
decision record kept-cells.
"""

from collections.abc import Collection, Sequence

from sqlglot import exp

from ledger.fault_point import fault_point
from ledger.instant import MICROSECOND
from ledger.rating import sql
from ledger.rating.plan import Plan
from ledger.rating.postgres import PostgresEngine, cold_start_events, current_events
from ledger.store.cells import KEPT, ContractDay, Spans, coverage, lock_cells, remove_days, remove_ranked, unranked_days
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.workflows.plans import contracts_of, stored_plans, whole_days


def recompute_days(connection: Connection, spans: Spans) -> None:
    """Put the cells of the days that the spans touch anew, but for their cold starts; the caller holds the lock of the cells."""
    contracts = contracts_of(connection, spans)
    days = whole_days(spans, contracts)
    fault_point("recompute.before_remove")
    remove_days(connection, days)
    engine = PostgresEngine(connection)
    engine.prefer_hashing()
    events = current_events(any_withdrawn=engine.any_withdrawn())
    add_cells(engine, stored_plans(connection, coverage(connection), days, contracts, events, with_traffic=True))
    fault_point("recompute.before_commit")


def rank_days(connection: Connection, unranked: Collection[ContractDay]) -> None:
    """Rank the cold starts of these days; the caller holds the lock of the cells. One that is stale is ranked again when it is computed."""
    contracts = contracts_of(connection, {contract_id for contract_id, _ in unranked})
    starts: Spans = {}
    for contract_id, start in sorted(unranked):
        starts.setdefault(contract_id, []).append((start, start + MICROSECOND))
    days = whole_days(starts, contracts)
    remove_ranked(connection, days)
    add_ranked(PostgresEngine(connection), stored_plans(connection, coverage(connection), days, contracts, listed_events(days)))
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


def listed_events(days: Spans, *, listed_in: str = "cold_start_event") -> exp.Query:
    """The standing events that are listed as possible cold starts of these days, of which there is at least one."""
    spans = [span for pieces in days.values() for span in pieces]
    return cold_start_events(min(start for start, _ in spans), max(end for _, end in spans), listed_in=listed_in)
