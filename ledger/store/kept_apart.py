"""Why the halves of a request that belong together are not joined, computed anew by the rules that form requests.

Takes gateways' requests and gives the answers that have an engine's rows beside them, and what both together would say; a pair is told no
more once somebody has corrected, withdrawn or dismissed the gateway's half. Source: specification, section 2; decision record halves.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import sql

from ledger.store.answers import ANSWER, CONTRADICTIONS, ENGINE_SUM, HELD, TOGETHER
from ledger.store.connection import Connection, column_list, driver_cursor, fetch, fetch_as

# That both halves say no tokens is no contradiction: the request waits for them.
_WHY = {
    **CONTRADICTIONS,
    "no_tokens": "j.status BETWEEN 200 AND 299 AND (j.input_tokens IS NULL OR j.output_tokens IS NULL)",
}
# Nobody has decided: no row of the answer was corrected or withdrawn, and one of them waits if it needs tokens.
_UNDECIDED = """
NOT EXISTS (SELECT FROM void v WHERE v.account = g.account AND v.request_id = ANY (g.records) AND v.kind <> 'join')
    AND (NOT g.lacks_tokens OR EXISTS (SELECT FROM observation o JOIN quarantine q ON q.row_sha256 = o.refused_sha256
        WHERE o.role = 'gateway' AND o.account = g.account AND o.record_id = ANY (g.records) AND q.resolution IS NULL))
"""
_APART = """
WITH touched AS ({touched}), held AS ({held}), answer AS ({answer}), engine_sum AS ({engine_sum}), apart AS (
SELECT g.account, g.event_id AS request_id, e.engine_request, {reasons} AS reasons, j.queue_us,
    coalesce(j.inference_us, j.prefill_us + j.decode_us) AS inference_us, j.e2e_us, j.input_tokens, j.cached_input_tokens,
    j.output_tokens::bigint AS output_tokens, e.engine_account, g.records
FROM {together} WHERE e.engine_request IS NOT NULL AND {undecided})
"""
_FIGURES = (
    "account", "request_id", "engine_request", "reasons", "queue_us", "inference_us", "e2e_us", "input_tokens", "cached_input_tokens",
    "output_tokens",
)  # fmt: skip
_NOT_MERGED = "SELECT of_account AS account, of_request AS request_id FROM engine_request WHERE NOT merged AND of_request IS NOT NULL"
_OF_ARRIVED = """
SELECT account, request_id FROM arrived WHERE role = 'gateway'
UNION SELECT of_account, of_request FROM arrived JOIN engine_request USING (account, request_id)
WHERE role = 'engine' AND of_request IS NOT NULL
"""
# The rows of `arrived` that are in a pair.
_OF_PAIR = """
SELECT arrived.record, {figures} FROM apart JOIN arrived ON CASE arrived.role
    WHEN 'gateway' THEN arrived.account = apart.account AND arrived.record_id = ANY (apart.records)
    ELSE arrived.account = apart.engine_account AND arrived.request_id = apart.engine_request END
WHERE reasons <> ARRAY[]::text[]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptApart:
    """An answer (the account and id of its event) and its engine's request, with the figures that they would have together. `reasons` are
    the rules that these break, by their names in `answers.CONTRADICTIONS`, or `no_tokens` if neither half has them."""

    account: str
    request_id: str
    engine_request: str
    reasons: tuple[str, ...]
    queue_us: int | None
    inference_us: int | None
    e2e_us: int | None
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None


def kept_apart(connection: Connection, account: str, request_id: str) -> KeptApart | None:
    """The pair that is not joined of which the row of the gateway's account with this id (its own) is a part; None if there is none."""
    touched = sql.SQL(
        "SELECT account, request_id FROM observation "
        "WHERE role = 'gateway' AND account = {account}::varchar AND record_id = {record}::varchar"
    ).format(account=sql.Literal(account), record=sql.Literal(request_id))
    query = sql.SQL("{apart} SELECT {figures} FROM apart WHERE reasons <> ARRAY[]::text[] AND {record}::varchar = ANY (records)")
    found = fetch_as(
        connection, _kept_apart, query.format(apart=_apart(touched), figures=column_list(_FIGURES), record=sql.Literal(request_id))
    )
    return next(iter(found), None)


def apart_of_waiting(connection: Connection, refused_sha256: str) -> KeptApart | None:
    """The same of a gateway's row that waits in quarantine, by the hash of that row."""
    query = sql.SQL("SELECT account, record_id FROM observation WHERE role = 'gateway' AND refused_sha256 = {}").format(refused_sha256)
    found = (kept_apart(connection, account, record_id) for account, record_id in fetch(connection, query))
    return next((one for one in found if one), None)


def count_apart(connection: Connection) -> tuple[int, str | None]:
    """How many pairs are not joined, and the least of their engines' ids."""
    query = sql.SQL("{} SELECT count(*), min(engine_request) FROM apart WHERE reasons <> ARRAY[]::text[]")
    [(count, first)] = fetch(connection, query.format(_apart(sql.SQL(_NOT_MERGED))))
    return int(count), first


def apart_of_arrived(connection: Connection) -> dict[int, KeptApart]:
    """The pairs in which rows of `arrived` are, by their records; after requests were formed."""
    query = sql.SQL("{} {}").format(_apart(sql.SQL(_OF_ARRIVED)), sql.SQL(_OF_PAIR).format(figures=_of_apart()))
    found: dict[int, KeptApart] = {}
    with driver_cursor(connection) as cursor:
        for record, *figures in cursor.execute(query).fetchall():
            found[record] = _kept_apart(**dict(zip(_FIGURES, figures, strict=True)))
    return found


def _of_apart() -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier("apart", name) for name in _FIGURES)


def _apart(touched: sql.Composable) -> sql.Composed:
    reasons = sql.SQL("array_remove(ARRAY[{}]::text[], NULL)").format(
        sql.SQL(", ").join(sql.SQL(f"CASE WHEN {condition} THEN {{}} END").format(sql.Literal(name)) for name, condition in _WHY.items())
    )
    return sql.SQL(_APART).format(
        touched=touched, held=sql.SQL(HELD), answer=ANSWER, engine_sum=sql.SQL(ENGINE_SUM), reasons=reasons, together=sql.SQL(TOGETHER),
        undecided=sql.SQL(_UNDECIDED),
    )  # fmt: skip


def _kept_apart(*, reasons: list[str], **figures: Any) -> KeptApart:
    return KeptApart(reasons=tuple(reasons), **figures)
