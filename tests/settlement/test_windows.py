"""Windows judged by counts: how many late requests are one too many, and what becomes of windows too small or too large."""

from datetime import date, timedelta
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.contract.model import Effective
from ledger.settlement.cell import WindowCell
from ledger.settlement.period import contract_period
from ledger.settlement.windows import judge, tolerated_of
from tests.settlement.months import MONTH, hour, month, window_cell

HOUR = timedelta(hours=1)
TARGET_US, OVER_US = 300_000, 360_000
SKIP = ("small_windows: pool_day", "small_windows: skip")
EVALUATE = ("small_windows: pool_day", "small_windows: evaluate")
LIMITED = ("min_requests: 100", "min_requests: 100\n  max_requests: 200")
MONTHLY = ("window: 1h", "window: month")
CONTRACT_WIDE = ("scope: model", "scope: contract")


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
    judgement = judge(period, [window_cell(requests, late=late_requests)], period.end)
    assert (judgement.counts.judged, judgement.counts.breached) == (1, int(is_breach))


def test_a_breach_is_over_when_as_many_requests_are_above_120_percent() -> None:
    period = month()
    within = judge(period, [window_cell(100, late=2, over=1)], period.end).breaches
    beyond = judge(period, [window_cell(100, late=2, over=2)], period.end).breaches
    assert [(breach.is_over, breach.place_from_slowest) for breach in (*within, *beyond)] == [(False, 2), (True, 2)]


@pytest.mark.parametrize(
    ("late_requests", "measured", "place"),
    [
        (2, 2, 2),  # of a hundred, the second slowest
        (3, 3, 2),
        (3, 2, 1),  # one failed or was not measured: it counts as the slowest
        (2, 1, 1),
        (3, 1, 0),  # the second slowest has no latency
        (2, 0, 0),
        (5, 0, -3),
    ],
)
def test_requests_without_a_latency_are_slower_than_any(late_requests: int, measured: int, place: int) -> None:
    period = month()
    (breach,) = judge(period, [window_cell(100, late=late_requests, late_measured=measured)], period.end).breaches
    assert (breach.tolerated, breach.late_measured, breach.place_from_slowest) == (1, measured, place)


near_the_target = st.integers(TARGET_US - 2, TARGET_US + 3)
near_the_limit = st.integers(OVER_US - 2, OVER_US + 3)
PERIODS = {
    percentile: month(EVALUATE, ("percentile: 99", f"percentile: {percentile}")) for percentile in ("50", "66.6", "90", "99", "99.9")
}


@pytest.mark.parametrize("percentile", PERIODS)
@given(latencies_us=st.lists(st.one_of(st.none(), st.integers(0, TARGET_US), near_the_target, near_the_limit), min_size=1, max_size=250))
def test_counts_find_the_percentile_that_sorting_all_latencies_finds(percentile: str, latencies_us: list[int | None]) -> None:
    n, period = len(latencies_us), PERIODS[percentile]
    from_fastest = sorted(latencies_us, key=lambda latency_us: (latency_us is None, latency_us or 0))
    expected_us = from_fastest[ceil(Fraction(percentile) / 100 * n) - 1]

    late = [latency_us for latency_us in latencies_us if latency_us is None or latency_us > TARGET_US]
    measured = sorted((latency_us for latency_us in late if latency_us is not None), reverse=True)
    over = sum(latency_us is None or latency_us > OVER_US for latency_us in latencies_us)
    breaches = judge(period, [window_cell(n, late=len(late), late_measured=len(measured), over=over)], period.end).breaches

    assert bool(breaches) == (expected_us is None or expected_us > TARGET_US)
    for breach in breaches:
        place = breach.place_from_slowest
        assert (measured[place - 1] if place >= 1 else None) == expected_us
        assert breach.is_over == (expected_us is None or expected_us > OVER_US)


def test_the_tolerated_requests_are_counted_exactly() -> None:
    # In binary, 0.9 x 10 x 10**17 is not what it is in decimal.
    assert tolerated_of(Fraction("0.9"), 10**18) == 10**17
    assert tolerated_of(Fraction("0.9"), 10**18 - 1) == 10**17 - 1
    assert [tolerated_of(Fraction("0.999"), n) for n in (0, 1, 999, 1_000, 1_999, 2_000)] == [0, 0, 0, 1, 1, 2]
    assert tolerated_of(Fraction(1), 1_000) == 0


