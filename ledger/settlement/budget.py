"""The error budget: which breaches are forgiven, and whether an alert is due.

Source: specification, section 7.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import floor

from ledger.settlement.period import Period
from ledger.settlement.statement import Budget, Unrated, Verdict, WindowCounts
from ledger.settlement.windows import BreachedWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetNow:
    """A contract's budget at `now` in its local month `period`. If requests are `unrated`, no window can be judged."""

    contract_id: str
    customer: str
    period: str
    timezone: str
    now: datetime
    budget: Budget
    windows: WindowCounts
    unrated: tuple[Unrated, ...]


def give_verdicts(period: Period, breaches: Sequence[BreachedWindow]) -> list[Verdict]:
    """A verdict for each breach, which come in order of end, start, scope.

    A breach within the tolerance is forgiven while the allowance of its own version is not used up; one over it never uses budget.
    """
    verdicts: list[Verdict] = []
    used = 0
    for breach in breaches:
        allowance = period.pieces[breach.stretch].contract.error_budget.breaches
        is_forgiven = not breach.is_over and used < allowance
        used += is_forgiven
        verdicts.append(Verdict.FORGIVEN if is_forgiven else Verdict.REFUNDED)
    return verdicts


def refunded_windows(period: Period, breaches: Sequence[BreachedWindow]) -> list[BreachedWindow]:
    """The breached windows that are not forgiven."""
    return [breach for breach, verdict in zip(breaches, give_verdicts(period, breaches), strict=True) if verdict is Verdict.REFUNDED]


def budget_of(period: Period, verdicts: Sequence[Verdict]) -> Budget:
    """The state of the budget after these verdicts; allowance and alert are those of the period's last version."""
    terms = period.last.error_budget
    used, refunded = verdicts.count(Verdict.FORGIVEN), verdicts.count(Verdict.REFUNDED)
    alert_from = max(1, floor(Fraction(terms.alert_at) * terms.breaches))
    return Budget(allowed=terms.breaches, used=used, refunded=refunded, alert=used >= alert_from or refunded > 0)
