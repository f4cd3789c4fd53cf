"""The settlement of a period: cells in, statement out. The whole path of an amount can be read here, step by step.

    cells ------------------------> usage lines -> true-up \\
    window cells -> windows -> budget                        --> totals: net, tax, total, due
                        cells of refunded windows -> credits -> cap /
    closed months, by what is known now -> adjustments     /

Source: specification, sections 4 to 9.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.contract.model import Contract, ExemptionKind
from ledger.settlement.adjustments import NO_ADJUSTMENTS, Adjustments
from ledger.settlement.budget import budget_of, give_verdicts
from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.charges import band_and_multiplier, is_billed, usage_lines
from ledger.settlement.credits import cap_line, credit_lines, true_up_line
from ledger.settlement.period import Period
from ledger.settlement.statement import (
    Breach,
    ChangedAfterwards,
    EventCounts,
    InvoiceLine,
    LineKind,
    Statement,
    Totals,
    Unrated,
    Unresolved,
    Verdict,
)
from ledger.settlement.tax import tax_of, tax_terms
from ledger.settlement.windows import BreachedWindow, Judgement

_KIND_ORDER = {kind: position for position, kind in enumerate(LineKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a statement says besides what follows from cells: its state, hashes, counts that are kept, what closed months left."""

    state: str
    contract_hashes: Mapping[int, str]
    minor_digits: int
    unresolved: Unresolved
    changed_afterwards: ChangedAfterwards
    adjustments: Adjustments = NO_ADJUSTMENTS
    carried_in_minor: int = 0
    is_test: bool = False


def find_unrated(period: Period, cells: Sequence[Cell]) -> list[Unrated]:
    """The unknown models and queues that stop the settlement: some of their requests would be billed or are in the objective.

    `requests` are all of that name in the period. Empty if the period can be settled.
    """
    requests: Counter[tuple[str, str]] = Counter()
    stopping: set[tuple[str, str]] = set()
    for cell in cells:
        piece = period.by_version[cell.version]
        unknown = [("model", cell.model)] if cell.model not in piece.served_names else []
        unknown += [("queue", cell.queue)] if cell.queue not in piece.contract.queues.by_name else []
        for name in unknown:
            requests[name] += cell.requests
            if is_billed(piece.contract, cell) or cell.in_objective:
                stopping.add(name)
    return [Unrated(what=what, name=name, requests=requests[what, name]) for what, name in sorted(stopping)]


def settle(
    period: Period,
    cells: Sequence[Cell],
    judgement: Judgement,
    refunded: Sequence[Cell],
    percentiles_us: Mapping[BreachedWindow, int | None],
    surroundings: Surroundings,
) -> Statement:
    """The statement of the period. `cells` are all of it and none unrated; `refunded` those of the windows that `refunded_windows`
    names; `percentiles_us` has each breached window."""
    digits, last = surroundings.minor_digits, period.last
    usage = usage_lines(period, cells, digits)
    charges = sum(line.amount_minor for line in usage)
    # A contract that has ended has a period for its adjustments alone, without a minimum.
    true_up = true_up_line(last, charges, digits) if period.pieces else None

    verdicts = give_verdicts(period, judgement.breaches)
    credited = credit_lines(period, refunded, digits)
    cap = cap_line(last, charges, sum(line.amount_minor for line in credited), digits)

    lines = [*usage, *credited, *(line for line in (true_up, cap) if line is not None), *surroundings.adjustments.lines]
    return Statement(
        contract=last,
        contracts={version: piece.contract for version, piece in period.by_version.items()},
        contract_hashes=dict(surroundings.contract_hashes),
        period=period.name,
        start=period.start,
        end=period.end,
        state=surroundings.state,
        minor_digits=digits,
        events=_count_events(period, cells),
        lines=tuple(sorted(lines, key=_line_order)),
        unresolved=surroundings.unresolved,
        changed_afterwards=surroundings.changed_afterwards,
        windows=judgement.counts,
        breaches=tuple(
            _breach(period, window, verdict, percentiles_us[window]) for window, verdict in zip(judgement.breaches, verdicts, strict=True)
        ),
        budget=budget_of(period, verdicts),
        totals=totals_of(last, lines, surroundings.carried_in_minor, digits),
        reported=surroundings.adjustments.reported,
        is_test=surroundings.is_test,
    )


def totals_of(last: Contract, lines: Sequence[InvoiceLine], carried_in: int, minor_digits: int) -> Totals:
    """What lines come to (specification, section 8); `last` is the period's last version, whose tax is meant."""

    def sum_of(*kinds: LineKind) -> int:
        return sum(line.amount_minor for line in lines if line.kind in kinds)

    charges, true_up, adjustments = sum_of(LineKind.USAGE), sum_of(LineKind.TRUE_UP), sum_of(LineKind.ADJUSTMENT)
    credits = sum_of(LineKind.CREDIT, LineKind.CAP)
    net = charges + true_up + credits + adjustments
    total = net + tax_of(lines, tax_terms(last), minor_digits, last.money.rounding)
    return Totals(
        charges=charges,
        true_up=true_up,
        credits=credits,
        adjustments=adjustments,
        net=net,
        tax=total - net,
        total=total,
        carried_in=carried_in,
        due=max(total - carried_in, 0),
        carried_out=max(carried_in - total, 0),
    )


def _breach(period: Period, window: BreachedWindow, verdict: Verdict, percentile_us: int | None) -> Breach:
    return Breach(
        start=window.start,
        end=window.end,
        scope=window.scope,
        version=period.pieces[window.stretch].contract.version,
        requests=window.requests,
        late=window.late,
        over=window.is_over,
        percentile_us=percentile_us,
        verdict=verdict,
        pooled=window.pooled,
    )


def _count_events(period: Period, cells: Sequence[Cell]) -> EventCounts:
    """Counts of requests; `exempt` those of any outcome, `missing_latency` those priced in that band."""
    outcomes = {outcome.value: 0 for outcome in Outcome}
    exempt = {kind.value: 0 for kind in ExemptionKind}
    total = billed = in_objective = late = missing_latency = cancelled_without_usage = 0
    for cell in cells:
        contract = period.by_version[cell.version].contract
        total += cell.requests
        outcomes[cell.outcome.value] += cell.requests
        in_objective += cell.requests if cell.in_objective else 0
        late += cell.requests if cell.late else 0
        if cell.exemption is not None:
            exempt[contract.exemptions[cell.exemption].kind.value] += cell.requests
        if is_billed(contract, cell):
            billed += cell.requests
            missing_latency += cell.requests if band_and_multiplier(contract, cell)[0] == "missing_latency" else 0
            cancelled_without_usage += cell.requests_without_usage
    return EventCounts(
        total=total,
        billed=billed,
        in_objective=in_objective,
        late=late,
        missing_latency=missing_latency,
        outcomes=outcomes,
        exempt=exempt,
        cancelled_without_usage=cancelled_without_usage,
    )


def _line_order(line: InvoiceLine) -> tuple[object, ...]:
    """Kind in its order, adjustments by month and kind, then each field by code point or value, nulls first."""
    of = ("", "") if line.of is None else (line.of.period, line.of.kind.value)
    fields = (line.version, line.model, line.variant, line.queue, line.forfeited, line.band, line.token, line.multiplier)
    return (_KIND_ORDER[line.kind], of, *((field is not None, field) for field in fields))
