"""What the rows of a request come to, as queries: the answers of its gateway, the sum of its engine's, and both together.

Takes the relations that the queries name: `touched` has the requests that are meant, account and request_id, the others are what the query
before it gives (`HELD`, `ANSWER`, `ENGINE_SUM`, `TOGETHER`). What is done with what they give is in `forming`, which writes events, and in
`kept_apart`, which tells why two halves are not joined. Source: specification, section 2; decision record halves.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, auto
from typing import Any, assert_never

from psycopg import sql

from ledger.store.events import COMPARED_FIELDS, EVENT_FIELDS
from ledger.store.limits import CLOCK_NOISE_US, LARGEST_TOKENS, LONGEST_US

NEXT_TRY = "60 seconds"  # after the end of a failed one, at most

# What was formed of the touched requests until now. `joined`: it has the figures of their engines. `decided`: somebody has corrected or
# withdrawn it since, so it is not formed again.
HELD = """
SELECT d.account, d.request_id, d.of_request, d.joined,
    EXISTS (SELECT FROM event e WHERE e.account = d.account AND e.request_id = d.request_id AND e.revision > d.revision)
    OR EXISTS (SELECT FROM void v WHERE v.account = d.account AND v.request_id = d.request_id AND v.revision = d.revision
        AND v.kind <> 'join') AS decided
