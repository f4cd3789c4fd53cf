"""Freshen: what is stale of the kept cells is computed from the events again, before anything is settled from it.

Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import IsolationLevel

from ledger.errors import LedgerError
from ledger.store.cells import lock_cells, stale_spans, unranked_days
from ledger.store.database import Database

ATTEMPTS = 20
LONGEST_DAY = timedelta(days=2)  # and more: a day that begins within a span is over by so much behind it
Connection = psycopg.Connection[Any]


@contextmanager
def fresh_snapshot(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> Iterator[Connection]:
    """A transaction that sees one state of the database, in which no day of these contracts (None: of any) that begins in [start, end) is
    stale or unranked. Committed at the end of the block.

    Raises LedgerError if events are changed faster than they can be computed.
    """
    with any_snapshot(database) as connection:
        for _ in range(ATTEMPTS):
            if _is_fresh(connection, start, end, contract_ids):  # by what the snapshot itself sees: loads go on
                break
            connection.rollback()
            freshen(database, start, end, contract_ids)
        else:
            raise LedgerError(
                "events are changed faster than they can be settled", cure="settle again when the corrections are done", exit_code=4
            )
        yield connection


def any_snapshot(database: Database) -> AbstractContextManager[Connection]:
    """A transaction that sees one state of the database, that of its first query, whatever is stale in it: for those who do not read kept
    cells, or doubt them. Committed at the end of the block."""
    return database.begin(IsolationLevel.REPEATABLE_READ)


def freshen(database: Database, start: datetime, end: datetime, contract_ids: Collection[str] | None = None) -> None:
    """Compute again what is stale on the days of these contracts (None: of all) that begin in [start, end), and rank the cold starts that
    came since. Loads wait meanwhile with what they add."""
    with database.begin() as connection:
        if _is_fresh(connection, start, end, contract_ids):
            return
    # What plans need takes longer to import than a fresh month to settle.
    from ledger.workflows.recompute import rank_days, recompute_days

    with database.begin() as connection:
        lock_cells(connection)
        # Somebody else may have computed them while this one waited for the lock.
        if spans := stale_spans(connection, contract_ids, start, end + LONGEST_DAY):
            recompute_days(connection, spans)
        if days := unranked_days(connection, contract_ids, start, end):
            rank_days(connection, days)


def _is_fresh(connection: Connection, start: datetime, end: datetime, contract_ids: Collection[str] | None) -> bool:
    # A listed event that was withdrawn is taken from the list when its day is computed again: until then the day cannot be ranked.
    stale = stale_spans(connection, contract_ids, start, end + LONGEST_DAY)
    return not stale and not unranked_days(connection, contract_ids, start, end)
