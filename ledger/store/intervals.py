"""Recorded intervals in PostgreSQL: open circuit breakers and model loads. Never changed, never removed.

Source: specification, sections 2 and 4.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from ledger.store import schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The span [starts_at, ends_at) of a breaker (kind circuit_breaker) or a model load (kind model_load); node None is any."""

    interval_id: str
    kind: str
    node: str | None
    model: str | None
    starts_at: datetime
    ends_at: datetime


def stored_interval(connection: Connection, interval_id: str) -> Interval | None:
    """The interval of this id."""
    table = schema.interval
    row = connection.execute(select(table).where(table.c.interval_id == interval_id)).mappings().one_or_none()
    return Interval(**{name: row[name] for name in Interval.__slots__}) if row else None


def add_interval(connection: Connection, interval: Interval, *, author: str, added_at: datetime) -> bool:
    """Add the interval; False if one of the same content is there, under whatever id."""
    values = {name: getattr(interval, name) for name in Interval.__slots__}
    statement = insert(schema.interval).values(**values, author=author, added_at=added_at).on_conflict_do_nothing()
    return connection.scalar(statement.returning(schema.interval.c.interval_id)) is not None


def lock_intervals(connection: Connection) -> None:
    """Let no other interval be added until the transaction ends."""
    connection.execute(text("LOCK TABLE interval IN SHARE ROW EXCLUSIVE MODE"))
