"""`ledger ingest`: telemetry files into the ledger."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from ledger.cli.drafts import outdated_texts
from ledger.cli.options import author_option, echo_json, format_option, parsed, said
from ledger.cli.output import echo, wrapped
from ledger.cli.unknown import unknown_texts
from ledger.contract.scalar import parse_duration
from ledger.ingest.event_rules import Reason
from ledger.ingest.given import Asked, Given, instant_us
from ledger.ingest.implausible import Implausible
from ledger.ingest.loader import Summary
from ledger.ingest.mapping import Role
from ledger.ingest.spend_log_table import is_url
from ledger.instant import instant_of, instant_text, second_text
from ledger.printable import brief, printable
from ledger.store.database import open_database
from ledger.workflows.ingest import CHECKED_ROWS, ENDINGS, FileReport, IngestOptions, check_files
from ledger.workflows.ingest import ingest as ingest_files
from ledger.workflows.unknown import Unknown

_EXAMPLE = """\b
Examples:
  ledger ingest telemetry/2026-05/
  ledger ingest --mapping gateway.yaml --account acme-bank access.jsonl.gz
  ledger ingest --account acme-bank --start 2026-05-06T10:15:30Z vllm-bench.json
  ledger ingest --source openrouter-total generations.json
  ledger ingest --check new.csv
  zcat events.csv.gz | ledger ingest -
  zcat trace.csv.gz | ledger ingest --account acme-bank --model deepseek-v4 --name trace.csv -
  ledger ingest postgresql://reader@litellm.internal/litellm

`ledger formats` lists what is read without a mapping.
"""

_SHOWN_FIRST = ("account", "request_id", "model", "received_at", "status")
LONGEST_FILE_NAME = 200  # characters
SHOWN_COLUMNS = 50


def _file_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """What a file could be called, without folders."""
    if value is None:
        return None
    if value.isprintable() and value.strip() not in ("", ".", "..") and "/" not in value and len(value) <= LONGEST_FILE_NAME:
        return value
    raise click.BadParameter("expected the name of a file, without folders, such as trace.csv", ctx, param)


@click.command(epilog=_EXAMPLE)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--mapping", metavar="FILE", type=click.Path(path_type=Path), help="How to read the files: a mapping of your own (YAML).")
@click.option("--source", metavar="NAME", help="How to read the files: a format that ledger knows. Default: found by the columns.")
@click.option("--account", metavar="NAME", help="The account of rows that have none.")
@click.option("--model", metavar="NAME", help="The model of rows that have none.")
@click.option(
    "--start",
    metavar="INSTANT",
    callback=parsed(instant_us),
    help="From when a file without instants counts, such as 2026-05-01T00:00:00Z.",
)
@click.option("--step", metavar="DURATION", callback=parsed(parse_duration), help="From one record of such a file to the next, such as 1s.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a row was refused or is in conflict.")
@click.option("--check", is_flag=True, help=f"Only show what would happen to the first {CHECKED_ROWS:,} rows of each file.")
@click.option("--name", metavar="NAME", callback=_file_name, help="What the one file is called, such as standard input's.")
@click.option("--again", is_flag=True, help="Load content that was loaded under another mapping, name, or other options.")
@click.option(
    "--revive",
    metavar="REASON",
    callback=said,
    help="Requests of the files that were withdrawn for this reason (ledger void --reason) count again, as the files say them.",
)
@author_option
@format_option
@click.pass_obj
def ingest(
    url: str | None, paths: tuple[str, ...], mapping: Path | None, source: str | None, account: str | None,
    model: str | None, start: int | None, step: int | None, strict: bool, check: bool, name: str | None, again: bool,
    revive: str | None, author: str, output_format: str,
) -> None:  # fmt: skip
    """Load telemetry: CSV, JSON Lines, a JSON array or Parquet, plain, .gz or .zst; folders; - is standard input.

    The URL of a LiteLLM proxy's PostgreSQL loads its spend logs; its password may come from PGPASSWORD or ~/.pgpass.

    Loading a file again adds nothing. Rows that break a rule are kept in quarantine with their line and reason, the rest is loaded.
    The format is found by what the files contain. --check opens no database, and so does not see what is loaded already.
    """
    if mapping and source:
        raise click.UsageError("name either --mapping or --source")
    given = Given(account=account, model=model, start_us=start, step_us=step)
    options = IngestOptions(mapping=mapping, source=source, given=given, again=again, revive=revive, name=name)
    if check and revive is not None:
        raise click.UsageError("--revive is for a load: --check does not know what is withdrawn")
    if name is not None and (len(paths) != 1 or is_url(paths[0]) or Path(paths[0]).is_dir()):
        raise click.UsageError("--name is for one file, or for standard input")
    outdated: list[str] = []
    if check:
        reports = check_files(list(paths), options)
    else:
        with open_database(url) as database, _progress() as (on_file, on_progress):
            reports = ingest_files(database, list(paths), options, author=author, on_file=on_file, on_progress=on_progress)
            outdated = outdated_texts(database) if any(one.summary.new or one.summary.joined for one in reports) else []
    total = Summary()
    for report in reports:
        total.add(report.summary)
    _warn(reports)
    if output_format == "json":
        unknown = sum((report.unknown for report in reports), Unknown())
        echo_json({"files": [_report_json(report) for report in reports], "total": _summary_json(total), **_unknown_json(unknown)})
    else:
        _print_text(reports, total, check=check)
    for text in outdated:
        echo(text, err=True)
    refused = total.refused.total() + total.conflict > 0
    if not reports:
        echo(f"warning: no file in {', '.join(paths)} has an ending that is read: {', '.join(ENDINGS)}", err=True)
    if any(report.error for report in reports) or (strict and refused):
        sys.exit(1)


@contextmanager
def _progress() -> Iterator[tuple[Callable[[str, int], None], Callable[[int], None]]]:
    """What to tell of a file and of its rows: a bar with rows, rate and time left on a terminal, else nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _name, _rows: None, lambda _rows: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Rows a second; unknown before the first chunk is stored."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def on_file(name: str, rows: int) -> None:
            bar.reset(task, description=escape(printable(Path(name).name)), total=rows)

        yield on_file, lambda rows: bar.advance(task, rows)


