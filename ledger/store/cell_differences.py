"""Kept cells beside cells that were computed from the events a moment ago: where the two differ.

Expects the temporary tables `computed_cell` and `computed_cold_start_event`, with the columns of `cell` and `cold_start_event`.
Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from psycopg import sql
from sqlalchemy import Connection, text

from ledger.store.cells import CELL_KEY, COLD_START_COLUMNS, JOINED_LATENCIES, SUMS
from ledger.store.events import driver_cursor

ContractDay = tuple[str, datetime]  # the contract, and the start of its local day

_WITHIN = sql.SQL("day_start >= %(start)s AND day_start < %(end)s AND contract_id = ANY (%(contract_ids)s)")


def differing_days(connection: Connection, start: datetime, end: datetime, contract_ids: Collection[str]) -> set[ContractDay]:
    """The days of these contracts in [start, end) whose kept cells, or kept events of cold starts, are not those that were computed."""
    summed = sql.SQL(
        "SELECT {key}, {sums}, (SELECT array_agg(one ORDER BY one) FROM unnest({latencies}) AS one) "
        "FROM {table} WHERE {within} GROUP BY {key}"
    )
    sums = sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in SUMS)
    listed = sql.SQL("SELECT {columns} FROM {table} WHERE {within}")
    key, columns = (sql.SQL(", ").join(map(sql.Identifier, names)) for names in (CELL_KEY, COLD_START_COLUMNS))
    pairs = [
        [summed.format(key=key, sums=sums, latencies=JOINED_LATENCIES, table=table, within=_WITHIN) for table in _tables("cell")],
        [listed.format(columns=columns, table=table, within=_WITHIN) for table in _tables("cold_start_event")],
    ]
    differing = sql.SQL(
        "SELECT DISTINCT contract_id, day_start FROM (({kept} EXCEPT ALL {computed}) UNION ALL ({computed} EXCEPT ALL {kept})) AS differing"
    )
    queries = [differing.format(kept=kept, computed=computed) for kept, computed in pairs]
    return {day for query in queries for day in _contract_days(connection, query, start, end, contract_ids)}


def days_with_cells(connection: Connection, start: datetime, end: datetime, contract_ids: Collection[str]) -> set[ContractDay]:
    """The days of these contracts in [start, end) that have cells or events of cold starts, kept or computed."""
    one = sql.SQL("SELECT contract_id, day_start FROM {table} WHERE {within}")
    tables = (*_tables("cell"), *_tables("cold_start_event"))
    query = sql.SQL(" UNION ").join(one.format(table=table, within=_WITHIN) for table in tables)
    return set(_contract_days(connection, query, start, end, contract_ids))


def differing_accounts(connection: Connection, start: datetime, end: datetime) -> list[str]:
    """The accounts whose traffic in [start, end) is not that of their standing events."""
    query = text(
        "SELECT DISTINCT account FROM ("
        "SELECT account, quarter_start AS quarter, requests FROM traffic WHERE quarter_start >= :start AND quarter_start < :end UNION ALL "
        "SELECT account, quarter_start(received_at), -1 FROM event e WHERE received_at >= :start AND received_at < :end "
        "AND NOT EXISTS (SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision))"
        ") AS both_sides GROUP BY account, quarter HAVING sum(requests) <> 0 ORDER BY account"
    )
    return list(connection.scalars(query, {"start": start, "end": end}))


def kept_span(connection: Connection) -> tuple[datetime, datetime] | None:
    """The first and last instants of all events and of all that is kept of them, None if there is nothing."""
    columns = (("event", "received_at"), ("traffic", "quarter_start"), ("cell", "day_start"), ("cold_start_event", "day_start"))
    one = sql.SQL("SELECT min({column}) AS first, max({column}) AS last FROM {table}")
    each = sql.SQL(" UNION ALL ").join(one.format(table=sql.Identifier(table), column=sql.Identifier(column)) for table, column in columns)
    with driver_cursor(connection) as cursor:
        spans = cursor.execute(sql.SQL("SELECT min(first), max(last) FROM ({each}) AS spans").format(each=each)).fetchone()
    return None if spans is None or spans[0] is None else spans


def _tables(name: str) -> tuple[sql.Identifier, sql.Identifier]:
    """The kept one and the computed one."""
    return sql.Identifier(name), sql.Identifier(f"computed_{name}")


def _contract_days(
    connection: Connection, query: sql.Composed, start: datetime, end: datetime, contract_ids: Collection[str]
) -> list[tuple[Any, ...]]:
    with driver_cursor(connection) as cursor:
        return cursor.execute(query, {"start": start, "end": end, "contract_ids": list(contract_ids)}).fetchall()
