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
from ledger.rating.rated_period import RatedPeriod, rate_periods
from ledger.settlement.period import Period
from ledger.store.intervals import Interval
from ledger.workflows.plans import plans_of_periods
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
