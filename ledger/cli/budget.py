"""`ledger budget`: the error budgets of the month that runs."""

import sys

import click

from ledger.cli.options import contract_option, echo_json, format_option, month_argument, pass_database
from ledger.cli.output import echo
from ledger.store.database import Database


@click.command()
@month_argument(required=False)
@contract_option
@format_option
@click.pass_context
@pass_database
def budget(database: Database, ctx: click.Context, period: str | None, contract_id: str | None, output_format: str) -> None:
    """Show how much of its error budget each contract has used in the month that runs, or in the month that is named.

    Only windows that have ended are judged. Nothing is kept but figures that a settlement needs anyway.

    \b
    Exit codes, for scripts:
      0  no alert
      1  a contract used a model or a queue that it does not know, or none is in force
      3  an alert is due: little of a budget is left, or something was refunded; also if another contract cannot be judged

    \b
    Examples:
      ledger budget
      ledger budget 2026-05
      ledger budget --contract acme-bank-llm --format json
    """
    from ledger.documents.budget_table import budget_to_json, write_budget_table
    from ledger.workflows.budget import budgets_now
    from ledger.workflows.rate import unrated_cure

    budgets = budgets_now(database, period=period, contract_id=contract_id)
    if output_format == "json":
        echo_json([budget_to_json(one) for one in budgets])
    elif budgets and sys.stdout is not None:
        write_budget_table(budgets, sys.stdout)
    if not budgets:
        what = "no contract" if contract_id is None else f"no version of contract {contract_id}"
        echo(f"error: {what} is in force {'this month' if period is None else f'in {period}'}\n  see: ledger contract list", err=True)
    for one in budgets:
        for named in one.unrated:
            used = f"the {named.what} {named.name!r} ({named.requests:,} request{'' if named.requests == 1 else 's'})"
            echo(f"error: {one.contract_id} cannot be judged: it does not know {used}\n  {unrated_cure([named])}", err=True)
    if any(one.budget.alert for one in budgets):
        ctx.exit(3)
    if not budgets or any(one.unrated for one in budgets):
        ctx.exit(1)
