"""Refused rows in PostgreSQL: with their file, line, reason and the fields that the mapping reads. A row refused twice stands once.

Rows are chosen by a `RowFilter` and read in pieces: there may be a million of them. Source: specification, section 2.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import IO, Any, LiteralString, TypeAlias

from psycopg import sql

from ledger.store.connection import Connection, column_list, copy_rows, driver_cursor, execute, fetch, fetch_as

STREAM_COLUMNS = ("line", "reason", "detail", "row_sha256", "fields", "account", "received_at", "request_id")
PIECE_ROWS = 5_000
_CONFLICT = "conflict"

# A row is in conflict if it was refused for that, or was found to be when it was sent in again.
IN_CONFLICT = sql.SQL(
    "(quarantine.reason = 'conflict' OR EXISTS (SELECT FROM resubmission again "
    "WHERE again.quarantine_id = quarantine.quarantine_id AND again.outcome = 'conflict'))"
)

# A gateway's row that was refused for something else and waits for its engine's tokens, now that the rest of it is repaired.
_WAITS_BY_NOW: LiteralString = (
    "(quarantine.resolution IS NULL AND quarantine.reason <> 'usage_missing' AND EXISTS (SELECT FROM observation half "
    "WHERE half.refused_sha256 = quarantine.row_sha256))"
)
REASON: LiteralString = f"(CASE WHEN {_WAITS_BY_NOW} THEN 'usage_missing' ELSE quarantine.reason END)"

# That of the observation that the row has become, as everything that is shown of it.
_RECEIVED_AT: LiteralString = (
    "coalesce((SELECT half.received_at FROM observation half WHERE half.refused_sha256 = row_sha256 AND half.role = 'gateway' LIMIT 1), "
    "quarantine.received_at)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """One row in quarantine; `resolution` None while it waits for somebody. `source` is the file that it came in with. What it is refused
    for, and account, instant and id are those of the observation that it has become, if it waits as one."""

    quarantine_id: int
    source: str
    line: int
    reason: str
    detail: str
    row_sha256: str
    account: str | None
    received_at: datetime | None
    request_id: str | None
    fields: dict[str, Any]
    mapping: str
    mapping_sha256: str
    batch_id: int
    loaded_at: datetime
    loaded_by: str
    resolution: str | None
    resolution_reason: str | None
    resolved_by: str | None
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Rows that a contract's period counts: of its accounts and received in [start, end); what cannot be read of a row fits."""

    accounts: tuple[str, ...]
    start: datetime
    end: datetime


class RowState(StrEnum):
    """Whether somebody has resolved a row."""

    OPEN = "open"
    RESOLVED = "resolved"
    ALL = "all"