def _warn(reports: list[FileReport]) -> None:
    """Say which files could not be read or have a wrong unit by the look of them, and in one line which columns nobody reads."""
    for report in reports:
        if report.error:
            echo(report.error.text, err=True)
        if report.summary.implausible:
            echo(printable(_implausible_words(report.path, report.summary.implausible)), err=True)
    read = [report for report in reports if report.error is None]
    ignored = sorted({name for report in read for name in report.ignored})
    if ignored:
        more = f" and {len(ignored) - SHOWN_COLUMNS:,} more" if len(ignored) > SHOWN_COLUMNS else ""
        named = ", ".join(_with_files(name, read) for name in ignored[:SHOWN_COLUMNS])
        echo(f"warning: ignored the columns {named}{more}", err=True)


def _with_files(column: str, reports: list[FileReport]) -> str:
    """The column, and which files have it if not all do: it may be misspelt in one of them."""
    having = [report.path for report in reports if column in report.ignored]
    if len(having) == len(reports):
        return brief(column)
    return f"{brief(column)} (of {having[0]}{f' and {len(having) - 1:,} more' if len(having) > 1 else ''})"


def _implausible_words(path: str, found: Implausible) -> str:
    """Seconds that are read as milliseconds lie in 1970: nothing is billed there, and nobody would see it."""
    at, more = instant_of(found.received_us), found.rows - 1
    others = f", and so {'is 1 row' if more == 1 else f'are {more:,} rows'} more" if more else ""
    unit = "is the unit of received_at right in the mapping (epoch_s, epoch_ms, ...)?"
    return f"warning: {path}:{found.line}: received_at is in the year {at:%Y} ({second_text(at)}){others}; {unit}"


def _print_text(reports: list[FileReport], total: Summary, *, check: bool) -> None:
    for report in reports:
        if report.error:
            continue
        echo(f"{report.path} ({report.mapping}): {_summary_text(report.summary, check=check, waiting=report.waiting)}")
        if report.unmeasured:
            echo(f"  a file of the format {report.mapping} has no latency: its requests are priced as not measured")
        for text in (*_filled(report), *unknown_texts(report.unknown), *_next_steps(report, check=check)):
            echo(f"  {text}")
        for line, reason, detail in report.refused_rows:
            echo(f"  line {line}: {reason}: {detail}")
        for row in report.sample:
            echo("\n".join(_sample_lines(row, "would store" if report.role is None else f"would store as {report.role}'s half")))
        if check and (more := _not_shown(report)):
            echo(f"  {more}")
    if sum(report.error is None for report in reports) > 1:
        echo(f"in all: {_summary_text(total, check=check, waiting=sum(report.waiting for report in reports))}")
    if check and any(report.error is None for report in reports):
        echo("not compared with what is loaded: a load counts rows that are known there as duplicate or conflict, or refuses the file")