@pytest.mark.parametrize(
    ("changes", "cells", "counts"),
    [
        ((), [], (0, 0, 0, 0)),  # no data: neither a pass nor a miss
        ((), [window_cell(99)], (0, 0, 1, 0)),
        ((), [window_cell(50), window_cell(50, window_start=hour(1))], (1, 0, 0, 0)),  # small windows of one day, pooled
        ((), [window_cell(50), window_cell(50, late=50, window_start=hour(1))], (1, 1, 0, 0)),
        ((), [window_cell(50), window_cell(50, window_start=hour(24))], (0, 0, 2, 0)),  # two days, two pools
        ((), [window_cell(50), window_cell(50, model="deepseek-v4-mini")], (0, 0, 2, 0)),  # each model by itself
        ((), [window_cell(50), window_cell(50, model="deepseek-moe-4bit")], (1, 0, 0, 0)),  # with all its names
        ((CONTRACT_WIDE,), [window_cell(50), window_cell(50, model="deepseek-v4-mini")], (1, 0, 0, 0)),
        ((), [window_cell(150), window_cell(50, window_start=hour(1))], (1, 0, 1, 0)),  # a large window does not help a pool
        ((SKIP,), [window_cell(99), window_cell(1, window_start=hour(1))], (0, 0, 2, 0)),
        ((EVALUATE,), [window_cell(1, late=1)], (1, 1, 0, 0)),
        ((LIMITED,), [window_cell(200)], (1, 0, 0, 0)),
        ((LIMITED,), [window_cell(201, late=201)], (0, 0, 0, 1)),
        ((LIMITED,), [window_cell(90, window_start=hour(at)) for at in range(3)], (1, 0, 0, 0)),  # a pool has no maximum
        ((MONTHLY,), [window_cell(99)], (0, 0, 1, 0)),  # nothing to pool
        ((MONTHLY,), [window_cell(50), window_cell(50, window_start=hour(24))], (1, 0, 0, 0)),  # one window, whatever its days have
        ((MONTHLY,), [window_cell(99), window_cell(99, model="deepseek-v4-mini", window_start=hour(24))], (0, 0, 2, 0)),
        ((MONTHLY, LIMITED), [window_cell(150), window_cell(51, window_start=hour(24))], (0, 0, 0, 1)),
    ],
)
def test_windows_are_judged_breached_insufficient_or_an_overload(
    changes: tuple[tuple[str, str], ...], cells: list[WindowCell], counts: tuple[int, int, int, int]
) -> None:
    period = month(*changes)
    found = judge(period, cells, period.end).counts
    assert (found.judged, found.breached, found.insufficient, found.overload) == counts


def test_a_pool_has_the_day_as_its_interval_and_knows_its_windows() -> None:
    period = month()
    cells = [window_cell(60, window_start=hour(3)), window_cell(60, late=60, window_start=hour(1))]
    (breach,) = judge(period, cells, period.end).breaches
    assert breach.pooled and (breach.start, breach.end) == (hour(0), hour(24))
    assert breach.window_starts == (hour(1), hour(3))


def test_a_window_sums_the_served_names_of_its_scope() -> None:
    period = month()
    cells = [
        window_cell(60, late=1, late_measured=0, over=1),
        window_cell(40, late=2, over=1, model="deepseek-ai/DeepSeek-V4"),
        window_cell(100, late=1, model="deepseek-v4-mini"),
    ]
    (breach,) = judge(period, cells, period.end).breaches
    assert (breach.scope, breach.window_starts) == ("deepseek-v4", (hour(0),))
    assert (breach.requests, breach.late, breach.late_measured, breach.over_limit) == (100, 3, 2, 2)


def test_the_cells_of_a_month_come_by_day_and_are_judged_as_one() -> None:
    period = month(MONTHLY)
    starts = period.pieces[0].days.starts
    # By itself no day has enough requests, and only the last would miss the target. Cells come in any order.
    days = [window_cell(99, late=1, window_start=start) for start in starts[:-1]] + [window_cell(31, late=2, window_start=starts[-1])]
    (breach,) = judge(period, days[::-1], period.end).breaches
    assert (breach.start, breach.end, breach.pooled) == (period.start, period.end, False)
    assert breach.window_starts == starts and len(starts) == 31
    assert (breach.requests, breach.late, breach.late_measured, breach.tolerated) == (3_001, 32, 32, 30)


