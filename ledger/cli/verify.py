"""`ledger verify`: what is kept is what the events give."""

import click

from ledger.cli.options import echo_json, format_option, month_argument, pass_database
from ledger.cli.output import echo
from ledger.store.database import Database
from ledger.workflows.verify_cells import VerifiedCells, verify_cells

SHOWN = 20


@click.command()
@month_argument(required=False)
@click.option("--cells", is_flag=True, help="Compare the kept cells, from which months are settled, with the requests.")
@format_option
@click.pass_context
@pass_database
def verify(database: Database, ctx: click.Context, period: str | None, cells: bool, output_format: str) -> None:
    """Compute again what is kept, and compare: all of it, or that of a month. Changes nothing.

    Settlements read cells: sums over the requests of a contract's day, kept up while telemetry is loaded. --cells adds up the requests
    again, in one snapshot, and names the contracts and days whose cells are not that. It reads every request of the span; loads may run
    beside it. Days whose requests were changed since are computed again before they are used: they are counted, not compared.

    The exit code is 5 if something differs: settle nothing until it is known why.

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
        _show(verified, period)
    if verified.differing or verified.accounts:
        echo("error: what is kept is not what the requests give\n  settle nothing until it is known why, and report it", err=True)
        ctx.exit(5)


def _show(verified: VerifiedCells, period: str | None) -> None:
    one, several = "1 day of a contract agrees with its requests", "{:,} days of contracts agree with their requests"
    if verified.agree:
        echo(one if verified.agree == 1 else several.format(verified.agree))
    elif not verified.stale and not verified.differing:
        echo(f"nothing to compare: no cells are kept{f' of {period}' if period else ''}; requests that a contract covers have some")
    if verified.stale:
        were = "1 day was" if verified.stale == 1 else f"{verified.stale:,} days were"
        echo(f"{were} changed since and not compared; what was changed is computed again before it is used")
    for contract_id, day in verified.differing[:SHOWN]:
        echo(f"differs: {contract_id} on {day}")
    for account in verified.accounts[:SHOWN]:
        echo(f"differs: the number of requests of account {account}")
    more = max(len(verified.differing) - SHOWN, 0) + max(len(verified.accounts) - SHOWN, 0)
    if more:
        echo(f"and {more:,} more: --format json lists them")
