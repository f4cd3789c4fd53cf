"""Rates months from the events that a run saw, classified anew in the database: no kept cell is read.

Takes a snapshot, what was seen and periods; gives what follows from their cells. Source: specification, section 8, "Reproducible".
"""

from collections.abc import Sequence
from operator import attrgetter

from psycopg import sql

from ledger.rating.postgres import PostgresEngine, seen_events
from ledger.rating.postgres_cells import PostgresCells
from ledger.rating.rated_period import RatedPeriod, rate_periods
from ledger.settlement.calendar import Days
from ledger.settlement.cell import CELL_COLUMNS
from ledger.settlement.period import Period
from ledger.store.cells import traffic_of
from ledger.store.connection import Connection, column_list, execute
from ledger.store.intervals import Interval, stored_intervals
from ledger.store.seen import Seen
from ledger.workflows.plans import plans_of_periods
from ledger.workflows.rate import by_contract


def rate_seen(connection: Connection, seen: Seen, periods: Sequence[Period], days: Days | None = None) -> dict[str, RatedPeriod]:
    """The periods by contract: one month of several contracts of which all was seen together, all of it over. `days` are those of the
    zone of all of them, if it has others now than were recorded."""
    engine = PostgresEngine(connection)
    engine.prefer_hashing()
    start, end = min(one.start for one in periods), max(one.end for one in periods)
    intervals = seen_intervals(connection, seen)
    source, traffic = seen_events(seen.batches, seen.voids), traffic_of(connection, start, end)
    tables = []
    for place, plan in enumerate(plans_of_periods(periods, intervals, source, traffic, days)):
        for kind, query in (("cell", plan.summed()), ("delayed_cell", plan.delayed())):
            if query is not None:
                tables.append(f"seen_{kind}_{place}")
                engine.keep(tables[-1], query)
    columns = column_list(CELL_COLUMNS)
    nothing = sql.SQL("SELECT {} FROM cell WHERE false").format(columns)  # a contract that has ended has no plan
    made = [sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier("pg_temp", table)) for table in tables]
    rated = rate_periods(PostgresCells(connection, [nothing, *made]), by_contract(periods), end)
    for table in tables:
        execute(connection, sql.SQL("DROP TABLE {}").format(sql.Identifier("pg_temp", table)))
    return rated


def seen_intervals(connection: Connection, seen: Seen) -> list[Interval]:
    """The intervals that were seen."""
    return [one for one in stored_intervals(connection) if seen.intervals is None or one.interval_id in set(seen.intervals)]


def united_days(periods: Sequence[Period]) -> Days:
    """The days of the pieces of one or more periods of one zone, at least one; what lies between pieces counts as a day."""
    days = [piece.days for period in periods for piece in period.pieces]
    end = max(map(attrgetter("end"), days))
    bounds = {bound for one in days for bound in (*one.starts, one.end)}
    return Days(starts=tuple(sorted(bounds - {end})), end=end)
