"""Events of the requests whose observations a load has touched: formed anew of all their rows, and put beside what stands.

Takes the temporary table `arrived` and the pairs in `engine_request`; adds events, or revisions with the reason `joined`. What is formed
depends on the set of the observations and not on their order. Source: specification, section 2; decision record halves.
"""

from datetime import datetime

from psycopg import sql

from ledger.store.answers import ANSWER, ENGINE_SUM, FORMED, HELD
from ledger.store.cells import change_many
from ledger.store.comparison import differing, equal
from ledger.store.connection import Connection, column_list, driver_cursor, fetch, put_aside
from ledger.store.events import COMPARED_FIELDS, EVENT_FIELDS, IdentityTaken
from ledger.store.withdrawals import lock_all_requests

REASON = "joined"

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
        put_aside(cursor, "held", HELD)
        put_aside(cursor, "answer", ANSWER)
        put_aside(cursor, "engine_sum", ENGINE_SUM)
        put_aside(cursor, "formed", FORMED)
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
