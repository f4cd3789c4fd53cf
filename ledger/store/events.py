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
from sqlalchemy import Connection, func, insert, select, text

from ledger.store import schema
from ledger.store.connection import column_list, copy_rows, driver_cursor, fetch

# The columns that a source decides, in the order of the table; and those of them that make two rows of one identity equal.
EVENT_FIELDS = tuple(column.name for column in schema.event.columns if column.name not in ("batch_id", "revision"))
COMPARED_FIELDS = tuple(name for name in EVENT_FIELDS if name not in ("account", "request_id", "clock_clamped"))


class IdentityTaken(Exception):
    """An event of the batch exists, or another load is adding it at this moment: it has to go through staging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one load did: `read` is the sum of the next six. `chunk` counts from 0 within the file of `content_sha256`."""

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
    loaded_at: datetime
    author: str


def next_batch_id(connection: Connection) -> int:
    """A fresh id; the batch's row is added at the end of its transaction, when its counts are known."""
    batch_id = connection.scalar(text("SELECT nextval(pg_get_serial_sequence('batch', 'batch_id'))"))
    assert isinstance(batch_id, int)
    return batch_id


def add_batch(connection: Connection, batch: Batch) -> None:
    """Add the batch's row. The events and refused rows of it are in the same transaction."""
    connection.execute(
        text(
            "INSERT INTO batch (batch_id, source, content_sha256, mapping, mapping_sha256, chunk, chunk_rows, rows_read, rows_new, "
            "rows_duplicate, rows_conflict, rows_refused, rows_skipped, rows_merged, rows_clamped, loaded_at, author) "
            "OVERRIDING SYSTEM VALUE VALUES "
            "(:batch_id, :source, :content_sha256, :mapping, :mapping_sha256, :chunk, :chunk_rows, :read, :new, "
            ":duplicate, :conflict, :refused, :skipped, :merged, :clamped, :loaded_at, :author)"
        ),
        {name: getattr(batch, name) for name in Batch.__slots__},
    )


def committed_chunks(connection: Connection, *, content_sha256: str, mapping_sha256: str, chunk_rows: int) -> dict[int, Batch]:
    """The first batch of each chunk of this content that was loaded under this mapping, by chunk."""
    table = schema.batch
    rows = connection.execute(
        select(table)
        .where(table.c.content_sha256 == content_sha256, table.c.mapping_sha256 == mapping_sha256, table.c.chunk_rows == chunk_rows)
        .order_by(table.c.batch_id.desc())
    ).mappings()
    return {row["chunk"]: Batch(**{name.removeprefix("rows_"): value for name, value in row.items()}) for row in rows}


def other_mappings(connection: Connection, *, content_sha256: str, mapping_sha256: str) -> list[str]:
    """The names of the mappings, other than this one, under which this content was loaded."""
    table = schema.batch
    query = select(table.c.mapping).where(table.c.content_sha256 == content_sha256, table.c.mapping_sha256 != mapping_sha256).distinct()
    return sorted(connection.scalars(query))


def copy_events(connection: Connection, stream: IO[bytes]) -> int:
    """Add the events of the stream: binary rows of EVENT_FIELDS, batch_id, revision. Gives their number.

    Raises IdentityTaken if one exists or is being added elsewhere; the transaction can only be rolled back then.
    """
    try:
        return copy_rows(connection, "event", (*EVENT_FIELDS, "batch_id", "revision"), stream)
    except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected) as error:
        raise IdentityTaken from error


def analyze_events(connection: Connection) -> None:
    """Let PostgreSQL plan by the events that stand there now; else it would do so only when it next looks by itself."""
    connection.execute(text("ANALYZE event"))


def stage_events(connection: Connection, stream: IO[bytes]) -> int:
    """Put the events of the stream (binary rows of EVENT_FIELDS and the record's number) aside until the end of the transaction."""
    connection.execute(text("CREATE TEMPORARY TABLE staged (LIKE event, record bigint NOT NULL) ON COMMIT DROP"))
    connection.execute(text("ALTER TABLE staged ALTER batch_id DROP NOT NULL, ALTER revision DROP NOT NULL"))
    count = copy_rows(connection, "staged", (*EVENT_FIELDS, "record"), stream)
    connection.execute(text("ANALYZE staged (account, request_id, received_at)"))
    return count


