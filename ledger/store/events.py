"""Events and their batches in PostgreSQL: bulk loading, duplicates and conflicts, voids and revisions.

A batch is one transaction of the caller: its events, its refused rows and its own row, or nothing. Events are never updated or deleted.
Source: specification, section 2.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from ledger.store.comparison import differing, equal
from ledger.store.connection import Connection, column_list, copy_rows, driver_cursor, execute, fetch

# The columns that a source decides, in the order of the table; and those of them that make two rows of one identity equal.
EVENT_FIELDS = (
    "received_at", "queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us",
    "input_tokens", "cached_input_tokens", "output_tokens", "status", "async_header", "clock_clamped",
    "account", "request_id", "model", "queue", "cold_start", "node",
)  # fmt: skip
COMPARED_FIELDS = tuple(name for name in EVENT_FIELDS if name not in ("account", "request_id", "clock_clamped"))


class IdentityTaken(Exception):
    """An event of the batch exists, or another load is adding it at this moment: it has to go through staging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one load did: `read` is the sum of the next six, `requests_joined` how many requests it made whole. `chunk` counts from 0 within
    the file of `content_sha256`; `given` is what the command line added to the mapping, None if nobody knows it."""

    batch_id: int
    source: str
    content_sha256: str
    mapping: str
    mapping_sha256: str
    chunk: int
    chunk_rows: int
    read: int
    new: int
    duplicate: int
    conflict: int
    refused: int
    skipped: int = 0
    merged: int = 0
    clamped: int
    requests_joined: int = 0
    loaded_at: datetime
    author: str
    given: dict[str, str] | None = None


_COUNTS = ("read", "new", "duplicate", "conflict", "refused", "skipped", "merged", "clamped")
_BATCH_COLUMNS = {name: f"rows_{name}" if name in _COUNTS else name for name in Batch.__slots__}


def next_batch_id(connection: Connection) -> int:
    """A fresh id; the batch's row is added at the end of its transaction, when its counts are known."""
    [(batch_id,)] = fetch(connection, "SELECT nextval(pg_get_serial_sequence('batch', 'batch_id'))")
    return int(batch_id)


def add_batch(connection: Connection, batch: Batch) -> None:
    """Add the batch's row. The events and refused rows of it are in the same transaction."""
    execute(
        connection,
        sql.SQL("INSERT INTO batch ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
            column_list(_BATCH_COLUMNS.values()), sql.SQL(", ").join(map(sql.Placeholder, _BATCH_COLUMNS))
        ),
        {name: getattr(batch, name) for name in _BATCH_COLUMNS} | {"given": None if batch.given is None else Jsonb(batch.given)},
    )


def lock_content(connection: Connection, content_sha256: str) -> None:
    """Wait for other loads of this content, until the transaction ends."""
    execute(
        connection,
        "SELECT pg_advisory_xact_lock(hashtext('ledger.content'), hashtext(%(content)s))",
        {"content": content_sha256},
    )


def committed_batches(connection: Connection, content_sha256: str) -> list[Batch]:
    """The batches of every load of this content, in the order in which they were committed."""
    query = sql.SQL("SELECT {} FROM batch WHERE content_sha256 = %(content)s ORDER BY batch_id").format(
        column_list(_BATCH_COLUMNS.values())
    )
    rows = fetch(connection, query, {"content": content_sha256})
    return [Batch(**dict(zip(_BATCH_COLUMNS, row, strict=True))) for row in rows]


def is_stored(connection: Connection, account: str, request_id: str) -> bool:
    """Whether there is an event of this identity."""
    query = "SELECT EXISTS (SELECT FROM event WHERE account = %(account)s AND request_id = %(request_id)s)"
    return fetch(connection, query, {"account": account, "request_id": request_id}) == [(True,)]


def copy_events(connection: Connection, stream: IO[bytes]) -> int:
    """Add the events of the stream: binary rows of EVENT_FIELDS, batch_id, revision. Gives their number.

    Raises IdentityTaken if one exists or is being added elsewhere; the transaction can only be rolled back then.
    """
    try:
        return copy_rows(connection, "event", (*EVENT_FIELDS, "batch_id", "revision"), stream)
    except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected) as error:
        raise IdentityTaken from error


