"""Which engine's request belongs to which gateway's: by the trace that both have, else by the header that nobody else has.

Takes the rows that a load has just added (the temporary table `half`) and all that stand, and writes the pairs that can be told now into
`engine_request`. A pair is kept: a client that sends a header again later cannot undo it. Source: specification, section 2; decision record
halves.
"""

from typing import LiteralString

from psycopg import sql

from ledger.store.connection import Connection, driver_cursor, execute

# An engine gets a request within moments of its gateway. A header that a client sends again on another day means another request.
WITHIN = "1 hour"

# For each row of `x` the request of `other` role that shares the key with it: one, if it is the only one around that time.
_ONLY = """
SELECT account, request_id, min(other_account) AS other_account, min(other_request) AS other_request FROM (
    SELECT DISTINCT x.account, x.request_id, y.account AS other_account, y.request_id AS other_request, y.alone
    FROM {these} these JOIN observation x ON x.role = {role} AND x.account = these.account AND x.request_id = these.request_id
    CROSS JOIN LATERAL (
        SELECT first.account, first.request_id, NOT EXISTS (
            SELECT FROM observation second WHERE second.role = {other} AND second.{key} = x.{key} AND {near_second} AND {agree_second}
            AND (second.account, second.request_id) <> (first.account, first.request_id)) AS alone
        FROM (SELECT y.account, y.request_id FROM observation y
            WHERE y.role = {other} AND y.{key} = x.{key} AND {near_y} AND {agree_y} LIMIT 1) first
    ) y
) found GROUP BY account, request_id HAVING count(*) = 1 AND bool_and(alone)
"""

_PAIR = """
WITH sought AS MATERIALIZED (
    SELECT DISTINCT account, request_id FROM half WHERE role = 'engine' AND added
    UNION SELECT other_account, other_request FROM ({engine_of_new}) one
), free AS MATERIALIZED (
    SELECT sought.* FROM sought JOIN engine_request r USING (account, request_id) WHERE r.of_request IS NULL
), forwards AS MATERIALIZED ({gateway_of_free}),
reached AS MATERIALIZED (SELECT DISTINCT other_account AS account, other_request AS request_id FROM forwards),
backwards AS MATERIALIZED ({engine_of_reached})
UPDATE engine_request r SET of_account = backwards.account, of_request = backwards.request_id
FROM forwards JOIN backwards ON (backwards.account, backwards.request_id) = (forwards.other_account, forwards.other_request)
    AND (backwards.other_account, backwards.other_request) = (forwards.account, forwards.request_id)
WHERE r.account = forwards.account AND r.request_id = forwards.request_id AND NOT EXISTS (
    SELECT FROM engine_request taken WHERE taken.of_account = backwards.account AND taken.of_request = backwards.request_id)
"""


def lock_joins(connection: Connection) -> None:
    """Let no other load pair and form until the transaction ends: two halves that come at once would both miss the other."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.join'))")


def pair_halves(connection: Connection) -> None:
    """Pair what can be paired now. Under the lock of `lock_joins`, after the rows were added."""
    with driver_cursor(connection) as cursor:
        cursor.execute(
            "INSERT INTO engine_request AS r (account, request_id, received_at, merged) "
            "SELECT account, request_id, min(received_at), false FROM half WHERE role = 'engine' AND added GROUP BY account, request_id "
            "ON CONFLICT (account, request_id) DO UPDATE SET received_at = least(r.received_at, excluded.received_at)"
        )
        for key in ("trace", "header"):
            cursor.execute(
                sql.SQL(_PAIR).format(
                    engine_of_new=_only(key, "gateway", "(SELECT DISTINCT account, request_id FROM half WHERE role = 'gateway' AND added)"),
                    gateway_of_free=_only(key, "engine", "free"),
                    engine_of_reached=_only(key, "gateway", "reached"),
                )
            )


def _only(key: str, role: str, these: LiteralString) -> sql.Composed:
    other = {"gateway": "engine", "engine": "gateway"}[role]

    def near(name: str) -> sql.Composed:
        return sql.SQL("{} BETWEEN x.received_at - {within}::interval AND x.received_at + {within}::interval").format(
            sql.Identifier(name, "received_at"), within=sql.Literal(WITHIN)
        )

    def agree(name: str) -> sql.Composed:
        engine, gateway = (sql.Identifier(one, "account") for one in ((name, "x") if other == "engine" else ("x", name)))
        return sql.SQL("({engine} = '' OR {engine} = {gateway})").format(engine=engine, gateway=gateway)

    return sql.SQL(_ONLY).format(
        these=sql.SQL(these), role=sql.Literal(role), other=sql.Literal(other), key=sql.Identifier(key),
        near_y=near("y"), near_second=near("second"), agree_y=agree("y"), agree_second=agree("second"),
    )  # fmt: skip
