"""Worked numbers for the sentences of a contract: what its rules make of a few requests, windows and amounts.

Takes a contract, gives illustrations by the fact that they belong to. Whatever classifies is asked of the plan that settles real months
(`illustrate_requests`), every amount of the functions that write invoices: no rule is written a second time here.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from ledger.contract.fact import FactCode, Identity
from ledger.contract.model import Contract
from ledger.contract.scalar import currency_digits
from ledger.documents.contract_prose.illustration import (
    Alert,
    Capped,
    Illustration,
    Instants,
    Rounded,
    Taxed,
    Tolerated,
    TrueUp,
    Verdicts,
)
from ledger.settlement.budget import budget_of, give_verdicts
from ledger.settlement.calendar import day_start, zone
from ledger.settlement.credits import amount_line, cap_line, true_up_line
from ledger.settlement.money import to_minor
from ledger.settlement.period import Period, contract_period
from ledger.settlement.settlement import totals_of
from ledger.settlement.statement import LineKind, Verdict
from ledger.settlement.windows import BreachedWindow, tolerated_of
from ledger.workflows.illustrate_refunds import illustrate_refunds
from ledger.workflows.illustrate_requests import Stage, illustrate_requests, is_any_forgiven

MOST_BREACHES = 12  # that are counted one by one
MOST_ALERTS = 1_000

Found = Iterator[tuple[Identity, Illustration]]


def illustrate_contract(contract: Contract) -> dict[Identity, list[Illustration]]:
    """The illustrations of each fact that has any, in the order in which they are told."""
    found: dict[Identity, list[Illustration]] = {}
    for identity, one in _all(contract):
        found.setdefault(identity, []).append(one)
    return found


def _all(contract: Contract) -> Found:
    yield from _amounts(contract)
    yield from _windows(contract)
    stage = Stage.of(contract)
    yield from illustrate_requests(stage)
    period = contract_period([stage.told], f"{stage.at.astimezone(zone(contract.calendar.timezone)):%Y-%m}")
    if period is not None:
        yield from _budget(contract, period)
        yield from illustrate_refunds(stage, period)


def _amounts(contract: Contract) -> Found:
    effective, timezone = contract.effective, contract.calendar.timezone
    first, end = (day_start(timezone, day) if day else None for day in (effective.start, effective.until))
    assert first is not None
    local = zone(timezone)
    yield (FactCode.EFFECTIVE, ()), Instants(first=first.astimezone(local), end=end and end.astimezone(local))

    digits = currency_digits(contract.money.currency)
    halves = [Decimal(tenths).scaleb(-digits - 1) for tenths in (5, 15, 25, -5)]
    amounts = tuple((half, to_minor(Fraction(half), digits, contract.money.rounding)) for half in halves)
    yield (FactCode.ROUNDING, ()), Rounded(amounts=amounts)

    thousand = 1_000 * 10**digits
    if contract.money.tax is not None:
        yield (FactCode.TAX, ()), _taxed(contract, thousand, 0, digits)
        yield (FactCode.REFUND_TAX, ()), _taxed(contract, thousand, -thousand // 10, digits)
    if contract.minimum_commitment is not None:
        half_minimum = int(Fraction(contract.minimum_commitment) * 10**digits) // 2
        true_up = true_up_line(contract, half_minimum, digits)
        if true_up is not None:
            yield (FactCode.MINIMUM, ()), TrueUp(charges=half_minimum, true_up=true_up.amount_minor)
    if contract.refund.cap is not None:
        credits = -int(Fraction(contract.refund.cap) * thousand) - thousand // 5
        cap = cap_line(contract, thousand, credits, digits)
        assert cap is not None, "the credits are above the cap"
        yield (FactCode.CAP, ()), Capped(charges=thousand, credits=credits, taken_back=cap.amount_minor)


def _taxed(contract: Contract, charges: int, credits: int, digits: int) -> Taxed:
    totals = totals_of(contract, [amount_line(LineKind.USAGE, charges), amount_line(LineKind.CREDIT, credits)], 0, digits)
    return Taxed(charges=charges, credits=credits, tax=totals.tax, total=totals.total)


def _windows(contract: Contract) -> Found:
    percentile = Fraction(contract.objective.percentile)
    enough = next((10**power for power in range(2, 13) if tolerated_of(percentile, 10**power)), 10**12)
    for requests in sorted({contract.objective.min_requests, enough} - {0}):
        yield (FactCode.PROMISE, ()), Tolerated(requests=requests, tolerated=tolerated_of(percentile, requests))


def _budget(contract: Contract, period: Period) -> Found:
    if not is_any_forgiven(contract):
        return
    allowed = contract.error_budget.breaches
    within, over = (_breach(period, over_limit=over_limit) for over_limit in (0, 1))
    if allowed <= MOST_BREACHES:
        verdicts = tuple(verdict is Verdict.FORGIVEN for verdict in give_verdicts(period, [within] * (allowed + 1)))
        is_over_forgiven = give_verdicts(period, [over]) == [Verdict.FORGIVEN]
        yield (FactCode.BUDGET, ()), Verdicts(within=verdicts, is_over_forgiven=is_over_forgiven)
    due = (used for used in range(1, min(allowed, MOST_ALERTS) + 1) if budget_of(period, [Verdict.FORGIVEN] * used).alert)
    used = next(due, None)
    if used is not None:
        yield (FactCode.ALERT, ()), Alert(used=used)


def _breach(period: Period, *, over_limit: int) -> BreachedWindow:
    """A window of one request, which is late."""
    start = datetime(2000, 1, 1, tzinfo=UTC)  # no verdict depends on it
    return BreachedWindow(
        stretch=0,
        start=start,
        end=start,
        scope="",
        window_starts=(start,),
        pooled=False,
        requests=1,
        late=1,
        late_measured=1,
        over_limit=over_limit,
        tolerated=0,
    )