def analyze_events(connection: Connection) -> None:
    """Let PostgreSQL plan by the events that stand there now, and find them by their instants; else it would do so only when it next looks
    by itself, and search all new ones for each chunk until then. The function is the owner's, who alone can say so."""
    execute(connection, "SET LOCAL default_statistics_target = 20")  # enough for plans, in a third of the time
    execute(connection, "SELECT analyze_events()")


def stage_events(connection: Connection, stream: IO[bytes]) -> int:
    """Put the events of the stream (binary rows of EVENT_FIELDS and the record's number) aside until the end of the transaction."""
    execute(connection, "CREATE TEMPORARY TABLE staged (LIKE event, record bigint NOT NULL) ON COMMIT DROP")
    execute(connection, "ALTER TABLE staged ALTER batch_id DROP NOT NULL, ALTER revision DROP NOT NULL")
    count = copy_rows(connection, "staged", (*EVENT_FIELDS, "record"), stream)
    execute(connection, "ANALYZE staged (account, request_id, received_at)")
    return count


def unstage_duplicates(connection: Connection) -> int:
    """Forget the staged events that equal a stored revision; gives their number. Only the span of their instants is looked at."""
    statement = sql.SQL(
        "DELETE FROM staged s USING event e WHERE e.account = s.account AND e.request_id = s.request_id AND {equal} AND e.received_at "
        "BETWEEN (SELECT min(received_at) FROM staged) AND (SELECT max(received_at) FROM staged)"
    ).format(equal=equal(COMPARED_FIELDS, "e", "s"))
    with driver_cursor(connection) as cursor:
        return cursor.execute(statement).rowcount


@dataclass(frozen=True, slots=True)
class Inserted:
    """The events that were added. Which ones is read only when it is asked, once."""

    cursor: "psycopg.Cursor[tuple[Any, ...]]"

    @property
    def count(self) -> int:
        """How many."""
        return self.cursor.rowcount

    def events(self) -> list[tuple[str, str, datetime]]:
        """Account, request id and instant of each."""
        return self.cursor.fetchall()


def insert_staged(connection: Connection, batch_id: int) -> Inserted:
    """Add the staged events whose identity is new, the first of each.

    They go in by order of identity, so that two loads of the same events wait for each other instead of blocking each other.
    """
    fields = column_list(EVENT_FIELDS)
    statement = sql.SQL(
        "INSERT INTO event ({fields}, batch_id, revision) SELECT DISTINCT ON (account, request_id) {fields}, {batch_id}, 1 FROM staged "
        "ORDER BY account, request_id, record ON CONFLICT DO NOTHING RETURNING account, request_id, received_at"
    ).format(fields=fields, batch_id=sql.Literal(batch_id))
    try:
        return Inserted(driver_cursor(connection).execute(statement))
    except psycopg.errors.DeadlockDetected as error:
        raise IdentityTaken from error


def insert_resubmitted(connection: Connection, batch_id: int) -> list[tuple[int, str, datetime]]:
    """Add the staged events whose identity is new, the first of each; gives their records, accounts and instants. Raises IdentityTaken if
    other loads of the same events are in the way.

    They go in by order of identity, so that two who add the same events wait for each other instead of blocking each other.
    """
    fields = column_list(EVENT_FIELDS)
    statement = sql.SQL(
        "WITH first AS MATERIALIZED (SELECT DISTINCT ON (account, request_id) {fields}, record FROM staged "
        "ORDER BY account, request_id, record), "
        "added AS (INSERT INTO event ({fields}, batch_id, revision) SELECT {fields}, {batch_id}, 1 FROM first "
        "ORDER BY account, request_id ON CONFLICT DO NOTHING RETURNING account, request_id) "
        "SELECT record, account, received_at FROM first JOIN added USING (account, request_id)"
    ).format(fields=fields, batch_id=sql.Literal(batch_id))
    try:
        return fetch(connection, statement)
    except psycopg.errors.DeadlockDetected as error:
        raise IdentityTaken from error


