"""`ledger interval ...`: record open circuit breakers and model loads, look at them, and find breakers in samples of GPU memory."""

import sys
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.drafts import tell_outdated
from ledger.cli.options import author_option, duration_option, echo_json, format_option, parsed, pass_database, span_options
from ledger.cli.output import echo
from ledger.cli.output_file import check_output, force_option
from ledger.contract.scalar import duration_text, parse_share
from ledger.documents.number import grouped_count
from ledger.documents.text_table import Table, write_lines
from ledger.instant import MICROSECOND, instant_text
from ledger.printable import printable
from ledger.store.database import Database
from ledger.store.intervals import Interval
from ledger.workflows.interval import KINDS, add_intervals, list_intervals

if TYPE_CHECKING:
    from ledger.workflows.detect_interval import Detected


@click.command(epilog="\b\nExample:\n  ledger interval add breakers.csv")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check the file and say how many are new; record nothing.")
@author_option
@pass_database
def add(database: Database, file: Path, dry_run: bool, author: str) -> None:
    """Add the intervals of a CSV file: kind,node,start,end and, if need be, model,id.

    kind is circuit_breaker, where an empty node means any, or model_load, which needs its node and its model. Adding a file again adds
    nothing. Intervals may overlap: a breaker was open where any of them says so. The end belongs to an interval no more; one that has not
    ended is refused.
    """
    done = add_intervals(database, file, author=author, dry_run=dry_run)
    for place in done.empty:
        echo(f"warning: {place}: an interval without length: no request is received in it", err=True)
    echo(f"{done.read} read, {done.new} {'would be ' if dry_run else ''}new")
    if done.new and not dry_run:
        tell_outdated(database)


@click.command("list", epilog="\b\nExample:\n  ledger interval list --kind circuit_breaker --node gpu-17 --from 2026-05-01T00:00:00+08:00")
@click.option("--kind", type=click.Choice(KINDS), help="Only intervals of this kind.")
@click.option("--node", metavar="NAME", help="Only those that hold for this node; those of any node do.")
@span_options
@format_option
@pass_database
def list_(database: Database, kind: str | None, node: str | None, start: datetime | None, end: datetime | None, output_format: str) -> None:
    """Show the recorded intervals that touch a span, by their start."""
    found = list_intervals(database, kind=kind, node=node, start=start, end=end)
    if output_format == "json":
        echo_json([{**_json(one.interval), "author": one.author, "added_at": instant_text(one.added_at)} for one in found])
    elif found:
        table = Table("Id", "Kind", "Node", "Model", "Start", "End", "Length", "Recorded by")
        for one in found:
            table.add_row(printable(one.interval.interval_id), one.interval.kind, *_cells(one.interval), printable(one.author))
        write_lines(table.lines(indent=""), sys.stdout)


