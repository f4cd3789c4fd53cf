"""PostgreSQL as the engine of the plan: the events and kept cells of the database that one transaction sees."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlglot import exp

from ledger.rating import sql
from ledger.rating.plan import CELL_COLUMNS, CLASSIFIED, EVENT_COLUMNS, GROUPS, SIGNATURES
from ledger.store.events import driver_cursor

_IDENTITY = ("account", "request_id", "revision")
_TOTAL = "pg_temp.total"
_CREATE_TOTAL = f"CREATE OR REPLACE AGGREGATE {_TOTAL} (bigint) (SFUNC = int8pl, STYPE = bigint, COMBINEFUNC = int8pl, PARALLEL = SAFE)"


def current_events(*, any_withdrawn: bool = True) -> exp.Select:
    """The events that stand: those whose revision was not withdrawn. To look that up for every event takes a fifth of the time of
    classifying them, which a database in which nothing was ever withdrawn need not spend."""
    events = exp.select(*(sql.column(name, "e") for name in EVENT_COLUMNS)).from_(exp.to_table("event", alias="e"))
    if not any_withdrawn:
        return events
    same = [exp.EQ(this=sql.column(name, "v"), expression=sql.column(name, "e")) for name in _IDENTITY]
    withdrawn = exp.select(sql.number(1)).from_(exp.to_table("void", alias="v")).where(*same)
    return events.where(exp.Not(this=exp.Exists(this=withdrawn)))


def cold_start_events(start: datetime, end: datetime) -> exp.Select:
    """The standing events of [start, end) that may be cold starts under some contract."""
    listed = exp.select(*(sql.column(name) for name in _IDENTITY)).from_("cold_start_event").distinct()
    listed = listed.where(*_within("day_start", start, end))
    same = [exp.EQ(this=sql.column(name, "e"), expression=sql.column(name, "listed")) for name in _IDENTITY]
    return current_events().join(listed.subquery("listed"), on=sql.both(*same))


def kept_cells(spans: Mapping[str, tuple[datetime, datetime]]) -> exp.Select:
    """The kept cells of contracts by id, each within its span: of all events that no cold start delayed."""
    columns = [("contract_id", "text"), ("start", "timestamptz"), ("end", "timestamptz")]
    rows = [[sql.text(contract_id), sql.instant(start), sql.instant(end)] for contract_id, (start, end) in spans.items()]
    day_start = sql.column("day_start", "cell")
    # The outer bounds, as constants, let the index be used.
    bounds = [
        exp.GTE(this=day_start, expression=sql.instant(min(start for start, _ in spans.values()))),
        exp.LT(this=day_start.copy(), expression=sql.instant(max(end for _, end in spans.values()))),
    ]
    same = [
        exp.EQ(this=sql.column("contract_id", "cell"), expression=sql.column("contract_id", "settled")),
        exp.GTE(this=day_start.copy(), expression=sql.column("start", "settled")),
        exp.LT(this=day_start.copy(), expression=sql.column("end", "settled")),
    ]
    return (
        exp.select(*(sql.column(name, "cell") for name in CELL_COLUMNS))
        .from_("cell")
        .join(sql.rows(columns, rows).subquery("settled"), on=sql.both(*same))
        .where(*bounds)
    )


class PostgresEngine:
    """The plan's engine on a connection, whose transaction is the snapshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, query: exp.Query) -> Iterator[tuple[Any, ...]]:
        """The rows of the query."""
        # Without parameters the driver looks for no placeholders in the constants.
        with driver_cursor(self._connection) as cursor:
            yield from cursor.execute(_printed(query).encode())

    def instant(self, value: datetime) -> datetime:
        """The instant of a value in a row: the driver's own."""
        return value

    def keep(self, name: str, query: exp.Query) -> None:
        """Make a temporary table of the query's rows, gone with the transaction."""
        with driver_cursor(self._connection) as cursor:
            cursor.execute(_CREATE_TOTAL.encode())
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {_printed(query, total=_TOTAL)}".encode())

    def prefer_hashing(self) -> None:
        """Until the transaction ends, group by hashing and not by sorting, with memory for it: PostgreSQL cannot know how few groups of
        events there are, and would sort all of them."""
        with driver_cursor(self._connection) as cursor:
            for setting in ("enable_sort = off", "enable_mergejoin = off", "work_mem = '256MB'", "hash_mem_multiplier = 4"):
                cursor.execute(f"SET LOCAL {setting}".encode())

    def add(self, table: str, columns: Sequence[str], query: exp.Query) -> None:
        """Add the query's rows, which have these columns, to a table."""
        with driver_cursor(self._connection) as cursor:
            cursor.execute(exp.insert(query, table, columns=columns).sql("postgres").encode())

    def any_withdrawn(self) -> bool:
        """Whether any event was ever withdrawn."""
        return any(self.rows(exp.select(sql.number(1)).from_("void").limit(1)))

    def contracts_with_cold_starts(self, start: datetime, end: datetime) -> set[str]:
        """The contracts that have events of [start, end) which may be cold starts."""
        listed = exp.select(sql.column("contract_id")).from_("cold_start_event").where(*_within("day_start", start, end)).distinct()
        return {contract_id for (contract_id,) in self.rows(listed)}

    def keep_rows(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Make a temporary table of these rows; columns are (name, type)."""
        described = [exp.ColumnDef(this=exp.to_identifier(column, quoted=True), kind=exp.DataType.build(kind)) for column, kind in columns]
        with driver_cursor(self._connection) as cursor:
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ({', '.join(one.sql('postgres') for one in described)}) ON COMMIT DROP".encode())
            with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)


def _within(column: str, start: datetime, end: datetime) -> list[exp.Expr]:
    return [
        exp.GTE(this=sql.column(column), expression=sql.instant(start)),
        exp.LT(this=sql.column(column), expression=sql.instant(end)),
    ]


def _printed(query: exp.Query, *, total: str = "sum") -> str:
    """The query in PostgreSQL's words, events summed by the aggregate `total`.

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
                    named.this.replace(exp.Anonymous(this=total, expressions=[named.this.this]))
    return query.sql("postgres", normalize_functions=False)
