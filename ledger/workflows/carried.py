"""What the closed months of contracts carry into a month that is settled: adjustments and the balance of credit.

Takes a fresh snapshot and periods, gives what each carries in. Source: specification, section 8, "Late events, voids, corrections after the
close"; decision record adjustments.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ledger.contract.scalar import currency_digits
from ledger.rating.rated_period import RatedPeriod
from ledger.settlement.adjustments import NO_ADJUSTMENTS, Adjustments, ClosedMonth, adjust, difference_lines
from ledger.settlement.calendar import months_between
from ledger.settlement.period import Period, contract_period, period_without_usage
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import ChangedAfterwards, InvoiceLine, Unrated, Unresolved
from ledger.store.causes import causes_since
from ledger.store.closings import ClosedPeriod, closed_periods, posted_lines
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion
from ledger.store.credit_notes import CreditNoteRow, notes_to_carry
from ledger.store.seen import EVERYTHING, Seen
from ledger.workflows.rate import rate_stored

Settling = tuple[Sequence[StoredVersion], Period]  # all versions of a contract, and its period


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a contract's closed months carry into its earliest open one. Of a later one it is not known before the month `waits_for` is
    closed. `credit_notes` are those in the balance that no month has carried in before. `unrated` are requests of closed months that the
    contract does not know: nothing is adjusted, and nothing settled, before they are seen to. `months` are the closed ones in which the
    contract is in force, as they were looked at."""

    adjustments: Adjustments = NO_ADJUSTMENTS
    carried_in_minor: int = 0
    credit_notes: tuple[CreditNoteRow, ...] = ()
    waits_for: str | None = None
    unrated: tuple[tuple[Period, tuple[Unrated, ...]], ...] = ()
    months: tuple[Period, ...] = ()


def carried_into(connection: Connection, settling: Sequence[Settling], settled_at: datetime) -> dict[str, Carried]:
    """What is carried into each period, by contract, as is known in the snapshot, in which no closed month of them may be stale."""
    closed = earlier_periods(connection, [period for _, period in settling])
    waiting = {terms.last.id: _waits_for(closed[terms.last.id], versions, terms) for versions, terms in settling}
    notes = notes_to_carry(connection, [contract_id for contract_id, months in closed.items() if months])
    open_now = {one[1].last.id: one for one in settling if waiting[one[1].last.id] is None}
    rated = _rate_closed(connection, list(open_now.values()), closed, settled_at)
    carried = {contract_id: Carried(waits_for=month) for contract_id, month in waiting.items() if month is not None}
    for contract_id, one in open_now.items():
        months, credit_notes = closed[contract_id], notes.get(contract_id, ())
        carried[contract_id] = _carried(connection, one, months, rated[contract_id], credit_notes, settled_at)
    return carried


def earlier_periods(connection: Connection, periods: Sequence[Period]) -> dict[str, tuple[ClosedPeriod, ...]]:
    """By contract, the closed periods before each of these, in order; empty without any."""
    closed = closed_periods(connection, [period.last.id for period in periods])
    return {period.last.id: tuple(one for one in closed.get(period.last.id, ()) if one.period < period.name) for period in periods}


def _waits_for(closed: Sequence[ClosedPeriod], versions: Sequence[StoredVersion], period: Period) -> str | None:
    """The first month after the last closed one and before this in which the contract is in force; None without one, or a closed one."""
    if not closed:
        return None
    contracts = [one.contract for one in versions]
    return next((month for month in months_between(closed[-1].period, period.name) if contract_period(contracts, month)), None)


def _rate_closed(
    connection: Connection, settling: Sequence[Settling], closed: Mapping[str, Sequence[ClosedPeriod]], settled_at: datetime
) -> dict[str, dict[str, RatedPeriod]]:
    """The closed months of the contracts as they are rated now, by contract and month; a month at a time for all of them. A month in which
    a contract is in force no more is left out."""
    by_month: defaultdict[str, list[Period]] = defaultdict(list)
    for versions, period in settling:
        for one in closed[period.last.id]:
            if terms := contract_period([version.contract for version in versions], one.period):
                by_month[one.period].append(terms)
    rated: dict[str, dict[str, RatedPeriod]] = {period.last.id: {} for _, period in settling}
    for month, periods in by_month.items():
        for contract_id, rated_now in rate_stored(connection, periods, settled_at).items():
            rated[contract_id][month] = rated_now
    return rated


def _carried(
    connection: Connection,
    settling: Settling,
    closed: Sequence[ClosedPeriod],
    rated: Mapping[str, RatedPeriod],
    credit_notes: Sequence[CreditNoteRow],
    settled_at: datetime,
) -> Carried:
    if not closed:
        return Carried()
    unrated = tuple((one.judged.period, one.judged.unrated) for one in rated.values() if one.judged.unrated)
    if unrated:
        return Carried(unrated=unrated)
    return Carried(
        adjustments=adjustments_of(connection, settling, closed, rated, settled_at),
        carried_in_minor=closed[-1].carried_out_minor + sum(note.net_minor + note.tax_minor for note in credit_notes),
        credit_notes=tuple(credit_notes),
        months=tuple(one.judged.period for one in rated.values()),
    )


def adjustments_of(
    connection: Connection,
    settling: Settling,
    closed: Sequence[ClosedPeriod],
    rated: Mapping[str, RatedPeriod],
    settled_at: datetime,
    seen: Seen = EVERYTHING,
) -> Adjustments:
    """What the period adjusts of these closed months, which are rated by what was `seen`; a month that is not rated is one in which the
    contract is in force no more."""
    versions, period = settling
    posted = posted_lines(connection, period.last.id, period.name)
    months = []
    for one in closed:
        # A contract may cover nothing any more of a month that it was closed for.
        terms = rated[one.period].judged.period if one.period in rated else period_without_usage(period.last, one.period)
        month = ClosedMonth(
            period=one.period,
            end=terms.end,
            invoice=one.number_text,
            contract=terms.last,
            posted=posted.get(one.period, ()),
            now=_lines_now(rated[one.period]) if one.period in rated else (),
        )
        if difference_lines(month):
            causes, total = causes_since(connection, terms, versions, period.name, seen)
            months.append(replace(month, causes=causes, causes_total=total))
    return adjust(months, settled_at, currency_digits(period.last.money.currency))


def _lines_now(rated: RatedPeriod) -> tuple[InvoiceLine, ...]:
    """What the month comes to by itself, as if it were settled now."""
    judged = rated.judged
    surroundings = Surroundings(
        state="closed",
        contract_hashes={},
        minor_digits=currency_digits(judged.period.last.money.currency),
        unresolved=Unresolved(),
        changed_afterwards=ChangedAfterwards(),
    )
    return settle(judged.period, judged.cells, judged.judgement, rated.refunded, rated.percentiles_us, surroundings).lines
