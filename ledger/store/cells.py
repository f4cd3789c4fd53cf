"""Kept cells in PostgreSQL: deltas that loads add, what of them is stale, days that are put anew, and the traffic of accounts.

`cell`, `cold_start_event` and `traffic` are bags of rows: only their sums mean something, so writers of deltas never wait for each other.
`delayed_cell` follows `cold_start_event`: its rows are put anew, day by day.
Source: architecture, "The one idea"; decision record kept-cells, which has the argument for the locks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from psycopg import sql

from ledger.settlement.cell import CELL_COLUMNS, CELL_KEY, COLD_START_COLUMNS, SUMS
from ledger.store.connection import Connection, column_list, copy_rows, driver_cursor, execute, fetch, fetch_as
from ledger.store.intervals import Interval

ContractDay = tuple[str, datetime]  # the contract, and the start of its local day
# By contract: half open, in order, apart from each other.
Spans = dict[str, list[tuple[datetime, datetime]]]

# What is kept of the events of days, and what loads add: tables and their columns.
KEPT = {"cell": CELL_COLUMNS, "cold_start_event": COLD_START_COLUMNS, "delayed_cell": CELL_COLUMNS}
DELTA_COLUMNS = {"cell": CELL_COLUMNS, "cold_start_event": COLD_START_COLUMNS, "traffic": ("account", "quarter_start", "requests")}

# All late latencies of a group of cells, null for none: array_agg would want arrays of one length.
JOINED_LATENCIES = sql.SQL("string_to_array(string_agg(array_to_string(late_latencies_us, ','), ','), ',')::bigint[]")

_GIVEN_SPANS = sql.SQL(
    "(SELECT contract_id, range_agg(tstzrange(starts_at, ends_at)) AS spans FROM "
    "unnest(%(contract_ids)s::varchar[], %(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS span (contract_id, starts_at, ends_at) "
    "GROUP BY contract_id) given"
)
_GIVEN_DAYS = sql.SQL("SELECT * FROM unnest(%(contract_ids)s::varchar[], %(starts)s::timestamptz[])")
_GIVEN_VERSIONS = sql.SQL("unnest(%(contract_ids)s::varchar[], %(versions)s::integer[]) AS version (contract_id, version)")
# From each account's first event to its last.
_BUSY = sql.SQL(
    "(SELECT account, range_merge(quarter(min(quarter_start)), quarter(max(quarter_start))) AS busy FROM traffic GROUP BY account) traffic"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What classifies events beside themselves. Versions and intervals are only ever added: their numbers say which there are."""

    versions: int
    intervals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """An account belongs to the contract, in this version, in [start, end); `end` None is never."""

    account: str
    contract_id: str
    version: int
    start: datetime
    end: datetime | None


def current_basis(connection: Connection) -> Basis:
    """The basis that the connection sees. Whoever reads contracts and intervals asks for it first: what is read then is not older."""
    [(versions, intervals)] = fetch(connection, "SELECT (SELECT count(*) FROM contract_version), (SELECT count(*) FROM interval)")
    return Basis(versions=versions, intervals=intervals)


def coverage(connection: Connection, accounts: Collection[str] | None = None) -> list[Covered]:
    """All spans in which accounts, or these, belong to contracts, by account and start."""
    return fetch_as(
        connection,
        Covered,
        'SELECT account, contract_id, version, lower(in_force) AS start, upper(in_force) AS "end" FROM account_covered '
        "WHERE %(accounts)s::varchar[] IS NULL OR account = ANY (%(accounts)s::varchar[]) ORDER BY account, lower(in_force)",
        {"accounts": None if accounts is None else list(accounts)},
    )


def traffic_of(connection: Connection, start: datetime, end: datetime) -> dict[str, int]:
    """How many events stand of each account in the quarters of an hour that begin in [start, end)."""
    rows = fetch(
        connection,
        "SELECT account, sum(requests) FROM traffic WHERE quarter_start >= %(start)s AND quarter_start < %(end)s GROUP BY account",
        {"start": start, "end": end},
    )
    return {account: int(requests) for account, requests in rows}


