"""Local days and windows on clock changes, checked against a walk over every minute of the month."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from ledger.settlement.calendar import DAY, WINDOW_STEPS, Days, days_touched, local_days, month_days, window_end, zone

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)

MONTHS = [
    ("Asia/Shanghai", "2026-05"),
    ("Europe/Paris", "2026-03"),
    ("Europe/Paris", "2026-10"),
    ("Africa/Cairo", "2026-04"),  # midnight falls into a gap
    ("America/Havana", "2020-11"),  # midnight comes twice
    ("Pacific/Apia", "2011-12"),  # the 30th does not exist
    ("Australia/Lord_Howe", "2026-04"),  # half an hour
    ("Asia/Kolkata", "2026-05"),
    ("America/Goose_Bay", "2010-11"),  # clocks went back at 00:01
    ("Asia/Kathmandu", "1986-01"),  # a gap of 15 minutes from midnight on
]


@pytest.mark.parametrize(("timezone", "period"), MONTHS)
def test_a_day_starts_at_the_first_instant_that_bears_its_date(timezone: str, period: str) -> None:
    first_on, next_on = month_days(period)
    days = local_days(timezone, first_on, next_on)
    tz = zone(timezone)
    instant = datetime(first_on.year, first_on.month, 1, tzinfo=UTC) - 2 * DAY
    first_instants: dict[date, datetime] = {}
    while instant < days.end + DAY:
        first_instants.setdefault(instant.astimezone(tz).date(), instant)
        instant += MINUTE
    assert list(days.starts) == [start for day, start in sorted(first_instants.items()) if first_on <= day < next_on]
    assert days.end == first_instants[next_on]


@pytest.mark.parametrize(("timezone", "period"), MONTHS)
@pytest.mark.parametrize("window", ["30m", "2h", "1d"])
def test_windows_fill_each_day_from_midnight_and_end_at_the_next(timezone: str, period: str, window: str) -> None:
    days = local_days(timezone, *month_days(period))
    for start, end in zip(days.starts, (*days.starts[1:], days.end), strict=True):
        at = start
        while at < end:
            until = window_end(window, at, days)
            assert at < until <= min(at + WINDOW_STEPS[window] if window != "1d" else end, end)
            at = until
        assert at == end


@pytest.mark.parametrize(
    ("window", "on", "lengths"),
    [
        ("1h", date(2026, 3, 29), {HOUR: 23}),
        ("1h", date(2026, 10, 25), {HOUR: 25}),
        ("2h", date(2026, 3, 29), {2 * HOUR: 11, HOUR: 1}),  # the last one ends with its day
        ("2h", date(2026, 10, 25), {2 * HOUR: 12, HOUR: 1}),
        ("1d", date(2026, 3, 29), {23 * HOUR: 1}),
        ("1d", date(2026, 10, 25), {25 * HOUR: 1}),
    ],
)
def test_a_day_on_which_clocks_change_has_as_many_windows_as_its_hours_hold(window: str, on: date, lengths: dict[timedelta, int]) -> None:
    days = local_days("Europe/Paris", on, on + DAY)
    starts = [days.starts[0]]
    while (end := window_end(window, starts[-1], days)) < days.end:
        starts.append(end)
    assert Counter(window_end(window, start, days) - start for start in starts) == lengths


@pytest.mark.parametrize(("timezone", "period"), MONTHS)
def test_the_days_touched_two_starts_of_days_are_those_of_the_month(timezone: str, period: str) -> None:
    days = local_days(timezone, *month_days(period))
    starts = (*days.starts, days.end)
    for first in range(len(days.starts)):
        for last in range(first + 1, len(starts)):
            assert days_touched(timezone, starts[first], starts[last]) == Days(starts=starts[first:last], end=starts[last])


def test_runs_are_as_long_as_days_stay_equal() -> None:
    days = local_days("Europe/Paris", *month_days("2026-03"))
    assert [(end - start, day) for start, end, day in days.runs()] == [
        (28 * DAY, DAY),
        (timedelta(hours=23), timedelta(hours=23)),
        (2 * DAY, DAY),
    ]


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "Asia/../Asia/Shanghai", "/etc/localtime", "Asia"])
def test_a_name_that_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(KeyError):
        zone(name)
