"""`ledger ingest`: telemetry files into the ledger."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from ledger.cli.options import author_option, echo_json, format_option
from ledger.cli.output import echo
from ledger.ingest.loader import Summary
from ledger.store.database import open_database
from ledger.workflows.ingest import CHECKED_ROWS, ENDINGS, FileReport, IngestOptions, check_files
from ledger.workflows.ingest import ingest as ingest_files

_EXAMPLE = """\b
Examples:
  ledger ingest telemetry/2026-05/
  ledger ingest --mapping gateway.yaml --account acme-bank access.jsonl.gz
  zcat events.csv.gz | ledger ingest -
"""


@click.command(epilog=_EXAMPLE)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--mapping", metavar="FILE", type=click.Path(path_type=Path), help="How to read the files: a mapping of your own (YAML).")
@click.option("--source", metavar="NAME", help="How to read the files: a format that ledger knows. Default: found by the columns.")
@click.option("--account", metavar="NAME", help="The account of rows that have none.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a row was refused or is in conflict.")
@click.option("--check", is_flag=True, help=f"Only show what would happen to the first {CHECKED_ROWS:,} rows of each file.")
@click.option("--again", is_flag=True, help="Load content that was loaded under another mapping.")
@author_option
@format_option
@click.pass_obj
def ingest(
    url: str | None, paths: tuple[str, ...], mapping: Path | None, source: str | None, account: str | None,
    strict: bool, check: bool, again: bool, author: str, output_format: str,
) -> None:  # fmt: skip
    """Load telemetry: CSV, JSON Lines, a JSON array or Parquet, plain, .gz or .zst; folders; - is standard input.

    Loading a file again adds nothing. Rows that break a rule are kept in quarantine with their line and reason, the rest is loaded.
    """
    if mapping and source:
        raise click.UsageError("name either --mapping or --source")
    options = IngestOptions(mapping=mapping, source=source, account=account, again=again)
    if check:
        reports = check_files(list(paths), options)
    else:
        with open_database(url) as database, _progress() as (on_file, on_progress):
            reports = ingest_files(database, list(paths), options, author=author, on_file=on_file, on_progress=on_progress)
    total = Summary()
    for report in reports:
        total.add(report.summary)
    _warn(reports)
    if output_format == "json":
        echo_json({"files": [_report_json(report) for report in reports], "total": _summary_json(total)})
    else:
        _print_text(reports, total, check=check)
    refused = total.refused.total() + total.conflict > 0
    if not reports:
        echo(f"warning: no file in {', '.join(paths)} has an ending that is read: {', '.join(ENDINGS)}", err=True)
    if any(report.error for report in reports) or (strict and refused):
        sys.exit(1)


@contextmanager
def _progress() -> Iterator[tuple[Callable[[str, int], None], Callable[[int], None]]]:
    """What to tell of a file and of its rows: a bar with rows, rate and time left on a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield lambda _name, _rows: None, lambda _rows: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.speed:,.0f} rows/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def on_file(name: str, rows: int) -> None:
            bar.reset(task, description=escape(Path(name).name), total=rows)

        yield on_file, lambda rows: bar.advance(task, rows)


def _warn(reports: list[FileReport]) -> None:
    """Say which files could not be read, and in one line which columns nobody reads."""
    for report in reports:
        if report.error:
            echo(f"error: {report.error.message}\n  {report.error.cure}", err=True)
    ignored = sorted({name for report in reports for name in report.ignored})
    if ignored:
        echo(f"warning: ignored the columns {', '.join(ignored)}", err=True)


def _print_text(reports: list[FileReport], total: Summary, *, check: bool) -> None:
    for report in reports:
        if report.error:
            continue
        echo(f"{report.path} ({report.mapping}): {_summary_text(report.summary, check=check)}")
        for line, reason, detail in report.refused_rows:
            echo(f"  line {line}: {reason}: {detail}")
        for row in report.sample:
            echo("  " + ", ".join(f"{name}={value}" for name, value in row.items() if value is not None))
    if len(reports) > 1:
        echo(f"in all: {_summary_text(total, check=check)}")


def _summary_text(summary: Summary, *, check: bool) -> str:
    refused = f"{summary.refused.total():,} refused"
    if summary.refused:
        refused += " (" + ", ".join(f"{count:,} {reason}" for reason, count in sorted(summary.refused.items()) if count) + ")"
    if check:
        text = f"{summary.read:,} looked at = {summary.new:,} fit + {refused}"
    else:
        text = f"{summary.read:,} read = {summary.new:,} new + {summary.duplicate:,} duplicate + {summary.conflict:,} conflict + {refused}"
    if summary.clamped:
        text += f"; {summary.clamped:,} clamped"
    if summary.earliest_us is not None and summary.latest_us is not None:
        text += f"; {_instant(summary.earliest_us)} to {_instant(summary.latest_us)}"
    return text


def _report_json(report: FileReport) -> dict[str, object]:
    shown: dict[str, object] = {"file": report.path, "mapping": report.mapping, **_summary_json(report.summary)}
    shown["ignored"] = list(report.ignored)
    shown["error"] = report.error.message if report.error else None
    if report.sample or report.refused_rows:
        shown["events"] = list(report.sample)
        shown["refused_rows"] = [{"line": line, "reason": reason, "detail": detail} for line, reason, detail in report.refused_rows]
    return shown


def _summary_json(summary: Summary) -> dict[str, object]:
    return {
        "read": summary.read,
        "new": summary.new,
        "duplicate": summary.duplicate,
        "conflict": summary.conflict,
        "refused": summary.refused.total(),
        "reasons": {str(reason): count for reason, count in sorted(summary.refused.items()) if count},
        "skipped": {name: count for name, count in sorted(summary.skipped.items()) if count},
        "merged": summary.merged,
        "clamped": summary.clamped,
        "earliest": _instant(summary.earliest_us),
        "latest": _instant(summary.latest_us),
    }


def _instant(instant_us: int | None) -> str | None:
    if instant_us is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant_us)).isoformat().replace("+00:00", "Z")
