"""Refused rows that were sent in again, in PostgreSQL: what became of each.

Source: specification, section 2, "Corrections".
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from psycopg.types.json import Jsonb

from ledger.store.connection import Connection, column_list, driver_cursor, fetch_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Resubmission:
    """One time a refused row was sent in again: what was set (canonical columns, as texts), and what became of it: `accepted`,
    `duplicate`, `skipped`, or the reason why it was refused again, with its detail. `account` and `request_id` are those of the request
    that the row is now, None if it was refused again."""

    quarantine_id: int
    batch_id: int
    values_set: dict[str, str]
    outcome: str
    detail: str
    reason: str
    mapping: str
    author: str
    at: datetime
    account: str | None
    request_id: str | None


def add_resubmissions(connection: Connection, done: Collection[Resubmission]) -> None:
    """Keep what became of rows that were sent in again; their batches are there."""
    kept = ("quarantine_id", "batch_id", "values_set", "outcome", "detail", "reason", "account", "request_id")
    statement = sql.SQL("COPY resubmission ({}) FROM STDIN").format(column_list(kept))
    with driver_cursor(connection) as cursor, cursor.copy(statement) as copy:
        for one in done:
            values = {name: getattr(one, name) for name in kept} | {"values_set": Jsonb(one.values_set)}
            copy.write_row(tuple(values.values()))


def resubmissions_of(connection: Connection, quarantine_id: int) -> list[Resubmission]:
    """Each time the row was sent in again, in order."""
    return fetch_as(
        connection,
        Resubmission,
        "SELECT quarantine_id, batch_id, values_set, outcome, detail, reason, mapping, author, loaded_at AS at, account, request_id "
        "FROM resubmission JOIN batch USING (batch_id) WHERE quarantine_id = %(id)s ORDER BY loaded_at, batch_id",
        {"id": quarantine_id},
    )
