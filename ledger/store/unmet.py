"""Gateways' rows that wait for an engine's record which is there: too far from it in time to be paired, or refused to quarantine.

Looks for them by what pairs halves, and only where there is nothing nearer. Status asks of the first `LOOKED_AT` records alone, so that it
is quick however many wait. Source: specification, section 2; decision record halves.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg import sql

from ledger.store.connection import Connection, fetch, fetch_as
from ledger.store.other_ids import ENGINE_PREFIXES
from ledger.store.pairing import MOST, WITHIN

LOOKED_AT = 1_000

_SIDES: tuple[LiteralString, ...] = (
    "received_at > x.received_at + {within}::interval ORDER BY received_at",
    "received_at < x.received_at - {within}::interval ORDER BY received_at DESC",
)
# Gateways' rows with the key of the engine's row `x` on one side of the hour around it, the nearest first. Where a half of either has
# another one nearer, it is not the hour that keeps them apart.
_SIDE: LiteralString = """
SELECT * FROM (SELECT account, record_id, request_id, received_at, refused_sha256 FROM observation
    WHERE role = 'gateway' AND {key} = x.{key} AND (x.account = '' OR account = x.account) AND {side} LIMIT {most}) y
WHERE NOT EXISTS (SELECT FROM observation near WHERE near.role = 'gateway' AND near.{key} = x.{key}
        AND near.received_at BETWEEN x.received_at - {within}::interval AND x.received_at + {within}::interval)
    AND NOT EXISTS (SELECT FROM observation near WHERE near.role = 'engine' AND near.{key} = x.{key}
        AND near.received_at BETWEEN y.received_at - {within}::interval AND y.received_at + {within}::interval)
"""
_UNPAIRED: LiteralString = """
NOT EXISTS (SELECT FROM engine_request taken WHERE taken.of_account = {half}.account AND taken.of_request = {half}.request_id)
"""
_WAITS: LiteralString = """
EXISTS (SELECT FROM quarantine waiting WHERE waiting.row_sha256 = {half}.refused_sha256 AND waiting.resolution IS NULL)
"""
_FAR = """
SELECT DISTINCT ON (y.account, y.record_id) y.account, y.record_id, y.received_at AS gateway_at,
    x.request_id AS engine_request, x.received_at AS engine_at, figures.input_tokens, figures.output_tokens
FROM ({these}) these JOIN engine_request r USING (account, request_id)
JOIN observation x ON x.role = 'engine' AND x.account = r.account AND x.request_id = r.request_id
CROSS JOIN LATERAL ({sides}) y
CROSS JOIN LATERAL (SELECT max(input_tokens) AS input_tokens, sum(output_tokens)::bigint AS output_tokens FROM observation o
    WHERE o.role = 'engine' AND o.account = r.account AND o.request_id = r.request_id) figures
WHERE r.of_request IS NULL AND {unpaired} AND {chosen}
ORDER BY y.account, y.record_id, abs(extract(epoch FROM x.received_at - y.received_at)), x.record_id
"""
_FIRST_FREE: LiteralString = """
SELECT account, request_id FROM engine_request WHERE NOT merged AND of_request IS NULL ORDER BY received_at LIMIT {looked_at}
"""
# A gateway's row and the others of its call.
_OWN: LiteralString = """
SELECT o.* FROM observation o JOIN observation meant ON meant.role = 'gateway' AND meant.account = {account}::varchar
    AND meant.record_id = {record}::varchar
WHERE o.role = 'gateway' AND o.account = meant.account AND o.request_id = meant.request_id
"""
# Rows that are no observations, refused under another mapping than the gateway's: one of their fields is what pairs, with an engine's
# prefix or without.
_REFUSED = """
SELECT DISTINCT ON (y.account, y.record_id) y.account, y.record_id, q.quarantine_id, q.reason, q.detail
FROM (SELECT quarantine.*, mapping FROM quarantine JOIN batch USING (batch_id) WHERE resolution IS NULL
    AND reason NOT IN ('usage_missing', 'conflict') AND {having} ORDER BY quarantine_id LIMIT {looked_at}) q
CROSS JOIN LATERAL (SELECT DISTINCT unnest(ARRAY[value, regexp_replace(value, {prefix}, '')]) AS key FROM jsonb_each_text(q.fields)
    WHERE NOT starts_with(jsonb_each_text.key, '#')) said
CROSS JOIN LATERAL ((SELECT * FROM observation WHERE role = 'gateway' AND header = said.key LIMIT {most})
    UNION ALL (SELECT * FROM observation WHERE role = 'gateway' AND trace = said.key LIMIT {most})) y
JOIN batch ON batch.batch_id = y.batch_id AND batch.mapping <> q.mapping
WHERE (q.account IS NULL OR q.account = y.account)
    AND {unpaired} AND {chosen}
