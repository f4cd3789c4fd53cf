"""`ledger quarantine list | show | dismiss`: look at refused rows, and say that some need nothing more."""

import csv
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any

import click

from ledger.cli.kept_apart import apart_json, apart_lines, unmet_json, unmet_lines
from ledger.cli.options import (
    LARGEST_ID,
    author_option,
    echo_json,
    echo_json_each,
    format_option,
    instant,
    month,
    pass_database,
    said,
)
from ledger.cli.output import echo
from ledger.cli.refused_row import outcome_words, row_json, rows_words
from ledger.ingest.event_rules import Reason
from ledger.instant import instant_text
from ledger.printable import printable
from ledger.spreadsheet import defused
from ledger.store.database import Database
from ledger.store.quarantine import RefusedRow, RowFilter, RowState
from ledger.store.resubmissions import Resubmission
from ledger.workflows.named_account import unknown_account
from ledger.workflows.named_request import request_command
from ledger.workflows.quarantine import RowHistory, contract_share, count_quarantine, dismiss_rows, list_quarantine, row_history

QUARANTINE_ID = click.IntRange(min=1, max=LARGEST_ID)
_REASON = click.Choice([str(reason) for reason in Reason])

row_ids = click.argument("ids", type=QUARANTINE_ID, nargs=-1, metavar="[ID...]")


