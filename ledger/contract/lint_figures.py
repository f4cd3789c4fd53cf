"""Figures of a contract that probably are not meant: multipliers, limits, budgets, days and terms. Takes a contract, gives warnings.

Each warning has a function of its own, in FIGURE_LINTS. Source: specification, section 3, "Lint".
"""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil

from ledger.contract.diagnostic import Finding, Path, warning
from ledger.contract.model import Contract
from ledger.contract.scalar import UNIT_US, duration_text, parse_duration

LARGEST_MULTIPLIER = 10  # of what is usual; 60 is a share without its %
# The money of the templates of `ledger contract new`, which nobody has agreed: rates, tax, minimum.
TEMPLATE_RATES, TEMPLATE_TAX, TEMPLATE_MINIMUMS = (Decimal(22), Decimal("5.5"), Decimal(88)), Decimal("0.06"), (None, Decimal(10000))
LONGEST_MONTH_US = 31 * UNIT_US["d"] + UNIT_US["h"]  # clocks that go back add an hour


def _alert_can_be_hit(contract: Contract) -> Iterator[Finding]:
    """To a percent: 67% of 3 breaches is hit by the second, 66% only means the first."""
    budget = contract.error_budget
    if not budget.breaches:
        return
    due_after = max(int(budget.alert_at * budget.breaches), 1)
    hit = Fraction(due_after, budget.breaches)
    share, of = Fraction(budget.alert_at), _counted(budget.breaches, "breach", "es")
    if due_after <= budget.breaches and abs(share - hit) < Fraction(1, 100):
        return
    found = f"an alert at {percent_text(share)} of {of}, that is at {(budget.alert_at * budget.breaches).normalize():f}"
    if due_after > budget.breaches:
        expected = "at most 100%"
        cure = f"no more than {budget.breaches} are ever forgiven, so that only a refund would raise the alert: write 100% or less"
    else:
        whole = f"{ceil(100 * hit)}%"
        expected = f"a share that is a whole number of breaches, such as {whole} for {due_after} of {budget.breaches}"
        cure = f"the alert is due after {due_after} of {budget.breaches}: write {whole} if that is meant, else the share of another number"
    yield warning("alert_share", ("error_budget", "alert_at"), found, expected, cure)


def _budget_can_be_exceeded(contract: Contract) -> Iterator[Finding]:
    """Where as many breaches are forgiven as a month has windows, none is ever one too many."""
    objective, breaches = contract.objective, contract.error_budget.breaches
    windows = 1 if objective.window == "month" else LONGEST_MONTH_US // parse_duration(objective.window)
    windows *= len(contract.models) if objective.scope == "model" else 1
    if breaches >= windows:
        found = f"{_counted(breaches, 'breach', 'es')} forgiven of {_counted(windows, 'window')} a month"
        fewer = f"write breaches: {windows - 1}" + (" or fewer" if windows > 1 else "")
        cure = f"no breach would ever be refunded unless it is over: {fewer}, or use a shorter window"
        yield warning("unusable_budget", ("error_budget", "breaches"), found, f"fewer than {windows}", cure)


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


def _tolerance_forgives(contract: Contract) -> Iterator[Finding]:
    budget = contract.error_budget
    if budget.breaches and budget.up_to <= 1:
        found = f"a tolerance of {percent_text(Fraction(budget.up_to))} of the target"
        cure = "no breach can lie within it, so nothing is ever forgiven: write a higher share, or breaches: 0"
        yield warning("no_tolerance", ("error_budget", "up_to"), found, "more than 100%", cure)


def _some_window_is_judged(contract: Contract) -> Iterator[Finding]:
    objective = contract.objective
    fewest, most = objective.min_requests, objective.max_requests
    if most is not None and most < fewest and objective.small_windows != "evaluate":
        found = f"at most {most} requests in a window, and at least {fewest}"
        cure = "every window is small or an overload: correct one of the two"
        yield warning("max_below_min", ("objective", "max_requests"), found, "max_requests of at least min_requests", cure)


def _multipliers_are_usual(contract: Contract) -> Iterator[Finding]:
    for path, multiplier in _multipliers(contract):
        if multiplier > LARGEST_MULTIPLIER:
            times = f"{multiplier.normalize():f}"
            found = f"{times}: a request would cost {times} times the base rates"
            cure = f"write {times}% if a share is meant"
            yield warning("large_multiplier", path, found, f"a multiplier of at most {LARGEST_MULTIPLIER}", cure)


