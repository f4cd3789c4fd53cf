"""The month-end checklist: of each contract the months that are not closed and what they wait for, and what closed months still ask for.

Takes a snapshot of the database, its contract versions and drafts, and the present; computes no settlement. Source: specification,
section 8 ("Life of a period"; "Late events, voids, corrections after the close"; the balance of an ended contract).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby

from ledger.contract.schedule import stretches
from ledger.instant import MICROSECOND
from ledger.settlement.calendar import DAY, day_start, month_at, month_before, months_between
from ledger.settlement.period import Period, contract_period, period_without_usage
from ledger.settlement.statement import CauseKind
from ledger.store.causes import count_causes
from ledger.store.closings import ClosedPeriod, closed_periods
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion
from ledger.store.credit_notes import notes_to_carry
from ledger.store.drafts import DraftOfPeriod
from ledger.store.overview import first_requests
from ledger.workflows.carried import Settling
from ledger.workflows.to_settle import settles_at, why_unapproved


class Step(StrEnum):
    """Where a month of a contract stands, in order of its life."""

    RUNNING = "running"  # it is not over
    IN_GRACE = "in grace"
    UNAPPROVED = "to approve"
    OPEN = "to settle"
    OUTDATED = "to settle again"
    PASSED_BY = "passed by"  # a draft before a closed month
    DRAFT = "to close"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthOfContract:
    """A month of a contract, its step and when it is over (`until`: running, in grace); `commands` go on with it, none where time or an
    earlier month (`after`) does. `document` is the number of a closed one."""

    contract: str
    period: str
    step: Step
    until: datetime | None = None
    after: str | None = None
    document: str | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedClosedMonth:
    """A closed month of which something is known now that was not when it was last posted, by kind of cause, while it can be adjusted."""

    contract: str
    period: str
    document: str
    causes: Mapping[CauseKind, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payout:
    """The balance of credit that a contract which has ended leaves."""

    contract: str
    amount_minor: int
    minor_digits: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthEnd:
    """By contract and month: the last closed month of each, all after it that have begun, and drafts before it."""

    months: tuple[MonthOfContract, ...]
    changed: tuple[ChangedClosedMonth, ...]
    payouts: tuple[Payout, ...]


def month_end(connection: Connection, versions: Sequence[StoredVersion], drafts: Sequence[DraftOfPeriod], now: datetime) -> MonthEnd:
    """What closing the books asks for now. `versions` are all that are stored, `drafts` likewise, both by contract and in order."""
    closed = closed_periods(connection, None)
    first = first_requests(connection)
    by_contract = {contract_id: list(group) for contract_id, group in groupby(versions, key=lambda one: one.contract.id)}
    drafts_of = {contract_id: {one.period: one for one in group} for contract_id, group in groupby(drafts, key=lambda one: one.contract)}
    open_months: list[Settling] = []
    for contract_id, of_contract in by_contract.items():
        months = _begun(of_contract, closed.get(contract_id, ()), drafts_of.get(contract_id, {}), first.get(contract_id), now)
        open_months += [(of_contract, terms) for terms in months]
    over = [one for one in open_months if now >= settles_at(one[1])]
    approvals: dict[tuple[str, str], str] = {}
    for month in {terms.name for _, terms in over}:
        of_month = [one for one in over if one[1].name == month]
        waiting = why_unapproved(connection, of_month, {key: {one.period: one for one in found} for key, found in closed.items()})
        approvals |= {(one.contract_id, month): one.cure for one in waiting}
    found = [_last_closed(contract_id, of_contract[-1]) for contract_id, of_contract in closed.items()]
    for contract_id, group in groupby(open_months, key=lambda one: one[1].last.id):
        found += _months(group, closed.get(contract_id, ()), drafts_of.get(contract_id, {}), approvals, now)
    return MonthEnd(
        months=tuple(sorted(found, key=lambda one: (one.contract, one.period))),
        changed=tuple(_changed(connection, by_contract, closed, now)),
        payouts=tuple(_payouts(connection, by_contract, closed, now)),
    )


def _begun(
    versions: Sequence[StoredVersion],
    closed: Sequence[ClosedPeriod],
    drafts: Mapping[str, DraftOfPeriod],
    first_request: datetime | None,
    now: datetime,
) -> list[Period]:
    """The months after the last closed one that have begun and in which the contract is in force, and others with a draft. Without a closed
    one, from the first request or draft on; without any of them, from the last month that is over on."""
    contracts = [one.contract for one in versions]
    timezone = contracts[-1].calendar.timezone
    this_month = month_at(timezone, now)
    begins = [*drafts, *([] if first_request is None else [month_at(timezone, first_request)])] or [month_before(this_month)]
    after = closed[-1].period if closed else month_before(min(begins))
    names = sorted({*drafts, *months_between(after, this_month), *([this_month] if after < this_month else [])})
    found = []
    for name in names:
        terms = contract_period(contracts, name)
        if terms is None and name in drafts:
            terms = period_without_usage(contracts[-1], name)  # it has ended, and adjusts
        if terms is not None:
            found.append(terms)
    return found


def _last_closed(contract_id: str, closed: ClosedPeriod) -> MonthOfContract:
    return MonthOfContract(contract=contract_id, period=closed.period, step=Step.CLOSED, document=closed.number_text)


def _months(
    months: Iterator[Settling],
    closed: Sequence[ClosedPeriod],
    drafts: Mapping[str, DraftOfPeriod],
    approvals: Mapping[tuple[str, str], str],
    now: datetime,
) -> Iterator[MonthOfContract]:
    """One contract's months, in order. Where months were closed, they are closed in order: a draft waits for the first one before it."""
    after = None
    for _, terms in months:
        contract_id, name, draft = terms.last.id, terms.name, drafts.get(terms.name)
        step, until, command = _step(terms, closed, draft, (contract_id, name) in approvals, now)
        waits = step is Step.DRAFT and after is not None
        commands = {
            Step.UNAPPROVED: approvals.get((contract_id, name), "").split("\n  "),
            Step.RUNNING: [],
            Step.IN_GRACE: [],
        }.get(step, [command])
        yield MonthOfContract(
            contract=contract_id, period=name, step=step, until=until, after=after if waits else None,
            commands=() if waits else tuple(commands),
        )  # fmt: skip
        if closed and step is not Step.PASSED_BY and after is None:
            after = name


