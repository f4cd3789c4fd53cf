"""Which engine's request belongs to which gateway's: by the trace that both have, else by the header that nobody else has.

Takes the rows that a load has just added (the temporary table `arrived`) and all that stand, and writes the pairs that can be told now into
`engine_request`. A pair is kept: a client that sends a header again later cannot undo it. Source: specification, section 2; decision record
halves.
"""

from typing import LiteralString

from psycopg import sql

from ledger.store.connection import Connection, driver_cursor, execute, put_aside

# An engine gets a request within moments of its gateway. A header that a client sends again on another day means another request.
WITHIN = "1 hour"

# Rows that share a key around one time, at most: more than any request has choices. Nobody can tell whose they are where there are more.
MOST = 256

# For each request of `these` the one of the `other` role that shares the key with it, if it is the only one around that time. Rows are
# looked up in the order of the key's index: without statistics of a new table, nothing else may look better to the planner.
_ONLY = """
SELECT account, request_id, min(other_account) AS other_account, min(other_request) AS other_request FROM (
    SELECT DISTINCT x.account, x.request_id, y.account AS other_account, y.request_id AS other_request, y.place > {most} AS crowded
    FROM {these} these JOIN observation x ON x.role = {role} AND x.account = these.account AND x.request_id = these.request_id
    CROSS JOIN LATERAL (
        SELECT account, request_id, row_number() OVER (ORDER BY received_at) AS place FROM observation
        WHERE role = {other} AND {key} = x.{key} AND {agree}
            AND received_at BETWEEN x.received_at - {within}::interval AND x.received_at + {within}::interval
        ORDER BY received_at LIMIT {most} + 1
    ) y
) found GROUP BY account, request_id HAVING count(*) = 1 AND NOT bool_or(crowded)
"""

# Engines' requests that may find their pair now: those just added, and those that the gateways' just added reach.
_FREE = """
SELECT r.account, r.request_id FROM engine_request r JOIN (
    SELECT account, request_id FROM arrived WHERE role = 'engine' AND added
    UNION SELECT other_account, other_request FROM ({engine_of_new}) one
) sought USING (account, request_id) WHERE r.of_request IS NULL
"""
_PAIR = """
UPDATE engine_request r SET of_account = backwards.account, of_request = backwards.request_id
FROM forwards JOIN backwards ON (backwards.account, backwards.request_id) = (forwards.other_account, forwards.other_request)
    AND (backwards.other_account, backwards.other_request) = (forwards.account, forwards.request_id)
WHERE r.account = forwards.account AND r.request_id = forwards.request_id AND NOT EXISTS (
    SELECT FROM engine_request taken WHERE taken.of_account = backwards.account AND taken.of_request = backwards.request_id)
"""


def lock_joins(connection: Connection) -> None:
    """Let no other load pair and form until the transaction ends: two observations that come at once would both miss the other."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.join'))")


def pair_observations(connection: Connection) -> None:
    """Pair what can be paired now. Under the lock of `lock_joins`, after the rows were added."""
    with driver_cursor(connection) as cursor:
        cursor.execute(
            "INSERT INTO engine_request AS r (account, request_id, received_at, merged) "
            "SELECT account, request_id, min(received_at), false FROM arrived WHERE role = 'engine' AND added GROUP BY account, request_id "
            "ON CONFLICT (account, request_id) DO UPDATE SET received_at = least(r.received_at, excluded.received_at)"
        )
        new = "(SELECT DISTINCT account, request_id FROM arrived WHERE role = 'gateway' AND added)"
        reached = "(SELECT DISTINCT other_account AS account, other_request AS request_id FROM forwards)"
        for key in ("trace", "header"):
            put_aside(cursor, "free", sql.SQL(_FREE).format(engine_of_new=_only(key, "gateway", new)))
            put_aside(cursor, "forwards", _only(key, "engine", "free"))
            put_aside(cursor, "backwards", _only(key, "gateway", reached))
            cursor.execute(_PAIR)


def _only(key: str, role: str, these: LiteralString) -> sql.Composed:
    """The query `_ONLY`. An engine that knows no account fits any, one that knows it only its own."""
    other = {"gateway": "engine", "engine": "gateway"}[role]
    engine, gateway = (
        (sql.SQL("observation.account"), sql.SQL("x.account"))
        if other == "engine"
        else (sql.SQL("x.account"), sql.SQL("observation.account"))
    )
    return sql.SQL(_ONLY).format(
        these=sql.SQL(these), role=sql.Literal(role), other=sql.Literal(other), key=sql.Identifier(key), most=sql.Literal(MOST),
        within=sql.Literal(WITHIN), agree=sql.SQL("({engine} = '' OR {engine} = {gateway})").format(engine=engine, gateway=gateway),
    )  # fmt: skip
