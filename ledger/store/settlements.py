"""What a settlement reads besides events, and what it leaves behind: the run, and each contract's draft.

Source: specification, sections 8 ("Reproducible") and 9 (`unresolved`, `changed_afterwards`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from ledger.settlement.period import Period
from ledger.settlement.statement import ChangedAfterwards, Unresolved
from ledger.store.connection import Connection, Query, driver_cursor, fetch
from ledger.store.covered import COVERED, arrays, covered_arrays
from ledger.store.quarantine import IN_CONFLICT

SAMPLE = 3  # requests that are named where many are meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A contract's settled period, ready to be kept: `document` is the canonical JSON of specification section 9."""

    contract_id: str
    state: str
    digest: str
    day_starts: tuple[datetime, ...]
    document: str


_SPANS = sql.SQL("unnest(%(spans)s::varchar[], %(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS spans (span, starts_at, ends_at)")
_IS_WITHDRAWN = sql.SQL(
    "EXISTS (SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (event.account, event.request_id, event.revision))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDraft:
    """A draft as it is kept, and when it was settled."""

    contract_id: str
    state: str
    digest: str
    day_starts: tuple[datetime, ...]
    document: str
    settled_at: datetime


def kept_drafts(connection: Connection, period: str, contract_id: str | None = None) -> list[KeptDraft]:
    """The drafts of the period, or the one of a contract, by contract."""
    rows = fetch(
        connection,
        "SELECT contract_id, state, digest, day_starts, document, settled_at FROM settlement JOIN run USING (run_id) "
        "WHERE settlement.period = %(period)s AND (%(contract_id)s::varchar IS NULL OR contract_id = %(contract_id)s) ORDER BY contract_id",
        {"period": period, "contract_id": contract_id},
    )
    return [
        KeptDraft(
            contract_id=of_contract, state=state, digest=digest, day_starts=tuple(day_starts), document=document, settled_at=settled_at
        )
        for of_contract, state, digest, day_starts, document, settled_at in rows
    ]


def remove_draft(connection: Connection, contract_id: str, period: str) -> bool:
    """Take a draft back; False if there is none."""
    query = "DELETE FROM settlement WHERE (contract_id, period) = (%(contract_id)s, %(period)s) RETURNING 1"
    return bool(fetch(connection, query, {"contract_id": contract_id, "period": period}))


def count_unassigned(connection: Connection, start: datetime, end: datetime) -> dict[str, int]:
    """Standing events received in [start, end) whose account no contract covers at that instant: how many by account, most first.

    Both are starts of local days, as the ends of contracts are: since 1980 those fall on quarters of an hour, by which events are counted.
    """
    rows = fetch(
        connection,
        "SELECT account, sum(requests) AS number FROM traffic WHERE quarter_start >= %(start)s AND quarter_start < %(end)s AND NOT EXISTS ("
        "SELECT FROM account_covered covered WHERE covered.account = traffic.account AND in_force @> quarter_start) "
        "GROUP BY account HAVING sum(requests) > 0 ORDER BY number DESC, account",
        {"start": start, "end": end},
    )
    return {account: int(number) for account, number in rows}


def sample_requests(connection: Connection, period: Period, what: str, name: str) -> list[str]:
    """A few standing requests of the period with this model or queue (`what`), for people to look at."""
    query = sql.SQL(
        "SELECT request_id FROM event WHERE {column} = %(name)s AND NOT {is_withdrawn} AND EXISTS (SELECT FROM {covered} "
        "WHERE covered.account = event.account AND received_at >= starts_at AND received_at < covered.ends_at) "
        "ORDER BY received_at, request_id LIMIT %(most)s"
    ).format(column=sql.Identifier("model" if what == "model" else "queue"), is_withdrawn=_IS_WITHDRAWN, covered=COVERED)
    return [request_id for (request_id,) in fetch(connection, query, {"name": name, "most": SAMPLE, **covered_arrays([period])})]


def count_unresolved(connection: Connection, periods: Sequence[Period]) -> dict[str, Unresolved]:
    """By contract, what waits for somebody in its period; the events that no contract covers are not among it.

    A row in quarantine whose account or instant cannot be read may be any contract's, and so may an engine's request without an account.
    """
    query = sql.SQL(
        "SELECT span, account, count(*) FILTER (WHERE {in_conflict}), count(*) FILTER (WHERE NOT {in_conflict}) "
        "FROM quarantine JOIN {spans} ON received_at IS NULL OR (received_at >= starts_at AND received_at < ends_at) "
        "WHERE resolution IS NULL AND (account IS NULL OR account = ANY (%(accounts)s)) GROUP BY span, account"
    ).format(spans=_SPANS, in_conflict=IN_CONFLICT)
    rows = fetch(connection, query, {"accounts": _all_accounts(periods), **_spans(periods)})
    found = {(span, account): (conflicts, others) for span, account, conflicts, others in rows}
    waiting = _count_unjoined(connection, periods)
    counted = {}
    for period in periods:
        span, accounts = _span(period), _accounts(period)
        mine = [found.get((span, account), (0, 0)) for account in (None, *accounts)]
        counted[period.last.id] = Unresolved(
            conflicts=sum(row[0] for row in mine), quarantined=sum(row[1] for row in mine),
            unjoined=sum(waiting.get((span, account), 0) for account in ("", *accounts)),
        )  # fmt: skip
    return counted


def _count_unjoined(connection: Connection, periods: Sequence[Period]) -> dict[tuple[str, str], int]:
    """Requests of engines that belong to no gateway's, by span and account; the account is empty if the engine does not know it."""
    query = sql.SQL(
        "SELECT span, account, count(*) FROM engine_request JOIN {spans} ON received_at >= starts_at AND received_at < ends_at "
        "WHERE NOT merged AND (account = '' OR account = ANY (%(accounts)s)) GROUP BY span, account"
    ).format(spans=_SPANS)
    return _by_span_and_account(connection, query, periods)


def count_changed_afterwards(connection: Connection, periods: Sequence[Period]) -> dict[str, ChangedAfterwards]:
    """By contract, what was changed after its period's end and touches it: withdrawn events by kind, repaired rows, intervals."""
    withdrawn, repaired, added = (
        _count_withdrawn(connection, periods),
        _count_repaired(connection, periods),
        _count_added(connection, periods),
    )
    return {
        period.last.id: ChangedAfterwards(
            voids=withdrawn.get((period.last.id, "void"), 0),
            corrections=withdrawn.get((period.last.id, "correct"), 0),
            joins=withdrawn.get((period.last.id, "join"), 0),
            repairs=sum(repaired.get((_span(period), account), 0) for account in _accounts(period)),
            intervals=added.get(_span(period), 0),
        )
        for period in periods
    }


def _count_withdrawn(connection: Connection, periods: Sequence[Period]) -> dict[tuple[str, str], int]:
    """Events of each contract that were withdrawn after its period's end, by contract and kind of void."""
    # The limit keeps it a look-up by key for each void: there are few voids, and events without end.
    query = sql.SQL(
        "SELECT contract_id, kind, count(*) FROM void JOIN {covered} ON covered.account = void.account AND period_end <= voided_at "
        "CROSS JOIN LATERAL (SELECT received_at FROM event "
        "WHERE (event.account, event.request_id, event.revision) = (void.account, void.request_id, void.revision) LIMIT 1) withdrawn "
        "WHERE received_at >= starts_at AND received_at < ends_at GROUP BY contract_id, kind"
    ).format(covered=COVERED)
    return {(contract_id, kind): number for contract_id, kind, number in fetch(connection, query, covered_arrays(periods))}


def _count_repaired(connection: Connection, periods: Sequence[Period]) -> dict[tuple[str, str], int]:
    """Rows of each span and account that were repaired after the span's end.

    A row in conflict that a correction settled is that correction, and counted as one.
    """
    query = sql.SQL(
        "SELECT span, account, count(*) FROM quarantine "
        "JOIN {spans} ON received_at >= starts_at AND received_at < ends_at AND resolved_at >= ends_at "
        "WHERE resolution = 'requeued' AND account = ANY (%(accounts)s) GROUP BY span, account"
    ).format(spans=_SPANS)
    return _by_span_and_account(connection, query, periods)


def _by_span_and_account(connection: Connection, query: Query, periods: Sequence[Period]) -> dict[tuple[str, str], int]:
    rows = fetch(connection, query, {"accounts": _all_accounts(periods), **_spans(periods)})
    return {(span, account): number for span, account, number in rows}


def _count_added(connection: Connection, periods: Sequence[Period]) -> dict[str, int]:
    """Intervals that touch each span and were added after its end."""
    query = sql.SQL(
        "SELECT span, count(*) FROM {spans} JOIN interval ON added_at >= spans.ends_at "
        "AND interval.starts_at < spans.ends_at AND interval.ends_at > spans.starts_at GROUP BY span"
    ).format(spans=_SPANS)
    return dict(fetch(connection, query, _spans(periods)))


def _spans(periods: Sequence[Period]) -> dict[str, list[Any]]:
    """The spans of the periods: contracts of one time zone share theirs."""
    return arrays(("spans", "starts", "ends"), sorted({(_span(period), period.start, period.end) for period in periods}))


def _span(period: Period) -> str:
    return f"{period.start.isoformat()}/{period.end.isoformat()}"


def keep_run(
    connection: Connection,
    *,
    period: str,
    contract_hashes: dict[str, dict[str, str]],
    timezone_data: str,
    settled_at: datetime,
    author: str,
) -> int:
    """Records what the transaction's snapshot held and gives the run's id. `contract_hashes` are by contract and version."""
    [(run_id,)] = fetch(
        connection,
        "INSERT INTO run (settled_at, author, period, batches, voids, intervals, contracts, timezone_data) VALUES ("
        "%(settled_at)s, %(author)s, %(period)s, "
        "(SELECT coalesce(range_agg(int8range(batch_id, batch_id, '[]')), '{}') FROM batch), "  # an aggregate of no rows is null
        "(SELECT coalesce(range_agg(int8range(void_id, void_id, '[]')), '{}') FROM void), "
        "(SELECT coalesce(array_agg(interval_id ORDER BY interval_id), '{}') FROM interval), "
        "%(contracts)s, %(timezone_data)s) RETURNING run_id",
        {
            "settled_at": settled_at,
            "author": author,
            "period": period,
            "contracts": Jsonb(contract_hashes),
            "timezone_data": timezone_data,
        },
    )
    return int(run_id)


def keep_drafts(
    connection: Connection,
    drafts: Sequence[Draft],
    *,
    period: str,
    contract_hashes: dict[str, dict[str, str]],
    timezone_data: str,
    settled_at: datetime,
    author: str,
) -> None:
    """Records the run with what its snapshot held, and replaces the draft of each contract that was settled."""
    run_id = keep_run(
        connection, period=period, contract_hashes=contract_hashes, timezone_data=timezone_data, settled_at=settled_at, author=author
    )
    with driver_cursor(connection) as cursor:
        cursor.executemany(
            "INSERT INTO settlement (contract_id, period, run_id, state, digest, day_starts, document) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (contract_id, period) DO UPDATE SET run_id = excluded.run_id, "
            "state = excluded.state, digest = excluded.digest, day_starts = excluded.day_starts, document = excluded.document",
            [(draft.contract_id, period, run_id, draft.state, draft.digest, list(draft.day_starts), draft.document) for draft in drafts],
        )


def _accounts(period: Period) -> list[str]:
    return sorted({account for piece in period.pieces for account in piece.contract.parties.customer.accounts})


def _all_accounts(periods: Sequence[Period]) -> list[str]:
    return sorted({account for period in periods for account in _accounts(period)})