@click.command()
@click.argument("places", nargs=-1, metavar="[FILE|URL]...")
@click.option("--prometheus", "servers", multiple=True, metavar="URL", help="Ask this Prometheus server.")
@span_options
@duration_option("--step", "step_us", "Ask for the query's value at every step. Default: the raw samples, as they were scraped.")
@click.option("--query", metavar="PROMQL", help="What to ask for. Default: memory used and free, as DCGM exporter names them.")
@click.option("--unit", type=click.Choice(["percent", "share"]), help="Read series that are a ratio, which is a percentage or a share.")
@click.option("--above", metavar="PERCENT", default="95%", show_default=True, callback=parsed(parse_share), help="Above this; not equal.")
@duration_option("--for", "for_us", "Without interruption for at least this long.", default="5m")
@duration_option("--gap", "gap_us", "Samples further apart prove nothing. Default: twice the usual distance of the series.")
@click.option("--node-label", metavar="LABEL", help="The label that names the node. Default: Hostname, else node, else instance.")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write what `interval add` reads (CSV).")
@force_option
@click.option("--add", "is_added", is_flag=True, help="Record the intervals now.")
@click.option("--dry-run", is_flag=True, help="With --add: say how many would be recorded, and record nothing.")
@author_option
@format_option
@click.pass_obj
def detect(
    url: str | None, places: tuple[str, ...], servers: tuple[str, ...], start: datetime | None, end: datetime | None, step_us: int | None,
    query: str | None, unit: Any, above: Decimal, for_us: int, gap_us: int | None, node_label: str | None, output: Path | None,
    force: bool, is_added: bool, dry_run: bool, author: str, output_format: str,
) -> None:  # fmt: skip
    """Find the spans in which a circuit breaker was open: the GPU memory of a node above 95 % for 5 minutes.

    Reads answers of Prometheus (JSON of query_range, or of query with a range), CSV (node,at,percent or node,at,used,total, and gpu), - for
    standard input, or asks a server. Several places are read together. A node's breaker is open while one of its GPUs is above, by itself,
    for long enough: from the first sample above to the first that is not, or to the last above where samples end or are missing.

    Prints what it finds. Nothing counts before it is recorded: by `ledger interval add`, after somebody looked at it, or by --add, which
    leaves out what is recorded already. Doing it again adds nothing.

    \b
    Examples:
      ledger interval detect memory.json --output breakers.csv
      ledger interval detect --prometheus http://prometheus:9090 --from 2026-05-06T00:00:00Z --until 2026-05-07T00:00:00Z
      ledger interval detect memory.json --add --dry-run
      ledger interval detect ratio.json --unit percent --node-label instance --add
    """
    from ledger.ingest.gpu_memory import SELECTOR
    from ledger.ingest.prometheus_source import SampleQuery
    from ledger.workflows.detect_interval import BreakerRule, detect_intervals, record_detected, write_intervals

    if not places and not servers:
        raise click.UsageError("name files, or a server by --prometheus")
    if dry_run and not is_added:
        raise click.UsageError("--dry-run tries --add; without it nothing is recorded")
    check_output(output, force=force, inputs=places)
    rule = BreakerRule(above=above, for_us=for_us, gap_us=gap_us, node_label=node_label, unit=unit)
    wanted = SampleQuery(query=query or SELECTOR, start=start, end=end, step_us=step_us)
    found = detect_intervals([*places, *servers], rule, wanted)
    if output is not None:
        write_intervals(found.intervals, output)
    added = None
    if is_added:
        from ledger.store.database import open_database

        with open_database(url) as database:
            added = record_detected(database, found, author=author, dry_run=dry_run).new
    if output_format == "json":
        counts = {name: getattr(found, name) for name in ("nodes", "gpus", "samples", "left_out", "gaps")}
        echo_json({"intervals": [_json(one) for one in found.intervals], **counts, "added": added, "dry_run": dry_run})
    else:
        _show(found)
        if added is not None:
            echo(f"{grouped_count(added)} {'would be ' if dry_run else ''}recorded; what was recorded before is left out")


def _show(found: "Detected") -> None:
    if found.intervals:
        table = Table("Node", "Start", "End", "Length")
        for one in found.intervals:
            table.add_row(*_cells(one)[:1], *_cells(one)[2:])
        write_lines(table.lines(indent=""), sys.stdout)
        echo("")
    in_all = sum((_length(one) for one in found.intervals), timedelta())
    open_for = f" of {duration_text(in_all // MICROSECOND)} in all" if found.intervals else ""
    echo(f"{_count(len(found.intervals), 'interval')}{open_for}, in {_count(found.samples, 'sample')} "
         f"of {_count(found.gpus, 'GPU')} on {_count(found.nodes, 'node')}")  # fmt: skip
    if found.gaps:
        echo(f"{_count(found.gaps, 'gap')} between samples: nothing is proved there, and no interval goes across")
    if found.left_out:
        echo(f"{_count(found.left_out, 'sample')} left out: no number, used without free, or two that contradict each other")


def _cells(interval: Interval) -> tuple[str, ...]:
    names = [printable(name or "any") for name in (interval.node, interval.model)]
    return *names, instant_text(interval.starts_at), instant_text(interval.ends_at), duration_text(_length(interval) // MICROSECOND)


def _length(interval: Interval) -> timedelta:
    return interval.ends_at - interval.starts_at


def _count(count: int, noun: str) -> str:
    return f"{grouped_count(count)} {noun}{'' if count == 1 else 's'}"


def _json(interval: Interval) -> dict[str, object]:
    return {
        "id": interval.interval_id,
        "kind": interval.kind,
        "node": interval.node,
        "model": interval.model,
        "start": instant_text(interval.starts_at),
        "end": instant_text(interval.ends_at),
    }
