"""Cells in the database that one transaction sees, ready to be read: nothing is classified, no plan is needed.

Takes a connection and queries or temporary tables of cells; answers the queries of `ledger.rating.cells`.
Source: architecture, "The one idea".
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import sql

from ledger.settlement.cell import CELL_COLUMNS
from ledger.store.connection import Connection, column_list, driver_cursor, execute


def made_cells(connection: Connection, tables: Mapping[tuple[str, int], Sequence[str]]) -> "PostgresCells":
    """The cells that temporary tables hold, as those of the contract and version that they are listed for; a table may serve several."""
    others = column_list(CELL_COLUMNS[2:])
    made = [
        sql.SQL("SELECT {}::varchar AS contract_id, {} AS version, {} FROM {}").format(contract_id, version, others, sql.Identifier(table))
        for (contract_id, version), names in tables.items()
        for table in names
    ]
    return PostgresCells(connection, made)


class PostgresCells:
    """The cells that these queries give together, at least one query, each of CELL_COLUMNS."""

    def __init__(self, connection: Connection, queries: Sequence[sql.Composable]) -> None:
        self._connection = connection
        execute(connection, "SET LOCAL enable_mergejoin = off")  # PostgreSQL would sort all cells to join them with a few rows
        self._period_cell = sql.SQL(" UNION ALL ").join(queries)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query of the program's own over `period_cell`."""
        with driver_cursor(self._connection) as cursor:
            yield from cursor.execute(sql.SQL("WITH period_cell AS ({cells}) {query}").format(cells=self._period_cell, query=_own(query)))

    def instant(self, value: datetime) -> datetime:
        """The instant of a value in a row: the driver's own."""
        return value

    def keep_rows(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Make a temporary table of these rows, in place of one of that name, gone with the transaction; columns are (name, type)."""
        table = sql.Identifier(name)
        described = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(column), _own(kind)) for column, kind in columns)
        with driver_cursor(self._connection) as cursor:
            cursor.execute(sql.SQL("DROP TABLE IF EXISTS pg_temp.{}").format(table))
            cursor.execute(sql.SQL("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP").format(table, described))
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for row in rows:
                    copy.write_row(row)


def _own(words: str) -> sql.SQL:
    """Words that stand in the program: the only ones that get here."""
    return sql.SQL(words)
