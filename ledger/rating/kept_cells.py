"""Kept cells, ready to be read: those of periods for a settlement, and of all days those that no contract version can price.

Source: architecture, "The one idea".
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from psycopg import sql

from ledger.contract.model import Contract
from ledger.rating.cells import read_cells_by_day
from ledger.rating.postgres_cells import PostgresCells
from ledger.settlement.cell import CELL_COLUMNS, Cell
from ledger.store.connection import Connection, column_list

_KEPT = sql.SQL("SELECT {columns} FROM {table} WHERE day_start >= {start} AND day_start < {end} AND contract_id = ANY ({contract_ids})")
# Few or none: whoever asks for them does not read the others.
_UNKNOWN = sql.SQL(
    "SELECT {columns} FROM {table} WHERE (contract_id, version, model) NOT IN (SELECT * FROM {models}) "
    "OR (contract_id, version, queue) NOT IN (SELECT * FROM {queues})"
)
_NAMES = sql.SQL("unnest({}::varchar[], {}::integer[], {}::varchar[])")


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


def cells_of_unknown_names(connection: Connection, contracts: Iterable[Contract]) -> dict[tuple[str, datetime], list[Cell]]:
    """The cells with a model or a queue that their version, one of these, does not have, by contract and start of the local day; what is
    stale among them is not left out. `contracts` are all versions that have cells."""
    versions = list(contracts)
    models = [(one.id, one.version, name) for one in versions for name in one.served_names()]
    queues = [(one.id, one.version, name) for one in versions for name in one.queues.by_name]
    unknown = [
        _UNKNOWN.format(columns=column_list(CELL_COLUMNS), table=sql.Identifier(table), models=_names(models), queues=_names(queues))
        for table in ("cell", "delayed_cell")
    ]
    return read_cells_by_day(PostgresCells(connection, unknown))


def _names(names: list[tuple[str, int, str]]) -> sql.Composed:
    return _NAMES.format(*([one[place] for one in names] for place in range(3)))