_STATES: dict[RowState, LiteralString] = {
    RowState.OPEN: "resolution IS NULL",
    RowState.RESOLVED: "resolution IS NOT NULL",
    RowState.ALL: "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are meant: those that every part fits; a part that is None fits all. Instants are [since, until): a row whose instant
    cannot be read fits neither. The reason `conflict` fits all that are in conflict, for whatever they were refused first."""

    ids: Collection[int] | None = None
    reason: str | None = None
    account: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    request_id: str | None = None
    share: Share | None = None
    state: RowState = RowState.OPEN

    @property
    def names_rows(self) -> bool:
        """Whether it is less than every row that waits."""
        return any(getattr(self, name) is not None for name in self.__slots__ if name != "state")

    def condition(self) -> sql.Composed:
        """As a condition over `quarantine` and `batch`."""
        parts = {
            "quarantine_id = ANY ({})": None if self.ids is None else list(self.ids),
            f"{REASON} = {{}}": None if self.reason == _CONFLICT else self.reason,
            "(quarantine.account = {0} OR EXISTS (SELECT FROM observation half WHERE half.refused_sha256 = row_sha256 "
            "AND half.account = {0}) OR quarantine.resolution = 'requeued' AND EXISTS (SELECT FROM resubmission again "
            "WHERE again.quarantine_id = quarantine.quarantine_id AND again.account = {0}))": self.account,
            "source = {}": self.source,
            f"{_RECEIVED_AT} >= {{}}": self.since,
            f"{_RECEIVED_AT} < {{}}": self.until,
            # Look-ups by index: there may be a million rows.
            "quarantine_id IN (SELECT quarantine_id FROM quarantine WHERE request_id = {0} UNION "
            "SELECT quarantine_id FROM quarantine JOIN observation half ON half.refused_sha256 = row_sha256 "
            "WHERE half.role = 'gateway' AND half.record_id = {0} UNION "
            "SELECT quarantine_id FROM resubmission again WHERE again.request_id = {0})": self.request_id,
        }
        given = [sql.SQL(condition).format(sql.Literal(value)) for condition, value in parts.items() if value is not None]
        if self.reason == _CONFLICT:
            given.append(sql.Composed([IN_CONFLICT]))
        if self.share is not None:
            counted = sql.SQL(
                "(quarantine.account IS NULL OR quarantine.account = ANY ({})) "
                "AND (received_at IS NULL OR (received_at >= {} AND received_at < {}))"
            )
            given.append(counted.format(list(self.share.accounts), self.share.start, self.share.end))
        return sql.SQL(" AND ").join([*given, sql.SQL(_STATES[self.state])])


_COLUMNS = sql.SQL(
    f"quarantine_id, source, line, {REASON} AS reason, "
    f"CASE WHEN {_WAITS_BY_NOW} THEN 'waits for its engine''s tokens' ELSE detail END AS detail, row_sha256, "
    "coalesce(half_account, quarantine.account) AS account, coalesce(half_received_at, received_at) AS received_at, "
    "coalesce(half_record, request_id) AS request_id, fields, mapping, mapping_sha256, quarantine.batch_id, "
    "loaded_at, author AS loaded_by, resolution, resolution_reason, resolved_by, resolved_at"
)
_TABLES = sql.SQL("quarantine JOIN batch USING (batch_id)")
_WITH_HALVES = sql.SQL(
    "quarantine JOIN batch USING (batch_id) LEFT JOIN LATERAL (SELECT account AS half_account, received_at AS half_received_at, "
    "record_id AS half_record FROM observation WHERE refused_sha256 = row_sha256 AND role = 'gateway' LIMIT 1) half ON true"
)
_PLACE = sql.SQL("(quarantine.batch_id, line, quarantine_id)")

# The order of rows: load, line, id. Whoever locks several does so in this order.
Place: TypeAlias = tuple[int, int, int]
START: Place = (0, 0, 0)


def add_refused(connection: Connection, stream: IO[bytes], batch_id: int) -> tuple[int, int]:
    """Add the refused rows of the stream (in binary, STREAM_COLUMNS), except those that stand there already; gives how many rows the stream
    has, and how many were added."""
    execute(
        connection,
        "CREATE TEMPORARY TABLE IF NOT EXISTS staged_refused (line bigint, reason text, detail text, row_sha256 text, fields text, "
        "account text, received_at timestamptz, request_id text) ON COMMIT DROP",
    )
    count = copy_rows(connection, "staged_refused", STREAM_COLUMNS, stream)
    values = sql.SQL(", ").join(sql.SQL("fields::jsonb") if name == "fields" else sql.Identifier(name) for name in STREAM_COLUMNS)
    statement = sql.SQL(
        "INSERT INTO quarantine (batch_id, {columns}) SELECT {batch_id}, {values} FROM staged_refused "
        "ORDER BY row_sha256, line ON CONFLICT (row_sha256) DO NOTHING"
    ).format(columns=column_list(STREAM_COLUMNS), values=values, batch_id=sql.Literal(batch_id))
    with driver_cursor(connection) as cursor:
        added = cursor.execute(statement).rowcount
    execute(connection, "TRUNCATE staged_refused")
    return count, added


def count_added(connection: Connection, batch_id: int) -> int:
    """How many rows the load has put into quarantine."""
    [(count,)] = fetch(connection, "SELECT count(*) FROM quarantine WHERE batch_id = %(batch_id)s", {"batch_id": batch_id})
    return int(count)


def each_refused(connection: Connection, wanted: RowFilter, *, most: int | None = None) -> Iterator[RefusedRow]:
    """The rows, by load and line, `most` of them (None: all); read from the server while they are looked at."""
    query = sql.SQL("DECLARE refused NO SCROLL CURSOR FOR SELECT {} FROM {} WHERE {} ORDER BY batch_id, line, quarantine_id LIMIT {}")
    execute(connection, query.format(_COLUMNS, _WITH_HALVES, wanted.condition(), sql.Literal(most)))
    while rows := fetch_as(connection, RefusedRow, sql.SQL("FETCH {} FROM refused").format(sql.Literal(PIECE_ROWS))):
        yield from rows
    execute(connection, "CLOSE refused")


def last_refused_id(connection: Connection) -> int:
    """The highest id by now; 0 if there is no row."""
    [(last,)] = fetch(connection, "SELECT coalesce(max(quarantine_id), 0) FROM quarantine")
    return int(last)


def piece_end(connection: Connection, wanted: RowFilter, *, after: Place, last_id: int) -> Place | None:
    """Where the next piece of the rows ends, of those behind `after` with ids up to `last_id`; None if there are no more."""
    query = sql.SQL(
        "SELECT batch_id, line, quarantine_id FROM (SELECT batch_id, line, quarantine_id FROM {} WHERE {} AND {} > ({}) "
        "AND quarantine_id <= {} ORDER BY batch_id, line, quarantine_id LIMIT {}) piece ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT 1"
    ).format(_TABLES, wanted.condition(), _PLACE, _place(after), sql.Literal(last_id), sql.Literal(PIECE_ROWS))
    return next(iter(fetch(connection, query)), None)


def piece_of_refused(
    connection: Connection, wanted: RowFilter, *, after: Place, end: Place, last_id: int, lock: bool = False
) -> list[RefusedRow]:
    """The rows behind `after` up to `end`, in order. With `lock`, nobody else resolves them until the transaction ends."""
    query = sql.SQL(
        "SELECT {} FROM {} WHERE {} AND {} > ({}) AND {} <= ({}) AND quarantine_id <= {} ORDER BY batch_id, line, quarantine_id {}"
    ).format(
        _COLUMNS, _WITH_HALVES, wanted.condition(), _PLACE, _place(after), _PLACE, _place(end), sql.Literal(last_id),
        sql.SQL("FOR UPDATE OF quarantine" if lock else ""),
    )  # fmt: skip
    return fetch_as(connection, RefusedRow, query)


def _place(place: Place) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Literal, place))


def count_refused(connection: Connection, wanted: RowFilter) -> dict[str, int]:
    """How many rows by reason, the most first."""
    query = sql.SQL("SELECT {} AS because, count(*) FROM {} WHERE {} GROUP BY because ORDER BY count(*) DESC, because")
    return dict(fetch(connection, query.format(sql.SQL(REASON), _TABLES, wanted.condition())))


def mappings_of(connection: Connection, wanted: RowFilter, keys: Sequence[str]) -> list[tuple[str, str, dict[str, str | None]]]:
    """Under which mappings the rows that have fields were read: name, hash, and the fields of these keys, which the command line gave."""
    given = sql.SQL(", ").join(sql.SQL("{0}, fields ->> {0}").format(sql.Literal(key)) for key in keys)
    query = sql.SQL("SELECT DISTINCT mapping, mapping_sha256, jsonb_build_object({}) FROM {} WHERE {} AND fields <> '{{}}'")
    return fetch(connection, query.format(given, _TABLES, wanted.condition()))


def known_ids(connection: Connection, ids: Collection[int]) -> set[int]:
    """Those of the ids that rows have, resolved or not."""
    query = sql.SQL("SELECT quarantine_id FROM quarantine WHERE quarantine_id = ANY ({})")
    return {quarantine_id for (quarantine_id,) in fetch(connection, query.format(list(ids)))}


def resolve(connection: Connection, wanted: RowFilter, *, resolution: str, reason: str, author: str, at: datetime) -> list[int]:
    """Mark those of the rows that wait as requeued, corrected or dismissed; gives their ids in order."""
    statement = sql.SQL(
        "WITH chosen AS MATERIALIZED (SELECT quarantine_id FROM {tables} WHERE {condition} AND resolution IS NULL "
        "ORDER BY batch_id, line, quarantine_id "
        "FOR UPDATE OF quarantine) UPDATE quarantine SET resolution = {resolution}, resolution_reason = {reason}, "
        "resolved_by = {author}, resolved_at = {at} FROM chosen WHERE chosen.quarantine_id = quarantine.quarantine_id "
        "RETURNING chosen.quarantine_id"
    ).format(tables=_TABLES, condition=wanted.condition(), resolution=resolution, reason=reason, author=author, at=at)
    return sorted(one for (one,) in fetch(connection, statement))


def conflicts_of(connection: Connection, account: str | None, request_id: str) -> list[RefusedRow]:
    """The waiting rows in conflict with this request, or (None) with those of any account under this id."""
    query = sql.SQL("SELECT {} FROM {} WHERE {} AND {} ORDER BY quarantine_id").format(
        _COLUMNS, _WITH_HALVES, RowFilter(account=account, request_id=request_id).condition(), IN_CONFLICT
    )
    return fetch_as(connection, RefusedRow, query)
