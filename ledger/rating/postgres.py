"""PostgreSQL as the engine of the plan: the events of the database that one transaction sees, made into cells there."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlglot import exp

from ledger.rating import sql
from ledger.rating.plan import CLASSIFIED, EVENT_COLUMNS, GROUPS, SIGNATURES
from ledger.store.connection import Connection, driver_cursor, execute, fetch, streaming_cursor

_IDENTITY = ("account", "request_id", "revision")
# The sum of whole numbers as a whole number: sum() makes them decimals, which costs a tenth of the time of classifying. One that is too
# large is an error, as it would be in the column of a cell.
_TOTAL = "pg_temp.total"
_CREATE_TOTAL = f"CREATE OR REPLACE AGGREGATE {_TOTAL} (bigint) (SFUNC = int8pl, STYPE = bigint, COMBINEFUNC = int8pl, PARALLEL = SAFE)"


_MULTIRANGE = exp.DataType.build("int8multirange", dialect="postgres")


def current_events(*, any_withdrawn: bool = True) -> exp.Select:
    """The events that stand: those whose revision was not withdrawn. To look that up for every event takes a fifth of the time of
    classifying them, which a database in which nothing was ever withdrawn need not spend."""
    return _not_withdrawn(_events()) if any_withdrawn else _events()


def seen_events(batches: str, voids: str) -> exp.Select:
    """The events that stood when these batches and voids were all that there was: multiranges of their ids as PostgreSQL writes them."""
    events = _events().where(_holds(batches, sql.column("batch_id", "e")))
    return events if voids == "{}" else _not_withdrawn(events, _holds(voids, sql.column("void_id", "v")))


def _events() -> exp.Select:
    return exp.select(*(sql.column(name, "e") for name in EVENT_COLUMNS)).from_(exp.to_table("event", alias="e"))


def _not_withdrawn(events: exp.Select, *by: exp.Expr) -> exp.Select:
    """Those that no void withdrew for which the conditions hold."""
    same = [exp.EQ(this=sql.column(name, "v"), expression=sql.column(name, "e")) for name in _IDENTITY]
    withdrawn = exp.select(sql.number(1)).from_(exp.to_table("void", alias="v")).where(*same, *by)
    return events.where(exp.Not(this=exp.Exists(this=withdrawn)))


def _holds(multirange: str, number: exp.Expr) -> exp.Expr:
    return exp.ArrayContainsAll(this=exp.Cast(this=sql.text(multirange), to=_MULTIRANGE.copy()), expression=number)


def cold_start_events(start: datetime, end: datetime, *, listed_in: str = "cold_start_event") -> exp.Select:
    """The standing events that are listed as possible cold starts under some contract, on days that begin in [start, end)."""
    day_start = sql.column("day_start")
    listed = exp.select(*(sql.column(name) for name in _IDENTITY)).from_(listed_in).distinct()
    listed = listed.where(
        exp.GTE(this=day_start, expression=sql.instant(start)), exp.LT(this=day_start.copy(), expression=sql.instant(end))
    )
    same = [exp.EQ(this=sql.column(name, "e"), expression=sql.column(name, "listed")) for name in _IDENTITY]
    return current_events().join(listed.subquery("listed"), on=sql.both(*same))


class PostgresEngine:
    """The plan's engine on a connection, whose transaction is the snapshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        execute(connection, _CREATE_TOTAL)

    def keep(self, name: str, query: exp.Query) -> None:
        """Make a temporary table of the query's rows, gone with the transaction."""
        with driver_cursor(self._connection) as cursor:
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {_printed(query)}".encode())

    def prefer_hashing(self) -> None:
        """Until the transaction ends, group by hashing and not by sorting, with memory for it: PostgreSQL cannot know how few groups of
        events there are, and would sort all of them."""
        with driver_cursor(self._connection) as cursor:
            for setting in ("enable_sort = off", "enable_mergejoin = off", "work_mem = '256MB'", "hash_mem_multiplier = 4"):
                cursor.execute(f"SET LOCAL {setting}".encode())

    def add(self, table: str, columns: Sequence[str], query: exp.Query) -> None:
        """Add the query's rows, which have these columns, to a table."""
        with driver_cursor(self._connection) as cursor:
            cursor.execute(_printed(exp.insert(query, table, columns=columns)).encode())

    def each(self, query: exp.Query) -> Iterator[tuple[Any, ...]]:
        """The query's rows, of which there may be any number."""
        with streaming_cursor(self._connection) as cursor:
            yield from cursor.execute(_printed(query).encode())

    def any_withdrawn(self) -> bool:
        """Whether any event was ever withdrawn."""
        return fetch(self._connection, "SELECT FROM void LIMIT 1") != []


def _printed(query: exp.Query | exp.Insert) -> str:
    """The query in PostgreSQL's words, events summed by the aggregate of this module.

    What is looked at many times is fenced off by LIMIT ALL, or PostgreSQL would put the whole expression wherever it is looked at, and
    compute a latency four times. The fence also hides the instants: PostgreSQL would take the number of distinct ones for that of windows,
    and sort millions of rows or group them in one process.
    """
    query = query.copy()
    for relation in query.find_all(exp.Subquery):
        if relation.alias in (CLASSIFIED, SIGNATURES):
            relation.this.set("limit", exp.Limit(expression=exp.var("ALL")))
        if relation.alias == GROUPS:
            for named in relation.this.expressions:
                if isinstance(named.this, exp.Sum):
                    named.this.replace(exp.Anonymous(this=_TOTAL, expressions=[named.this.this]))
    return query.sql("postgres", normalize_functions=False)