def _step(
    terms: Period, closed: Sequence[ClosedPeriod], draft: DraftOfPeriod | None, is_unapproved: bool, now: datetime
) -> tuple[Step, datetime | None, str]:
    """The step of a month, when it is over, and the command that goes on with it."""
    name, settle = terms.name, f"ledger settle {terms.name}"
    if closed and name < closed[-1].period:
        return Step.PASSED_BY, None, f"ledger reopen {name} --contract {terms.last.id}"
    if now < terms.end:
        return Step.RUNNING, terms.end, settle
    if now < settles_at(terms):
        return Step.IN_GRACE, settles_at(terms), settle
    if is_unapproved:
        return Step.UNAPPROVED, None, settle
    if draft is None or draft.state != "draft":
        return Step.OPEN, None, settle
    return (Step.OUTDATED, None, settle) if draft.is_outdated else (Step.DRAFT, None, f"ledger close {name}")


def _changed(
    connection: Connection, versions: Mapping[str, Sequence[StoredVersion]], closed: Mapping[str, Sequence[ClosedPeriod]], now: datetime
) -> Iterator[ChangedClosedMonth]:
    """Closed months that can still be adjusted and of which something else is known by now."""
    for contract_id, months in closed.items():
        contracts = [one.contract for one in versions[contract_id]]
        for one in months:
            terms = contract_period(contracts, one.period)
            if terms is None or now >= terms.end + terms.last.calendar.corrections.within_us * MICROSECOND:
                continue
            if causes := count_causes(connection, terms, versions[contract_id]):
                yield ChangedClosedMonth(contract=contract_id, period=one.period, document=one.number_text, causes=causes)


def _payouts(
    connection: Connection, versions: Mapping[str, Sequence[StoredVersion]], closed: Mapping[str, Sequence[ClosedPeriod]], now: datetime
) -> Iterator[Payout]:
    """What is left of contracts that are in force no more, and whose last month is closed."""
    notes = notes_to_carry(connection, list(closed))
    for contract_id, months in closed.items():
        contracts, last = [one.contract for one in versions[contract_id]], months[-1]
        ends_on = stretches(contracts)[-1].until_on
        is_ended = (
            ends_on is not None and f"{ends_on - DAY:%Y-%m}" <= last.period and now >= day_start(contracts[-1].calendar.timezone, ends_on)
        )
        left_minor = last.carried_out_minor + sum(note.net_minor + note.tax_minor for note in notes.get(contract_id, ()))
        if is_ended and left_minor:
            yield Payout(contract=contract_id, amount_minor=left_minor, minor_digits=last.minor_digits, currency=last.currency)