def _not_shown(report: FileReport) -> str:
    """What there is beside what a check has shown; empty if that is all."""
    summary = report.summary
    counts = {
        "refused": summary.refused.total() - report.waiting - len(report.refused_rows),
        "that would be stored": summary.new + report.waiting - len(report.sample),
        "behind them, not looked at": report.unseen,
    }
    more = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"more rows: {more}" if more else ""


def _sample_lines(row: dict[str, object], what: str) -> list[str]:
    """A row that would be stored, without what is not known or not so."""
    told = [f"{name}={value}" for name, value in _event_json(row).items() if value is not None and value is not False]
    return wrapped(", ".join(told), first=f"  {what}: ")


def _filled(report: FileReport) -> Iterator[str]:
    """How many rows took what the command line gives to those that have none."""
    for asked, count in report.summary.filled.items():
        option = f"--{asked} {shlex.quote(report.given[asked])}"
        if count:
            yield f"{option} filled {count:,} row{'' if count == 1 else 's'} without {_article(asked)}"
        else:
            yield f"{option} changed nothing: no row lacks {_article(asked)}"


def _article(asked: Asked) -> str:
    return f"an {asked}" if asked is Asked.ACCOUNT else f"a {asked}"


def _next_steps(report: FileReport, *, check: bool) -> Iterator[str]:
    """What a newcomer may take for a fault of the file, or may not see as one."""
    waiting = report.summary.refused[Reason.USAGE_MISSING]
    same, differing = report.repeated
    if same + differing:
        yield f"{same + differing:,} have the id of an earlier row: {same:,} identical (duplicates), {differing:,} differing (conflicts)"
    lacking = report.summary.refused[Reason.MISSING_FIELD]
    if lacking and lacking == report.summary.read and report.role is not Role.ENGINE and Asked.ACCOUNT not in report.given:
        yield from _without_account(report, check=check)
    if report.summary.revived:
        yield f"{report.summary.revived:,} of the new ones were withdrawn, and count again"
    for reason, count in report.summary.withdrawn.most_common():
        rows = "1 row is of a request" if count == 1 else f"{count:,} rows are of requests"
        yield f"{rows} withdrawn before, and not billed; --revive {shlex.quote(reason)} lets them count again as this file says them"
    if not check:
        yield from _in_quarantine(report)
    if report.role is Role.GATEWAY and waiting and not check:
        yield f"{waiting:,} usage_missing: without tokens; they wait for their engine's rows, so load the engine's log as well"
    if report.waiting:
        yield f"{report.waiting:,} without tokens: they wait for their engine's rows, so load the engine's log as well"
    if report.role is Role.ENGINE and check:
        yield "rows of an engine are no requests by themselves: each is joined with its gateway's, or waits for it"
    elif report.role is Role.ENGINE and report.summary.merged:
        yield "merged: joined with their gateway's rows, or waiting for them; `ledger status` counts those that wait"
        yield "where several share a trace or header, nobody can tell whose they are, and they go on waiting"
    if report.summary.conflict:
        yield "conflict: stored with other content under the same request_id; `ledger quarantine list --reason conflict` shows in what"


def _without_account(report: FileReport, *, check: bool) -> Iterator[str]:
    """Of a file all of whose rows lack something: what is done about a log of one customer, which does not say whose it is."""
    if check:
        yield "if it is the account that they lack: --account NAME, where all are of one customer"
    else:
        rows = f"--file {shlex.quote(report.name)} --refused-for missing_field"
        command = f"ledger quarantine requeue {rows} --set account=NAME --reason TEXT"
        yield f"if it is the account that they lack, and all are of one customer: `{command}`"


