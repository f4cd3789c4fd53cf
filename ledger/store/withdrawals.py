"""Many requests withdrawn at once, in PostgreSQL: chosen by what they are or by their ids, looked at, withdrawn in a few statements.

The chosen ones stand in the temporary table `chosen` until the transaction ends: the latest revision of each, and whether it was withdrawn
before. Source: specification, section 2, "Corrections".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import LiteralString

from psycopg import sql

from ledger.store.cells import change_many
from ledger.store.connection import Connection, driver_cursor, execute, fetch, fetch_as
from ledger.store.other_ids import ENGINE_PREFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Which requests are meant, by what stands of them now: those that every part fits. Instants are [start, end); `source` is the name of
    the file that they were loaded from."""

    account: str | None = None
    model: str | None = None
    node: str | None = None
    status: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    source: str | None = None

    @property
    def names_requests(self) -> bool:
        """Whether it is less than every request."""
        return any(getattr(self, name) is not None for name in self.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """Chosen requests of an account and a model on a day in UTC that stand, and their tokens."""

    account: str
    model: str
    day: date
    requests: int
    input_tokens: int
    output_tokens: int


_UNKNOWN = sql.SQL(
    "NOT EXISTS (SELECT FROM chosen WHERE chosen.request_id = given.request_id "
    "AND (given.account IS NULL OR chosen.account = given.account))"
)
# As for one request: an id under which something else is known, a row of a request or a refused one, means that and nothing else.
_WITHOUT_PREFIX = sql.SQL(
    "UPDATE given SET request_id = regexp_replace(request_id, {prefix}, '') WHERE request_id ~ {prefix} AND {unknown} "
    "AND NOT EXISTS (SELECT FROM observation o WHERE given.request_id IN (o.record_id, o.request_id, o.trace, o.header) "
    "AND (given.account IS NULL OR o.account IN (given.account, ''))) "
    "AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.request_id = given.request_id) "
    "AND NOT EXISTS (SELECT FROM resubmission WHERE resubmission.request_id = given.request_id)"
)


def lock_all_requests(connection: Connection) -> None:
    """Let no correction of any request run until the transaction ends; waits for those that do. Taken before rows are locked that
    corrections lock: refused rows and events."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.corrections'))")


_CHOSEN: LiteralString = (
    "CREATE TEMPORARY TABLE chosen (account varchar, request_id varchar, revision smallint, received_at timestamptz, model varchar, "
    "input_tokens bigint, output_tokens bigint, withdrawn boolean) ON COMMIT DROP"
)
_COLUMNS = sql.SQL(
    "event.account, event.request_id, event.revision, received_at, model, coalesce(input_tokens, 0), coalesce(output_tokens, 0), "
    "void.revision IS NOT NULL"
)
_WITH_VOIDS = sql.SQL(
    "event LEFT JOIN void ON (void.account, void.request_id, void.revision) = (event.account, event.request_id, event.revision)"
)


def choose_by_filter(connection: Connection, wanted: RequestFilter) -> bool:
    """Choose the requests; False if the filter names a file that was never loaded."""
    execute(connection, _CHOSEN)
    batches = (
        [] if wanted.source is None else fetch(connection, sql.SQL("SELECT batch_id FROM batch WHERE source = {}").format(wanted.source))
    )
    loaded = sql.Literal([batch_id for (batch_id,) in batches])
    parts = {
        "event.account = {}": wanted.account,
        "model = {}": wanted.model,
        "node = {}": wanted.node,
        "status = {}": wanted.status,
        "received_at >= {}": wanted.start,
        "received_at < {}": wanted.end,
    }
    given = [sql.SQL(condition).format(value) for condition, value in parts.items() if value is not None]
    if wanted.source is not None:
        # A request that was corrected since came from the file all the same.
        given.append(
            sql.SQL(
                "(event.batch_id = ANY ({loaded}) OR (event.revision > 1 AND EXISTS (SELECT FROM event first "
                "WHERE first.account = event.account AND first.request_id = event.request_id AND first.batch_id = ANY ({loaded}))))"
            ).format(loaded=loaded)
        )
    execute(
        connection,
        sql.SQL(
            "INSERT INTO chosen SELECT {columns} FROM {events} WHERE {conditions} "
            # Only a withdrawn revision can have a later one.
            "AND (void.revision IS NULL OR NOT EXISTS (SELECT FROM event later WHERE later.account = event.account "
            "AND later.request_id = event.request_id AND later.revision > event.revision))"
        ).format(columns=_COLUMNS, events=_WITH_VOIDS, conditions=sql.SQL(" AND ").join(given)),
    )
    execute(connection, "ANALYZE chosen")
    return wanted.source is None or batches != []


def choose_by_ids(connection: Connection, ids: Iterable[tuple[str | None, str]]) -> None:
    """Choose the requests of these ids: account, if it is known, and request id, with or without the prefix of an engine. They stand in
    the temporary table `given` as well, as they were `asked` for and as what they are looked up by."""
    execute(connection, _CHOSEN)
    execute(connection, "CREATE TEMPORARY TABLE given (account varchar, asked varchar, request_id varchar) ON COMMIT DROP")
    with driver_cursor(connection) as cursor, cursor.copy("COPY given FROM STDIN") as copy:
        for account, request_id in ids:
            copy.write_row((account, request_id, request_id))
    execute(connection, "ANALYZE given")
    _choose_given(connection)
    prefix = sql.Literal(f"^({'|'.join(ENGINE_PREFIXES)})")
    with driver_cursor(connection) as cursor:
        bare = cursor.execute(_WITHOUT_PREFIX.format(prefix=prefix, unknown=_UNKNOWN)).rowcount
    if bare:
        _choose_given(connection)
    execute(connection, "ANALYZE chosen")


def _choose_given(connection: Connection) -> None:
    for match in (
        sql.SQL("JOIN given ON given.account = event.account AND given.request_id = event.request_id"),
        sql.SQL("JOIN given ON given.account IS NULL AND given.request_id = event.request_id"),
    ):
        execute(
            connection,
            sql.SQL(
                "INSERT INTO chosen SELECT DISTINCT ON (event.account, event.request_id) {columns} FROM {events} {match} "
                "WHERE NOT EXISTS (SELECT FROM chosen WHERE chosen.account = event.account AND chosen.request_id = event.request_id) "
                "ORDER BY event.account, event.request_id, event.revision DESC"
            ).format(columns=_COLUMNS, events=_WITH_VOIDS, match=match),
        )


def unknown_ids(connection: Connection, most: int) -> tuple[int, list[tuple[str | None, str]]]:
    """How many of the given ids no request has, and the first of them by account and id."""
    unknown = sql.SQL("FROM (SELECT DISTINCT account, asked, request_id FROM given) given WHERE {}").format(_UNKNOWN)
    [(count,)] = fetch(connection, sql.SQL("SELECT count(*) {}").format(unknown))
    first = sql.SQL("SELECT account, asked {} ORDER BY account NULLS FIRST, asked LIMIT {}").format(unknown, sql.Literal(most))
    return count, fetch(connection, first) if count else []


def ambiguous_ids(connection: Connection, most: int) -> list[tuple[str, list[str]]]:
    """The first of the ids given without an account that several accounts have, and these accounts."""
    query = sql.SQL(
        "SELECT request_id, array_agg(account ORDER BY account)::text[] FROM chosen "
        "WHERE request_id IN (SELECT request_id FROM given WHERE account IS NULL) "
        "GROUP BY request_id HAVING count(*) > 1 ORDER BY request_id LIMIT {}"
    )
    return fetch(connection, query.format(sql.Literal(most)))


def count_chosen(connection: Connection) -> tuple[int, int]:
    """How many of the chosen requests stand, and how many were withdrawn before."""
    [(standing, before)] = fetch(connection, "SELECT count(*) FILTER (WHERE NOT withdrawn), count(*) FILTER (WHERE withdrawn) FROM chosen")
    return standing, before


def group_chosen(connection: Connection) -> list[RequestGroup]:
    """Those that stand, by account, model and day in UTC."""
    return fetch_as(
        connection,
        RequestGroup,
        "SELECT account, model, received_at::date AS day, count(*) AS requests, sum(input_tokens)::bigint AS input_tokens, "
        "sum(output_tokens)::bigint AS output_tokens FROM chosen "
        "WHERE NOT withdrawn GROUP BY account, model, day ORDER BY account, model, day",
    )


def sample_chosen(connection: Connection, most: int) -> list[tuple[str, str, datetime]]:
    """Account, id and instant of the first of them that stand, by instant."""
    query = sql.SQL(
        "SELECT account, request_id, received_at FROM chosen WHERE NOT withdrawn ORDER BY received_at, account, request_id LIMIT {}"
    )
    return fetch(connection, query.format(sql.Literal(most)))


def withdraw_chosen(connection: Connection, *, reason: str, author: str, at: datetime) -> int:
    """Withdraw those that stand, and let it be known; gives their number. The last act of its transaction."""
    execute(connection, "CREATE TEMPORARY TABLE withdrawn_now (account varchar, received_at timestamptz) ON COMMIT DROP")
    statement = sql.SQL(
        "WITH done AS (INSERT INTO void (account, request_id, revision, kind, reason, author, voided_at) "
        "SELECT account, request_id, revision, 'void', {reason}, {author}, {at} FROM chosen WHERE NOT withdrawn "
        "ORDER BY account, request_id ON CONFLICT DO NOTHING RETURNING account, request_id) "
        "INSERT INTO withdrawn_now SELECT account, received_at FROM chosen JOIN done USING (account, request_id)"
    ).format(reason=reason, author=author, at=at)
    with driver_cursor(connection) as cursor:
        count = cursor.execute(statement).rowcount
    change_many(connection, sql.SQL("SELECT account, received_at, -1 FROM withdrawn_now"))
    return count
