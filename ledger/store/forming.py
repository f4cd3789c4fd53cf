"""Events of the requests whose observations a load has touched: formed anew of all their rows, and put beside what stands.

Takes the temporary table `arrived` and the pairs in `engine_request`; adds events, or revisions with the reason `joined`. What is formed
depends on the set of the observations and not on their order. Source: specification, section 2; decision record halves.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import sql

from ledger.store.cells import change_many
from ledger.store.comparison import differing, equal
from ledger.store.connection import Connection, column_list, driver_cursor, fetch, put_aside
from ledger.store.events import COMPARED_FIELDS, EVENT_FIELDS, IdentityTaken
from ledger.store.limits import CLOCK_NOISE_US, LARGEST_TOKENS, LONGEST_US
from ledger.store.withdrawals import lock_all_requests

REASON = "joined"
NEXT_TRY = "60 seconds"  # after the end of a failed one, at most

# What was formed of the touched requests until now. `joined`: it has the figures of their engines. `decided`: somebody has corrected or
# withdrawn it since, so it is not formed again.
_HELD = """
SELECT d.account, d.request_id, d.of_request, d.joined,
    EXISTS (SELECT FROM event e WHERE e.account = d.account AND e.request_id = d.request_id AND e.revision > d.revision)
    OR EXISTS (SELECT FROM void v WHERE v.account = d.account AND v.request_id = d.request_id AND v.revision = d.revision
        AND v.kind <> 'join') AS decided
FROM touched JOIN formed_request d ON d.account = touched.account AND d.of_request = touched.request_id
"""

# What a gateway's rows of one request come to: answers, each with the failed tries before it. An answer that was logged twice (same start,
# same tokens) is one; others of the same request_id, which a client may send again, are requests of their own. A client's own error is
# no try. `request_id` is the id of the row that stands for the answer, `of_request` what the rows have in common.
_GATEWAY = """
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
"""

# What an engine's rows of one request come to: the prompt once, all that was generated, and the times of the slowest.
_ENGINE = """
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

# Of which an engine is asked first, and its gateway where it says nothing; of all others the gateway. Of cached tokens the greater counts.
_OF_ENGINE = ("queue_us", "prefill_us", "decode_us", "inference_us", "input_tokens", "output_tokens", "node")
_CACHED = "cached_input_tokens"

# The event's columns of a gateway's rows alone (g), and together with an engine's (e): receipt, status and header are the gateway's, the
# times inside inference and the tokens the engine's, unless somebody has repaired the gateway's row: what was said there stands.
_ALONE = {
    **{name: f"g.{name}" for name in EVENT_FIELDS},
    "request_id": "g.event_id",
    "received_at": "g.first_at",
    "ttft_us": "g.whole_ttft_us",
    "e2e_us": "g.whole_e2e_us",
}
_JOINED = {
    **_ALONE,
    **{name: f"CASE WHEN g.repaired THEN coalesce(g.{name}, e.{name}) ELSE coalesce(e.{name}, g.{name}) END" for name in _OF_ENGINE},
    _CACHED: f"CASE WHEN g.repaired THEN g.{_CACHED} ELSE greatest(e.{_CACHED}, g.{_CACHED}) END",
    "ttft_us": "coalesce(g.whole_ttft_us, e.ttft_us)",
    "e2e_us": "coalesce(g.whole_e2e_us, e.e2e_us)",
    "cold_start": "coalesce(g.cold_start, e.cold_start)",
    "clock_clamped": "g.clock_clamped OR e.clock_clamped",
}
# Together they must keep the rules of an event; observations that do not stay apart.
_AGREES = (
    f"j.output_tokens <= {LARGEST_TOKENS} AND j.cached_input_tokens <= coalesce(j.input_tokens, 0) AND NOT coalesce("
    f"j.queue_us + coalesce(j.inference_us, j.prefill_us + j.decode_us) > j.e2e_us + {CLOCK_NOISE_US}, false)"
)
_FORM = f"""
SELECT {", ".join(f"CASE WHEN joins THEN j.{name} ELSE {alone} END AS {name}" for name, alone in _ALONE.items())},
    g.request_id AS of_request, g.records, g.has_figures, g.stands_otherwise, joins, e.engine_account, e.engine_request
FROM answer g
LEFT JOIN engine_sum e ON e.of_account = g.account AND e.of_request = g.request_id AND g.place = 1
CROSS JOIN LATERAL (SELECT {", ".join(f"{value} AS {name}" for name, value in _JOINED.items())}) j
CROSS JOIN LATERAL (SELECT e.engine_request IS NOT NULL AND coalesce({_AGREES}, true) AS joins) together
"""  # noqa: S608

