"""Which requests an id means that is the id of none: that of one of their rows, their call id, trace or header.

Takes an id and gives requests by their own ids. Source: specification, section 2; decision record halves.
"""

from dataclasses import dataclass

from psycopg import sql

from ledger.store.connection import Connection, fetch_as

# What engines write before the id that they were sent, in their logs and in their answers; the mappings of their formats take it away.
ENGINE_PREFIXES = ("chatcmpl-", "cmpl-")


def spellings(asked_id: str) -> tuple[str, ...]:
    """The ids that may be meant, in the order in which they are looked up: the one that was asked for, then what an engine has put a prefix
    before."""
    return (asked_id, *(asked_id.removeprefix(prefix) for prefix in ENGINE_PREFIXES if asked_id.startswith(prefix)))


# Of a gateway's row `o`: 1 if an event stands for it, 2 if it waits in quarantine. A row that is part of another one's request has neither:
# its event, if it was one, was withdrawn for that.
_STATE = """
CASE WHEN EXISTS (SELECT FROM event e WHERE e.account = o.account AND e.request_id = o.record_id AND NOT EXISTS (SELECT FROM void v
        WHERE v.account = e.account AND v.request_id = e.request_id AND v.revision = e.revision AND v.kind = 'join')) THEN 1
    WHEN EXISTS (SELECT FROM quarantine q WHERE q.row_sha256 = o.refused_sha256 AND q.resolution IS NULL) THEN 2 END
"""

# Rows that have the id are requests themselves (`hit` with a state), or part of what their call came to (`call`, `answer`: what stands
# before what waits, and for an engine first what has its figures), or all that is known (`part` without an answer). Calls are looked up
# once each: a client may send one call id many times.
_FOUND = f"""
WITH hit AS (
    SELECT o.role, o.account, o.record_id, o.request_id, CASE o.role WHEN 'gateway' THEN {_STATE} END AS state,
        array_position(ARRAY[o.record_id, o.request_id, o.trace, o.header], %(id)s::varchar) AS link
    FROM observation o WHERE %(id)s::varchar IN (o.record_id, o.request_id, o.trace, o.header)
), part AS (
    SELECT hit.role, hit.account, CASE hit.role WHEN 'gateway' THEN record_id ELSE hit.request_id END AS request_id, link,
        CASE hit.role WHEN 'gateway' THEN hit.account ELSE r.of_account END AS of_account,
        CASE hit.role WHEN 'gateway' THEN hit.request_id ELSE r.of_request END AS of_request
    FROM hit LEFT JOIN engine_request r ON hit.role = 'engine' AND r.account = hit.account AND r.request_id = hit.request_id
    WHERE state IS NULL
), call AS (
    SELECT role, of_account, of_request, min(link) AS link FROM part WHERE of_request IS NOT NULL GROUP BY role, of_account, of_request
), answer AS (
    SELECT call.*, o.record_id, rank() OVER (PARTITION BY call.role, call.of_account, call.of_request
        ORDER BY state, call.role = 'engine' AND f.joined IS TRUE DESC) AS place
    FROM call JOIN observation o ON o.role = 'gateway' AND o.account = call.of_account AND o.request_id = call.of_request
    CROSS JOIN LATERAL (SELECT {_STATE} AS state) s
    LEFT JOIN formed_request f ON f.account = o.account AND f.request_id = o.record_id
    WHERE state IS NOT NULL
), found AS (
    SELECT account, record_id AS request_id, link FROM hit WHERE state IS NOT NULL
    UNION ALL SELECT of_account, record_id, link FROM answer WHERE place = 1
    UNION ALL SELECT account, request_id, link FROM part
    WHERE of_request IS NULL OR (role, of_account, of_request) NOT IN (SELECT role, of_account, of_request FROM answer)
)
SELECT account, request_id, (ARRAY['record_id', 'request_id', 'trace', 'header'])[min(link)] AS link, count(*) OVER () AS of
FROM found WHERE coalesce(account = %(account)s, true) GROUP BY account, request_id
ORDER BY request_id <> %(id)s::varchar, account, request_id LIMIT %(most)s
"""  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRequest:
    """A request (of an engine that knows no account: ""), and which column of an observation has the id; `of` so many that were found."""

    account: str
    request_id: str
    link: str
    of: int


def requests_by_other_id(connection: Connection, other_id: str, *, account: str | None, most: int) -> list[FoundRequest]:
    """The first `most` requests, of the account or of all, that have a row with this id, call id, trace or header; that whose own
    id it is comes first, then by account and id."""
    return fetch_as(connection, FoundRequest, sql.SQL(_FOUND), {"id": other_id, "account": account, "most": most})
