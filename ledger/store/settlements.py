"""What a settlement reads besides events, and what it leaves behind: the run, and each contract's draft.

Source: specification, sections 8 ("Reproducible") and 9 (`unresolved`, `changed_afterwards`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    and_,
    any_,
    cast,
    column,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.types import TypeEngine

from ledger.settlement.period import Period
from ledger.settlement.statement import ChangedAfterwards, Unresolved
from ledger.store.schema import Instant, Name, account_covered, batch, event, interval, quarantine, run, settlement, traffic, void

SAMPLE = 3  # requests that are named where many are meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A contract's settled period, ready to be kept: `document` is the canonical JSON of specification section 9."""

    contract_id: str
    state: str
    digest: str
    day_starts: tuple[datetime, ...]
    document: str


@contextmanager
def one_settlement_at_a_time(engine: Engine) -> Iterator[None]:
    """Holds the lock of settling until the block ends, or the process: a second settle waits for the first."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SELECT pg_advisory_lock(hashtext('ledger.settle'))"))
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(hashtext('ledger.settle'))"))


def count_unassigned(connection: Connection, start: datetime, end: datetime) -> dict[str, int]:
    """Standing events received in [start, end) whose account no contract covers at that instant: how many by account, most first.

    Both are starts of local days, as the ends of contracts are: since 1980 those fall on quarters of an hour, by which events are counted.
    """
    covered = select(literal(1)).where(
        account_covered.c.account == traffic.c.account, account_covered.c.in_force.op("@>")(traffic.c.quarter_start)
    )
    number = func.sum(traffic.c.requests)
    query = (
        select(traffic.c.account, number.label("number"))
        .where(traffic.c.quarter_start >= start, traffic.c.quarter_start < end, not_(covered.exists()))
        .group_by(traffic.c.account)
        .having(number > 0)
        .order_by(number.desc(), traffic.c.account)
    )
    return {row.account: int(row.number) for row in connection.execute(query)}


def sample_requests(connection: Connection, period: Period, what: str, name: str) -> list[str]:
    """A few standing requests of the period with this model or queue (`what`), for people to look at."""
    named = event.c.model if what == "model" else event.c.queue
    query = select(event.c.request_id).where(named == name, _is_covered(period), not_(_is_withdrawn().exists()))
    return list(connection.scalars(query.order_by(event.c.received_at, event.c.request_id).limit(SAMPLE)))


def count_unresolved(connection: Connection, periods: Sequence[Period]) -> dict[str, Unresolved]:
    """By contract, the rows of its period that wait for somebody; the events that no contract covers are not among them.

    A row whose account or instant cannot be read may be any contract's.
    """
    is_conflict = quarantine.c.reason == "conflict"
    spans = _spans(periods)
    query = (
        select(spans.c.span, quarantine.c.account, func.count().filter(is_conflict), func.count().filter(not_(is_conflict)))
        .join(spans, or_(quarantine.c.received_at.is_(None), _lies_in(quarantine.c.received_at, spans)))
        .where(quarantine.c.resolution.is_(None), or_(quarantine.c.account.is_(None), quarantine.c.account == any_(_all_accounts(periods))))
        .group_by(spans.c.span, quarantine.c.account)
    )
    found = {(span, account): (conflicts, others) for span, account, conflicts, others in connection.execute(query)}
    counted = {}
    for period in periods:
        rows = [found.get((_span(period), account), (0, 0)) for account in (None, *_accounts(period))]
        counted[period.last.id] = Unresolved(conflicts=sum(row[0] for row in rows), quarantined=sum(row[1] for row in rows))
    return counted


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
    covered = _relation(
        "covered",
        {"contract_id": Name, "account": Name, "starts_at": Instant, "ends_at": Instant, "period_end": Instant},
        [
            (period.last.id, account, piece.days.starts[0], piece.days.end, period.end)
            for period in periods
            for piece in period.pieces
            for account in piece.contract.parties.customer.accounts
        ],
    )
    # The limit keeps it a look-up by key for each void: there are few voids, and events without end.
    withdrawn = select(event.c.received_at).where(_same_revision()).limit(1).lateral("withdrawn")
    query = (
        select(covered.c.contract_id, void.c.kind, func.count())
        .select_from(void)
        .join(covered, and_(covered.c.account == void.c.account, covered.c.period_end <= void.c.voided_at))
        .join(withdrawn, _lies_in(withdrawn.c.received_at, covered))
        .group_by(covered.c.contract_id, void.c.kind)
    )
    return {(contract_id, kind): number for contract_id, kind, number in connection.execute(query)}


def _count_repaired(connection: Connection, periods: Sequence[Period]) -> dict[tuple[str, str], int]:
    """Rows of each span and account that were repaired after the span's end.

    A row in conflict that a correction settled is that correction, and counted as one.
    """
    spans = _spans(periods)
    query = (
        select(spans.c.span, quarantine.c.account, func.count())
        .join(spans, and_(_lies_in(quarantine.c.received_at, spans), quarantine.c.resolved_at >= spans.c.ends_at))
        .where(quarantine.c.resolution == "requeued", quarantine.c.account == any_(_all_accounts(periods)))
        .group_by(spans.c.span, quarantine.c.account)
    )
    return {(span, account): number for span, account, number in connection.execute(query)}


def _count_added(connection: Connection, periods: Sequence[Period]) -> dict[str, int]:
    """Intervals that touch each span and were added after its end."""
    spans = _spans(periods)
    touches = and_(interval.c.added_at >= spans.c.ends_at, interval.c.starts_at < spans.c.ends_at, interval.c.ends_at > spans.c.starts_at)
    query = select(spans.c.span, func.count().label("number")).join(interval, touches).group_by(spans.c.span)
    return {row.span: row.number for row in connection.execute(query)}


def _spans(periods: Sequence[Period]) -> FromClause:
    """The spans of the periods: contracts of one time zone share theirs."""
    rows = sorted({(_span(period), period.start, period.end) for period in periods})
    return _relation("spans", {"span": Name, "starts_at": Instant, "ends_at": Instant}, rows)


def _relation(name: str, columns: Mapping[str, TypeEngine[Any]], rows: Sequence[tuple[Any, ...]]) -> FromClause:
    """Values as a table of the query, an array for each column: a statement may have 65,535 parameters, and a provider more accounts."""
    arrays = [cast([row[place] for row in rows], ARRAY(kind)) for place, kind in enumerate(columns.values())]
    return func.unnest(*arrays).table_valued(*(column(key, kind) for key, kind in columns.items())).render_derived(name=name)


def _span(period: Period) -> str:
    return f"{period.start.isoformat()}/{period.end.isoformat()}"


def _lies_in(instant: ColumnElement[datetime], span: FromClause) -> ColumnElement[bool]:
    return and_(instant >= span.c.starts_at, instant < span.c.ends_at)


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
    empty: ColumnElement[Any] = literal_column("'{}'")  # an aggregate of no rows is null
    batches = select(func.coalesce(func.range_agg(func.int8range(batch.c.batch_id, batch.c.batch_id, "[]")), empty))
    intervals = select(func.coalesce(func.array_agg(aggregate_order_by(interval.c.interval_id, interval.c.interval_id)), empty))
    run_id = connection.scalar(
        insert(run)
        .values(
            settled_at=settled_at,
            author=author,
            period=period,
            batches=batches.scalar_subquery(),
            voids=select(func.count()).select_from(void).scalar_subquery(),
            intervals=intervals.scalar_subquery(),
            contracts=contract_hashes,
            timezone_data=timezone_data,
        )
        .returning(run.c.run_id)
    )
    statement = upsert(settlement)
    replaced = {name: statement.excluded[name] for name in ("run_id", "state", "digest", "day_starts", "document")}
    connection.execute(
        statement.on_conflict_do_update(index_elements=["contract_id", "period"], set_=replaced),
        [
            {
                "contract_id": draft.contract_id,
                "period": period,
                "run_id": run_id,
                "state": draft.state,
                "digest": draft.digest,
                "day_starts": list(draft.day_starts),
                "document": draft.document,
            }
            for draft in drafts
        ],
    )


def _accounts(period: Period) -> list[str]:
    return sorted({account for piece in period.pieces for account in piece.contract.parties.customer.accounts})


def _all_accounts(periods: Sequence[Period]) -> ColumnElement[Sequence[str]]:
    return cast(sorted({account for period in periods for account in _accounts(period)}), ARRAY(Name))


def _same_revision() -> ColumnElement[bool]:
    return and_(void.c.account == event.c.account, void.c.request_id == event.c.request_id, void.c.revision == event.c.revision)


def _is_withdrawn() -> Select[int]:
    return select(literal(1)).select_from(void).where(_same_revision())


def _is_covered(period: Period) -> ColumnElement[bool]:
    """The event is the contract's: an account may belong to it for a part of the period only."""
    return or_(
        *(
            and_(
                event.c.account.in_(piece.contract.parties.customer.accounts),
                event.c.received_at >= piece.days.starts[0],
                event.c.received_at < piece.days.end,
            )
            for piece in period.pieces
        )
    )