FROM touched JOIN formed_request d ON d.account = touched.account AND d.of_request = touched.request_id
"""

# What a gateway's rows of one request come to: answers, each with the failed tries before it. An answer that was logged twice (same start,
# same tokens) is one; others of the same request_id, which a client may send again, are requests of their own. A client's own error is
# no try. `request_id` is the id of the row that stands for the answer, `of_request` what the rows have in common.
ANSWER = sql.SQL("""
WITH tries AS (
    SELECT o.*, held.joined, held.decided, o.status BETWEEN 200 AND 299 AS answered,
        o.status BETWEEN 400 AND 499 AND o.status NOT IN (408, 409, 429) AS final,
        o.received_at + coalesce(o.e2e_us, 0) * interval '1 microsecond' AS ended_at
    FROM touched JOIN observation o ON o.role = 'gateway' AND o.account = touched.account AND o.request_id = touched.request_id
    LEFT JOIN held ON held.account = o.account AND held.request_id = o.record_id AND held.of_request = o.request_id
), chained AS (
    SELECT *, max(ended_at) OVER (PARTITION BY account, request_id, final ORDER BY received_at, record_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before FROM tries
), runs AS (
    SELECT *, CASE WHEN answered THEN min(record_id) OVER (
            PARTITION BY account, request_id, answered, received_at, input_tokens, output_tokens) END AS answer,
        count(*) FILTER (WHERE ended_before IS NULL OR received_at > ended_before + {next_try}::interval)
        OVER (PARTITION BY account, request_id, final ORDER BY received_at, record_id) AS run FROM chained
), grouped AS (
    SELECT *, CASE WHEN final THEN record_id ELSE coalesce(answer, first_value(answer) OVER run_by_answer,
        min(record_id) OVER (PARTITION BY account, request_id, final, run)) END AS event_id
    FROM runs WINDOW run_by_answer AS (PARTITION BY account, request_id, final, run ORDER BY answered DESC, received_at, record_id)
), gateway AS (
    SELECT DISTINCT ON (account, event_id) *,
        min(received_at) OVER (PARTITION BY account, event_id) AS first_at,
        array_agg(record_id) OVER (PARTITION BY account, event_id) AS records,
        answered AND (input_tokens IS NULL OR output_tokens IS NULL) AS lacks_tokens,
        coalesce(bool_or(joined) OVER (PARTITION BY account, event_id), false) AS has_figures,
        coalesce(bool_or(decided) OVER (PARTITION BY account, event_id), false) AS has_decided,
        coalesce(bool_or(decided AND record_id <> event_id) OVER (PARTITION BY account, event_id), false) AS stands_otherwise
    FROM grouped ORDER BY account, event_id, answered DESC, ended_at DESC, record_id
)
-- from the first try on; the least of nothing and a number would be the number
SELECT *, CASE WHEN e2e_us IS NOT NULL THEN least(e2e_us + since_first_us, {longest}) END AS whole_e2e_us,
    CASE WHEN ttft_us IS NOT NULL THEN least(ttft_us + since_first_us, {longest}) END AS whole_ttft_us,
    -- The engines' figures are for the first of these: an answer that needs them before others. Of two that do, the one that has them
    -- keeps them, and so does one that somebody has decided about, or they would be billed twice.
    row_number() OVER (PARTITION BY account, request_id ORDER BY answered DESC, has_figures AND has_decided DESC, lacks_tokens DESC,
        lacks_tokens AND has_figures DESC, final, first_at, event_id) AS place
FROM gateway CROSS JOIN LATERAL (SELECT (extract(epoch FROM received_at - first_at) * 1000000)::bigint AS since_first_us) shift
""").format(next_try=sql.Literal(NEXT_TRY), longest=sql.Literal(LONGEST_US))

# What an engine's rows of one request come to: the prompt once, all that was generated, and the times of the slowest.
ENGINE_SUM = """
SELECT DISTINCT ON (r.of_account, r.of_request) r.of_account, r.of_request, r.account AS engine_account, r.request_id AS engine_request,
    o.queue_us, o.prefill_us, o.decode_us, o.inference_us, o.ttft_us, o.e2e_us, o.clock_clamped, o.cold_start, o.node,
    max(o.input_tokens) OVER request AS input_tokens, max(o.cached_input_tokens) OVER request AS cached_input_tokens,
    sum(o.output_tokens) OVER request AS output_tokens
FROM touched JOIN engine_request r ON r.of_account = touched.account AND r.of_request = touched.request_id
JOIN observation o ON o.role = 'engine' AND o.account = r.account AND o.request_id = r.request_id
WINDOW request AS (PARTITION BY r.of_account, r.of_request)
ORDER BY r.of_account, r.of_request,
    coalesce(o.e2e_us, o.queue_us + coalesce(o.inference_us, o.prefill_us + o.decode_us)) DESC NULLS LAST, o.record_id
"""


class Giver(StrEnum):
    """Whose value of a column the event of a joined request takes. That half is asked first, and the other where it says nothing, if it is
    asked at all; what somebody has repaired of the gateway's row goes before what its engine says."""

    GATEWAY_ALONE = auto()
    GATEWAY_FIRST = auto()
    ENGINE_FIRST = auto()
    GREATER = auto()
    EITHER = auto()


# Receipt, status and header evidence are the gateway's, as are the times until the client has something; the times inside inference and
# the tokens are the engine's.
_GIVERS = {
    **dict.fromkeys(EVENT_FIELDS, Giver.GATEWAY_ALONE),
    **dict.fromkeys(("ttft_us", "e2e_us", "cold_start"), Giver.GATEWAY_FIRST),
    **dict.fromkeys(("queue_us", "prefill_us", "decode_us", "inference_us", "input_tokens", "output_tokens", "node"), Giver.ENGINE_FIRST),
    "cached_input_tokens": Giver.GREATER,
    "clock_clamped": Giver.EITHER,
}

# The event's columns of a gateway's rows alone (g), and together with an engine's (e).
_ALONE = {
    **{name: f"g.{name}" for name in EVENT_FIELDS},
    "request_id": "g.event_id",
    "received_at": "g.first_at",
    "ttft_us": "g.whole_ttft_us",
    "e2e_us": "g.whole_e2e_us",
}


def _joined(name: str) -> str:
    alone = _ALONE[name]
    match _GIVERS[name]:
        case Giver.GATEWAY_ALONE:
            return alone
        case Giver.GATEWAY_FIRST:
            return f"coalesce({alone}, e.{name})"
        case Giver.ENGINE_FIRST:
            return f"CASE WHEN g.repaired THEN coalesce({alone}, e.{name}) ELSE coalesce(e.{name}, {alone}) END"
        case Giver.GREATER:
            return f"CASE WHEN g.repaired THEN {alone} ELSE greatest(e.{name}, {alone}) END"
        case Giver.EITHER:
            return f"{alone} OR e.{name}"
        case giver:
            assert_never(giver)


# In what both halves together (j) would break a rule of an event; observations that do so stay apart.
CONTRADICTIONS = {
    "times": f"j.queue_us + coalesce(j.inference_us, j.prefill_us + j.decode_us) > j.e2e_us + {CLOCK_NOISE_US}",
    "cached_input_tokens": "j.cached_input_tokens > coalesce(j.input_tokens, 0)",
    "output_tokens": f"j.output_tokens > {LARGEST_TOKENS}",
}
_CONTRADICT = " OR ".join(f"coalesce({condition}, false)" for condition in CONTRADICTIONS.values())

# Each answer (g) beside what its engine says (e, null if there is none), what both would say (j), and whether that is what counts.
TOGETHER = f"""
answer g
LEFT JOIN engine_sum e ON e.of_account = g.account AND e.of_request = g.request_id AND g.place = 1
CROSS JOIN LATERAL (SELECT {", ".join(f"{_joined(name)} AS {name}" for name in EVENT_FIELDS)}) j
CROSS JOIN LATERAL (SELECT e.engine_request IS NOT NULL AND NOT ({_CONTRADICT}) AS joins) together
"""
FORMED = f"""
SELECT {", ".join(f"CASE WHEN joins THEN j.{name} ELSE {alone} END AS {name}" for name, alone in _ALONE.items())},
    g.request_id AS of_request, g.records, g.has_figures, g.stands_otherwise, joins, e.engine_account, e.engine_request
FROM {TOGETHER}
"""  # noqa: S608


def taken_columns(role: str, rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns that an event takes from one of these rows of a role, none of them repaired, if those of the other role say `others`
    (none: it is not joined).

    They are those of which the role is asked first, and those of which one of the others says nothing; none that no row says anything of.
    """

    def is_taken(name: str) -> bool:
        if all(row[name] is None for row in rows):
            return False
        giver = _GIVERS[name]
        if giver is not Giver.GATEWAY_ALONE and (not others or any(other[name] is None for other in others)):
            return True
        match giver:
            case Giver.GATEWAY_ALONE | Giver.GATEWAY_FIRST:
                return role == "gateway"
            case Giver.ENGINE_FIRST:
                return role == "engine"
            case Giver.GREATER:
                return bool(max(row[name] or 0 for row in rows) > max(other[name] for other in others))
            case Giver.EITHER:
                return True
            case _:
                assert_never(giver)

    return tuple(filter(is_taken, COMPARED_FIELDS))