# -- locks


def lock_for_deltas(connection: Connection) -> None:
    """Until the transaction ends nothing changes on which deltas depend. Taken behind all locks of rows, just before deltas are written."""
    execute(connection, "SELECT pg_advisory_xact_lock_shared(hashtext('ledger.cells'))")


def lock_cells(connection: Connection) -> None:
    """Wait for the transactions that write deltas, and keep others from it until this one ends. Taken behind all locks of rows."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.cells'))")


# -- deltas


def copy_deltas(connection: Connection, table: str, stream: IO[bytes]) -> int:
    """Add the rows of the stream to `cell`, `cold_start_event` or `traffic`: binary rows of all its columns; gives their number."""
    return copy_rows(connection, table, DELTA_COLUMNS[table], stream)


def change_events(connection: Connection, changes: Sequence[tuple[str, datetime, int]]) -> None:
    """Let it be known that events were added (1) or withdrawn (-1), by account and instant: the last act of a transaction that does so."""
    if changes:
        accounts, instants, numbers = zip(*changes, strict=True)
        change_many(
            connection,
            sql.SQL("SELECT * FROM unnest(%(accounts)s::varchar[], %(instants)s::timestamptz[], %(numbers)s::integer[])"),
            {"accounts": list(accounts), "instants": list(instants), "numbers": list(numbers)},
        )


def change_many(connection: Connection, changes: sql.Composable, parameters: Mapping[str, Any] | None = None) -> None:
    """The same of the changes that the query gives: account, instant, 1 or -1. However many they are, Python sees none of them.

    Their days become stale: unlike a load, this is done to events of which no delta is known.
    """
    lock_cells(connection)
    changed = sql.SQL("({changes}) AS changed (account, received_at, number)").format(changes=changes)
    _mark(
        connection,
        sql.SQL(
            "SELECT DISTINCT contract_id, quarter(received_at) AS span FROM {changed} "
            "JOIN account_covered covered ON covered.account = changed.account AND in_force @> received_at"
        ).format(changed=changed),
        parameters or {},
    )
    count = sql.SQL(
        "INSERT INTO traffic (account, quarter_start, requests) SELECT account, quarter_start(received_at), sum(number) FROM {changed} "
        "GROUP BY account, quarter_start(received_at) HAVING sum(number) <> 0"
    ).format(changed=changed)
    execute(connection, count, parameters)


def fold_cells(connection: Connection, days: Collection[tuple[str, datetime]]) -> int:
    """Join rows with the same key on those of the days (contract, start) that have twice as many rows as keys; gives how many days.

    A second fold does nothing while one runs. Deltas that others commit meanwhile stay as they are.
    """
    if not days or fetch(connection, "SELECT pg_try_advisory_xact_lock(hashtext('ledger.fold'))") == [(False,)]:
        return 0
    lock_for_deltas(connection)
    names = {
        "days": _GIVEN_DAYS,
        "columns": column_list(CELL_COLUMNS),
        "key": column_list(CELL_KEY),
        "sums": sql.SQL(", ").join(sql.SQL("sum({})::bigint").format(sql.Identifier(name)) for name in SUMS),
        "latencies": JOINED_LATENCIES,
    }
    crowded = sql.SQL(
        "SELECT contract_id, day_start FROM (SELECT contract_id, day_start, count(*) AS number FROM cell "
        "WHERE (contract_id, day_start) IN ({days}) GROUP BY {key}) keys "
        "GROUP BY contract_id, day_start HAVING sum(number) >= 2 * count(*)"
    ).format(**names)
    fold = sql.SQL(
        "WITH gone AS (DELETE FROM cell WHERE (contract_id, day_start) IN ({days}) RETURNING *) "
        "INSERT INTO cell ({columns}) SELECT {key}, {sums}, {latencies} FROM gone GROUP BY {key}"
    ).format(**names)
    with driver_cursor(connection) as cursor:
        found = cursor.execute(crowded, _days(days)).fetchall()
        if found:
            cursor.execute(fold, _days(found))
        return len(found)


# -- what is stale


def mark_breakers(connection: Connection, intervals: Sequence[Interval], versions: Collection[tuple[str, int]]) -> None:
    """Mark what the breaker intervals touch of these versions (contract, version), as far as there is traffic."""
    _mark(
        connection,
        sql.SQL(
            "SELECT contract_id, in_force * busy * tstzrange(starts_at, ends_at) AS span "
            "FROM {versions} JOIN account_covered USING (contract_id, version) JOIN {busy} USING (account) "
            "CROSS JOIN unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS added (starts_at, ends_at)"
        ).format(versions=_GIVEN_VERSIONS, busy=_BUSY),
        {**_versions(versions), "starts": [one.starts_at for one in intervals], "ends": [one.ends_at for one in intervals]},
    )


def mark_model_loads(connection: Connection, intervals: Sequence[Interval], versions: Collection[tuple[str, int]]) -> None:
    """Mark what these versions (contract, version) know of events that waited while a model was loaded on their node."""
    _mark(
        connection,
        sql.SQL(
            "SELECT DISTINCT contract_id, quarter(received_at) AS span FROM event "
            "JOIN unnest(%(nodes)s::varchar[], %(models)s::varchar[], %(starts)s::timestamptz[], %(ends)s::timestamptz[]) "
            "AS load (node, model, starts_at, ends_at) ON event.node = load.node AND event.model = load.model "
            "AND received_at < ends_at AND received_at + queue_us * interval '1 microsecond' > starts_at "
            "JOIN account_covered covered ON covered.account = event.account AND in_force @> received_at "
            "JOIN {versions} USING (contract_id, version) "
            # No wait is longer than 30 days.
            "WHERE received_at >= %(first_start)s::timestamptz - interval '720 hours' AND received_at < %(last_end)s::timestamptz"
        ).format(versions=_GIVEN_VERSIONS),
        {
            **_versions(versions),
            "nodes": [one.node for one in intervals],
            "models": [one.model for one in intervals],
            "starts": [one.starts_at for one in intervals],
            "ends": [one.ends_at for one in intervals],
            "first_start": min(one.starts_at for one in intervals),
            "last_end": max(one.ends_at for one in intervals),
        },
    )


def remember_coverage(connection: Connection) -> None:
    """Keep which accounts are covered now until the transaction ends: for mark_changed_coverage, after versions were added."""
    execute(connection, "CREATE TEMPORARY TABLE covered_before ON COMMIT DROP AS SELECT * FROM account_covered")


def mark_changed_coverage(connection: Connection) -> None:
    """Mark the spans in which accounts have come to a contract's version or have left it, as far as there is traffic."""
    _mark(
        connection,
        sql.SQL(
            "SELECT contract_id, unnest((before - after + (after - before)) * multirange(busy)) AS span FROM ("
            "SELECT contract_id, account, coalesce(range_agg(in_force) FILTER (WHERE was), '{{}}') AS before, "
            "coalesce(range_agg(in_force) FILTER (WHERE NOT was), '{{}}') AS after FROM ("
            "SELECT *, true AS was FROM covered_before UNION ALL SELECT *, false FROM account_covered) both_times "
            "GROUP BY contract_id, account, version) changes JOIN {busy} USING (account) WHERE before <> after"
        ).format(busy=_BUSY),
        {},
    )