def unstage_duplicates(connection: Connection) -> int:
    """Forget the staged events that equal a stored revision; gives their number. Only the span of their instants is looked at."""
    equal = sql.SQL(" AND ").join(
        sql.SQL("e.{field} IS NOT DISTINCT FROM s.{field}").format(field=sql.Identifier(name)) for name in COMPARED_FIELDS
    )
    statement = sql.SQL(
        "DELETE FROM staged s USING event e WHERE e.account = s.account AND e.request_id = s.request_id AND {equal} AND e.received_at "
        "BETWEEN (SELECT min(received_at) FROM staged) AND (SELECT max(received_at) FROM staged)"
    ).format(equal=equal)
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
    differing = sql.SQL(", ").join(
        sql.SQL("CASE WHEN e.{field} IS DISTINCT FROM s.{field} THEN {name} END").format(field=sql.Identifier(name), name=sql.Literal(name))
        for name in COMPARED_FIELDS
    )
    equal = sql.SQL(" AND ").join(
        sql.SQL("e.{field} IS NOT DISTINCT FROM s.{field}").format(field=sql.Identifier(name)) for name in COMPARED_FIELDS
    )
    statement = sql.SQL(
        "SELECT s.record, (SELECT 'differs from the stored row in ' || concat_ws(', ', {differing}) FROM event e "
        "WHERE e.account = s.account AND e.request_id = s.request_id ORDER BY e.revision DESC LIMIT 1) FROM staged s "
        "WHERE NOT EXISTS (SELECT FROM event e WHERE e.account = s.account AND e.request_id = s.request_id AND {equal}) ORDER BY s.record"
    ).format(differing=differing, equal=equal)
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
    event, void = schema.event, schema.void
    latest = select(event.c.account, func.max(event.c.revision).label("revision")).where(event.c.request_id == request_id)
    if account is not None:
        latest = latest.where(event.c.account == account)
    newest = latest.group_by(event.c.account).subquery()
    same = (void.c.account == event.c.account) & (void.c.request_id == event.c.request_id) & (void.c.revision == event.c.revision)
    query = (
        select(event, void.c.kind.label("void_kind"))
        .join(newest, (event.c.account == newest.c.account) & (event.c.revision == newest.c.revision))
        .outerjoin(void, same)
        .where(event.c.request_id == request_id)
        .order_by(event.c.account)
    )
    return [
        Revision(
            account=row["account"], request_id=request_id, revision=row["revision"], voided=row["void_kind"] is not None,
            fields={name: row[name] for name in EVENT_FIELDS},
        )
        for row in connection.execute(query).mappings()
    ]  # fmt: skip


def lock_request(connection: Connection, account: str, request_id: str) -> None:
    """Let no other correction of this request run until the transaction ends, nor one of all (`withdrawals.lock_all_requests`)."""
    connection.execute(text("SELECT pg_advisory_xact_lock_shared(hashtext('ledger.corrections'))"))
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:account || chr(31) || :request_id, 0))"),
                       {"account": account, "request_id": request_id})  # fmt: skip


def add_void(connection: Connection, revision: Revision, *, kind: str, reason: str, author: str, voided_at: datetime) -> bool:
    """Withdraw the revision (kind: void, correct or join); False if it was withdrawn before."""
    statement = text(
        "INSERT INTO void (account, request_id, revision, kind, reason, author, voided_at) "
        "VALUES (:account, :request_id, :revision, :kind, :reason, :author, :voided_at) ON CONFLICT DO NOTHING"
    )
    parameters = {
        "account": revision.account, "request_id": revision.request_id, "revision": revision.revision,
        "kind": kind, "reason": reason, "author": author, "voided_at": voided_at,
    }  # fmt: skip
    return connection.execute(statement, parameters).rowcount == 1


def add_revision(connection: Connection, fields: dict[str, Any], *, batch_id: int, revision: int) -> None:
    """Add a further revision of a request, with these EVENT_FIELDS."""
    connection.execute(insert(schema.event).values(**fields, batch_id=batch_id, revision=revision))


def staged_fields(connection: Connection) -> list[dict[str, Any]]:
    """The staged events as values, for a correction: one or none."""
    rows = connection.execute(text("SELECT * FROM staged ORDER BY record")).mappings()
    return [{name: row[name] for name in EVENT_FIELDS} for row in rows]


def staged_records(connection: Connection) -> list[int]:
    """The numbers of the staged records."""
    return list(connection.scalars(text("SELECT record FROM staged")))


def unstage_records(connection: Connection, records: Collection[int]) -> None:
    """Forget these of the staged events."""
    connection.execute(text("DELETE FROM staged WHERE record = ANY (:records)"), {"records": list(records)})


def unstage(connection: Connection) -> None:
    """Forget the staged events, so that others can be staged in the same transaction."""
    connection.execute(text("DROP TABLE staged"))
