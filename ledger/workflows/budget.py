"""Budget: how much of its error budget each contract has used in the month that runs, from the windows that have ended.

Takes an open database and gives a `BudgetNow` per contract; settles nothing. Source: specification, sections 7 and 9.
"""

from datetime import timedelta

from ledger.settlement.budget import BudgetNow, budget_of, give_verdicts
from ledger.settlement.calendar import month_anywhere, zone
from ledger.store.contracts import keep_readings, zones_in_force
from ledger.store.database import Database
from ledger.workflows.freshen import fresh_snapshot
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.rate import judge_stored

A_MONTH = timedelta(days=32)


def budgets_now(database: Database, *, contract_id: str | None = None) -> list[BudgetNow]:
    """The budget of each contract in force in the local month that runs, or of the one, by id."""
    now = database.now()
    with database.engine.begin() as connection:
        keep_readings(connection)
        # Also of a contract that ended in this month, or begins in it.
        zones = zones_in_force(connection, now - A_MONTH, now + A_MONTH)
        months = sorted({f"{now.astimezone(zone(name)):%Y-%m}" for name in zones})
    found: list[BudgetNow] = []
    for month in months:
        start, end = month_anywhere(month)
        with fresh_snapshot(database, start, end, None if contract_id is None else [contract_id]) as connection:
            running = [terms for _, terms in contracts_in_force(connection, month, contract_id) if terms.start <= now < terms.end]
            judged = judge_stored(connection, running, now)
        for terms in running:
            one = judged[terms.last.id]
            found.append(
                BudgetNow(
                    contract_id=terms.last.id,
                    customer=terms.last.parties.customer.name,
                    period=month,
                    now=now,
                    timezone=terms.last.calendar.timezone,
                    budget=budget_of(terms, give_verdicts(terms, one.judgement.breaches)),
                    windows=one.judgement.counts,
                    unrated=one.unrated,
                )
            )
    return sorted(found, key=lambda one: one.contract_id)
