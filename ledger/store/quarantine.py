"""Refused rows in PostgreSQL: with their file, line, reason and the fields that the mapping reads. A row refused twice stands once.

Source: specification, section 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from psycopg import sql
from sqlalchemy import Connection, select, text, update

from ledger.store import schema
from ledger.store.connection import column_list, copy_rows, driver_cursor

STREAM_COLUMNS = ("line", "reason", "detail", "row_sha256", "fields", "account", "received_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """One row in quarantine; `resolution` None while it waits for somebody."""

    quarantine_id: int
    source: str
    line: int
    reason: str
    detail: str
    account: str | None
    received_at: datetime | None
    fields: dict[str, Any]
    mapping: str
    mapping_sha256: str
    resolution: str | None
    resolution_reason: str | None


def add_refused(connection: Connection, stream: IO[bytes], batch_id: int) -> int:
    """Add the refused rows of the stream (CSV of STREAM_COLUMNS), except those that stand there already; gives the stream's rows."""
    connection.execute(
        text(
            "CREATE TEMPORARY TABLE IF NOT EXISTS staged_refused "
            "(line bigint, reason text, detail text, row_sha256 text, fields jsonb, account text, received_at timestamptz) ON COMMIT DROP"
        )
    )
    count = copy_rows(connection, "staged_refused", STREAM_COLUMNS, stream)
    columns = column_list(STREAM_COLUMNS)
    with driver_cursor(connection) as cursor:
        cursor.execute(
            sql.SQL(
                "INSERT INTO quarantine (batch_id, {columns}) SELECT {batch_id}, {columns} FROM staged_refused "
                "ORDER BY row_sha256, line ON CONFLICT (row_sha256) DO NOTHING"
            ).format(columns=columns, batch_id=sql.Literal(batch_id))
        )
        cursor.execute("TRUNCATE staged_refused")
    return count


def refused_rows(
    connection: Connection,
    *,
    reason: str | None = None,
    ids: Sequence[int] | None = None,
    account: str | None = None,
    resolved: bool = False,
) -> list[RefusedRow]:
    """Rows in quarantine by batch and line: those of the reason, of the ids, of the account; the resolved ones too if asked."""
    table, batch = schema.quarantine, schema.batch
    query = (
        select(table, batch.c.source, batch.c.mapping, batch.c.mapping_sha256)
        .join(batch, batch.c.batch_id == table.c.batch_id)
        .order_by(table.c.batch_id, table.c.line, table.c.quarantine_id)
    )
    if reason is not None:
        query = query.where(table.c.reason == reason)
    if ids is not None:
        query = query.where(table.c.quarantine_id.in_(ids))
    if account is not None:
        query = query.where(table.c.account == account)
    if not resolved:
        query = query.where(table.c.resolution.is_(None))
    return [RefusedRow(**{name: row[name] for name in RefusedRow.__slots__}) for row in connection.execute(query).mappings()]


def resolve(connection: Connection, quarantine_id: int, *, resolution: str, reason: str, author: str, at: datetime) -> bool:
    """Mark the row requeued, corrected or dismissed; False if it was resolved before, or is none."""
    table = schema.quarantine
    statement = (
        update(table)
        .where(table.c.quarantine_id == quarantine_id, table.c.resolution.is_(None))
        .values(resolution=resolution, resolution_reason=reason, resolved_by=author, resolved_at=at)
    )
    return connection.execute(statement).rowcount == 1


def conflicts_of(connection: Connection, account: str, request_id: str) -> list[RefusedRow]:
    """The waiting rows in conflict of this account whose field `request_id` is this one."""
    return [row for row in refused_rows(connection, reason="conflict", account=account) if row.fields.get("request_id") == request_id]
