"""`ledger reconcile`: the ledger's requests held against what vLLM counted."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

import click

from ledger.cli.options import duration_option, echo_json, format_option, pass_database, span_options
from ledger.cli.output import echo
from ledger.documents.number import decimal_text, grouped_count
from ledger.documents.text_table import Span, Style, Table, write_lines
from ledger.errors import LedgerError
from ledger.ingest.engine_counters import SELECTOR
from ledger.ingest.prometheus import Number, Series, cut, decimal_of, read_scrape
from ledger.ingest.prometheus_source import SampleQuery, is_url, read_file, series_at
from ledger.instant import instant_of, instant_text, since_1970_us
from ledger.printable import printable
from ledger.store.database import Database
from ledger.workflows.reconcile import Reconciled, Reconciliation, Telemetry
from ledger.workflows.reconcile import reconcile as reconcile_engines
from ledger.workflows.reconciliation import Check, Verdict

MARGIN = timedelta(minutes=5)  # outside the span, where the samples next to its edges are
BY_HAND_US = 1_000_000  # how exactly a person says when a scrape was made


def _labels(ctx: click.Context, param: click.Parameter, settings: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for setting in settings:
        name, equals, label = setting.partition("=")
        if not (equals and name and label) or name in labels:
            raise click.BadParameter(f"{setting!r}: write MODEL=LABEL, each model once", ctx, param)
        labels[name] = label
    return labels


@click.command()
@click.option("--prometheus", "places", multiple=True, metavar="URL|FILE", help="A Prometheus server, or a file with an answer of one.")
@click.option("--from-scrape", metavar="FILE", help="The text of /metrics at the instant of --from.")
@click.option("--to-scrape", metavar="FILE", help="The text of /metrics at the instant of --until.")
@span_options
@duration_option("--step", "step_us", "Ask for values at every step. Default: the raw samples, as they were scraped.")
@duration_option("--edge", "edge_us", "What ends this close to an edge may be on either side. Default: one scrape; of two scrapes 1s.")
@click.option(
    "--model-label", "labels", multiple=True, metavar="MODEL=LABEL", callback=_labels, help="The label model_name of a model of the ledger."
)
@format_option
@click.pass_context
@pass_database
def reconcile(
    database: Database, ctx: click.Context, places: tuple[str, ...], from_scrape: str | None, to_scrape: str | None, start: datetime | None,
    end: datetime | None, step_us: int | None, edge_us: int | None, labels: dict[str, str], output_format: str,
) -> None:  # fmt: skip
    """Hold requests, tokens and latencies of the ledger against the counters of vLLM, per model and UTC day. Changes nothing.

    Reads raw samples, as answers of Prometheus (files of JSON, or a server that is asked) or as two scrapes. Engines count a request when
    it ends, and so it is counted here; what ended within a scrape of midnight may be on either side of it. Nothing is estimated.

    \b
    Exit codes, for scripts:
      0  all that can be checked is equal, or within the edge
      1  the input is at fault
      3  something differs

    \b
    Examples:
      ledger reconcile --prometheus http://prometheus:9090 --from 2026-05-06T00:00:00Z --until 2026-05-07T00:00:00Z
      ledger reconcile --prometheus counters.json --model-label deepseek-v4=deepseek-ai/DeepSeek-V4
      ledger reconcile --from-scrape a.txt --to-scrape b.txt --from 2026-05-06T00:00:00Z --until 2026-05-06T12:00:00Z
    """
    scrapes = [one for one in (from_scrape, to_scrape) if one is not None]
    if bool(places) == bool(scrapes) or len(scrapes) == 1:
        raise click.UsageError("give --prometheus, or --from-scrape and --to-scrape")
    if scrapes and (start is None or end is None):
        raise click.UsageError("say when the scrapes were made: --from and --until")
    if scrapes:
        instants = [since_1970_us(at) for at in (start, end) if at is not None]
        series = [one for place, at_us in zip(scrapes, instants, strict=True) for one in read_scrape(read_file(place), at_us, place)]
    else:
        earlier, later = start and start - MARGIN, end and end + MARGIN
        wanted = SampleQuery(query=SELECTOR, start=earlier, end=later, step_us=step_us)
        series = _samples(places, wanted)
        _refuse_outside(series, start, end)
        first_us, last_us = (None if at is None else since_1970_us(at) for at in (earlier, later))
        series = [cut(one, first_us, last_us) for one in series]
    telemetry = Telemetry(
        series=series, start=start, end=end, by_day=not scrapes, edge_us=edge_us or (BY_HAND_US if scrapes else None)
    )  # fmt: skip
    found = reconcile_engines(database, telemetry, labels)
    if output_format == "json":
        echo_json(_json(found))
    else:
        _show(found)
    if any(check.verdict is Verdict.DIFFERS for one in found.models for check in one.checks):
        ctx.exit(3)


def _samples(places: Sequence[str], wanted: SampleQuery) -> list[Series]:
    """All samples of files, and those of servers that are wanted."""
    whole = replace(wanted, start=None, end=None)
    return [one for place in places for one in series_at(place, wanted if is_url(place) else whole)]


def _refuse_outside(series: Sequence[Series], start: datetime | None, end: datetime | None) -> None:
    """Samples that end before the span or begin after it tell nothing of it."""
    edges = [at for one in series for at in (*one.at_us[:1], *one.at_us[-1:])]
    if not edges:
        return
    first, last = instant_of(min(edges)), instant_of(max(edges))
    if (start is not None and last < start) or (end is not None and first > end):
        asked = f"from {instant_text(start)}" if start else ""
        asked += f" until {instant_text(end)}" if end else ""
        raise LedgerError(
            f"the samples are from {instant_text(first)} until {instant_text(last)}, and what is asked for is {asked.strip()}",
            cure="give samples of that span, or name theirs with --from and --until",
        )


_SIDES = ("requests, for the ledger has no rows of engines here", "rows of engines, one for each choice of a request")


def _show(found: Reconciliation) -> None:
    for one in found.models:
        write_lines([[Span(f"{printable(one.model)}, {instant_text(one.start)} to {instant_text(one.end)}", Style.BOLD)]], sys.stdout)
        write_lines(_table(one).lines(), sys.stdout)
        for line in _remarks(one):
            echo(f"  {line}")
        echo("")
    for model, requests in found.unmatched.items():
        named = f"{printable(model)}: {grouped_count(requests)} requests in the ledger"
        echo(f"{named}, and no engine shows this model_name; say what engines call it: --model-label {printable(model)}=LABEL")
    if found.nameless:
        echo(f"rows of engines that name no model and wait for their gateway's, and are not compared: {grouped_count(found.nameless)}")


def _table(one: Reconciled) -> Table:
    table = Table("", ">Ledger", ">Engines", ">Difference", ">May be seen", "")
    for check in one.checks:
        if check.verdict is not Verdict.NOT_CHECKABLE:
            style = Style.YELLOW if check.verdict is Verdict.DIFFERS else Style.PLAIN
            table.add_row(check.name, *_figures(check), Span(check.verdict, style))
    return table


def _figures(check: Check) -> tuple[str, str, str, str]:
    assert check.expected is not None and check.seen is not None and check.least is not None and check.most is not None
    difference = check.seen - check.expected
    allowed = _text(check.least) if check.least == check.most else f"{_text(check.least)} to {_text(check.most)}"
    return _text(check.expected), _text(check.seen), f"{'+' if difference > 0 else ''}{_text(difference)}", allowed


def _remarks(one: Reconciled) -> Iterator[str]:
    """What the ledger's side is; what differs and why it usually does, what cannot be checked, and what the samples are like; reasons that
    are the same together."""
    yield f"compared: {_SIDES[one.by_engine]}"
    if one.without_engine:
        yield f"answered requests without a row of an engine: {grouped_count(one.without_engine)}"
    reasons: dict[tuple[Verdict, str], list[str]] = {}
    for check in one.checks:
        if check.why:
            reasons.setdefault((check.verdict, check.why), []).append(check.name)
    for (verdict, why), names in sorted(reasons.items(), key=lambda reason: reason[0][0] is not Verdict.DIFFERS):
        yield f"{verdict}: {'; '.join(names)}: {'usually ' if verdict is Verdict.DIFFERS else ''}{why}"
    yield from one.notes


def _text(number: Number) -> str:
    return grouped_count(number) if isinstance(number, int) else f"{decimal_of(number):,f}"


def _json(found: Reconciliation) -> dict[str, object]:
    return {
        "models": [
            {
                "model": one.model,
                "start": instant_text(one.start),
                "end": instant_text(one.end),
                "compared": "engine_rows" if one.by_engine else "requests",
                "without_engine_row": one.without_engine,
                "checks": [_check_json(check) for check in one.checks],
                "notes": list(one.notes),
            }
            for one in found.models
        ],
        "unmatched": [{"model": model, "requests": requests} for model, requests in found.unmatched.items()],
        "engine_rows_without_model": found.nameless,
    }


def _check_json(check: Check) -> dict[str, object]:
    figures: dict[str, Number | None] = {name: getattr(check, name) for name in ("expected", "seen", "least", "most")}
    return {
        "check": check.name,
        "counter": check.counter,
        "verdict": check.verdict,
        **{name: decimal_text(decimal_of(one)) if isinstance(one, Fraction) else one for name, one in figures.items()},
        "why": check.why,
    }