def row_filters(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that choose rows, given to the command as one `wanted`; `names` are those of the option for the reason."""
    options = (
        click.option(*names, "refused_for", type=_REASON, help="Only rows refused for this reason."),
        click.option("--account", metavar="NAME", help="Only rows of this account."),
        click.option("--file", "source", metavar="NAME", help="Only rows of the file of this name, without folders."),
        click.option("--since", metavar="INSTANT", callback=instant, help="Only rows received at or after it: 2026-05-06T10:00:00+08:00."),
        click.option("--until", metavar="INSTANT", callback=instant, help="Only rows received before it."),
        click.option("--request-id", metavar="ID", help="Only rows of the request of this id."),
        click.option("--contract", metavar="ID", help="With --period: only rows that the settlement of this contract counts."),
        click.option("--period", metavar="MONTH", callback=month, help="The month of --contract, such as 2026-05."),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(
            database: Database, /, *arguments: Any, refused_for: str | None, account: str | None, source: str | None,
            since: datetime | None, until: datetime | None, request_id: str | None, contract: str | None, period: str | None,
            ids: tuple[int, ...] = (), **others: Any,
        ) -> Any:  # fmt: skip
            if (contract is None) != (period is None):
                raise click.UsageError("--contract and --period belong together")
            share = None if contract is None or period is None else contract_share(database, contract, period)
            wanted = RowFilter(
                ids=ids or None, reason=refused_for, account=account, source=source, since=since, until=until, request_id=request_id,
                share=share,
            )  # fmt: skip
            return command(database, *arguments, wanted=wanted, **others)

        for option in reversed(options):
            run = option(run)
        return run

    return decorate


def hint_account(database: Database, wanted: RowFilter) -> None:
    """After no row was found: say it if the filter names an account that nobody knows."""
    if hint := unknown_account(database, wanted.account):
        echo(hint, err=True)


@click.command("list")
@pass_database
@row_filters("--reason", "--refused-for")
@click.option("--state", type=click.Choice([str(state) for state in RowState]), default="open", show_default=True, help="Of which state.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows; how many more there are is said.")
@click.option("--count", is_flag=True, help="Only how many rows there are, by reason.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="text for people, json for programs, csv for spreadsheets.",
)
def list_rows(database: Database, wanted: RowFilter, state: str, limit: int | None, count: bool, output_format: str) -> None:
    """Show the rows that wait for somebody: file, line, reason, and what was found.

    \b
    Examples:
      ledger quarantine list --count
      ledger quarantine list --reason conflict --account acme-bank --limit 20
      ledger quarantine list --contract acme-bank-llm --period 2026-05 --format csv
      ledger quarantine list --file may.csv --since 2026-05-06T00:00:00+08:00 --state resolved
    """
    wanted = replace(wanted, state=RowState(state))
    counts = count_quarantine(database, wanted)
    if count:
        _show_counts(counts, output_format)
        if not counts:
            hint_account(database, wanted)
        return
    rows = list_quarantine(database, wanted, most=limit)
    match output_format:
        case "json":
            echo_json_each(map(row_json, rows))
        case "csv":
            _write_csv(["id", *_LISTED], ([row.quarantine_id, *_listed(row)] for row in rows))
        case _:
            for row in rows:
                echo(_row_line(row))
    total = sum(counts.values())
    by_reason = ", ".join(f"{number:,} {reason}" for reason, number in counts.items())
    more = f"{limit:,} of {rows_words(total)} shown, {total - limit:,} more" if limit is not None and limit < total else rows_words(total)
    echo(more + (f": {by_reason}" if by_reason else ""), err=True)
    if not total:
        hint_account(database, wanted)


@click.command()
@click.argument("quarantine_id", type=QUARANTINE_ID, metavar="ID")
@format_option
@pass_database
def show(database: Database, quarantine_id: int, output_format: str) -> None:
    """Show a refused row whole: its fields, where it came from, and what was done about it.

    \b
    Example:
      ledger quarantine show 17
    """
    history = row_history(database, quarantine_id)
    if output_format == "json":
        echo_json(_history_json(history))
    else:
        for line in _history_lines(history):
            echo(line)


@click.command()
@pass_database
@row_ids
@row_filters("--refused-for")
@click.option("--reason", metavar="TEXT", required=True, callback=said, help="Why the rows need nothing more.")
@click.option("--dry-run", is_flag=True, help="Only show which rows it would be.")
@author_option
@format_option
def dismiss(database: Database, wanted: RowFilter, reason: str, dry_run: bool, author: str, output_format: str) -> None:
    """Say that refused rows need nothing more: they are counted as unresolved no longer.

    \b
    Examples:
      ledger quarantine dismiss 17 18 --reason "test traffic"
      ledger quarantine dismiss --file load-test.jsonl --reason "test traffic" --dry-run
    """
    if not wanted.names_rows:
        raise click.UsageError("name the rows, or filter them: ledger quarantine list shows them")
    done = dismiss_rows(database, wanted, reason=reason, author=author, dry_run=dry_run)
    before = sorted(set(wanted.ids or ()) - set(done))
    if not done:
        hint_account(database, wanted)
    if output_format == "json":
        echo_json({"dry_run": dry_run, "dismissed": done, "resolved_before": before})
    elif wanted.ids is None:
        echo(f"{rows_words(len(done))} " + ("would be dismissed" if dry_run else "dismissed"))
    else:
        for one in sorted(set(wanted.ids)):
            echo(f"{one} " + ("was resolved before" if one in before else "would be dismissed" if dry_run else "dismissed"))


def _show_counts(counts: dict[str, int], output_format: str) -> None:
    match output_format:
        case "json":
            echo_json(counts)
        case "csv":
            _write_csv(["reason", "rows"], counts.items())
        case _:
            for reason, number in counts.items():
                echo(f"{number:,} {reason}")


def _write_csv(headings: list[str], rows: Iterable[Iterable[object]]) -> None:
    """For spreadsheets: no text is run by one, and an empty cell is nothing."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headings)
    for row in rows:
        writer.writerow(["" if cell is None else defused(cell) if isinstance(cell, str) else cell for cell in row])


# The columns of a list as CSV, after the id; the row's fields are in JSON and in `export`.
_LISTED = (
    *("file", "line", "reason", "detail", "account", "received_at", "request_id"),
    *("resolution", "resolution_reason", "resolved_by", "resolved_at"),
)


def _listed(row: RefusedRow) -> list[object]:
    found = row_json(row)
    return [found[name] for name in _LISTED]


def _row_line(row: RefusedRow) -> str:
    account = f" {row.account}" if row.account else ""
    done = f" [{row.resolution}: {row.resolution_reason}]" if row.resolution else ""
    return printable(f"{row.quarantine_id}{account} {row.source}:{row.line} {row.reason}: {row.detail}{done}")


def _history_lines(history: RowHistory) -> Iterator[str]:
    row = history.row
    yield printable(f"{row.quarantine_id} {row.reason}: {row.detail}")
    for name, value in row.fields.items():
        yield printable(f"  {name}: {'none' if value is None else value}")
    if not row.fields:
        yield "  nothing of the line could be kept"
    loaded = f"line {row.line} of {row.source}, load {row.batch_id} under the mapping {row.mapping}"
    yield printable(f"{instant_text(row.loaded_at)} refused by {row.loaded_by}: {loaded}")
    for again in history.resubmissions:
        values = "".join(f", {name}={value}" for name, value in again.values_set.items())
        how = f"({again.reason}) under the mapping {again.mapping}{values}"
        outcome = outcome_words(again.outcome, again.detail) + _as(again)
        yield printable(f"{instant_text(again.at)} sent in again by {again.author} {how}: {outcome}")
    if row.resolved_at:
        yield printable(f"{instant_text(row.resolved_at)} {row.resolution} by {row.resolved_by}: {row.resolution_reason}")
    else:
        yield "waits for somebody"
        if history.apart:
            yield from (printable(line) for line in apart_lines(history.apart, waiting_id=row.quarantine_id))
        if history.unmet:
            yield from (printable(line) for line in unmet_lines(history.unmet, waiting_id=row.quarantine_id))
        for account in history.stored_for:
            yield printable(f"  a request of this id is stored for {account}, by another load; if the row says the same, this resolves it:")
            given = "" if row.account else f"--set account={shlex.quote(account)} "
            yield printable(f"    ledger quarantine requeue {row.quarantine_id} {given}--reason TEXT")
        yield from (printable(f"  {step}") for step in _next_steps(row))


def _as(again: Resubmission) -> str:
    """Which request the row is now."""
    return "" if again.request_id is None else f", as {' '.join(filter(None, (again.account, again.request_id)))}"


def _next_steps(row: RefusedRow) -> Iterator[str]:
    """What somebody may do about a row that waits."""
    if row.reason == Reason.CONFLICT and row.account and row.request_id:
        yield request_command("ledger explain", row.request_id, row.account)
        yield request_command("ledger correct", row.request_id, row.account, "--set FIELD=VALUE --reason TEXT")
    else:
        yield f"ledger quarantine requeue {row.quarantine_id} --set FIELD=VALUE --reason TEXT --dry-run"
    yield f"ledger quarantine dismiss {row.quarantine_id} --reason TEXT"


def _history_json(history: RowHistory) -> dict[str, object]:
    row = history.row
    return row_json(row) | {
        "load": row.batch_id,
        "mapping": row.mapping,
        "refused_at": instant_text(row.loaded_at),
        "refused_by": row.loaded_by,
        "kept_apart": apart_json(history.apart),
        "unmet": unmet_json(history.unmet),
        "stored_for": list(history.stored_for),
        "sent_in_again": [
            {
                "at": instant_text(again.at),
                "author": again.author,
                "reason": again.reason,
                "mapping": again.mapping,
                "set": again.values_set,
                "outcome": again.outcome,
                "detail": again.detail or None,
                "account": again.account,
                "request_id": again.request_id,
                "load": again.batch_id,
            }
            for again in history.resubmissions
        ],
    }
