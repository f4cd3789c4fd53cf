"""Freshen: what is stale of the kept cells is computed from the events again, before anything is settled from it.

Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection

from ledger.errors import LedgerError
from ledger.store.cells import lock_cells, stale_spans, unranked_days
from ledger.store.database import Database

ATTEMPTS = 20


@contextmanager
def fresh_snapshot(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> Iterator[Connection]:
    """A transaction that sees one state of the database, in which nothing of these contracts (None: of any) is stale in [start, end).

    Committed at the end of the block. Raises LedgerError if events are changed faster than they can be computed.
    """
    engine = database.engine
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        for _ in range(ATTEMPTS):
            transaction = connection.begin()
            if _is_fresh(connection, start, end, contract_ids):  # by what the snapshot itself sees: loads go on
                break
            transaction.rollback()
            freshen(database, start, end, contract_ids)
        else:
            raise LedgerError(
                "events are changed faster than they can be settled", cure="settle again when the corrections are done", exit_code=4
            )
        with transaction:
            yield connection


@contextmanager
def any_snapshot(database: Database) -> Iterator[Connection]:
    """A transaction that sees one state of the database, whatever is stale in it: for those who do not read kept cells, or doubt them."""
    with database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        yield connection


def freshen(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> None:
    """Compute again what is stale of these contracts (None: of all) in [start, end), and rank the cold starts that came since. Loads wait
    meanwhile with what they add."""
    with database.engine.connect() as connection:
        if _is_fresh(connection, start, end, contract_ids):
            return
    from ledger.workflows.recompute import rank_days, recompute_days

    with database.engine.begin() as connection:
        lock_cells(connection)
        # Somebody else may have computed them while this one waited for the lock.
        if spans := stale_spans(connection, contract_ids, start, end):
            recompute_days(connection, spans)
        if days := unranked_days(connection, contract_ids, start, end):
            rank_days(connection, days)


def _is_fresh(connection: Connection, start: datetime, end: datetime, contract_ids: Collection[str] | None) -> bool:
    return not stale_spans(connection, contract_ids, start, end) and not unranked_days(connection, contract_ids, start, end)
