"""The error budget: which breaches it forgives, and when an alert is due."""

from collections.abc import Iterable

import pytest

from ledger.settlement.budget import budget_of, give_verdicts
from ledger.settlement.statement import Verdict
from ledger.settlement.windows import judge
from tests.settlement.months import hour, late, month

FORGIVEN, REFUNDED = Verdict.FORGIVEN, Verdict.REFUNDED


def verdicts_of(breaches: Iterable[str], *changes: tuple[str, str]) -> list[Verdict]:
    """The verdicts of one breached hour for each letter: `w` within 120 % of the target, `o` over it."""
    period = month(*changes)
    cells = [late(100, window_start=hour(at), over=kind == "o") for at, kind in enumerate(breaches)]
    return give_verdicts(period, judge(period, cells, period.end).breaches)


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
