"""`ledger settle`: a month's settlement for finance."""

import json
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import click

from ledger.cli.options import author_option, contract_option, documents_option, echo_json, format_option, month_argument, pass_database
from ledger.cli.output import echo
from ledger.documents.finance_table import write_finance_table
from ledger.documents.settlement_json import statement_to_json
from ledger.store.database import Database
from ledger.workflows.settle import Settled, settle_period
from ledger.workflows.statements import Stopped


@click.command()
@month_argument(required=True)
@contract_option
@click.option("--provisional", is_flag=True, help="Settle a month that is not over yet; the draft cannot be closed.")
@click.option("--dry-run", is_flag=True, help="Compute and print; keep no draft, write no file.")
@click.option(
    "--events",
    "archive",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Dry run only: settle the requests of this Parquet file, or of all Parquet files below this folder.",
)
@documents_option("a folder of the month gets each contract's invoice, JSON and lines as CSV")
@author_option
@format_option
@click.pass_context
@pass_database
def settle(
    database: Database,
    ctx: click.Context,
    period: str,
    contract_id: str | None,
    provisional: bool,
    dry_run: bool,
    archive: Path | None,
    output: Path,
    author: str,
    output_format: str,
) -> None:
    """Settle a month: price every request, judge the service level, draft the invoices.

    A draft replaces the one before it; settle as often as you like, until the month is closed. A contract that cannot be settled does not
    hold up the others; the exit code is then 1. What became known of closed months is adjusted in the earliest month that is open.

    With --events, the contracts of the database settle the requests of an archive instead of its own: Parquet files in the columns of
    the specification's section 2, as ledger stores them, each request once and withdrawn ones left out. What waits in quarantine or was
    changed afterwards is not known of an archive, and shown as 0.

    \b
    Examples:
      ledger settle 2026-05
      ledger settle 2026-05 --contract acme-bank-llm --dry-run
      ledger settle 2026-05 --provisional --format json
      ledger settle 2026-05 --dry-run --events archive/2026-05
    """
    if archive is not None and not dry_run:
        raise click.UsageError("--events needs --dry-run: what is kept and issued is settled from the database")
    settled = settle_period(
        database,
        period,
        author=author,
        output=output,
        contract_id=contract_id,
        provisional=provisional,
        dry_run=dry_run,
        archive=archive,
        on_contract=show_progress,
        on_waiting=show_waiting,
    )
    if output_format == "json":
        documents = [statement_to_json(statement) for statement in settled.statements] + [
            json.loads(one.document.content) for one in settled.closed
        ]
        echo_json(sorted(documents, key=itemgetter("contract")))
    elif settled.statements and sys.stdout is not None:
        write_finance_table(settled.statements, sys.stdout)
    _show_summary(settled, output, dry_run=dry_run)
    if archive is not None:
        echo(f"every row of {archive} was taken as one request: none was looked for twice, or for what the database knows of it", err=True)
    if settled.stopped:
        ctx.exit(1)


def show_progress(contract_id: str, position: int, count: int, *, doing: str = "settling") -> None:
    """Which contract is computed now."""
    echo(f"{doing} {position} of {count}: {contract_id}", err=True)


def show_waiting(holder: str) -> None:
    """Who settles or closes meanwhile."""
    echo(f"waiting for another settle or close: {holder}", err=True)


def show_stopped(stopped: Sequence[Stopped], done: str) -> None:
    """The contracts that were not settled or closed, and the cure."""
    for one in stopped:
        echo(f"error: {one.contract_id} is not {done}: {one.problem}\n  {one.cure}", err=True)


def _show_closed(settled: Settled) -> None:
    for one in settled.closed:
        number = one.document.number_text
        echo(
            f"{one.contract_id}: {one.period} is closed as {number} and stays as it was issued; its files: ledger close {one.period}",
            err=True,
        )


def _show_summary(settled: Settled, output: Path, *, dry_run: bool) -> None:
    for warning in settled.warnings:
        echo(f"warning: {warning}", err=True)
    show_stopped(settled.stopped, "settled")
    _show_closed(settled)
    count = len(settled.statements)
    drafts = f"{count} contract{'' if count == 1 else 's'}"
    if dry_run:
        echo(f"dry run of {settled.period}: {drafts} computed, nothing kept", err=True)
    elif count:
        echo(f"settled {settled.period}: {drafts}; invoices and JSON in {output / settled.period}", err=True)
    elif not settled.closed and not settled.stopped:
        why = "no contract is in force, and nothing is adjusted of those that have ended"
        echo(f"nothing to settle in {settled.period}: {why}", err=True)
