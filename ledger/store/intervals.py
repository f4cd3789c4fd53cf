"""Recorded intervals in PostgreSQL: open circuit breakers and model loads. Never changed, never removed.

Source: specification, sections 2 and 4.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from ledger.store.connection import Connection, column_list, execute, fetch, fetch_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The span [starts_at, ends_at) of a breaker (kind circuit_breaker) or a model load (kind model_load); node None is any."""

    interval_id: str
    kind: str
    node: str | None
    model: str | None
    starts_at: datetime
    ends_at: datetime


_COLUMNS = column_list(Interval.__slots__)


def stored_intervals(connection: Connection) -> list[Interval]:
    """All recorded intervals, by start and id."""
    return _intervals(connection, sql.SQL("ORDER BY starts_at, interval_id"))


def stored_interval(connection: Connection, interval_id: str) -> Interval | None:
    """The interval of this id."""
    return next(iter(_intervals(connection, sql.SQL("WHERE interval_id = {}").format(interval_id))), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedInterval:
    """An interval, who recorded it, and when."""

    interval: Interval
    author: str
    added_at: datetime


def recorded_intervals(
    connection: Connection,
    *,
    kind: str | None = None,
    node: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[RecordedInterval]:
    """The intervals of a kind, that hold for a node (those of any node too), and that touch [start, end); by start and id."""
    return fetch_as(
        connection,
        _recorded,
        sql.SQL(
            "SELECT {}, author, added_at FROM interval WHERE (%(kind)s::text IS NULL OR kind = %(kind)s) "
            "AND (%(node)s::text IS NULL OR node IS NULL OR node = %(node)s) "
            "AND (%(start)s::timestamptz IS NULL OR ends_at > %(start)s) AND (%(end)s::timestamptz IS NULL OR starts_at < %(end)s) "
            "ORDER BY starts_at, interval_id"
        ).format(_COLUMNS),
        {"kind": kind, "node": node, "start": start, "end": end},
    )


def _recorded(*, author: str, added_at: datetime, **interval: Any) -> RecordedInterval:
    return RecordedInterval(interval=Interval(**interval), author=author, added_at=added_at)


def _intervals(connection: Connection, which: sql.Composable) -> list[Interval]:
    return fetch_as(connection, Interval, sql.SQL("SELECT {} FROM interval {}").format(_COLUMNS, which))


def add_interval(connection: Connection, interval: Interval, *, author: str, added_at: datetime) -> bool:
    """Add the interval; False if one of the same content is there, under whatever id."""
    statement = sql.SQL("INSERT INTO interval ({}, author, added_at) VALUES ({}) ON CONFLICT DO NOTHING RETURNING interval_id")
    values = [*(getattr(interval, name) for name in Interval.__slots__), author, added_at]
    return fetch(connection, statement.format(_COLUMNS, sql.SQL(", ").join(map(sql.Literal, values)))) != []


def lock_intervals(connection: Connection) -> None:
    """Lets one transaction at a time add intervals, so that each sees what the others have added."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.intervals'))")
