"""Requests counted by when they began and ended, from the events that stand and from rows of engines: one grouped scan of a span.

Takes instants that cut time into pieces, gives sums by model and by the pieces in which requests began and ended. For comparing the ledger
with what engines counted, which count a request when it ends. Source: specification, section 2; telemetry of vLLM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, LiteralString

from psycopg import sql

from ledger.store.connection import Connection, fetch_as

LONGEST = timedelta(days=1)  # requests that took longer are not looked for: they would cost a scan of the month before


class RowKind(StrEnum):
    """What a sum is of: rows of engines, one for each choice; events that have the figures of such rows; events that do not."""

    ENGINE = "engine"
    JOINED = "joined"
    ALONE = "alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRequests:
    """Sums over the requests of a model, answered (status 200-299) or cancelled (499), that began in one piece of time and ended in one.

    The model of an engine's row is its own, else that of its gateway's request; empty if neither is known. Piece 0 lies before the first
    instant, piece i begins with instant i - 1. A request whose latency is not known ends when it begins and is one of `without_latency`;
    unknown tokens and queue times count as 0 and are `without_...`. `within` has, for each edge that was asked for, how many took at most
    that long, and `exactly` how many of these took exactly that long, to the microsecond.
    """

    kind: RowKind
    model: str
    is_cancelled: bool
    began: int
    ended: int
    requests: int
    input_tokens: int
    output_tokens: int
    queue_us: int
    without_input: int
    without_output: int
    without_queue: int
    without_latency: int
    within: tuple[int, ...]
    exactly: tuple[int, ...]


_SERVED = """
SELECT CASE WHEN r.merged THEN 'joined' ELSE 'alone' END AS kind, e.model, e.status, e.received_at, {amounts_e}
FROM event e
LEFT JOIN formed_request d ON d.account = e.account AND d.request_id = e.request_id
LEFT JOIN engine_request r ON r.of_account = d.account AND r.of_request = d.of_request AND r.merged
WHERE {when_e}
    AND NOT EXISTS (SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision))
UNION ALL
SELECT 'engine', coalesce(o.model, (
        SELECT g.model FROM engine_request r
        JOIN observation g ON g.role = 'gateway' AND g.account = r.of_account AND g.request_id = r.of_request
        WHERE r.account = o.account AND r.request_id = o.request_id
        ORDER BY g.status BETWEEN 200 AND 299 DESC, g.received_at DESC, g.record_id LIMIT 1
    ), ''), o.status, o.received_at, {amounts_o}
FROM observation o WHERE o.role = 'engine' AND {when_o}
"""
_SUMS = """
WITH served AS MATERIALIZED ({served}), ended AS (
    SELECT *, received_at + coalesce(latency_us, 0) * interval '1 microsecond' AS ended_at FROM served
)
SELECT kind, model, status = 499 AS is_cancelled, width_bucket(received_at, %(instants)s) AS began,
    width_bucket(ended_at, %(instants)s) AS ended, count(*) AS requests, {sums}
FROM ended WHERE ended_at >= %(first)s GROUP BY 1, 2, 3, 4, 5
"""


def ended_requests(connection: Connection, instants: Sequence[datetime], edges_us: Sequence[int]) -> list[EndedRequests]:
    """The sums of the events that stand, and of the rows of engines, that ended at or after the first instant and began before the last."""
    amounts = {"input_tokens": "without_input", "output_tokens": "without_output", "queue_us": "without_queue"}
    sums = [sql.SQL("coalesce(sum({0}), 0)::bigint AS {0}").format(sql.Identifier(name)) for name in amounts]
    sums += [
        sql.SQL("count(*) - count({}) AS {}").format(sql.Identifier(name), sql.Identifier(without))
        for name, without in {**amounts, "latency_us": "without_latency"}.items()
    ]
    compared: LiteralString
    for name, compared in (("within", "<="), ("exactly", "=")):
        counts = [sql.SQL("count(*) FILTER (WHERE latency_us {} {})").format(sql.SQL(compared), sql.Literal(edge)) for edge in edges_us]
        sums.append(sql.SQL("ARRAY[{}]::bigint[] AS {}").format(sql.SQL(", ").join(counts), sql.Identifier(name)))
    served = sql.SQL(_SERVED).format(
        amounts_e=_amounts("e"), when_e=_when("e"), amounts_o=_amounts("o"), when_o=_when("o"),
    )  # fmt: skip
    statement = sql.SQL(_SUMS).format(served=served, sums=sql.SQL(", ").join(sums))
    parameters = {"first": instants[0], "last": instants[-1], "longest": LONGEST, "instants": list(instants)}
    return fetch_as(connection, _ended_requests, statement, parameters)


def _ended_requests(*, kind: str, within: Sequence[int], exactly: Sequence[int], **others: Any) -> EndedRequests:
    return EndedRequests(kind=RowKind(kind), within=tuple(within), exactly=tuple(exactly), **others)


def _amounts(table: str) -> sql.Composed:
    return sql.SQL(
        "{0}.input_tokens, {0}.output_tokens, {0}.queue_us, "
        "coalesce({0}.e2e_us, {0}.queue_us + coalesce({0}.inference_us, {0}.prefill_us + {0}.decode_us)) AS latency_us"
    ).format(sql.Identifier(table))


def _when(table: str) -> sql.Composed:
    return sql.SQL(
        "{0}.received_at >= %(first)s - %(longest)s AND {0}.received_at < %(last)s AND ({0}.status BETWEEN 200 AND 299 OR {0}.status = 499)"
    ).format(sql.Identifier(table))
