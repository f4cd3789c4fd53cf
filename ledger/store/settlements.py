"""What a settlement reads besides events, and what it leaves behind: the run, and each contract's draft.

Source: specification, sections 8 ("Reproducible") and 9 (`unresolved`, `changed_afterwards`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, func, insert, literal, not_, or_, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from ledger.settlement.period import Period
from ledger.settlement.statement import ChangedAfterwards, Unresolved
from ledger.store.schema import account_covered, batch, event, interval, quarantine, run, settlement, traffic, void

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


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the database from its first statement to its last; committed at the end of the block."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        yield connection


def count_unassigned(connection: Connection, start: datetime, end: datetime) -> dict[str, int]:
    """Standing events received in [start, end) whose account no contract covers at that instant: how many by account, most first.

    Both are starts of local days, as the ends of contracts are: since 1973 those fall on quarters of an hour, by which events are counted.
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


def count_unresolved(connection: Connection, period: Period, unassigned: int) -> Unresolved:
    """The rows of the contract's period that wait for somebody, beside the `unassigned` events of the month.

    A row whose account or instant cannot be read may be any contract's.
    """
    ours = and_(
        quarantine.c.resolution.is_(None),
        or_(quarantine.c.account.is_(None), quarantine.c.account.in_(_accounts(period))),
        or_(
            quarantine.c.received_at.is_(None),
            and_(quarantine.c.received_at >= period.start, quarantine.c.received_at < period.end),
        ),
    )
    is_conflict = quarantine.c.reason == "conflict"
    conflicts, others = connection.execute(
        select(func.count().filter(is_conflict), func.count().filter(not_(is_conflict))).where(ours)
    ).one()
    return Unresolved(conflicts=conflicts, quarantined=others, unassigned=unassigned)


def count_changed_afterwards(connection: Connection, period: Period) -> ChangedAfterwards:
    """What was changed after the period's end and touches it: withdrawn events by kind, repaired rows, intervals."""
    by_kind = connection.execute(
        select(void.c.kind, func.count().label("number"))
        .join(event, _same_revision())
        .where(void.c.voided_at >= period.end, _is_covered(period))
        .group_by(void.c.kind)
    )
    withdrawn = {row.kind: row.number for row in by_kind}
    repairs = connection.scalar(
        select(func.count()).where(
            # A row in conflict that a correction settled is that correction, and counted as one.
            quarantine.c.resolution == "requeued",
            quarantine.c.resolved_at >= period.end,
            quarantine.c.account.in_(_accounts(period)),
            quarantine.c.received_at >= period.start,
            quarantine.c.received_at < period.end,
        )
    )
    intervals = connection.scalar(
        select(func.count()).where(interval.c.added_at >= period.end, interval.c.starts_at < period.end, interval.c.ends_at > period.start)
    )
    return ChangedAfterwards(
        voids=withdrawn.get("void", 0),
        corrections=withdrawn.get("correct", 0),
        joins=withdrawn.get("join", 0),
        repairs=repairs or 0,
        intervals=intervals or 0,
    )


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
    run_id = connection.scalar(
        insert(run)
        .values(
            settled_at=settled_at,
            author=author,
            period=period,
            batches=list(connection.scalars(select(batch.c.batch_id).order_by(batch.c.batch_id))),
            voids=connection.scalar(select(func.count()).select_from(void)),
            intervals=list(connection.scalars(select(interval.c.interval_id).order_by(interval.c.interval_id))),
            contracts=contract_hashes,
            timezone_data=timezone_data,
        )
        .returning(run.c.run_id)
    )
    for draft in drafts:
        values = {
            "run_id": run_id,
            "state": draft.state,
            "digest": draft.digest,
            "day_starts": list(draft.day_starts),
            "document": draft.document,
        }
        statement = upsert(settlement).values(contract_id=draft.contract_id, period=period, **values)
        connection.execute(statement.on_conflict_do_update(index_elements=["contract_id", "period"], set_=values))


def _accounts(period: Period) -> list[str]:
    return sorted({account for piece in period.pieces for account in piece.contract.parties.customer.accounts})


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
