"""Why the halves of a request that belong together are not joined, computed anew by the rules that form requests.

Takes a gateway's request and gives the answer that has an engine's rows beside it, and what both together would say. Source: specification,
section 2; decision record halves.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import sql

from ledger.store.answers import ANSWER, CONTRADICTIONS, ENGINE_SUM, HELD, TOGETHER
from ledger.store.connection import Connection, fetch, fetch_as

# That both halves say no tokens is no contradiction: the request waits for them.
_WHY = {
    **CONTRADICTIONS,
    "no_tokens": "j.status BETWEEN 200 AND 299 AND (j.input_tokens IS NULL OR j.output_tokens IS NULL)",
}
_APART = """
WITH touched AS (SELECT {account}::varchar AS account, {request_id}::varchar AS request_id),
    held AS ({held}), answer AS ({answer}), engine_sum AS ({engine_sum})
SELECT g.account, g.event_id AS request_id, e.engine_request, {reasons} AS reasons, j.queue_us,
    coalesce(j.inference_us, j.prefill_us + j.decode_us) AS inference_us, j.e2e_us, j.input_tokens, j.cached_input_tokens,
    j.output_tokens::bigint AS output_tokens
FROM {together} WHERE e.engine_request IS NOT NULL
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
    """Of the rows that a gateway's account has under this `request_id` (not the event's own): the pair that is not joined, or None."""
    reasons = sql.SQL("array_remove(ARRAY[{}], NULL)").format(
        sql.SQL(", ").join(sql.SQL(f"CASE WHEN {condition} THEN {{}} END").format(name) for name, condition in _WHY.items())
    )
    query = sql.SQL(_APART).format(
        account=account, request_id=request_id, held=sql.SQL(HELD), answer=ANSWER, engine_sum=sql.SQL(ENGINE_SUM), reasons=reasons,
        together=sql.SQL(TOGETHER),
    )  # fmt: skip
    found = fetch_as(connection, _kept_apart, query)
    return next((one for one in found if one.reasons), None)


def apart_of_waiting(connection: Connection, refused_sha256: str) -> KeptApart | None:
    """The same of a gateway's row that waits in quarantine, by the hash of that row."""
    query = sql.SQL("SELECT account, request_id FROM observation WHERE role = 'gateway' AND refused_sha256 = {}").format(refused_sha256)
    found = (kept_apart(connection, account, request_id) for account, request_id in fetch(connection, query))
    return next((one for one in found if one), None)


def _kept_apart(*, reasons: list[str], **figures: Any) -> KeptApart:
    return KeptApart(reasons=tuple(reasons), **figures)