def staged_conflicts(connection: Connection) -> list[tuple[int, str]]:
    """The staged records that equal no revision of their identity, with what differs from the latest, in words.

    A statement of its own, after insert_staged: it sees what other loads have committed meanwhile.
    """
    statement = sql.SQL(
        "SELECT s.record, (SELECT 'differs from the stored row in ' || concat_ws(', ', {differing}) FROM event e "
        "WHERE e.account = s.account AND e.request_id = s.request_id ORDER BY e.revision DESC LIMIT 1) FROM staged s "
        "WHERE NOT EXISTS (SELECT FROM event e WHERE e.account = s.account AND e.request_id = s.request_id AND {equal}) ORDER BY s.record"
    ).format(differing=differing(COMPARED_FIELDS, "e", "s"), equal=equal(COMPARED_FIELDS, "e", "s"))
    with driver_cursor(connection) as cursor:
        return [(int(record), str(detail)) for record, detail in cursor.execute(statement)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A stored revision of a request; `fields` are its EVENT_FIELDS. `voided` if it was withdrawn."""

    account: str
    request_id: str
    revision: int
    voided: bool
    fields: dict[str, Any]


def latest_revisions(connection: Connection, request_id: str, account: str | None) -> list[Revision]:
    """The latest revision of each request of this id, in the account or in all of them, by account."""
    query = sql.SQL(
        "SELECT DISTINCT ON (account) account, revision, EXISTS (SELECT FROM void WHERE void.account = event.account "
        "AND void.request_id = event.request_id AND void.revision = event.revision), {} FROM event "
        "WHERE request_id = %(request_id)s AND (%(account)s::varchar IS NULL OR account = %(account)s) ORDER BY account, revision DESC"
    ).format(column_list(EVENT_FIELDS))
    return [
        Revision(
            account=of_account, request_id=request_id, revision=revision, voided=voided,
            fields=dict(zip(EVENT_FIELDS, fields, strict=True)),
        )
        for of_account, revision, voided, *fields in fetch(connection, query, {"request_id": request_id, "account": account})
    ]  # fmt: skip


def lock_request(connection: Connection, account: str, request_id: str) -> None:
    """Let no other correction of this request run until the transaction ends, nor one of all (`withdrawals.lock_all_requests`)."""
    execute(connection, "SELECT pg_advisory_xact_lock_shared(hashtext('ledger.corrections'))")
    one = "SELECT pg_advisory_xact_lock(hashtextextended(%(account)s || chr(31) || %(request_id)s, 0))"
    execute(connection, one, {"account": account, "request_id": request_id})


def add_void(connection: Connection, revision: Revision, *, kind: str, reason: str, author: str, voided_at: datetime) -> bool:
    """Withdraw the revision (kind: void, correct or join); False if it was withdrawn before."""
    statement = (
        "INSERT INTO void (account, request_id, revision, kind, reason, author, voided_at) VALUES "
        "(%(account)s, %(request_id)s, %(revision)s, %(kind)s, %(reason)s, %(author)s, %(voided_at)s) ON CONFLICT DO NOTHING"
    )
    parameters = {
        "account": revision.account, "request_id": revision.request_id, "revision": revision.revision,
        "kind": kind, "reason": reason, "author": author, "voided_at": voided_at,
    }  # fmt: skip
    with driver_cursor(connection) as cursor:
        return cursor.execute(statement, parameters).rowcount == 1


def add_revision(connection: Connection, fields: dict[str, Any], *, batch_id: int, revision: int) -> None:
    """Add a further revision of a request, with these EVENT_FIELDS."""
    values = fields | {"batch_id": batch_id, "revision": revision}
    statement = sql.SQL("INSERT INTO event ({}) VALUES ({})").format(column_list(values), sql.SQL(", ").join(map(sql.Placeholder, values)))
    execute(connection, statement, values)


def staged_fields(connection: Connection) -> list[dict[str, Any]]:
    """The staged events as values, for a correction: one or none."""
    rows = fetch(connection, sql.SQL("SELECT {} FROM staged ORDER BY record").format(column_list(EVENT_FIELDS)))
    return [dict(zip(EVENT_FIELDS, row, strict=True)) for row in rows]


def staged_records(connection: Connection) -> list[int]:
    """The numbers of the staged records."""
    return [record for (record,) in fetch(connection, "SELECT record FROM staged")]


def unstage_records(connection: Connection, records: Collection[int]) -> None:
    """Forget these of the staged events."""
    execute(connection, "DELETE FROM staged WHERE record = ANY (%(records)s)", {"records": list(records)})


def unstage(connection: Connection) -> None:
    """Forget the staged events, so that others can be staged in the same transaction."""
    execute(connection, "DROP TABLE staged")
