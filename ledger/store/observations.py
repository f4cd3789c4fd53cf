"""Observations in PostgreSQL: rows of one source as it gave them, and what became of each row of a load.

Takes staged rows of one role, in the caller's transaction. Which observations belong together is in `pairing`, what they make in `forming`.
Source: specification, section 2; decision record halves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from psycopg import sql

from ledger.store.comparison import differing, equal
from ledger.store.connection import Connection, column_list, copy_rows, driver_cursor, execute, fetch

# The columns that a source decides, and those of them that make two rows with one id equal.
OBSERVATION_FIELDS = (
    "received_at", "queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us",
    "input_tokens", "cached_input_tokens", "output_tokens", "status", "async_header", "clock_clamped",
    "role", "account", "record_id", "request_id", "trace", "header", "model", "queue", "cold_start", "node",
)  # fmt: skip
_COMPARED = tuple(name for name in OBSERVATION_FIELDS if name not in ("role", "account", "record_id", "clock_clamped"))
_LINKING = ("role", "account", "record_id", "request_id", "trace", "header")  # what makes it the one that it is
_REPAIRED = tuple(name for name in OBSERVATION_FIELDS if name not in _LINKING)

# `refused_sha256` is of a row that waits for its tokens, `record` its number.
STREAM_COLUMNS = (*OBSERVATION_FIELDS, "refused_sha256", "record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """What became of the staged rows, each in one of them, by the numbers of their records where somebody has to know them.

    `waiting` are rows of a gateway without tokens whose engine is not known yet; `conflicts` have in words what differs.
    """

    new: int
    duplicate: int
    merged: int
    conflicts: list[tuple[int, str]]
    waiting: list[int]


def stage_observations(connection: Connection, stream: IO[bytes]) -> int:
    """Put the rows of the stream (binary, STREAM_COLUMNS) aside until the end of the transaction; gives their number."""
    execute(connection, "CREATE TEMPORARY TABLE staged_observation (LIKE observation, record bigint NOT NULL) ON COMMIT DROP")
    execute(connection, "ALTER TABLE staged_observation ALTER batch_id DROP NOT NULL, ALTER repaired DROP NOT NULL")
    count = copy_rows(connection, "staged_observation", STREAM_COLUMNS, stream)
    execute(connection, "ANALYZE staged_observation (role, account, record_id)")
    return count


def add_observations(connection: Connection, batch_id: int) -> None:
    """Add the staged rows whose id is new, the first of each, and say of every one what it is: the temporary table `arrived`.

    They go in by order of their ids, so that two loads of the same rows wait for each other instead of blocking each other.
    """
    fields, number = column_list(OBSERVATION_FIELDS), sql.Literal(batch_id)
    add = sql.SQL(
        "INSERT INTO observation ({fields}, refused_sha256, batch_id) "
        "SELECT DISTINCT ON (role, account, record_id) {fields}, refused_sha256, {batch_id} FROM staged_observation "
        "ORDER BY role, account, record_id, record ON CONFLICT DO NOTHING"
    ).format(fields=fields, batch_id=number)
    # A statement of its own: it sees what other loads have committed meanwhile.
    compare = sql.SQL(
        "CREATE TEMPORARY TABLE arrived ON COMMIT DROP AS SELECT s.record, s.role, s.account, s.request_id, s.record_id, s.trace, "
        "s.header, s.received_at, s.refused_sha256, nullif(concat_ws(', ', {differing}), '') AS differing, o.batch_id = {batch_id} AND "
        "row_number() OVER (PARTITION BY s.role, s.account, s.record_id ORDER BY s.record) = 1 AS added "
        "FROM staged_observation s JOIN observation o USING (role, account, record_id)"
    ).format(differing=differing(_COMPARED, "o", "s"), batch_id=number)
    with driver_cursor(connection) as cursor:
        cursor.execute(add)
        cursor.execute(compare)
        cursor.execute("ANALYZE arrived")


# Rows of `arrived` with the group of `formed` that they are in: `waits` if it is no event yet, `foreign` if its event is somebody else's.
_GROUPED = """
SELECT arrived.*, NOT formed.complete AND formed.latest IS NULL AS waits,
    formed.placed AND formed.latest IS NULL AND row_number() OVER event = 1 AS made_it,
    formed.foreign_to AS foreign_to, formed.known
FROM arrived LEFT JOIN formed_record USING (account, record_id)
    LEFT JOIN formed ON formed.account = arrived.account AND formed.request_id = formed_record.request_id
