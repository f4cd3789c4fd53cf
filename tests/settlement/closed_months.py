"""Closed months of the ready-made contract and what they come to now, so that a test writes only what it is about."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from ledger.settlement.adjustments import ClosedMonth
from ledger.settlement.cell import Cell
from ledger.settlement.credits import amount_line
from ledger.settlement.period import Period
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import (
    Adjusted,
    Cause,
    ChangedAfterwards,
    InvoiceLine,
    LineKind,
    PostedLine,
    Statement,
    TaxTerms,
    Unresolved,
    WindowCounts,
)
from ledger.settlement.tax import tax_terms
from ledger.settlement.windows import Judgement

UNJUDGED = Judgement(counts=WindowCounts(judged=0, breached=0, insufficient=0, overload=0), breaches=())
JUNE = datetime(2026, 7, 2, tzinfo=UTC)  # June is settled: May may be adjusted
INVOICE = "INV-2026-000001"


def surroundings() -> Surroundings:
    return Surroundings(state="draft", contract_hashes={}, minor_digits=2, unresolved=Unresolved(), changed_afterwards=ChangedAfterwards())


def statement_of(
    period: Period, cells: Sequence[Cell] = (), refunded: Sequence[Cell] = (), around: Surroundings | None = None
) -> Statement:
    """The settled period; `refunded` are the cells of refunded windows."""
    return settle(period, cells, UNJUDGED, refunded, {}, around or surroundings())


def lines_of(period: Period, cells: Sequence[Cell], refunded: Sequence[Cell] = ()) -> tuple[InvoiceLine, ...]:
    return statement_of(period, cells, refunded).lines


def posted(period: Period, lines: Sequence[InvoiceLine]) -> tuple[PostedLine, ...]:
    """What the document of the period, or of a later one that adjusts it, posted for it."""
    return tuple(PostedLine(line=line, tax=tax_terms(period.last) if line.of is None else line.of.tax) for line in lines)


def closed(
    period: Period, before: Sequence[PostedLine], now: Sequence[InvoiceLine], causes: Sequence[Cause] = (), invoice: str = INVOICE
) -> ClosedMonth:
    return ClosedMonth(
        period=period.name,
        end=period.end,
        invoice=invoice,
        contract=period.last,
        posted=tuple(before),
        now=tuple(now),
        causes=tuple(causes),
        causes_total=len(causes),
    )


def adjustment(
    amount_minor: int,
    kind: LineKind = LineKind.USAGE,
    *,
    rate: str = "0.06",
    outside_scope: bool = False,
    period: str = "2026-05",
) -> InvoiceLine:
    """An adjustment of so many minor units, of a line of this kind in a month that was taxed so."""
    tax = TaxTerms(rate=Decimal(rate), credits_outside_scope=outside_scope)
    of = Adjusted(period=period, invoice=INVOICE, kind=kind, tax=tax, causes=(), causes_total=0)
    return replace(amount_line(LineKind.ADJUSTMENT, amount_minor), of=of)
