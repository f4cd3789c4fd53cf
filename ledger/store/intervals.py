"""Recorded intervals in PostgreSQL: open circuit breakers and model loads. Never changed, never removed.

Source: specification, sections 2 and 4.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select, text
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


def stored_intervals(connection: Connection) -> list[Interval]:
    """All recorded intervals, by start and id."""
    return _intervals(connection, select(schema.interval).order_by(schema.interval.c.starts_at, schema.interval.c.interval_id))


def stored_interval(connection: Connection, interval_id: str) -> Interval | None:
    """The interval of this id."""
    return next(iter(_intervals(connection, select(schema.interval).where(schema.interval.c.interval_id == interval_id))), None)


def _intervals(connection: Connection, query: Select[Any]) -> list[Interval]:
    return [Interval(**{name: row[name] for name in Interval.__slots__}) for row in connection.execute(query).mappings()]


def add_interval(connection: Connection, interval: Interval, *, author: str, added_at: datetime) -> bool:
    """Add the interval; False if one of the same content is there, under whatever id."""
    values = {name: getattr(interval, name) for name in Interval.__slots__}
    statement = insert(schema.interval).values(**values, author=author, added_at=added_at).on_conflict_do_nothing()
    return connection.scalar(statement.returning(schema.interval.c.interval_id)) is not None


def lock_intervals(connection: Connection) -> None:
    """Let no other interval be added until the transaction ends."""
    connection.execute(text("LOCK TABLE interval IN SHARE ROW EXCLUSIVE MODE"))
