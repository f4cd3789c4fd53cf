"""The error budget: which breaches it forgives, and when an alert is due."""

from collections.abc import Iterable, Sequence

import pytest

from ledger.settlement.budget import budget_of, give_verdicts, refunded_windows
from ledger.settlement.cell import WindowCell
from ledger.settlement.period import Period
from ledger.settlement.statement import Verdict
from ledger.settlement.windows import BreachedWindow, judge
from tests.settlement.months import hour, month, window_cell

FORGIVEN, REFUNDED = Verdict.FORGIVEN, Verdict.REFUNDED


def breached(period: Period, breaches: Iterable[str]) -> Sequence[BreachedWindow]:
    """One breached hour for each letter: `w` within 120 % of the target, `o` over it."""
    cells = [window_cell(100, late=100, window_start=hour(at), over=100 * (kind == "o")) for at, kind in enumerate(breaches)]
    return judge(period, cells, period.end).breaches


def verdicts_of(breaches: Iterable[str], *changes: tuple[str, str]) -> list[Verdict]:
    period = month(*changes)
    return give_verdicts(period, breached(period, breaches))


@pytest.mark.parametrize(
    ("breaches", "verdicts"),
    [
        ("", []),
        ("www", [FORGIVEN] * 3),
        ("wwww", [FORGIVEN] * 3 + [REFUNDED]),
        ("owww", [REFUNDED] + [FORGIVEN] * 3),  # an over breach uses no budget
        ("wowwwo", [FORGIVEN, REFUNDED, FORGIVEN, FORGIVEN, REFUNDED, REFUNDED]),
    ],
)
def test_breaches_within_the_tolerance_are_forgiven_in_order_while_budget_is_left(breaches: str, verdicts: list[Verdict]) -> None:
    assert verdicts_of(breaches) == verdicts


@pytest.mark.parametrize(("breaches", "refunded"), [("", []), ("www", []), ("wwww", [3]), ("owww", [0]), ("wowwwo", [1, 4, 5])])
def test_the_windows_that_are_not_forgiven_are_refunded(breaches: str, refunded: list[int]) -> None:
    period = month()
    windows = refunded_windows(period, breached(period, breaches))
    assert [window.start for window in windows] == [hour(at) for at in refunded]


@pytest.mark.parametrize(
    "outside",
    [
        window_cell(2, late=2, window_start=hour(1)),  # a small window of another hour: pooled, too small, not judged
        window_cell(2, late=2, model="deepseek-v4-mini"),  # another scope
    ],
)
def test_a_refunded_window_holds_its_own_hour_and_the_names_of_its_scope(outside: WindowCell) -> None:
    period = month()
    breaches = judge(period, [window_cell(100, late=2, over=2), outside], period.end).breaches
    (window,) = refunded_windows(period, breaches)
    assert (window.requests, window.late, window.window_starts) == (100, 2, (hour(0),))
    assert period.pieces[window.stretch].served_in(window.scope) == ["deepseek-v4", "deepseek-ai/DeepSeek-V4", "deepseek-moe-4bit"]


def test_a_budget_of_no_breaches_forgives_none() -> None:
    assert verdicts_of("w", ("breaches: 3", "breaches: 0")) == [REFUNDED]


@pytest.mark.parametrize(
    ("alert_at", "used", "refunded", "is_due"),
    [
        ("80%", 1, 0, False),  # floor(2.4) = 2
        ("80%", 2, 0, True),
        ("100%", 2, 0, False),
        ("100%", 3, 0, True),
        ("10%", 0, 0, False),  # at least one
        ("10%", 1, 0, True),
        ("100%", 0, 1, True),  # whatever was refunded
    ],
)
def test_an_alert_is_due_at_the_share_of_the_budget_or_after_a_refund(alert_at: str, used: int, refunded: int, is_due: bool) -> None:
    budget = budget_of(month(("alert_at: 80%", f"alert_at: {alert_at}")), [FORGIVEN] * used + [REFUNDED] * refunded)
    assert (budget.allowed, budget.used, budget.refunded, budget.alert) == (3, used, refunded, is_due)
