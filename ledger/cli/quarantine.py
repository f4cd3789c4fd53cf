"""`ledger quarantine ...`: look at refused rows and resolve them."""

from pathlib import Path

import click

from ledger.cli.options import LARGEST_ID, author_option, echo_json, format_option, pass_database, said
from ledger.cli.output import echo
from ledger.ingest.event_rules import Reason
from ledger.store.database import Database
from ledger.store.quarantine import RefusedRow
from ledger.workflows.quarantine import dismiss_row, list_quarantine, requeue_rows

QUARANTINE_ID = click.IntRange(min=1, max=LARGEST_ID)


@click.command("list")
@click.option("--reason", type=click.Choice([str(reason) for reason in Reason]), help="Only the rows refused for this reason.")
@click.option("--all", "resolved", is_flag=True, help="Also the rows that are resolved.")
@format_option
@pass_database
def list_rows(database: Database, reason: str | None, resolved: bool, output_format: str) -> None:
    """Show the rows that wait for somebody: file, line, reason, and what was found."""
    rows = list_quarantine(database, reason=reason, resolved=resolved)
    if output_format == "json":
        echo_json([_row_json(row) for row in rows])
        return
    for row in rows:
        account = f" {row.account}" if row.account else ""
        done = f" [{row.resolution}: {row.resolution_reason}]" if row.resolution else ""
        echo(f"{row.quarantine_id}{account} {row.source}:{row.line} {row.reason}: {row.detail}{done}")


@click.command()
@click.argument("quarantine_id", type=QUARANTINE_ID, metavar="ID")
@click.option("--reason", metavar="TEXT", required=True, callback=said, help="Why the row needs nothing more.")
@author_option
@pass_database
def dismiss(database: Database, quarantine_id: int, reason: str, author: str) -> None:
    """Say that a refused row needs nothing more: it is counted as unresolved no longer."""
    done = dismiss_row(database, quarantine_id, reason=reason, author=author)
    echo(f"{quarantine_id} " + ("dismissed" if done else "was resolved before"))


@click.command()
@click.argument("ids", type=QUARANTINE_ID, nargs=-1, metavar="[ID...]")
@click.option("--mapping", metavar="FILE", type=click.Path(path_type=Path), help="Read the rows by this mapping instead of their own.")
@click.option("--reason", metavar="TEXT", default="requeued", show_default=True, callback=said, help="What was repaired.")
@author_option
@click.pass_context
@pass_database
def requeue(database: Database, ctx: click.Context, ids: tuple[int, ...], mapping: Path | None, reason: str, author: str) -> None:
    """Send refused rows (all that wait, if none is named) in again, through the same rules. Exit code 1 if one is refused again."""
    done = requeue_rows(database, ids, mapping=mapping, reason=reason, author=author)
    for row in done:
        echo(f"{row.quarantine_id} " + ("accepted" if row.accepted else f"{row.reason}: {row.detail}"))
    if not all(row.accepted for row in done):
        ctx.exit(1)


def _row_json(row: RefusedRow) -> dict[str, object]:
    return {
        "id": row.quarantine_id,
        "file": row.source,
        "line": row.line,
        "reason": row.reason,
        "detail": row.detail,
        "account": row.account,
        "received_at": row.received_at.isoformat() if row.received_at else None,
        "fields": row.fields,
        "resolution": row.resolution,
        "resolution_reason": row.resolution_reason,
    }