ORDER BY y.account, y.record_id, q.quarantine_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarEngine:
    """A gateway's row (its account and own id), and the engine's request that has its trace or header further away than halves are
    paired, with its tokens."""

    account: str
    record_id: str
    gateway_at: datetime
    engine_request: str
    engine_at: datetime
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEngine:
    """A gateway's row (its account and own id), and the row in quarantine that has its trace or header, with the reason."""

    account: str
    record_id: str
    quarantine_id: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """Why a gateway's row has no engine's though one is there; either is None if it is not why."""

    far: FarEngine | None
    refused: RefusedEngine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetCount:
    """How many gateways' rows wait with an engine's record too far away, or refused; and the least of their ids with its account, None if
    there is none. Of the first LOOKED_AT records that could be meant each: there may be more."""

    far: int
    first_far: tuple[str, str] | None
    refused: int
    first_refused: tuple[str, str] | None


def unmet_engine(connection: Connection, account: str, record_id: str) -> Unmet | None:
    """Why the gateway's row of this account and id, or another row of its call, has no engine's; None if nothing of one is there."""
    own = sql.SQL(_OWN).format(account=sql.Literal(account), record=sql.Literal(record_id))
    rows = fetch(connection, sql.SQL("SELECT trace, header FROM ({own}) o WHERE {unpaired}").format(own=own, unpaired=_on(_UNPAIRED, "o")))
    keys = sorted({key for row in rows for key in row if key})
    if not keys:
        return None
    of_own = sql.SQL("(y.account, y.record_id) IN (SELECT account, record_id FROM ({own}) own)").format(own=own)
    these = sql.SQL(
        "SELECT DISTINCT account, request_id FROM (SELECT * FROM observation WHERE role = 'engine' "
        "AND (trace = ANY ({keys}) OR header = ANY ({keys})) LIMIT {most}) e"
    ).format(keys=sql.Literal(keys), most=sql.Literal(MOST))
    far = fetch_as(connection, FarEngine, _far(these, of_own))
    spelt = sorted({f"{prefix}{key}" for key in keys for prefix in ("", *ENGINE_PREFIXES)})
    having = sql.SQL("EXISTS (SELECT FROM jsonb_each_text(fields) WHERE value = ANY ({}))").format(sql.Literal(spelt))
    refused = fetch_as(connection, RefusedEngine, _refused(having, of_own))
    if not (far or refused):
        return None
    return Unmet(far=next(iter(far), None), refused=next(iter(refused), None))


def unmet_of_waiting(connection: Connection, refused_sha256: str) -> Unmet | None:
    """The same of a gateway's row that waits in quarantine, by the hash of that row."""
    query = sql.SQL("SELECT account, record_id FROM observation WHERE role = 'gateway' AND refused_sha256 = {}").format(refused_sha256)
    found = (unmet_engine(connection, account, record_id) for account, record_id in fetch(connection, query))
    return next((one for one in found if one), None)


def count_unmet(connection: Connection) -> UnmetCount:
    """How many rows wait like that."""
    waits = _on(_WAITS, "y")
    far, first_far = _counted(connection, _far(sql.SQL(_FIRST_FREE).format(looked_at=sql.Literal(LOOKED_AT)), waits))
    refused, first_refused = _counted(connection, _refused(sql.SQL("true"), waits))
    return UnmetCount(far=far, first_far=first_far, refused=refused, first_refused=first_refused)


def _counted(connection: Connection, found: sql.Composed) -> tuple[int, tuple[str, str] | None]:
    """How many gateways' rows these are, and the least of their ids with its account."""
    query = sql.SQL("SELECT count(*) OVER (), record_id, account FROM ({}) found ORDER BY record_id, account LIMIT 1")
    for count, record_id, account in fetch(connection, query.format(found)):
        return count, (record_id, account)
    return 0, None


def _far(these: sql.Composable, chosen: sql.Composable) -> sql.Composed:
    """The query `_FAR` of these engines' requests and the gateways' rows that are chosen by a condition on `y`."""
    within, most = sql.Literal(WITHIN), sql.Literal(MOST)
    sides = sql.SQL(" UNION ALL ").join(
        sql.SQL(_SIDE).format(key=sql.Identifier(key), side=sql.SQL(side).format(within=within), within=within, most=most)
        for key in ("trace", "header")
        for side in _SIDES
    )
    return sql.SQL(_FAR).format(these=these, sides=sides, unpaired=_on(_UNPAIRED, "y"), chosen=chosen)


def _refused(having: sql.Composable, chosen: sql.Composable) -> sql.Composed:
    """The query `_REFUSED` of the rows in quarantine that fit the first condition and the gateways' rows that fit the second."""
    prefix = sql.Literal(f"^({'|'.join(ENGINE_PREFIXES)})")
    return sql.SQL(_REFUSED).format(
        having=having, looked_at=sql.Literal(LOOKED_AT), prefix=prefix, most=sql.Literal(MOST), unpaired=_on(_UNPAIRED, "y"),
        chosen=chosen,
    )  # fmt: skip


def _on(condition: LiteralString, half: str) -> sql.Composed:
    return sql.SQL(condition).format(half=sql.Identifier(half))