def test_a_month_without_requests_on_some_days_has_the_whole_month_as_its_interval() -> None:
    period = month(MONTHLY)
    cells = [window_cell(60, late=2, window_start=hour(72)), window_cell(60, late=2, window_start=hour(24), model="deepseek-moe-4bit")]
    (breach,) = judge(period, cells, period.end).breaches
    assert (breach.start, breach.end, breach.window_starts) == (period.start, period.end, (hour(24), hour(72)))


def test_a_month_is_cut_where_a_version_gives_way_to_another() -> None:
    first = month(MONTHLY).last
    tenth = Effective.model_construct(start=date(2026, 5, 11), until=date(2026, 5, 21))
    lenient = first.objective.model_copy(update={"min_requests": 2_000})
    correction = first.model_copy(update={"version": 2, "replaces": 1, "effective": tenth, "objective": lenient})
    period = contract_period([first, correction], MONTH)
    assert period is not None
    cells = [window_cell(100, late=2, window_start=start) for piece in period.pieces for start in piece.days.starts]
    judgement = judge(period, cells, period.end)
    before, between, after = period.pieces
    assert [(breach.stretch, breach.start, breach.end, breach.window_starts) for breach in judgement.breaches] == [
        (0, period.start, before.days.end, before.days.starts),
        (2, between.days.end, period.end, after.days.starts),
    ]
    assert (judgement.counts.judged, judgement.counts.insufficient) == (2, 1)


def test_breaches_come_by_end_then_start_then_scope() -> None:
    period = month()
    cells = [
        window_cell(100, late=100, window_start=hour(23)),
        window_cell(50, late=50, window_start=hour(0), model="deepseek-v4-mini"),
        # A pool of the day: it starts first and ends last.
        window_cell(50, late=50, window_start=hour(1), model="deepseek-v4-mini"),
        window_cell(100, late=100, window_start=hour(5)),
        window_cell(100, late=100, window_start=hour(5), model="deepseek-v4-mini"),
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
        ([window_cell(100, late=100)], hour(1)),
        ([window_cell(50, late=50), window_cell(50, late=50, window_start=hour(1))], hour(24)),  # a pool waits for its day
    ],
)
def test_a_window_is_not_judged_before_it_has_ended(cells: list[WindowCell], first_judged: object) -> None:
    period = month()
    instants = [hour(0) + n * HOUR / 2 for n in range(49)]
    assert next(at for at in instants if judge(period, cells, at).counts.judged) == first_judged
    assert judge(period, cells, hour(0)).counts.insufficient == 0


def test_a_month_is_not_judged_before_it_has_ended() -> None:
    period = month(MONTHLY)
    cells = [window_cell(100, late=2), window_cell(100, late=2, window_start=hour(24))]
    assert judge(period, cells, period.end - HOUR).counts.judged == 0
    assert judge(period, cells, period.end).counts.judged == 1


def test_windows_that_are_not_judged_are_named_with_the_reason() -> None:
    period = month(LIMITED)
    cells = [
        window_cell(201, window_start=hour(0)),
        window_cell(60, window_start=hour(24)),  # together with the next one enough for a pool
        window_cell(60, window_start=hour(25)),
        window_cell(40, window_start=hour(48)),  # together with the next one too few
        window_cell(40, window_start=hour(49)),
    ]
    unjudged = judge(period, cells, period.end).unjudged
    assert {(start, scope): reason.value for (_, start, scope), reason in unjudged.items()} == {
        (hour(0), "deepseek-v4"): "overload",
        (hour(48), "deepseek-v4"): "insufficient",
        (hour(49), "deepseek-v4"): "insufficient",
    }
    month_long = judge(month(MONTHLY), [window_cell(99, window_start=hour(24))], period.end).unjudged
    assert [(start, reason.value) for (_, start, _), reason in month_long.items()] == [(hour(0), "insufficient")]
