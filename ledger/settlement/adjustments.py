"""Adjustments of closed months: what a month comes to by all that is known now, less what has been posted for it, line by line.

Takes closed months, gives adjustment lines, and what is reported instead of billed. Source: specification, section 8, "Late events, voids,
corrections after the close"; decision record adjustments.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ledger.contract.model import Contract
from ledger.instant import MICROSECOND
from ledger.settlement.statement import Adjusted, Cause, InvoiceLine, LineKind, NotBilled, PostedLine, Reported, TaxTerms
from ledger.settlement.tax import tax_of, tax_terms

MOST_CAUSES = 100  # that a line names


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedMonth:
    """A closed month of a contract: the number of its document, what has been posted for it (the lines of that document, and all
    adjustments of the month since), the lines that it comes to now, and what changed in between: at most 100 causes, in order, of
    `causes_total`. `contract` is the month's last version."""

    period: str
    end: datetime
    invoice: str
    contract: Contract
    posted: tuple[PostedLine, ...]
    now: tuple[InvoiceLine, ...]
    causes: tuple[Cause, ...] = ()
    causes_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustments:
    """The adjustment lines of a statement, and what is reported and not billed."""

    lines: tuple[InvoiceLine, ...] = ()
    reported: tuple[Reported, ...] = ()


NO_ADJUSTMENTS = Adjustments()


def adjust(months: Sequence[ClosedMonth], settled_at: datetime, minor_digits: int) -> Adjustments:
    """What a statement that is settled at `settled_at` adjusts of closed months: of each the whole difference, or nothing."""
    lines: list[InvoiceLine] = []
    reported = []
    for month in months:
        difference = difference_lines(month)
        gross_minor = _gross(difference, month.contract, minor_digits)
        reason = _not_billed(month, gross_minor, settled_at)
        if reason is None:
            lines += difference
        elif difference:
            reported.append(Reported(period=month.period, invoice=month.invoice, gross_minor=gross_minor, reason=reason))
    return Adjustments(lines=tuple(lines), reported=tuple(reported))


def difference_lines(month: ClosedMonth) -> list[InvoiceLine]:
    """What each line of the month is now less what is posted of it, in tokens and in money, both of rounded lines; lines without a
    difference are left out. A line that is taxed otherwise than it was is another line, so that what was posted is taken back in full."""
    terms = tax_terms(month.contract)
    quantities: dict[tuple[object, ...], int] = {}
    amounts: dict[tuple[object, ...], int] = {}
    sample: dict[tuple[object, ...], tuple[InvoiceLine, TaxTerms]] = {}
    known = [(-1, posted.line, posted.tax) for posted in month.posted] + [(1, line, terms) for line in month.now]
    for sign, line, tax in known:
        key = (line.origin, line.version, line.model, line.variant, line.queue, line.forfeited, line.band, line.token, line.multiplier, tax)
        sample[key] = line, tax
        quantities[key] = quantities.get(key, 0) + sign * (line.quantity or 0)
        amounts[key] = amounts.get(key, 0) + sign * line.amount_minor

    def of(line: InvoiceLine, tax: TaxTerms) -> Adjusted:
        causes, total = month.causes, month.causes_total
        return Adjusted(period=month.period, invoice=month.invoice, kind=line.origin, tax=tax, causes=causes, causes_total=total)

    return [
        replace(
            line,
            kind=LineKind.ADJUSTMENT,
            quantity=None if line.quantity is None else quantities[key],
            amount_minor=amounts[key],
            of=of(line, tax),
        )
        for key, (line, tax) in sample.items()
        if quantities[key] or amounts[key]
    ]


def _not_billed(month: ClosedMonth, gross_minor: int, settled_at: datetime) -> NotBilled | None:
    corrections = month.contract.calendar.corrections
    if settled_at >= month.end + corrections.within_us * MICROSECOND:
        return NotBilled.TOO_LATE
    return NotBilled.CHARGES_MORE if gross_minor > 0 and not corrections.may_charge_more else None


def _gross(difference: Sequence[InvoiceLine], contract: Contract, minor_digits: int) -> int:
    """Net and tax of the adjustments of one month."""
    tax = tax_of(difference, tax_terms(contract), minor_digits, contract.money.rounding)
    return sum(line.amount_minor for line in difference) + tax