def _in_quarantine(report: FileReport) -> Iterator[str]:
    """Where the rows are that were refused or are in conflict. The rows that wait for their engine have a line of their own."""
    summary = report.summary
    rows = summary.refused.total() + summary.conflict
    if not rows or (report.role is Role.GATEWAY and rows == summary.refused[Reason.USAGE_MISSING]):
        return
    before = rows - summary.kept
    if summary.kept:
        command = f"ledger quarantine list --file {shlex.quote(report.name)}"
        yield f"{summary.kept:,} new in quarantine; `{command}` shows them"
    if before:
        yield f"{before:,} not added to quarantine: a row of which the same is kept stands there already"


def _summary_text(summary: Summary, *, check: bool, waiting: int = 0) -> str:
    """`waiting` are those of the refused rows that a load would let wait for their engine."""
    reasons = summary.refused - Counter({Reason.USAGE_MISSING: waiting})
    refused = f"{reasons.total():,} refused{_named(reasons.items())}"
    parts = [f"{summary.new:,} fit", *([f"{waiting:,} waiting for their engine"] if waiting else []), refused]
    if not check:
        parts = [f"{summary.new:,} new", f"{summary.duplicate:,} duplicate", f"{summary.conflict:,} conflict", refused]
    if summary.skipped.total():
        parts.append(f"{summary.skipped.total():,} skipped{_named(summary.skipped.items())}")
    if summary.merged:
        parts.append(f"{summary.merged:,} merged")
    text = f"{summary.read:,} {'looked at' if check else 'read'} = {' + '.join(parts)}"
    if summary.joined:
        text += f"; {summary.joined:,} request{'' if summary.joined == 1 else 's'} joined with the engine's figures"
    if summary.clamped:
        text += f"; {summary.clamped:,} clamped"
    if summary.earliest_us is not None and summary.latest_us is not None:
        text += f"; {_instant(summary.earliest_us)} to {_instant(summary.latest_us)}"
    return text


def _named(counts: Iterable[tuple[str, int]]) -> str:
    """` (2 bad_number, 1 future)`; empty if there are none."""
    named = ", ".join(f"{count:,} {name}" for name, count in sorted(counts) if count)
    return f" ({named})" if named else ""


def _report_json(report: FileReport) -> dict[str, object]:
    shown: dict[str, object] = {"file": report.path, "mapping": report.mapping, **_summary_json(report.summary)}
    shown |= _unknown_json(report.unknown) | {"unmeasured": report.unmeasured}
    shown["filled"] = dict(report.summary.filled)
    shown["ignored"] = list(report.ignored)
    shown["error"] = report.error.message if report.error else None
    shown["cure"] = report.error.cure if report.error else None
    shown["kept"] = report.summary.kept
    shown["implausible"] = _implausible_json(report.summary.implausible)
    shown |= {"revived": report.summary.revived, "withdrawn": dict(report.summary.withdrawn.most_common())}
    if report.sample or report.refused_rows:
        shown |= {"waiting": report.waiting, "unseen": report.unseen}
        shown["repeated"] = dict(zip(("identical", "differing"), report.repeated, strict=True))
        shown["events"] = [_event_json(row) for row in report.sample]
        shown["refused_rows"] = [{"line": line, "reason": reason, "detail": detail} for line, reason, detail in report.refused_rows]
    return shown


def _implausible_json(found: Implausible | None) -> dict[str, object] | None:
    return None if found is None else {"line": found.line, "received_at": _instant(found.received_us), "rows": found.rows}


def _event_json(row: dict[str, object]) -> dict[str, object]:
    """A row as it would be stored: what identifies it first, and its instant as everywhere."""
    text = row["received_at"]
    return {name: row[name] for name in _SHOWN_FIRST} | row | {"received_at": text and instant_text(datetime.fromisoformat(str(text)))}


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
        "joined": summary.joined,
        "clamped": summary.clamped,
        "earliest": _instant(summary.earliest_us),
        "latest": _instant(summary.latest_us),
    }


def _unknown_json(unknown: Unknown) -> dict[str, object]:
    return {
        "unassigned": dict(unknown.unassigned.most_common()),
        "unpriced": [
            {"contract": contract_id, "version": version, "what": what, "name": name, "requests": count}
            for (contract_id, version, what, name), count in unknown.unpriced.most_common()
        ],
    }


def _instant(instant_us: int | None) -> str | None:
    return None if instant_us is None else instant_text(instant_of(instant_us))