def _mark(connection: Connection, spans: sql.Composable, parameters: Mapping[str, Any]) -> None:
    """Mark the spans that the query gives (contract_id, span); the caller holds the lock of the cells."""
    statement = sql.SQL(
        "INSERT INTO stale (contract_id, spans) SELECT contract_id, range_agg(span) FROM ({spans}) marked "
        "WHERE NOT isempty(span) GROUP BY contract_id ON CONFLICT (contract_id) DO UPDATE SET spans = stale.spans + excluded.spans"
    ).format(spans=spans)
    execute(connection, statement, parameters)


def stale_spans(
    connection: Connection, contract_ids: Collection[str] | None = None, start: datetime | None = None, end: datetime | None = None
) -> Spans:
    """What is stale within [start, end) of these contracts, or of all; None has no end. A day is stale if a span touches it."""
    rows = fetch(
        connection,
        "SELECT contract_id, lower(span), upper(span) FROM (SELECT contract_id, "
        "unnest(spans * multirange(tstzrange(%(start)s::timestamptz, %(end)s::timestamptz))) AS span FROM stale "
        "WHERE %(contract_ids)s::varchar[] IS NULL OR contract_id = ANY (%(contract_ids)s::varchar[])) pieces ORDER BY contract_id, span",
        {"start": start, "end": end, "contract_ids": None if contract_ids is None else list(contract_ids)},
    )
    spans: Spans = {}
    for contract_id, starts_at, ends_at in rows:
        spans.setdefault(contract_id, []).append((starts_at, ends_at))
    return spans


