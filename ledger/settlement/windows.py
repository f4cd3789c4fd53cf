"""Windows and their judgement by counts: the percentile misses the target exactly when too many requests are late.

Source: specification, section 6.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from ledger.settlement.calendar import window_end
from ledger.settlement.cell import WindowCell
from ledger.settlement.period import Period, Piece
from ledger.settlement.statement import WindowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class BreachedWindow:
    """A breached window, or pool of a day's small windows, with its counts of requests in the objective.

    `stretch` is the index of its piece of the period. `window_starts` are those of the cells that it consists of, ascending; `over_limit`
    counts requests over the target times `up_to`; `late_measured` late ones that have a latency. At the percentile, at most `tolerated`
    requests may be slower.
    """

    stretch: int
    start: datetime
    end: datetime
    scope: str
    window_starts: tuple[datetime, ...]
    pooled: bool
    requests: int
    late: int
    late_measured: int
    over_limit: int
    tolerated: int

    @property
    def is_over(self) -> bool:
        """The percentile is above the target times `up_to`."""
        return self.over_limit > self.tolerated

    @property
    def place_from_slowest(self) -> int:
        """The place of the percentile's request among those with a latency, counted from the slowest, from 1; 0 or less if it has none.

        Nearest rank: place `n - ceil(p n) + 1` of all, and requests that failed or have no latency are slower than any. In a breached
        window that request is a late one.
        """
        return self.tolerated + 1 - (self.late - self.late_measured)


def tolerated_of(percentile: Fraction, requests: int) -> int:
    """How many of the requests may be slower than the one at the percentile: n - ceil(p n).

    >>> tolerated_of(Fraction("0.99"), 100), tolerated_of(Fraction("0.99"), 99)
    (1, 0)
    """
    return requests - -(-percentile.numerator * requests // percentile.denominator)


@dataclass(slots=True)
class _Counts:
    window_starts: list[datetime] = field(default_factory=list)
    requests: int = 0
    late: int = 0
    late_measured: int = 0
    over_limit: int = 0

    def add(self, cell: WindowCell) -> None:
        self.window_starts.append(cell.window_start)
        self.requests += cell.requests
        self.late += cell.late
        self.late_measured += cell.late_measured
        self.over_limit += cell.over

    def merge(self, other: "_Counts") -> None:
        self.window_starts += other.window_starts
        self.requests += other.requests
        self.late += other.late
        self.late_measured += other.late_measured
        self.over_limit += other.over_limit


class Unjudged(StrEnum):
    """Why a window that has requests and has ended is not judged."""

    INSUFFICIENT = "insufficient"
    OVERLOAD = "overload"


Window = tuple[int, datetime, str]  # the index of its piece of the period, its start, its scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The small windows of a day, judged as one when it is over: their requests in the objective, and how many of them are late."""

    start: datetime
    end: datetime
    requests: int
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The breached windows in the order in which they meet the budget (end, start, scope), those that have ended and are not judged (of a
    pool that stays too small each of its windows), the pool of each small window that has one, and how many windows there were."""

    breaches: tuple[BreachedWindow, ...]
    unjudged: Mapping[Window, Unjudged] = field(default_factory=dict)
    pools: Mapping[Window, Pool] = field(default_factory=dict)
    counts: WindowCounts

    def breach_at(self, stretch: int, scope: str, window_start: datetime) -> int | None:
        """The place among the breaches of the one that has the cell of this start; None if its window was not breached."""
        return next(
            (
                place
                for place, breach in enumerate(self.breaches)
                if (breach.stretch, breach.scope) == (stretch, scope) and window_start in breach.window_starts
            ),
            None,
        )


NOT_JUDGED = Judgement(breaches=(), counts=WindowCounts(judged=0, breached=0, insufficient=0, overload=0))


def window_of(period: Period, cell: WindowCell) -> Window:
    """The window that counts the requests of the cell; of a month's window the cells are those of its days."""
    stretch = period.piece_at(cell.window_start)
    piece = period.pieces[stretch]
    is_month = piece.contract.objective.window == "month"
    return stretch, piece.days.starts[0] if is_month else cell.window_start, piece.scope_of(cell.model)


def judge(period: Period, cells: Iterable[WindowCell], now: datetime) -> Judgement:
    """Judges every window of the period that has requests in the objective and has ended at `now`.

    While the month runs, a window (or a pool's day) that still fills is neither judged nor counted: a verdict, once given, stays.
    """
    windows: defaultdict[Window, _Counts] = defaultdict(_Counts)
    for cell in cells:
        windows[window_of(period, cell)].add(cell)
    breaches: list[BreachedWindow] = []
    unjudged: dict[Window, Unjudged] = {}
    pooled: dict[Window, Pool] = {}
    pools: defaultdict[tuple[int, datetime, datetime, str], _Counts] = defaultdict(_Counts)
    judged = insufficient = overload = 0
    for (stretch, start, scope), counts in windows.items():
        piece = period.pieces[stretch]
        objective = piece.contract.objective
        # Of a month that is over no window needs its end but a breached one.
        if piece.days.end > now and window_end(objective.window, start, piece.days) > now:
            continue
        if objective.max_requests is not None and counts.requests > objective.max_requests:
            overload += 1
            unjudged[stretch, start, scope] = Unjudged.OVERLOAD
        elif counts.requests >= objective.min_requests or objective.small_windows == "evaluate":
            judged += 1
            if counts.late > tolerated_of(piece.percentile, counts.requests):
                end = window_end(objective.window, start, piece.days)
                breaches.append(_breached(stretch, piece, start, end, scope, counts, pooled=False))
        elif objective.small_windows == "pool_day" and objective.window != "month":
            pools[stretch, *piece.days.day_of(start), scope].merge(counts)
        else:
            insufficient += 1
            unjudged[stretch, start, scope] = Unjudged.INSUFFICIENT
    for (stretch, start, end, scope), counts in pools.items():
        piece = period.pieces[stretch]
        pool = Pool(start=start, end=end, requests=counts.requests, late=counts.late)
        pooled |= {(stretch, one, scope): pool for one in counts.window_starts}
        if end > now:
            continue
        if counts.requests < piece.contract.objective.min_requests:
            insufficient += 1
            unjudged |= {(stretch, one, scope): Unjudged.INSUFFICIENT for one in counts.window_starts}
            continue
        judged += 1
        if counts.late > tolerated_of(piece.percentile, counts.requests):
            breaches.append(_breached(stretch, piece, start, end, scope, counts, pooled=True))
    breaches.sort(key=lambda w: (w.end, w.start, w.scope))
    windows_by_fate = WindowCounts(judged=judged, breached=len(breaches), insufficient=insufficient, overload=overload)
    return Judgement(breaches=tuple(breaches), unjudged=unjudged, pools=pooled, counts=windows_by_fate)


def _breached(stretch: int, piece: Piece, start: datetime, end: datetime, scope: str, counts: _Counts, *, pooled: bool) -> BreachedWindow:
    return BreachedWindow(
        stretch=stretch,
        start=start,
        end=end,
        scope=scope,
        window_starts=tuple(sorted(set(counts.window_starts))),
        pooled=pooled,
        requests=counts.requests,
        late=counts.late,
        late_measured=counts.late_measured,
        over_limit=counts.over_limit,
        tolerated=tolerated_of(piece.percentile, counts.requests),
    )
