"""The kept cells of periods, ready to be read: a connection and the spans of the periods in, their cells as one transaction sees them out.

Source: architecture, "The one idea".
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from psycopg import sql

from ledger.rating.postgres_cells import PostgresCells
from ledger.settlement.cell import CELL_COLUMNS
from ledger.store.connection import Connection, column_list

_KEPT = sql.SQL("SELECT {columns} FROM {table} WHERE day_start >= {start} AND day_start < {end} AND contract_id = ANY ({contract_ids})")


def kept_cells(connection: Connection, spans: Mapping[str, tuple[datetime, datetime]]) -> PostgresCells:
    """The cells of one or more contracts, each within its span [start, end) of whole local days; nothing in the spans is stale."""
    alike: defaultdict[tuple[datetime, datetime], list[str]] = defaultdict(list)  # contracts of one zone share theirs
    for contract_id, span in spans.items():
        alike[span].append(contract_id)
    kept = [
        _KEPT.format(columns=column_list(CELL_COLUMNS), table=sql.Identifier(table), start=start, end=end, contract_ids=contract_ids)
        for (start, end), contract_ids in alike.items()
        for table in ("cell", "delayed_cell")
    ]
    return PostgresCells(connection, kept)
