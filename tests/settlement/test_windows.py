"""Windows judged by counts: how many late requests are one too many, and what becomes of windows too small or too large."""

from datetime import timedelta

import pytest

from ledger.settlement.cell import Cell
from ledger.settlement.windows import judge
from tests.settlement.months import cell, hour, late, month

HOUR = timedelta(hours=1)
SKIP = ("small_windows: pool_day", "small_windows: skip")
EVALUATE = ("small_windows: pool_day", "small_windows: evaluate")
LIMITED = ("min_requests: 100", "min_requests: 100\n  max_requests: 200")


@pytest.mark.parametrize(
    ("requests", "late_requests", "is_breach"),
    [
        (100, 1, False),  # P99 is the 99th fastest: one of a hundred may be late
        (100, 2, True),
        (199, 1, False),  # 199 - ceil(197.01) = 1
        (199, 2, True),
        (200, 2, False),
        (200, 3, True),
    ],
)
def test_a_window_is_breached_by_one_late_request_more_than_the_percentile_leaves(
    requests: int, late_requests: int, is_breach: bool
) -> None:
    period = month()
    judgement = judge(period, [cell(requests - late_requests), late(late_requests)], period.end)
    assert (judgement.counts.judged, judgement.counts.breached) == (1, int(is_breach))


def test_a_breach_is_over_when_as_many_requests_are_above_120_percent() -> None:
    period = month()
    within = judge(period, [cell(98), late(1), late(1, over=True)], period.end).breaches
    beyond = judge(period, [cell(98), late(2, over=True)], period.end).breaches
    assert [(breach.is_over, breach.rank_from_slowest) for breach in (*within, *beyond)] == [(False, 2), (True, 2)]


@pytest.mark.parametrize(
    ("changes", "cells", "counts"),
    [
        ((), [], (0, 0, 0, 0)),  # no data: neither a pass nor a miss
        ((), [cell(99)], (0, 0, 1, 0)),
        ((), [cell(50), cell(50, window_start=hour(1))], (1, 0, 0, 0)),  # small windows of one day, pooled
        ((), [cell(50), late(50, window_start=hour(1))], (1, 1, 0, 0)),
        ((), [cell(50), cell(50, window_start=hour(24))], (0, 0, 2, 0)),  # two days, two pools
        ((), [cell(50), cell(50, model="deepseek-v4-mini")], (0, 0, 2, 0)),  # each model by itself
        ((("scope: model", "scope: contract"),), [cell(50), cell(50, model="deepseek-v4-mini")], (1, 0, 0, 0)),
        ((), [cell(150), cell(50, window_start=hour(1))], (1, 0, 1, 0)),  # a large window does not help a pool
        ((SKIP,), [cell(99), cell(1, window_start=hour(1))], (0, 0, 2, 0)),
        ((EVALUATE,), [late(1)], (1, 1, 0, 0)),
        ((LIMITED,), [cell(200)], (1, 0, 0, 0)),
        ((LIMITED,), [late(201)], (0, 0, 0, 1)),
        ((LIMITED,), [cell(90, window_start=hour(at)) for at in range(3)], (1, 0, 0, 0)),  # a pool has no maximum
        ((("window: 1h", "window: month"),), [cell(99)], (0, 0, 1, 0)),  # nothing to pool
        ((), [cell(100, in_objective=False)], (0, 0, 0, 0)),
    ],
)
def test_windows_are_judged_breached_insufficient_or_an_overload(
    changes: tuple[tuple[str, str], ...], cells: list[Cell], counts: tuple[int, int, int, int]
) -> None:
    period = month(*changes)
    found = judge(period, cells, period.end).counts
    assert (found.judged, found.breached, found.insufficient, found.overload) == counts


def test_a_pool_has_the_day_as_its_interval_and_knows_its_windows() -> None:
    period = month()
    (breach,) = judge(period, [cell(60, window_start=hour(3)), late(60, window_start=hour(1))], period.end).breaches
    assert breach.pooled and (breach.start, breach.end) == (hour(0), hour(24))
    assert breach.window_starts == (hour(1), hour(3))


def test_breaches_come_by_end_then_start_then_scope() -> None:
    period = month()
    cells = [
        late(100, window_start=hour(23)),
        late(50, window_start=hour(0), model="deepseek-v4-mini"),
        late(50, window_start=hour(1), model="deepseek-v4-mini"),  # a pool of the day: it starts first and ends last
        late(100, window_start=hour(5)),
        late(100, window_start=hour(5), model="deepseek-v4-mini"),
    ]
    found = [(breach.start, breach.scope) for breach in judge(period, cells, period.end).breaches]
    assert found == [
        (hour(5), "deepseek-v4"),
        (hour(5), "deepseek-v4-mini"),
        (hour(0), "deepseek-v4-mini"),
        (hour(23), "deepseek-v4"),
    ]


@pytest.mark.parametrize(
    ("cells", "first_judged"),
    [
        ([late(100)], hour(1)),
        ([late(50), late(50, window_start=hour(1))], hour(24)),  # a pool waits for its day
    ],
)
def test_a_window_is_not_judged_before_it_has_ended(cells: list[Cell], first_judged: object) -> None:
    period = month()
    instants = [hour(0) + n * HOUR / 2 for n in range(49)]
    assert next(at for at in instants if judge(period, cells, at).counts.judged) == first_judged
    assert judge(period, cells, hour(0)).counts.insufficient == 0
