"""Requests to judged windows: which windows there are, which are judged, which are breached. Source: specification, section 6."""

from dataclasses import dataclass
from datetime import datetime
from math import ceil

from tests.oracle.classification import MICROSECOND, Request, is_failure
from tests.oracle.terms import Terms, duration_us


@dataclass
class Window:
    """A window (or pool) of one scope and its requests in the objective."""

    start: datetime
    end: datetime
    scope: str
    terms: Terms
    requests: list[Request]
    pooled: bool = False
    result: str = ""

    @property
    def n(self) -> int:
        return len(self.requests)

    @property
    def late(self) -> int:
        return sum(request.late for request in self.requests)

    @property
    def spare(self) -> int:
        """n - ceil(p n): how many may be late without a breach."""
        return self.n - ceil(self.terms.percentile * self.n)

    @property
    def is_breach(self) -> bool:
        return self.late > self.spare

    @property
    def is_over(self) -> bool:
        return sum(request.over for request in self.requests) > self.spare

    @property
    def percentile_us(self) -> int | None:
        """Nearest rank; failed requests and those without a latency are larger than any: None if the rank falls on one."""
        infinite = 1 << 62
        values = sorted(infinite if request.latency_us is None or is_failure(request) else request.latency_us for request in self.requests)
        value = values[ceil(self.terms.percentile * self.n) - 1]
        return None if value == infinite else value


def judge(requests: list[Request]) -> tuple[list[Window], int, int]:
    """The judged windows and pools, how many were insufficient, and how many an overload."""
    windows: dict[tuple[datetime, datetime, str], Window] = {}
    day_of: dict[tuple[datetime, datetime, str], tuple[datetime, datetime]] = {}
    for request in requests:
        if request.in_objective:
            assert request.model is not None
            scope = request.model if request.terms.scope == "model" else "contract"
            key = (*window_of(request), scope)
            windows.setdefault(key, Window(*key, request.terms, [])).requests.append(request)
            day_of[key] = request.day

    judged, insufficient, overload = [], 0, 0
    pools: dict[tuple[datetime, datetime, str], Window] = {}
    for key, window in windows.items():
        terms = window.terms
        if terms.max_requests is not None and window.n > terms.max_requests:
            overload += 1  # "reported as `overload`, not judged, not pooled"
        elif window.n >= terms.min_requests or terms.small_windows == "evaluate":
            judged.append(window)
        elif terms.small_windows == "pool_day" and terms.window != "month":
            pool_key = (*day_of[key], window.scope)
            pools.setdefault(pool_key, Window(*pool_key, terms, [], pooled=True)).requests.extend(window.requests)
        else:
            insufficient += 1
    for pool in pools.values():
        if pool.n >= pool.terms.min_requests:
            judged.append(pool)
        else:
            insufficient += 1
    return judged, insufficient, overload


def window_of(request: Request) -> tuple[datetime, datetime]:
    """The window on which the request falls: [start, end)."""
    day_start_at, day_end_at = request.day
    if request.terms.window == "month":
        return request.stretch.start, request.stretch.end  # "cut where one contract version gives way to another"
    if request.terms.window == "1d":
        return day_start_at, day_end_at
    step = duration_us(request.terms.window) * MICROSECOND
    start = day_start_at + (request.event.received_at - day_start_at) // step * step
    return start, min(start + step, day_end_at)  # "the last one ends at the next midnight"
