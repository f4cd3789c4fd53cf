"""Kept cells beside cells that were computed from the events a moment ago: where the two differ.

Expects the temporary tables `computed_cell`, `computed_cold_start_event` and `computed_delayed_cell`, with the columns of the kept ones.
Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from psycopg import sql

from ledger.settlement.cell import CELL_KEY, COLD_START_COLUMNS, SUMS
from ledger.store.cells import JOINED_LATENCIES, KEPT, ContractDay
from ledger.store.connection import Connection, column_list, fetch

_WITHIN = sql.SQL("day_start >= %(start)s AND day_start < %(end)s AND contract_id = ANY (%(contract_ids)s)")


def differing_days(
    connection: Connection, tables: Collection[str], start: datetime, end: datetime, contract_ids: Collection[str]
) -> set[ContractDay]:
    """The days of these contracts in [start, end) on which what the tables keep is not what was computed."""
    differing = sql.SQL(
        "SELECT DISTINCT contract_id, day_start FROM (({kept} EXCEPT ALL {computed}) UNION ALL ({computed} EXCEPT ALL {kept})) AS differing"
    )
    queries = [differing.format(kept=kept, computed=computed) for kept, computed in (map(_content, _pair(table)) for table in tables)]
    return {day for query in queries for day in _contract_days(connection, query, start, end, contract_ids)}


def days_with_cells(connection: Connection, start: datetime, end: datetime, contract_ids: Collection[str]) -> set[ContractDay]:
    """The days of these contracts in [start, end) that have cells or events of cold starts, kept or computed."""
    one = sql.SQL("SELECT contract_id, day_start FROM {table} WHERE {within}")
    tables = [table for kept in KEPT for table in _pair(kept)]
    query = sql.SQL(" UNION ").join(one.format(table=sql.Identifier(table), within=_WITHIN) for table in tables)
    return set(_contract_days(connection, query, start, end, contract_ids))


def differing_accounts(connection: Connection, start: datetime, end: datetime) -> list[str]:
    """The accounts whose traffic in [start, end) is not that of their standing events."""
    rows = fetch(
        connection,
        "SELECT DISTINCT account FROM (SELECT account, quarter_start AS quarter, requests FROM traffic "
        "WHERE quarter_start >= %(start)s AND quarter_start < %(end)s UNION ALL "
        "SELECT account, quarter_start(received_at), -1 FROM event e WHERE received_at >= %(start)s AND received_at < %(end)s "
        "AND NOT EXISTS (SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision))"
        ") AS both_sides GROUP BY account, quarter HAVING sum(requests) <> 0 ORDER BY account",
        {"start": start, "end": end},
    )
    return [account for (account,) in rows]


def kept_span(connection: Connection) -> tuple[datetime, datetime] | None:
    """The first and last instants of all events and of all that is kept of them, None if there is nothing."""
    columns = (("event", "received_at"), ("traffic", "quarter_start"), *((table, "day_start") for table in KEPT))
    one = sql.SQL("SELECT min({column}) AS first, max({column}) AS last FROM {table}")
    each = sql.SQL(" UNION ALL ").join(one.format(table=sql.Identifier(table), column=sql.Identifier(column)) for table, column in columns)
    [(first, last)] = fetch(connection, sql.SQL("SELECT min(first), max(last) FROM ({each}) AS spans").format(each=each))
    return None if first is None else (first, last)


def _pair(table: str) -> tuple[str, str]:
    """The kept one and the computed one."""
    return table, f"computed_{table}"


def _content(table: str) -> sql.Composed:
    """What is compared of a table: the sums of cells and their late latencies in order, or the events that are listed."""
    if table.endswith("cold_start_event"):
        return sql.SQL("SELECT {columns} FROM {table} WHERE {within}").format(
            columns=column_list(COLD_START_COLUMNS), table=sql.Identifier(table), within=_WITHIN
        )
    return sql.SQL(
        "SELECT {key}, {sums}, (SELECT array_agg(one ORDER BY one) FROM unnest({latencies}) AS one) "
        "FROM {table} WHERE {within} GROUP BY {key}"
    ).format(
        key=column_list(CELL_KEY),
        sums=sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in SUMS),
        latencies=JOINED_LATENCIES,
        table=sql.Identifier(table),
        within=_WITHIN,
    )


def _contract_days(
    connection: Connection, query: sql.Composed, start: datetime, end: datetime, contract_ids: Collection[str]
) -> list[tuple[Any, ...]]:
    return fetch(connection, query, {"start": start, "end": end, "contract_ids": list(contract_ids)})
