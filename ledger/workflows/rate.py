"""Rates the periods of contracts: from the cells that are kept in the database, or from archived events, by the same plan.

Takes periods and recorded intervals, gives what follows from their cells. Source: specification, sections 4 to 7.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection
from sqlglot import exp

from ledger.rating import sql
from ledger.rating.cells import Engine
from ledger.rating.plan import CELL_COLUMNS, Breaker, Coverage, ModelLoad, Plan, plans_of
from ledger.rating.postgres import PostgresEngine, cold_start_events, kept_cells
from ledger.rating.rated_period import JudgedPeriod, RatedPeriod, judge_periods, rate_periods
from ledger.settlement.period import Period
from ledger.store.intervals import Interval

UNRATED_CURE = "add it to the contract (models: served_as, or queues:) in a new version, or void the requests"


def rate_stored(connection: Connection, periods: Sequence[Period], intervals: Sequence[Interval], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract, from the events of the database."""
    if not periods:
        return {}
    engine = PostgresEngine(connection)
    return rate_periods(engine, stored_cells(engine, periods, intervals), _by_contract(periods), now)


def judge_stored(
    connection: Connection, periods: Sequence[Period], intervals: Sequence[Interval], now: datetime
) -> dict[str, JudgedPeriod]:
    """The periods by contract, judged at `now` and no more."""
    if not periods:
        return {}
    engine = PostgresEngine(connection)
    return judge_periods(engine, stored_cells(engine, periods, intervals), _by_contract(periods), now)


def stored_cells(engine: PostgresEngine, periods: Sequence[Period], intervals: Sequence[Interval]) -> exp.Query:
    """A relation of the periods' cells: those that are kept, and those of events that cold starts may have delayed."""
    spans = {terms.last.id: (terms.start, terms.end) for terms in periods}
    start, end = min(start for start, _ in spans.values()), max(end for _, end in spans.values())
    kept = kept_cells(spans)
    with_cold_starts = engine.contracts_with_cold_starts(start, end)
    waiting = [terms for terms in periods if terms.last.id in with_cold_starts]
    delayed = [plan.delayed() for plan in plans_of_periods(waiting, intervals, cold_start_events(start, end))]
    queries = [query for query in delayed if query is not None]
    return sql.all_of_each([kept, _kept(engine, "delayed_cell", queries)]) if queries else kept


def rate_archived(archive: Path, periods: Sequence[Period], intervals: Sequence[Interval], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract, from a Parquet file of events or a folder of them. Raises LedgerError if it is no archive."""
    if not periods:
        return {}
    import duckdb

    from ledger.rating.archive import archived_events, readable
    from ledger.rating.duckdb import DuckDbEngine

    with duckdb.connect() as memory, readable(archive):
        engine = DuckDbEngine(memory)
        cells = classified_cells(engine, periods, intervals, archived_events(memory, archive))
        return rate_periods(engine, cells, _by_contract(periods), now)


def classified_cells(engine: Engine, periods: Sequence[Period], intervals: Sequence[Interval], source: exp.Query) -> exp.Query:
    """A relation of the periods' cells, made from the standing events that `source` gives."""
    return _kept(engine, "classified_cell", [plan.cells() for plan in plans_of_periods(periods, intervals, source)])


def plans_of_periods(periods: Sequence[Period], intervals: Sequence[Interval], source: exp.Query) -> list[Plan]:
    """The plans of all that is in force in the periods, over the standing events that `source` gives."""
    contracts = {(piece.contract.id, piece.contract.version): piece.contract for terms in periods for piece in terms.pieces}
    coverage = [
        Coverage(
            account=account,
            contract_id=piece.contract.id,
            version=piece.contract.version,
            start=piece.days.starts[0],
            end=piece.days.end,
        )
        for terms in periods
        for piece in terms.pieces
        for account in piece.contract.parties.customer.accounts
    ]
    return plans_of(contracts, coverage, *breakers_and_loads(intervals), source)


def breakers_and_loads(intervals: Sequence[Interval]) -> tuple[list[Breaker], list[ModelLoad]]:
    """Recorded intervals as the plan takes them."""
    breakers = [Breaker(node=i.node, start=i.starts_at, end=i.ends_at) for i in intervals if i.kind == "circuit_breaker"]
    loads = [
        ModelLoad(interval_id=i.interval_id, node=i.node, model=i.model, start=i.starts_at, end=i.ends_at)
        for i in intervals
        if i.kind == "model_load" and i.node is not None and i.model is not None
    ]
    return breakers, loads


def _kept(engine: Engine, name: str, queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of all queries, of which there is at least one, kept by the engine so that they are computed once."""
    names = [f"{name}_{number}" for number in range(len(queries))]
    for table, query in zip(names, queries, strict=True):
        engine.keep(table, query)
    return sql.all_of_each([sql.everything(table, CELL_COLUMNS) for table in names])


def _by_contract(periods: Sequence[Period]) -> dict[str, Period]:
    return {terms.last.id: terms for terms in periods}
