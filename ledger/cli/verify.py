"""`ledger verify`: what is kept is what the events give."""

import click

from ledger.cli.options import echo_json, format_option, month_argument, pass_database
from ledger.cli.output import echo
from ledger.store.database import Database
from ledger.workflows.verify_cells import VerifiedCells, verify_cells

SHOWN = 20


@click.command()
@month_argument(required=False)
@click.option("--cells", is_flag=True, help="Compare the kept cells with the events.")
@format_option
@click.pass_context
@pass_database
def verify(database: Database, ctx: click.Context, period: str | None, cells: bool, output_format: str) -> None:
    """Compute again what is kept, and compare: all of it, or a month. Nothing is changed.

    Loads may run beside it. The exit code is 5 if something differs: settle nothing before the reason is known.

    \b
    Examples:
      ledger verify --cells
      ledger verify --cells 2026-05 --format json
    """
    if not cells:
        raise click.UsageError("say what to verify: --cells")
    verified = verify_cells(database, period)
    if output_format == "json":
        differing = [{"contract": contract_id, "day": day.isoformat()} for contract_id, day in verified.differing]
        echo_json({"agree": verified.agree, "stale": verified.stale, "differing": differing, "accounts": list(verified.accounts)})
    else:
        _show(verified)
    if verified.differing or verified.accounts:
        ctx.exit(5)


def _show(verified: VerifiedCells) -> None:
    agree = f"{verified.agree:,} contract day{' agrees' if verified.agree == 1 else 's agree'} with the events"
    echo(f"{agree}; {verified.stale:,} {'is' if verified.stale == 1 else 'are'} stale and computed again before use")
    for contract_id, day in verified.differing[:SHOWN]:
        echo(f"differs: {contract_id} on {day}")
    for account in verified.accounts[:SHOWN]:
        echo(f"differs: the number of requests of {account}")
    more = max(len(verified.differing) - SHOWN, 0) + max(len(verified.accounts) - SHOWN, 0)
    if more:
        echo(f"and {more:,} more: --format json lists them")