_TOUCHED = """
SELECT account, request_id FROM arrived WHERE role = 'gateway' AND added
UNION SELECT of_account, of_request FROM arrived JOIN engine_request USING (account, request_id)
WHERE role = 'engine' AND added AND of_request IS NOT NULL
"""

# What stands of each formed event. `foreign_to`: it came another way, or somebody decided otherwise, and differs in these columns.
_STANDING = """
ALTER TABLE formed ADD latest smallint, ADD voided_as text, ADD complete boolean, ADD decided boolean, ADD same boolean, ADD known boolean,
    ADD foreign_to text, ADD placed boolean NOT NULL DEFAULT false;
UPDATE formed f SET latest = s.latest, voided_as = s.kind, decided = s.decided, same = s.same, known = s.known,
    foreign_to = CASE WHEN s.latest IS NOT NULL AND s.formed IS NULL THEN s.differing END,
    complete = f.status NOT BETWEEN 200 AND 299 OR (f.input_tokens IS NOT NULL AND f.output_tokens IS NOT NULL)
FROM (
    SELECT f.account, f.request_id, l.revision AS latest, v.kind, d.revision AS formed,
        l.revision IS NOT NULL AND coalesce(held.decided, true) OR f.stands_otherwise AS decided,
        {same_as_latest} AS same,
        EXISTS (SELECT FROM event e WHERE e.account = f.account AND e.request_id = f.request_id AND {same}) AS known,
        concat_ws(', ', {differing}) AS differing
    FROM formed f
    LEFT JOIN LATERAL (SELECT * FROM event e WHERE e.account = f.account AND e.request_id = f.request_id ORDER BY revision DESC LIMIT 1) l
        ON true
    LEFT JOIN held ON held.account = f.account AND held.request_id = f.request_id AND held.of_request = f.of_request
    LEFT JOIN formed_request d ON d.account = f.account AND d.request_id = f.request_id
    LEFT JOIN void v ON v.account = f.account AND v.request_id = f.request_id AND v.revision = l.revision
) s WHERE s.account = f.account AND s.request_id = f.request_id
"""
# Rows of a gateway that stand for another answer now are an event no more.
_GONE = """
SELECT d.account, d.request_id, d.revision, e.received_at FROM touched
JOIN formed_request d ON d.account = touched.account AND d.of_request = touched.request_id
JOIN event e ON e.account = d.account AND e.request_id = d.request_id AND e.revision = d.revision
WHERE NOT EXISTS (SELECT FROM formed f WHERE f.account = d.account AND f.request_id = d.request_id)
    AND NOT EXISTS (SELECT FROM void v WHERE v.account = d.account AND v.request_id = d.request_id AND v.revision = d.revision)
    AND NOT EXISTS (SELECT FROM event l WHERE l.account = d.account AND l.request_id = d.request_id AND l.revision > d.revision)
"""
_WITHDRAW = """
CREATE TEMPORARY TABLE withdrawn ON COMMIT DROP AS
SELECT f.account, f.request_id, f.latest AS revision, e.received_at FROM formed f
JOIN event e ON e.account = f.account AND e.request_id = f.request_id AND e.revision = f.latest
WHERE complete AND NOT decided AND NOT same AND voided_as IS NULL
UNION ALL {gone};
INSERT INTO void (account, request_id, revision, kind, reason, author, voided_at)
SELECT account, request_id, revision, 'join', {reason}, {author}, {at} FROM withdrawn ORDER BY account, request_id;
"""
_PLACE = """
WITH added AS (
    INSERT INTO event ({fields}, batch_id, revision) SELECT {fields}, {batch_id}, coalesce(latest, 0) + 1 FROM formed
    WHERE complete AND NOT decided AND (latest IS NULL OR NOT same OR voided_as IS NOT NULL)
    ORDER BY account, request_id ON CONFLICT DO NOTHING RETURNING account, request_id
) UPDATE formed SET placed = true FROM added WHERE added.account = formed.account AND added.request_id = formed.request_id
"""
_KEEP = """
INSERT INTO formed_request (account, request_id, of_request, revision, joined)
SELECT account, request_id, of_request, coalesce(latest, 0) + placed::int, joins FROM formed WHERE complete AND NOT decided
ORDER BY account, request_id
ON CONFLICT (account, request_id) DO UPDATE SET revision = excluded.revision, joined = excluded.joined
    WHERE formed_request.revision <> excluded.revision OR formed_request.joined <> excluded.joined;
UPDATE engine_request r SET merged = joins AND (complete OR decided) FROM formed f
WHERE r.account = f.engine_account AND r.request_id = f.engine_request AND merged <> (joins AND (complete OR decided));
"""
_LOST = "SELECT count(*) FROM formed WHERE complete AND NOT decided AND latest IS NULL AND NOT placed"
_JOINED_NOW = "SELECT count(*) FROM formed WHERE joins AND NOT has_figures AND complete AND NOT decided"
_RECORDS = "SELECT account, request_id, placed, unnest(records) AS record_id FROM formed"
_WAITED = """
SELECT o.refused_sha256 FROM formed_record r
JOIN observation o ON o.role = 'gateway' AND o.account = r.account AND o.record_id = r.record_id
WHERE r.placed AND o.refused_sha256 IS NOT NULL
"""
_RESOLVE = """
UPDATE quarantine q SET resolution = 'joined', resolution_reason = {reason}, resolved_by = {author}, resolved_at = {at}
FROM waited WHERE q.row_sha256 = waited.refused_sha256 AND q.resolution IS NULL
"""
_CHANGED = """
SELECT account, received_at, -1 FROM withdrawn UNION ALL SELECT account, received_at, 1 FROM formed WHERE placed
"""


