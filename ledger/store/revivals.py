"""Requests that were withdrawn and come again with a load: how many those are, and the revisions that bring them back.

Works on the events that `events.stage_events` has put aside. A plain load leaves what is withdrawn withdrawn; to bring it back somebody
names the reason for which it was. Source: specification, section 2, "Corrections".
"""

from psycopg import sql

from ledger.store.cells import change_many
from ledger.store.connection import Connection, column_list, driver_cursor, execute, fetch
from ledger.store.events import EVENT_FIELDS

# Only a withdrawn revision can have a later one.
_WITHDRAWN = sql.SQL(
    "staged s JOIN void v ON v.account = s.account AND v.request_id = s.request_id AND v.kind = 'void' "
    "AND NOT EXISTS (SELECT FROM event later "
    "WHERE later.account = v.account AND later.request_id = v.request_id AND later.revision > v.revision)"
)


def withdrawn_staged(connection: Connection) -> dict[str, int]:
    """The staged rows of requests that are withdrawn: how many by the reason why, most first."""
    query = sql.SQL("SELECT v.reason, count(*) AS number FROM {} GROUP BY v.reason ORDER BY number DESC, v.reason")
    return dict(fetch(connection, query.format(_WITHDRAWN)))


def revive_staged(connection: Connection, batch_id: int, reason: str) -> int:
    """Add the next revision of each request that was withdrawn for exactly this reason, as the first staged row of it says, and forget
    these rows; gives their number. The caller holds `withdrawals.lock_all_requests`, and calls `change_revived` at the end."""
    execute(
        connection,
        sql.SQL(
            "CREATE TEMPORARY TABLE revived ON COMMIT DROP AS SELECT DISTINCT ON (s.account, s.request_id) "
            "s.account, s.record, s.received_at, v.revision FROM {} WHERE v.reason = {} ORDER BY s.account, s.request_id, s.record"
        ).format(_WITHDRAWN, sql.Literal(reason)),
    )
    fields = sql.SQL(", ").join(sql.Identifier("s", name) for name in EVENT_FIELDS)
    add = sql.SQL(
        "INSERT INTO event ({}, batch_id, revision) SELECT {}, {}, r.revision + 1 FROM staged s JOIN revived r USING (record)"
    ).format(column_list(EVENT_FIELDS), fields, sql.Literal(batch_id))
    with driver_cursor(connection) as cursor:
        count = cursor.execute(add).rowcount
    execute(connection, "DELETE FROM staged USING revived WHERE staged.record = revived.record")
    return count


def change_revived(connection: Connection) -> None:
    """Let it be known that they count again: before the deltas of other events are written, since it keeps everybody else from that."""
    change_many(connection, sql.SQL("SELECT account, received_at, 1 FROM revived"))
