"""Budget: how much of its error budget each contract has used in the month that runs, or in another, from the windows that have ended.

Takes an open database and gives a `BudgetNow` per contract; settles nothing. Source: specification, sections 7 and 9.
"""

from datetime import datetime

from ledger.rating.rated_period import JudgedPeriod
from ledger.settlement.budget import BudgetNow, budget_of, give_verdicts
from ledger.settlement.calendar import month_anywhere, months_anywhere
from ledger.settlement.period import Period
from ledger.store.contracts import keep_readings
from ledger.store.database import Database
from ledger.workflows.freshen import fresh_snapshot
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.rate import judge_stored


def budgets_now(database: Database, *, period: str | None = None, contract_id: str | None = None) -> list[BudgetNow]:
    """The budget of each contract in force in the local month `period` (None: in that which runs), or of the one, by id."""
    now = database.now()
    with database.begin() as connection:
        keep_readings(connection)
    months = months_anywhere(now) if period is None else [period]
    start, end = month_anywhere(months[0])[0], month_anywhere(months[-1])[1]
    with fresh_snapshot(database, start, end, None if contract_id is None else [contract_id]) as connection:
        in_force = [terms for month in months for _, terms in contracts_in_force(connection, month, contract_id)]
        chosen = [terms for terms in in_force if period is not None or terms.start <= now < terms.end]
        judged = judge_stored(connection, chosen, now)
    budgets = [_budget_now(terms, judged[terms.last.id], now) for terms in chosen]
    return sorted(budgets, key=lambda one: one.contract_id)


def _budget_now(terms: Period, judged: JudgedPeriod, now: datetime) -> BudgetNow:
    return BudgetNow(
        contract_id=terms.last.id,
        customer=terms.last.parties.customer.name,
        period=terms.name,
        now=now,
        timezone=terms.last.calendar.timezone,
        budget=budget_of(terms, give_verdicts(terms, judged.judgement.breaches)),
        windows=judged.judgement.counts,
        unrated=judged.unrated,
    )
