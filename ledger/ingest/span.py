"""Spans of time and the instants of samples, in microseconds since 1970. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low

Span = tuple[int, int]  # [start, end)


def step_us(at_us: Sequence[int]) -> int:
    """The usual distance of instants in order, the lower median; 0 of fewer than two."""
    return median_low([later - earlier for earlier, later in pairwise(at_us)]) if len(at_us) > 1 else 0


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The instants that lie in any of the spans, as spans by start that do not touch."""
    united: list[Span] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return tuple(united)
