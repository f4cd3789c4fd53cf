"""Rates the periods of contracts from archived events: Parquet files, classified by the same plan, without the database.

Takes periods and recorded intervals, gives what follows from their cells. Source: specification, sections 4 to 7.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.rating.archive import archived_events, readable
from ledger.rating.duckdb import ComputedCells
from ledger.rating.plan import Plan
from ledger.rating.plans import plans_of
from ledger.rating.rated_period import RatedPeriod, rate_periods
from ledger.rating.recorded import Coverage
from ledger.settlement.period import Period
from ledger.store.intervals import Interval
from ledger.workflows.plans import breakers_and_loads
from ledger.workflows.rate import by_contract


def rate_archived(archive: Path, periods: Sequence[Period], intervals: Sequence[Interval], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract, from a Parquet file of events or a folder of them. Raises LedgerError if it is no archive."""
    if not periods:
        return {}
    with duckdb.connect() as memory, readable(archive):
        cells = computed_cells(memory, periods, intervals, archived_events(memory, archive))
        return rate_periods(cells, by_contract(periods), now)


def computed_cells(
    memory: duckdb.DuckDBPyConnection, periods: Sequence[Period], intervals: Sequence[Interval], source: exp.Query
) -> ComputedCells:
    """The cells of the periods, of which there is at least one, made from the standing events that `source` gives."""
    return ComputedCells(memory, [plan.cells() for plan in plans_of_periods(periods, intervals, source)])


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
