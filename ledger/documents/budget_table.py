"""The error budgets of running months: a table for people, JSON for programs.

Takes the budgets and a text stream. Source: specification, section 7.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from ledger.documents.number import grouped_count
from ledger.documents.text_table import Line, Span, Style, Table, write_lines
from ledger.instant import instant_text
from ledger.printable import printable
from ledger.settlement.budget import BudgetNow
from ledger.settlement.statement import Budget


def write_budget_table(budgets: Sequence[BudgetNow], stream: TextIO) -> None:
    """Writes a row for each contract, in the order given, and why an alert is due where one is."""
    write_lines(_lines(budgets), stream)


def budget_to_json(one: BudgetNow) -> dict[str, Any]:
    """The budget as one object; `windows` are those that have ended."""
    return {
        "contract": one.contract_id,
        "period": one.period,
        "timezone": one.timezone,
        "budget": {
            "allowed": one.budget.allowed,
            "used": one.budget.used,
            "refunded": one.budget.refunded,
            "alert": one.budget.alert,
        },
        "windows": {"judged": one.windows.judged, "breached": one.windows.breached},
        "unrated": [{"what": named.what, "name": named.name, "requests": named.requests} for named in one.unrated],
    }


def _lines(budgets: Sequence[BudgetNow]) -> Iterator[Line]:
    table = Table("Contract", "Customer", "Month", ">Windows", ">Missed", ">Forgiven", ">Left", ">Refunded", "")
    for one in budgets:
        table.add_row(one.contract_id, printable(one.customer), one.period, *_figures(one))
    yield (Span(f"Error budgets at {instant_text(budgets[0].now)}, from the windows that have ended", Style.BOLD),)
    yield ()
    yield from table.lines()
    yield ()
    yield (Span("  Missed windows are forgiven while the budget lasts; the others are refunded.", Style.DIM),)
    for one in budgets:
        if one.budget.alert:
            yield (Span(f"  ALERT {one.contract_id}: {_alert_reason(one.budget)}", Style.YELLOW),)


def _alert_reason(budget: Budget) -> str:
    """Why an alert of this budget is due: something was refunded, or what was forgiven reaches the contract's alert_at."""
    used = f"{grouped_count(budget.used)} of the {grouped_count(budget.allowed)} misses that the contract forgives"
    if budget.refunded:
        refunded = f"{grouped_count(budget.refunded)} missed window{'' if budget.refunded == 1 else 's'} refunded"
        return f"{refunded}, after {used}" if budget.used else refunded
    return f"{used} are used, which is its alert_at"


def _figures(one: BudgetNow) -> list[str | Span]:
    if one.unrated:
        return ["-", "-", "-", "-", "-", Span("cannot be judged", Style.YELLOW)]
    budget = one.budget
    return [
        grouped_count(one.windows.judged),
        grouped_count(one.windows.breached),
        f"{grouped_count(budget.used)} of {grouped_count(budget.allowed)}",
        grouped_count(max(budget.allowed - budget.used, 0)),  # the month's last version may allow fewer
        grouped_count(budget.refunded),
        Span("ALERT" if budget.alert else "", Style.YELLOW),
    ]