WINDOW event AS (PARTITION BY formed.account, formed.request_id, arrived.added ORDER BY arrived.record)
"""
_FATES = f"""
SELECT record, foreign_to, differing, CASE
    WHEN refused_sha256 IS NOT NULL AND ((added AND waits) OR (differing IS NULL AND NOT added AND NOT EXISTS (
        SELECT FROM formed_request d WHERE d.account = h.account AND d.of_request = h.request_id))
        OR (differing IS NOT NULL AND EXISTS (
        SELECT FROM quarantine q WHERE q.row_sha256 = h.refused_sha256 AND q.reason <> 'conflict'))) THEN 'waiting'
    WHEN differing IS NOT NULL THEN 'conflict'
    WHEN NOT added THEN 'duplicate'
    WHEN role = 'engine' THEN 'merged'
    WHEN foreign_to IS NOT NULL THEN CASE WHEN known THEN 'duplicate' ELSE 'conflict' END
    WHEN made_it THEN 'new'
    ELSE 'merged' END AS fate
FROM ({_GROUPED}) h
"""  # noqa: S608


def fates_of_observations(connection: Connection) -> Fates:
    """What became of the staged rows, once events are formed."""
    with driver_cursor(connection) as cursor:
        cursor.execute("CREATE TEMPORARY TABLE fate ON COMMIT DROP AS " + _FATES)
        counts: dict[str, int] = dict(cursor.execute("SELECT fate, count(*) FROM fate GROUP BY fate").fetchall())
        conflicts = cursor.execute(
            "SELECT record, 'differs from the stored row in ' || coalesce(differing, foreign_to) FROM fate "
            "WHERE fate = 'conflict' ORDER BY record"
        ).fetchall()
        waiting = cursor.execute("SELECT array_agg(record ORDER BY record) FROM fate WHERE fate = 'waiting'").fetchone()
    return Fates(
        new=counts.get("new", 0), duplicate=counts.get("duplicate", 0), merged=counts.get("merged", 0),
        conflicts=[(int(record), str(detail)) for record, detail in conflicts], waiting=waiting[0] or [] if waiting else [],
    )  # fmt: skip


# -- observations that are sent in again


def waiting_observations(connection: Connection, hashes: Mapping[int, str]) -> dict[int, str]:
    """Of records of refused rows (their hashes in quarantine), those whose observations wait for tokens, and its role."""
    query = (
        "SELECT record, role FROM unnest(%(records)s::bigint[], %(hashes)s::varchar[]) AS given (record, hash) "
        "JOIN observation ON refused_sha256 = hash"
    )
    return dict(fetch(connection, query, {"records": list(hashes), "hashes": list(hashes.values())}))


def repair_waiting(connection: Connection, batch_id: int, hashes: Mapping[int, str]) -> list[int]:
    """Give observations that wait the figures of the staged rows that have tokens now; before these are added. `hashes` are those under
    which the staged records stand in quarantine: one that still has no tokens waits under it.

    Gives the records of rows that would make another one of the observation that waits: they are staged no more.
    """
    given: dict[str, list[object]] = {"records": list(hashes), "hashes": list(hashes.values())}
    rows = sql.SQL("unnest(%(records)s::bigint[], %(hashes)s::varchar[]) AS given (record, hash)")
    same = equal(_LINKING, "o", "s")
    other = sql.SQL(
        "DELETE FROM staged_observation s USING {rows}, observation o "
        "WHERE s.record = given.record AND o.refused_sha256 = hash AND NOT ({same}) RETURNING s.record"
    ).format(rows=rows, same=same)
    repair = sql.SQL(
        "UPDATE observation o SET repaired = true, refused_sha256 = NULL, batch_id = {batch_id}, {values} "
        "FROM staged_observation s JOIN {rows} USING (record) WHERE o.refused_sha256 = hash AND {same} AND s.refused_sha256 IS NULL"
    ).format(
        batch_id=sql.Literal(batch_id), rows=rows, same=same,
        values=sql.SQL(", ").join(sql.SQL("{0} = s.{0}").format(sql.Identifier(name)) for name in _REPAIRED),
    )  # fmt: skip
    wait = sql.SQL(
        "UPDATE staged_observation s SET refused_sha256 = hash FROM {rows} WHERE s.record = given.record AND refused_sha256 IS NOT NULL"
    )
    found = [record for (record,) in fetch(connection, other, given)]
    execute(connection, repair, given)
    execute(connection, wait.format(rows=rows), given)
    return found


def each_fate(connection: Connection) -> dict[int, str]:
    """What became of each staged row, by its record: the name of the field of `Fates` that counts it."""
    return dict(fetch(connection, "SELECT record, fate FROM fate"))


def unstage_observations(connection: Connection) -> None:
    """Forget what was staged and formed, so that more observations can be added in the same transaction."""
    execute(connection, "DROP TABLE staged_observation, arrived, touched, formed, formed_record, withdrawn, fate")
