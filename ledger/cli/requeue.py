"""`ledger quarantine requeue | export`: send refused rows in again, one by one or in a table that people repair."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from ledger.cli.drafts import tell_outdated
from ledger.cli.kept_apart import apart_json, apart_lines
from ledger.cli.options import author_option, echo_json_each, format_option, pass_database, said, settings
from ledger.cli.output import echo
from ledger.cli.output_file import check_output, force_option
from ledger.cli.quarantine import hint_account, row_filters, row_ids
from ledger.cli.refused_row import outcome_words, rows_words
from ledger.cli.unknown import unknown_texts
from ledger.printable import printable
from ledger.store.database import Database
from ledger.store.quarantine import RowFilter
from ledger.workflows.repair import export_rows, requeue_table, write_table
from ledger.workflows.requeue import ACCEPTED, DUPLICATE, RESOLVED, SKIPPED, UNCHANGED, Requeued, requeue_rows
from ledger.workflows.unknown import UnknownNames

_mapping = click.option(
    "--mapping",
    "mappings",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A mapping of your own under which rows came in, or that one repaired; once for each.",
)


@click.command()
@click.pass_context
@pass_database
@row_ids
@row_filters("--refused-for")
@click.option(
    "--set", "values", multiple=True, metavar="FIELD=VALUE", callback=settings, help="A column of the event and its value; empty for none."
)
@click.option("--from", "table", metavar="FILE", type=click.Path(path_type=Path), help="A table of ledger quarantine export, repaired.")
@_mapping
@click.option("--reason", metavar="TEXT", default="requeued", show_default=True, callback=said, help="What was repaired.")
@click.option("--dry-run", is_flag=True, help="Only show what would become of each row.")
@author_option
@format_option
def requeue(
    database: Database, ctx: click.Context, wanted: RowFilter, values: dict[str, str], table: Path | None, mappings: tuple[Path, ...],
    reason: str, dry_run: bool, author: str, output_format: str,
) -> None:  # fmt: skip
    """Send refused rows (all that wait, if none is named) in again, through the same rules. Exit code 1 if one is refused again.

    --set replaces columns of the event (those of the specification's section 2), whatever the row says; it needs rows that are named by
    their ids or by filters. With --from, the columns that were
    changed in an exported table are set; rows without a change are left alone.

    \b
    Examples:
      ledger quarantine requeue --refused-for future --reason "the clock was wrong"
      ledger quarantine requeue 17 --set output_tokens=512 --set e2e_ms= --reason "from the engine's log" --dry-run
      ledger quarantine requeue --from repaired.csv --reason "usage found"
    """
    if values and table is None and not wanted.names_rows:
        raise click.UsageError("--set is for rows that are named, by their ids or by filters: ledger quarantine list shows them")
    names = UnknownNames(database)
    if table is None:
        done = requeue_rows(database, wanted, mappings=mappings, values=values, reason=reason, author=author, dry_run=dry_run, names=names)
    elif wanted.names_rows or values:
        raise click.UsageError("--from says itself which rows are sent in and what is set")
    else:
        done = requeue_table(database, table, mappings=mappings, reason=reason, author=author, dry_run=dry_run, names=names)
    outcomes: Counter[str] = Counter()
    told = _counted(done, outcomes)
    if output_format == "json":
        echo_json_each(
            {"id": one.quarantine_id, "outcome": one.outcome, "detail": one.detail or None, "kept_apart": apart_json(one.apart)}
            for one in told
        )
    else:
        for one in told:
            echo(f"{one.quarantine_id} {outcome_words(one.outcome, one.detail)}")
            if one.apart:
                for line in apart_lines(one.apart, waiting_id=one.quarantine_id if one.refused else None):
                    echo(printable(f"  {line}"))
    unchanged = outcomes.pop(UNCHANGED, 0)
    if unchanged:
        echo(f"{rows_words(unchanged)} left alone: nothing was changed in the table; name them to send them in as they are", err=True)
    if outcomes.total() > 1 or dry_run:
        by_outcome = ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.most_common())
        echo(f"{rows_words(outcomes.total())}: {by_outcome}" if by_outcome else "no row", err=True)
    for text in unknown_texts(names.take()):
        echo(printable(text), err=True)
    if not outcomes:
        hint_account(database, wanted)
    if dry_run:
        echo("dry run: nothing was written", err=True)
    elif outcomes[ACCEPTED]:
        tell_outdated(database)
    if set(outcomes) - {ACCEPTED, DUPLICATE, SKIPPED, RESOLVED}:
        ctx.exit(1)


@click.command()
@pass_database
@row_ids
@row_filters("--reason", "--refused-for")
@_mapping
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="The table; - is standard output.",
)
@force_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="csv for spreadsheets, jsonl for programs.",
)
def export(database: Database, wanted: RowFilter, mappings: tuple[Path, ...], output: Path, force: bool, output_format: str) -> None:
    """Write refused rows as a table in the columns of the event, to be repaired and sent in again with requeue --from.

    Each row is read by its own mapping and its texts stand as they came. In CSV, a text that a spreadsheet would run has an apostrophe in
    front, which requeue takes away again.

    \b
    Example:
      ledger quarantine export --refused-for usage_missing --output repair.csv
    """
    check_output(output, force=force, inputs=mappings)
    rows = export_rows(database, wanted, mappings=mappings)
    if str(output) == "-":
        count = write_table(rows, sys.stdout, as_csv=output_format == "csv")
    else:
        unfinished = output.with_name(f".{output.name}.unfinished")
        with unfinished.open("w", encoding="utf-8", newline="") as stream:
            count = write_table(rows, stream, as_csv=output_format == "csv")
        unfinished.replace(output)
    echo(f"{rows_words(count)} written" + ("" if str(output) == "-" else f" to {output}"), err=True)
    if not count:
        hint_account(database, wanted)


def _counted(done: Iterator[Requeued], outcomes: Counter[str]) -> Iterator[Requeued]:
    """Those that were sent in, while all are counted."""
    for one in done:
        outcomes[one.outcome] += 1
        if one.outcome != UNCHANGED:
            yield one