# -- days that are put anew


def unranked_days(connection: Connection, contract_ids: Collection[str] | None, start: datetime, end: datetime) -> set[ContractDay]:
    """The days of these contracts (None: of all) that begin in [start, end) and list more or fewer cold starts than their cells count.

    Rows are listed by loads and taken away with all that is kept of their day: equal numbers mean the same requests.
    """
    rows = fetch(
        connection,
        "SELECT contract_id, day_start FROM (SELECT contract_id, day_start, 1 AS requests FROM cold_start_event "
        "UNION ALL SELECT contract_id, day_start, -requests FROM delayed_cell) AS both_sides "
        "WHERE day_start >= %(start)s AND day_start < %(end)s "
        "AND (%(contract_ids)s::varchar[] IS NULL OR contract_id = ANY (%(contract_ids)s::varchar[])) "
        "GROUP BY contract_id, day_start HAVING sum(requests) <> 0",
        {"start": start, "end": end, "contract_ids": None if contract_ids is None else list(contract_ids)},
    )
    return {(contract_id, day_start) for contract_id, day_start in rows}


def remove_ranked(connection: Connection, days: Spans) -> None:
    """Forget the cells of cold starts on the whole days in these spans; the caller holds the lock of the cells."""
    _remove(connection, ("delayed_cell",), days)


def remove_days(connection: Connection, days: Spans) -> None:
    """Forget what is kept of the whole days in these spans, and that it is stale; the caller holds the lock of the cells."""
    _remove(connection, tuple(KEPT), days)
    freshen = sql.SQL("UPDATE stale kept SET spans = kept.spans - given.spans FROM {given} WHERE kept.contract_id = given.contract_id")
    with driver_cursor(connection) as cursor:
        cursor.execute(freshen.format(given=_GIVEN_SPANS), _spans(days))
        cursor.execute("DELETE FROM stale WHERE isempty(spans)")


def _remove(connection: Connection, tables: Sequence[str], days: Spans) -> None:
    remove = sql.SQL(
        "DELETE FROM {table} kept USING {given} WHERE kept.contract_id = given.contract_id AND day_start <@ given.spans "
        "AND day_start >= %(first_start)s AND day_start < %(last_end)s"  # which the index can tell
    )
    with driver_cursor(connection) as cursor:
        for table in tables:
            cursor.execute(remove.format(table=sql.Identifier(table), given=_GIVEN_SPANS), _spans(days))


def _spans(days: Spans) -> dict[str, Any]:
    pieces = [(contract_id, start, end) for contract_id, spans in days.items() for start, end in spans]
    return {
        **_days([piece[:2] for piece in pieces]),
        "ends": [end for _, _, end in pieces],
        "first_start": min(start for _, start, _ in pieces),
        "last_end": max(end for _, _, end in pieces),
    }


def _days(days: Collection[tuple[Any, ...]]) -> dict[str, Any]:
    return {"contract_ids": [contract_id for contract_id, _ in days], "starts": [start for _, start in days]}


def _versions(versions: Collection[tuple[str, int]]) -> dict[str, Any]:
    return {"contract_ids": [contract_id for contract_id, _ in versions], "versions": [version for _, version in versions]}