def _multipliers(contract: Contract) -> Iterator[tuple[Path, Decimal]]:
    """Every multiplier that the contract writes, and where."""
    for name, model in contract.models.items():
        for variant, degraded in model.degraded.items():
            yield ("models", name, "degraded", variant, "max_multiplier"), degraded.max_multiplier
    for at, tier in enumerate(contract.pricing.tiers):
        yield ("pricing", "tiers", at, "multiplier"), tier.multiplier
    yield ("pricing", "missing_latency", "multiplier"), contract.pricing.missing_latency.multiplier
    for name, queue in contract.queues.by_name.items():
        if queue.multiplier is not None:
            yield ("queues", name, "multiplier"), queue.multiplier
    for at, exemption in enumerate(contract.exemptions):
        yield ("exemptions", at, "multiplier"), exemption.multiplier


def _slower_is_not_dearer(contract: Contract) -> Iterator[Finding]:
    """A multiplier that is too large by itself is told by itself."""
    tiers = sorted(enumerate(contract.pricing.tiers), key=lambda each: each[1].latency.from_us)
    for (_, faster), (at, slower) in pairwise(tiers):
        if faster.multiplier < slower.multiplier <= LARGEST_MULTIPLIER:
            low, high = (percent_text(Fraction(tier.multiplier)) for tier in (faster, slower))
            found = f"{high} for `{slower.name}`, and {low} for `{faster.name}`, which is faster"
            cure = "correct the multiplier, or accept the warning if the customer is to pay more for slower requests"
            path: Path = ("pricing", "tiers", at, "multiplier")
            yield warning("slower_costs_more", path, found, "a price that does not rise with latency", cure)


def _until_is_a_first_day(contract: Contract) -> Iterator[Finding]:
    """The last day of a month is what an agreement names as the last day in force."""
    until = contract.effective.until
    if until is None or (until + timedelta(days=1)).day != 1:
        return
    found = f"`{until}`, so that {until - timedelta(days=1)} is the last day in force"
    cure = f"write {until + timedelta(days=1)} if {until} is to be in force"
    yield warning("until_last_day", ("effective", "until"), found, "the first day that is no longer in force", cure)


def _terms_are_of_days(contract: Contract) -> Iterator[Finding]:
    calendar, hour_us, day_us = contract.calendar, UNIT_US["h"], UNIT_US["d"]
    if contract.payment is not None and 0 < contract.payment.due_us < day_us:
        found = f"{duration_text(contract.payment.due_us)} to pay"
        yield warning("short_term", ("payment", "due"), found, "at least 1d", "write days, such as 30d; m means minutes")
    if 0 < calendar.grace_us < hour_us:
        found = f"{duration_text(calendar.grace_us)} after the end of a month until it is settled"
        yield warning("short_term", ("calendar", "grace"), found, "at least 1h", "write hours or days, such as 24h or 2d; m means minutes")
    if calendar.corrections.within_us < day_us:
        found = f"{duration_text(calendar.corrections.within_us)} for corrections: no month is adjusted after its end"
        cure = "write days, such as 365d; m means minutes"
        yield warning("short_term", ("calendar", "corrections", "within"), found, "at least 1d", cure)


def _money_is_agreed(contract: Contract) -> Iterator[Finding]:
    """Only where nothing of it was changed: a rate of tax, or no minimum, is often that of the agreement too."""
    tax, minimum = contract.money.tax, contract.minimum_commitment
    if tax is None or tax.rate != TEMPLATE_TAX or minimum not in TEMPLATE_MINIMUMS:
        return
    for name, model in contract.models.items():
        rates = model.per_million_tokens
        if (rates.input, rates.cached_input, rates.output) == TEMPLATE_RATES:
            of = "no minimum" if minimum is None else f"a minimum of {minimum}"
            found = f"the prices of a template of `ledger contract new`, with its tax of {percent_text(Fraction(tax.rate))} and {of}"
            cure = "write the prices, the tax and the minimum that were agreed; should they be these, accept the warning"
            yield warning("template_money", ("models", name, "per_million_tokens"), found, "the money of the agreement", cure)


FIGURE_LINTS = (
    _money_is_agreed,
    _alert_can_be_hit,
    _budget_can_be_exceeded,
    _tolerance_forgives,
    _some_window_is_judged,
    _multipliers_are_usual,
    _slower_is_not_dearer,
    _until_is_a_first_day,
    _terms_are_of_days,
)


def percent_text(share: Fraction) -> str:
    """A share for a message, in percent with at most one digit, half up; 0% and 100% are said of nothing and all alone."""
    tenths = int(share * 1000 + Fraction(1, 2))
    if 0 < share < 1:
        tenths = min(max(tenths, 1), 999)
    return f"{tenths // 10}%" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}%"
