"""When a circuit breaker was open: samples of being above a limit become spans. Pure.

A breaker is open while what is measured is above the limit for a time without interruption. Samples are evidence and nothing else is: the
time has to lie between two samples above, and where samples are missing there is no evidence. Source: clause 3.1; specification, section 4;
decision record breaker-intervals.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.ingest.span import Span, step_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """The spans, by start, none touching another, and how many gaps the samples have."""

    spans: tuple[Span, ...]
    gaps: int


def spans_above(samples: Iterable[tuple[int, bool]], *, for_us: int, gap_us: int | None = None) -> Above:
    """The spans in which one series stays above, of its samples (instant, is above) in any order, at most one for an instant.

    A span begins with the first sample above and ends with the first that is not, or with the last one above where the samples end or a
    gap begins. It counts if its first and its last sample above lie at least `for_us` apart. Between samples further apart than `gap_us`,
    else twice the median distance of the series, is a gap.
    """
    ordered = sorted(samples)
    if gap_us is None:
        gap_us = 2 * step_us([at_us for at_us, _ in ordered])
    spans: list[Span] = []
    gaps = 0
    first = last = before = None  # first and last sample above of the span that is open; the sample before, whatever it says

    def close(end: int) -> None:
        if first is not None and last is not None and last - first >= for_us:
            spans.append((first, end))

    for at_us, is_above in ordered:
        if before is not None and at_us - before > gap_us:
            gaps += 1
            close(before)
            first = None
        if is_above:
            first, last = at_us if first is None else first, at_us
        else:
            close(at_us)
            first = None
        before = at_us
    if before is not None:
        close(before)
    return Above(spans=tuple(spans), gaps=gaps)
