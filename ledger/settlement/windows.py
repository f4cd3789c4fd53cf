"""Windows and their judgement by counts: the percentile misses the target exactly when too many requests are late.

Source: specification, section 6.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil

from ledger.settlement.calendar import window_end
from ledger.settlement.cell import Cell
from ledger.settlement.period import Period, Piece
from ledger.settlement.statement import WindowCounts

CONTRACT_SCOPE = "contract"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWindow:
    """A window, or a pool of a day's small windows, with its counts of requests in the objective.

    `window_starts` are those of its windows, ascending; `over_limit` counts requests over the target times `up_to`.
    """

    stretch: int
    start: datetime
    end: datetime
    scope: str
    window_starts: tuple[datetime, ...]
    pooled: bool
    requests: int
    late: int
    over_limit: int
    percentile: Decimal

    @property
    def _tolerated(self) -> int:
        """How many requests may be slower than the one at the percentile: n - ceil(p n)."""
        return self.requests - ceil(Fraction(self.percentile) * self.requests)

    @property
    def is_breach(self) -> bool:
        """The percentile is above the target."""
        return self.late > self._tolerated

    @property
    def is_over(self) -> bool:
        """The percentile is above the target times `up_to`."""
        return self.over_limit > self._tolerated

    @property
    def rank_from_slowest(self) -> int:
        """The place of the percentile's request, counted from the slowest, from 1."""
        return self._tolerated + 1


@dataclass(slots=True)
class _Counts:
    requests: int = 0
    late: int = 0
    over_limit: int = 0

    def add(self, requests: int, late: int, over_limit: int) -> None:
        self.requests += requests
        self.late += late
        self.over_limit += over_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The breached windows in the order in which they meet the budget (end, start, scope), and how many windows there were."""

    breaches: tuple[JudgedWindow, ...]
    counts: WindowCounts


def judge(period: Period, cells: Iterable[Cell], now: datetime) -> Judgement:
    """Judges every window of the period that has requests in the objective and has ended at `now`.

    While the month runs, a window (or a pool's day) that still fills is neither judged nor counted: a verdict, once given, stays.
    """
    by_stretch: list[defaultdict[tuple[datetime, str], _Counts]] = [defaultdict(_Counts) for _ in period.pieces]
    for cell in cells:
        if cell.in_objective:
            piece = period.pieces[cell.stretch]
            scope = piece.served_names[cell.model][0] if piece.contract.objective.scope == "model" else CONTRACT_SCOPE
            by_stretch[cell.stretch][cell.window_start, scope].add(
                cell.requests, cell.requests if cell.late else 0, cell.requests if cell.over else 0
            )
    judged: list[JudgedWindow] = []
    insufficient = overload = 0
    for stretch, (piece, windows) in enumerate(zip(period.pieces, by_stretch, strict=True)):
        objective = piece.contract.objective
        pools: defaultdict[tuple[datetime, datetime, str], list[tuple[datetime, _Counts]]] = defaultdict(list)
        for (start, scope), counts in windows.items():
            end = window_end(objective.window, start, piece.days)
            if end > now:
                continue
            if objective.max_requests is not None and counts.requests > objective.max_requests:
                overload += 1
            elif counts.requests >= objective.min_requests or objective.small_windows == "evaluate":
                judged.append(_window(stretch, piece, start, end, scope, [(start, counts)], pooled=False))
            elif objective.small_windows == "pool_day" and objective.window != "month":
                pools[(*piece.days.day_of(start), scope)].append((start, counts))
            else:
                insufficient += 1
        for (start, end, scope), members in pools.items():
            if end > now:
                continue
            if sum(counts.requests for _, counts in members) >= objective.min_requests:
                judged.append(_window(stretch, piece, start, end, scope, members, pooled=True))
            else:
                insufficient += 1
    breaches = sorted((w for w in judged if w.is_breach), key=lambda w: (w.end, w.start, w.scope))
    windows_by_fate = WindowCounts(judged=len(judged), breached=len(breaches), insufficient=insufficient, overload=overload)
    return Judgement(breaches=tuple(breaches), counts=windows_by_fate)


def _window(
    stretch: int, piece: Piece, start: datetime, end: datetime, scope: str, members: list[tuple[datetime, _Counts]], *, pooled: bool
) -> JudgedWindow:
    total = _Counts()
    for _, counts in members:
        total.add(counts.requests, counts.late, counts.over_limit)
    return JudgedWindow(
        stretch=stretch,
        start=start,
        end=end,
        scope=scope,
        window_starts=tuple(sorted(window_start for window_start, _ in members)),
        pooled=pooled,
        requests=total.requests,
        late=total.late,
        over_limit=total.over_limit,
        percentile=piece.contract.objective.percentile,
    )
