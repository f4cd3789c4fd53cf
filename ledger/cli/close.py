"""`ledger close` and `ledger reopen`: a month's drafts become issued documents, or are taken back."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from ledger.cli.options import (
    author_option,
    confirm_final,
    contract_option,
    documents_option,
    echo_json,
    format_option,
    month_argument,
    pass_database,
)
from ledger.cli.output import echo
from ledger.cli.settle import show_progress, show_stopped, show_waiting
from ledger.documents.text_table import Table, write_lines
from ledger.store.closings import Closing
from ledger.store.database import Database
from ledger.store.settlements import KeptDraft
from ledger.workflows.close import Closed, close_period, drafts_to_close, reopen_period
from ledger.workflows.issued_files import write_issued


@click.command()
@month_argument(required=True)
@contract_option
@click.option("--yes", is_flag=True, help="Close without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be issued and what cannot be, and close nothing.")
@documents_option("a folder of the month gets each contract's invoice, JSON and lines as CSV")
@author_option
@format_option
@click.pass_context
@pass_database
def close(
    database: Database,
    ctx: click.Context,
    period: str,
    contract_id: str | None,
    yes: bool,
    dry_run: bool,
    output: Path,
    author: str,
    output_format: str,
) -> None:
    """Close a month: issue the invoice of every contract that was settled, for good.

    What is issued gets a number, is sealed, and never changes: whatever becomes known later is adjusted on the invoice of the month that is
    open then. A draft that is older than the data, or provisional, is not closed; it does not hold up the others, and the exit code is then
    1. Months of a contract are closed in order. Closing again changes nothing, and writes the files of the issued documents again.

    \b
    Examples:
      ledger close 2026-05 --dry-run
      ledger close 2026-05
      ledger close 2026-05 --contract acme-bank-llm --yes
    """
    drafts = drafts_to_close(database, period, contract_id)
    if drafts and (dry_run or not yes):
        _show_drafts(drafts)
    if drafts and not (dry_run or yes):
        question = f"Issue {len(drafts)} document{'' if len(drafts) == 1 else 's'} of {period} for good?"
        confirm_final(f"closing {period} is final: say --yes to do it without being asked", question)
    closed = close_period(
        database,
        period,
        author=author,
        contract_id=contract_id,
        agreed=None if yes else drafts,
        dry_run=dry_run,
        on_contract=partial(show_progress, doing="closing"),
        on_waiting=show_waiting,
    )
    if dry_run:
        show_stopped(closed.stopped, "closed")
        echo(f"dry run: {len(drafts) - len(closed.stopped)} to close, nothing closed", err=True)
        ctx.exit(1 if closed.stopped else 0)
    documents = sorted((*closed.issued, *closed.issued_before), key=lambda one: one.contract_id)
    if output_format == "json":
        echo_json([json.loads(one.document.content) for one in documents])
    else:
        _show_closed(closed)
    show_stopped(closed.stopped, "closed")
    write_issued(output / period, documents)
    echo(f"documents of {period} in {output / period}", err=True)
    if closed.stopped:
        ctx.exit(1)


@click.command()
@month_argument(required=True)
@click.option("--contract", "contract_id", metavar="ID", required=True, help="The contract whose draft is taken back.")
@pass_database
def reopen(database: Database, period: str, contract_id: str) -> None:
    """Take back the draft of a month that is not closed: it can be settled again, provisionally too.

    What is closed stays closed. A mistake on an issued invoice is corrected where it lies (contract, requests), and becomes an adjustment.

    \b
    Example:
      ledger reopen 2026-05 --contract acme-bank-llm
    """
    reopen_period(database, period, contract_id)
    echo(f"{period} of {contract_id} is open: its draft is gone", err=True)


def _show_drafts(drafts: Sequence[KeptDraft]) -> None:
    table = Table("Contract", "Draft", ">Total", ">Due", "Currency")
    for draft in drafts:
        document = json.loads(draft.document)
        totals = document["totals"]
        table.add_row(draft.contract_id, draft.state, totals["total"], totals["due"], document["currency"])
    write_lines(table.lines(), sys.stderr)


def _show_closed(closed: Closed) -> None:
    for one in closed.issued:
        echo(_words("closed", one))
    for one in closed.issued_before:
        echo(_words("closed before", one))


def _words(what: str, one: Closing) -> str:
    document, totals = one.document, json.loads(one.document.content)["totals"]
    return (
        f"{what} {one.period}: {one.contract_id} {document.number_text}, total {totals['total']} {document.currency}, due {totals['due']}"
    )
