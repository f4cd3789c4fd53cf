"""`ledger budget`: the error budgets of the month that runs."""

import sys

import click

from ledger.cli.options import echo_json, format_option, pass_database
from ledger.cli.output import echo
from ledger.store.database import Database


@click.command()
@click.option("--contract", "contract_id", metavar="ID", help="Only this contract.")
@format_option
@click.pass_context
@pass_database
def budget(database: Database, ctx: click.Context, contract_id: str | None, output_format: str) -> None:
    """Show how much of its error budget each contract has used in the month that runs.

    Only windows that have ended are judged, so a verdict stays. The exit code is 3 if an alert is due, 1 if a contract cannot be judged
    because it does not know a model or a queue that was used.

    \b
    Examples:
      ledger budget
      ledger budget --contract acme-bank-llm --format json
    """
    from ledger.documents.budget_table import budget_to_json, write_budget_table
    from ledger.workflows.budget import budgets_now

    budgets = budgets_now(database, contract_id=contract_id)
    if not budgets:
        what = "no contract" if contract_id is None else f"no version of contract {contract_id}"
        echo(f"{what} is in force now; see: ledger contract list", err=True)
    if output_format == "json":
        echo_json([budget_to_json(one) for one in budgets])
    elif budgets:
        write_budget_table(budgets, sys.stdout)
    unrated = [(one.contract_id, named) for one in budgets for named in one.unrated]
    for contract, named in unrated:
        echo(f"error: {contract} cannot be judged: it does not know the {named.what} {named.name!r}; add it in a new version", err=True)
    if any(one.budget.alert for one in budgets):
        ctx.exit(3)
    if unrated or not budgets:
        ctx.exit(1)