def form_requests(connection: Connection, batch_id: int, *, author: str, at: datetime) -> int:
    """Form the events of all requests that the added rows touch; gives how many of them have the figures of their engines now and had
    none before.

    Under the lock of `lock_joins`, after pairing; no request is corrected or withdrawn from here until the transaction ends. Raises
    IdentityTaken if another load is adding one of them.
    """
    lock_all_requests(connection)
    values = {"reason": sql.Literal(REASON), "author": sql.Literal(author), "at": sql.Literal(at)}
    standing = {
        "same": equal(COMPARED_FIELDS, "e", "f"),
        "same_as_latest": equal(COMPARED_FIELDS, "l", "f"),
        "differing": differing(COMPARED_FIELDS, "l", "f"),
    }
    with driver_cursor(connection) as cursor:
        put_aside(cursor, "touched", _TOUCHED)
        put_aside(cursor, "held", _HELD)
        put_aside(cursor, "answer", sql.SQL(_GATEWAY).format(next_try=sql.Literal(NEXT_TRY), longest=sql.Literal(LONGEST_US)))
        put_aside(cursor, "engine_sum", _ENGINE)
        put_aside(cursor, "formed", _FORM)
        cursor.execute(sql.SQL(_STANDING).format(**standing))
        cursor.execute(sql.SQL(_WITHDRAW).format(gone=sql.SQL(_GONE), **values))
        cursor.execute(sql.SQL(_PLACE).format(fields=column_list(EVENT_FIELDS), batch_id=sql.Literal(batch_id)))
        [(lost,)] = cursor.execute(_LOST).fetchall()
        if lost:  # another load adds the same events at this moment, another way
            raise IdentityTaken
        [(joined,)] = cursor.execute(_JOINED_NOW).fetchall()
        cursor.execute(_KEEP)
        put_aside(cursor, "formed_record", _RECORDS)
        put_aside(cursor, "waited", _WAITED)
        cursor.execute(sql.SQL(_RESOLVE).format(**values))
    return int(joined)


def changed_events(connection: Connection) -> list[tuple[str, datetime, int]]:
    """What was formed now, and withdrawn for it (-1): account, instant and number of each event, as `cells.change_events` takes them."""
    return fetch(connection, sql.SQL(_CHANGED))


def mark_formed(connection: Connection) -> None:
    """Make the days of what was formed stale: the last act of the transaction."""
    if fetch(connection, "SELECT EXISTS (SELECT FROM withdrawn) OR EXISTS (SELECT FROM formed WHERE placed)") == [(True,)]:
        change_many(connection, sql.SQL(_CHANGED))


def is_joined(connection: Connection, account: str, request_id: str) -> bool | None:
    """Whether the request has the figures of its engine; None if it was formed of no observations."""
    query = "SELECT joined FROM formed_request WHERE account = %(account)s AND request_id = %(request_id)s"
    rows = fetch(connection, query, {"account": account, "request_id": request_id})
    return rows[0][0] if rows else None


def taken_columns(role: str, rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns that an event takes from one of these rows of a role, if those of the other role say `others` (none: it is not joined).

    They are those of which the role is asked first, and those of which one of the others says nothing; none that no row says anything of.
    """

    def is_taken(name: str) -> bool:
        if all(row[name] is None for row in rows):
            return False
        if not others or any(other[name] is None for other in others):
            return True
        if name == _CACHED:
            return bool(max(row[name] or 0 for row in rows) > max(other[name] for other in others))
        return (name in _OF_ENGINE) == (role == "engine")

    return tuple(filter(is_taken, COMPARED_FIELDS))
