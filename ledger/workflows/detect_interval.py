"""Detect intervals: in which spans the GPU memory of a node says that its circuit breaker was open, from samples to intervals.

Takes places of samples (files, standard input, a Prometheus server) and gives what was found; adds it only if it is asked to. Source:
clause 3.1; specification, section 4; decision record breaker-intervals.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from pathlib import Path

from ledger.ingest.breaker import spans_above
from ledger.ingest.gpu_memory import Unit, csv_series, readings
from ledger.ingest.prometheus import Series, read_answer
from ledger.ingest.prometheus_source import SampleQuery, series_at
from ledger.ingest.span import Span, union
from ledger.instant import instant_of, instant_text, since_1970_us
from ledger.store.database import Database
from ledger.store.intervals import Interval, recorded_intervals
from ledger.workflows.interval import BREAKER, REQUIRED, IntervalsAdded, interval_of, record_intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """Open while more than the share `above` is in use for `for_us`; samples further apart than `gap_us` prove nothing (None: twice the
    usual distance). `node_label` and `unit` say how series are read, see `gpu_memory.readings`."""

    above: Decimal
    for_us: int
    gap_us: int | None = None
    node_label: str | None = None
    unit: Unit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """The intervals by node and start, without ids of their own, and what they were found in: nodes, GPUs, samples that count, samples that
    say nothing, gaps."""

    intervals: tuple[Interval, ...]
    nodes: int
    gpus: int
    samples: int
    left_out: int
    gaps: int


def detect_intervals(places: Sequence[str], rule: BreakerRule, wanted: SampleQuery) -> Detected:
    """The spans in which a node's breaker was open: one of its GPUs was above the limit for long enough.

    Raises LedgerError if a place cannot be read or has no samples of GPU memory; nothing is half read.
    """
    series = [one for place in places for one in series_at(place, wanted, _read)]
    gpus = readings(series, above=Fraction(rule.above), node_label=rule.node_label, unit=rule.unit)
    intervals: list[Interval] = []
    gaps = nodes = 0
    for node, group in groupby(gpus, key=lambda gpu: gpu.node):
        found = [spans_above(gpu.samples, for_us=rule.for_us, gap_us=rule.gap_us) for gpu in group]
        intervals += (_interval(node, span) for span in union(span for one in found for span in one.spans))
        gaps += sum(one.gaps for one in found)
        nodes += 1
    return Detected(
        intervals=tuple(intervals),
        nodes=nodes,
        gpus=len(gpus),
        samples=sum(len(gpu.samples) for gpu in gpus),
        left_out=sum(gpu.left_out for gpu in gpus),
        gaps=gaps,
    )


def record_detected(database: Database, detected: Detected, *, author: str, dry_run: bool) -> IntervalsAdded:
    """Add the intervals that are not within breaker intervals which are recorded already, or say how many these are. A longer one is added
    beside the shorter."""
    with database.begin() as connection:
        recorded = recorded_intervals(connection, kind=BREAKER)
    known: dict[str | None, list[Span]] = {}
    for one in recorded:
        known.setdefault(one.interval.node, []).append(_span(one.interval))
    new = [one for one in detected.intervals if not _is_within(_span(one), union(known.get(one.node, []) + known.get(None, [])))]
    return replace(record_intervals(database, new, author=author, dry_run=dry_run), read=len(detected.intervals))


def write_intervals(intervals: Iterable[Interval], path: Path) -> None:
    """Write the intervals as a CSV file that `ledger interval add` reads."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(REQUIRED)
        for one in intervals:
            writer.writerow((one.kind, one.node, instant_text(one.starts_at), instant_text(one.ends_at)))


def _read(content: bytes, place: str) -> list[Series]:
    return (read_answer if content.lstrip()[:1] in (b"{", b"[") else csv_series)(content, place)


def _interval(node: str, span: Span) -> Interval:
    starts_at, ends_at = map(instant_of, span)
    return interval_of(kind=BREAKER, node=node, model=None, starts_at=starts_at, ends_at=ends_at)


def _span(interval: Interval) -> Span:
    return since_1970_us(interval.starts_at), since_1970_us(interval.ends_at)


def _is_within(span: Span, known: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in known)
