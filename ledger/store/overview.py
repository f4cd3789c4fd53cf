"""What the database holds, in figures that are kept anyway: no query here reads events.

Source: specification, section 9 (`ledger status`).
"""

from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from ledger.store.connection import Connection, fetch, fetch_as
from ledger.store.kept_apart import count_apart
from ledger.store.quarantine import IN_CONFLICT, REASON
from ledger.store.unmet import UnmetCount, count_unmet

SHOWN_LOADS = 5
_LOOKED_AT = 2_000  # of the last batches: a file may be many


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthOfAccount:
    """Standing events of an account in a month in UTC, and how many of them no contract covers."""

    account: str
    month: str
    requests: int
    unassigned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLoaded:
    """What one load of a file did, all its batches together; `at` and `author` are those of its last one. Rows read are new, duplicate, in
    conflict, refused, skipped or merged; `joined` are requests."""

    file: str
    mapping: str
    author: str
    at: datetime
    read: int
    new: int
    duplicate: int
    refused: int
    conflict: int
    skipped: int
    merged: int
    joined: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjoined:
    """Requests of engines whose figures are in no gateway's request: `alone` have none, `since` is when the first of them was received;
    `kept_apart` have one, are not joined with it, and nobody has decided about it; `first_apart` is the least of their ids, as engines say
    it."""

    requests: int
    alone: int
    since: datetime | None
    kept_apart: int
    first_apart: str | None
    unmet: UnmetCount


def months_of_accounts(connection: Connection) -> list[MonthOfAccount]:
    """Standing events by account and month, by the quarters of an hour in which they are counted."""
    # The spans of one account do not overlap: no row is joined twice.
    return fetch_as(
        connection,
        MonthOfAccount,
        "SELECT account, to_char(month_start, 'YYYY-MM') AS month, sum(requests)::bigint AS requests, "
        "coalesce(sum(requests) FILTER (WHERE NOT is_covered), 0)::bigint AS unassigned FROM ("
        "SELECT traffic.account, date_trunc('month', quarter_start AT TIME ZONE 'UTC') AS month_start, in_force IS NOT NULL AS is_covered, "
        "sum(requests) AS requests FROM traffic "
        "LEFT JOIN account_covered covered ON covered.account = traffic.account AND in_force @> quarter_start GROUP BY 1, 2, 3) counted "
        "GROUP BY account, month_start HAVING sum(requests) <> 0 ORDER BY account, month_start",
    )


def first_requests(connection: Connection) -> dict[str, datetime]:
    """By contract, the quarter of an hour of the first standing event that it covers; contracts without any are left out."""
    return dict(
        fetch(
            connection,
            "SELECT contract_id, min(quarter_start) FROM (SELECT contract_id, quarter_start FROM traffic "
            "JOIN account_covered covered ON covered.account = traffic.account AND in_force @> quarter_start "
            "GROUP BY contract_id, quarter_start HAVING sum(requests) > 0) counted GROUP BY contract_id",
        )
    )


def waiting_by_reason(connection: Connection) -> dict[str, int]:
    """Rows in quarantine that wait for somebody by reason, the most first; one that was found in conflict later is a conflict."""
    query = sql.SQL(
        "SELECT CASE WHEN {} THEN 'conflict' ELSE {} END AS because, count(*) AS number FROM quarantine "
        "WHERE resolution IS NULL GROUP BY because ORDER BY number DESC, because"
    )
    return dict(fetch(connection, query.format(IN_CONFLICT, sql.SQL(REASON))))


def unjoined_requests(connection: Connection) -> Unjoined:
    """The requests of engines whose figures are in no gateway's request."""
    [(requests, alone, since)] = fetch(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE of_request IS NULL), min(received_at) FILTER (WHERE of_request IS NULL) "
        "FROM engine_request WHERE NOT merged",
    )
    apart, first = count_apart(connection)
    return Unjoined(requests=requests, alone=alone, since=since, kept_apart=apart, first_apart=first, unmet=count_unmet(connection))


def last_loads(connection: Connection) -> list[FileLoaded]:
    """The last loads of files, the latest first; corrections and repairs are none. A load that was cut off and run again is one."""
    # The n-th time that a chunk of a file was stored belongs to the n-th load of the file: a load goes on after the last chunk of one that
    # was cut off, and begins with all of them after one that came to its end.
    return fetch_as(
        connection,
        FileLoaded,
        "SELECT (array_agg(source ORDER BY batch_id DESC))[1] AS file, mapping, (array_agg(author ORDER BY batch_id DESC))[1] AS author, "
        "max(loaded_at) AS at, sum(rows_read)::bigint AS read, sum(rows_new)::bigint AS new, sum(rows_duplicate)::bigint AS duplicate, "
        "sum(rows_refused)::bigint AS refused, sum(rows_conflict)::bigint AS conflict, sum(rows_skipped)::bigint AS skipped, "
        "sum(rows_merged)::bigint AS merged, sum(requests_joined)::bigint AS joined "
        "FROM (SELECT *, row_number() OVER (PARTITION BY content_sha256, mapping_sha256, chunk_rows, chunk ORDER BY batch_id) AS load "
        "FROM batch WHERE chunk_rows > 0 AND mapping_sha256 <> content_sha256 AND (content_sha256, mapping_sha256) IN "
        "(SELECT content_sha256, mapping_sha256 FROM batch ORDER BY batch_id DESC LIMIT %(looked_at)s) "
        "AND NOT EXISTS (SELECT FROM resubmission WHERE resubmission.batch_id = batch.batch_id)) of_load "
        "GROUP BY content_sha256, mapping, mapping_sha256, chunk_rows, load ORDER BY max(batch_id) DESC LIMIT %(most)s",
        {"looked_at": _LOOKED_AT, "most": SHOWN_LOADS},
    )
