"""One settle or close of a database at a time: a lock of the session, held until its block ends, or its process.

Takes a database, and who is told that somebody else has the lock. It needs a session of its own: a pool that hands one server session to
several clients (transaction pooling) cannot keep it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from ledger.errors import LedgerError
from ledger.store.connection import Connection, execute, fetch
from ledger.store.database import Database

TOLD_AFTER_SECONDS = 2
PATIENCE_SECONDS = 600

_TAKE = "SELECT pg_try_advisory_lock(hashtext('ledger.settle'))"
_GIVE_UP = "SELECT pg_advisory_unlock(hashtext('ledger.settle'))"
_HOLDER = """SELECT pid, to_char(backend_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = hashtext('ledger.settle')
AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


class StillSettling(LedgerError):
    """Another session has held the lock for as long as anybody waits."""


@contextmanager
def one_settlement_at_a_time(
    database: Database, on_waiting: Callable[[str], None] = lambda holder: None, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[None]:
    """Holds the lock of settling and closing. `on_waiting` is told once who has it, if that lasts.

    Raises StillSettling if it is not given up in time.
    """
    with database.begin() as connection:
        _take(connection, on_waiting, patience_seconds)
        connection.commit()  # the lock is the session's: nothing lies idle in a transaction as long as settling takes
        try:
            yield
        finally:
            execute(connection, _GIVE_UP)


def _take(connection: Connection, on_waiting: Callable[[str], None], patience_seconds: float) -> None:
    started, is_told = monotonic(), False
    while not fetch(connection, _TAKE)[0][0]:
        connection.commit()
        waited = monotonic() - started
        if waited > patience_seconds:
            raise StillSettling(
                f"another settle or close has gone on for {patience_seconds / 60:.0f} minutes: {_holder(connection)}",
                cure="wait for it, or end that session of the server if nobody knows it, and run the command again",
                exit_code=4,
            )
        if waited > TOLD_AFTER_SECONDS and not is_told:
            on_waiting(_holder(connection))
            is_told = True
        sleep(0.1)


def _holder(connection: Connection) -> str:
    """Who has the lock, in words."""
    rows = fetch(connection, _HOLDER)
    return f"process {rows[0][0]} of the server, whose session began at {rows[0][1]}" if rows else "a session that has ended by now"
