"""What counters counted in a span, from their raw samples: differences and restarts, nothing estimated. Pure.

A counter only rises; a fall means that its process started again, and what it shows then has been counted since. Nothing is extrapolated
to where there is no sample: instead it is said between which samples lies what may have been counted on either side of an edge, or was
lost.
Source: telemetry of vLLM, "how to reconcile a ledger".
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger.ingest.prometheus import Number, Series
from ledger.ingest.span import Span, union


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the series of one counter counted in a span.

    `unsure` are the instants whose events may be missing, or may be counted in the span next to it. `missing` says why there is no figure
    at all, empty if there is one. `first_after_us` and `last_before_us`: how far inside the span samples begin and end, 0 if they do not.
    """

    total: Number
    unsure: tuple[Span, ...]
    missing: str = ""
    first_after_us: int = 0
    last_before_us: int = 0
    restarts: int = 0
    started: int = 0
    stopped: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """What one series counted; `hole` if it is not known on which side of an edge."""

    total: Number = 0
    unsure: tuple[Span, ...] = ()
    restarts: int = 0
    started: int = 0
    stopped: int = 0
    hole: bool = False


def counted(series: Sequence[Series], span: Span, step_us: int, edge_us: int) -> Counted:
    """What the series, each by instant and with samples `step_us` apart, counted in [start, end) together. What happens within `edge_us` of
    an edge may have been counted on either side of it, even with a sample at the edge.

    A series that begins more than two steps inside the span, when others were there before, started then and counted from 0; one that ends
    before the span does has stopped. There is no figure without samples within two steps of both edges.
    """
    start, end = span
    some = [one for one in series if len(one.at_us)]
    first, last = min((one.at_us[0] for one in some), default=end), max((one.at_us[-1] for one in some), default=start)
    late_us, early_us = max(first - start, 0), max(end - last, 0)
    none = Counted(total=0, unsure=(), first_after_us=late_us, last_before_us=early_us)
    if max(late_us, early_us) > 2 * step_us:
        return replace(none, missing="there are no samples near the start or the end")
    parts = [_part(one, span, step_us) for one in some]
    if any(part.hole for part in parts):
        return replace(none, missing="a series has no samples near the start or the end, and counted meanwhile")
    edges = [(edge - edge_us, edge + edge_us) for edge in span]
    return replace(
        none,
        total=sum(part.total for part in parts),
        unsure=union([*edges, *(one for part in parts for one in part.unsure)]),
        restarts=sum(part.restarts for part in parts),
        started=sum(part.started for part in parts),
        stopped=sum(part.stopped for part in parts),
    )


def _part(one: Series, span: Span, step_us: int) -> _Part:
    start, end = span
    at_us, values = one.at_us, one.values
    base, last = bisect_right(at_us, start) - 1, bisect_right(at_us, end) - 1  # the samples at the edges or before them
    if last < 0 or at_us[-1] < start:
        return _Part()
    unsure: list[Span] = []
    total: Number = 0
    restarts = started = stopped = 0
    if base < 0:
        base = 0
        if at_us[0] - start > 2 * step_us:
            total, started = values[0], 1
        else:
            unsure.append((start, at_us[0]))
    for place in range(base + 1, last + 1):
        if values[place] >= values[place - 1]:
            total += values[place] - values[place - 1]
        else:
            total += values[place]
            restarts += 1
            # It ended before the next scrape would have come, and what it counted until then is lost.
            unsure.append((at_us[place - 1], min(at_us[place], at_us[place - 1] + 2 * step_us)))
    if last + 1 == len(at_us) and end - at_us[last] > 2 * step_us:
        stopped = 1
        unsure.append((at_us[last], at_us[last] + 2 * step_us))
    elif last + 1 == len(at_us):
        unsure.append((at_us[last], end))
    hole = False
    for edge in span:
        before = bisect_right(at_us, edge) - 1
        if before >= 0 and at_us[before] < edge and before + 1 < len(at_us):
            unsure.append((at_us[before], at_us[before + 1]))
            hole = hole or (at_us[before + 1] - at_us[before] > 2 * step_us and values[before + 1] != values[before])
    return _Part(total, tuple(unsure), restarts, started, stopped, hole)
