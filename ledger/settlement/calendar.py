"""Local days, periods and windows as instants: a zone's name and a month in, UTC instants out. No engine does this arithmetic.

Zones come from the `tzdata` package, not from the machine, so that every machine has the same midnights.
Source: specification, section 6; architecture, "No engine does time-zone arithmetic".
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)

# The steps of a window shorter than the month (specification, section 3, `objective.window`).
WINDOW_STEPS: dict[str, timedelta] = {
    **{f"{minutes}m": timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 30)},
    **{f"{hours}h": timedelta(hours=hours) for hours in (1, 2, 3, 4, 6, 8, 12)},
    "1d": DAY,
}


@lru_cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone of that name. Raises KeyError if the zone data does not have it.

    >>> zone("Asia/Shanghai").key
    'Asia/Shanghai'
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", name):
        raise KeyError(name)
    data = resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    if not data.is_file():
        raise KeyError(name)
    with data.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def day_start(zone_name: str, day: date) -> datetime:
    """The first instant whose local date is `day`; if clocks skip the whole day, the first instant after it.

    >>> day_start("Africa/Cairo", date(2026, 4, 24)).isoformat()  # clocks go from 00:00 to 01:00
    '2026-04-23T22:00:00+00:00'
    """
    tz = zone(zone_name)
    midnight = datetime(day.year, day.month, day.day)
    first, second = (midnight.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first.astimezone(tz).replace(tzinfo=None) == midnight:
        return first
    # Midnight falls into a gap: the clocks jump somewhere in (second, first]; find the second at which they do.
    before, after = second - timedelta(seconds=1), first
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(tz).replace(tzinfo=None) >= midnight:
            after = middle
        else:
            before = middle
    return after


def month_days(period: str) -> tuple[date, date]:
    """The first day of a period such as `2026-05`, and the first day after it.

    >>> month_days("2026-12")
    (datetime.date(2026, 12, 1), datetime.date(2027, 1, 1))
    """
    year, month = int(period[:4]), int(period[5:])
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def months_between(after: str, before: str) -> Iterator[str]:
    """The months after the one and before the other, in order.

    >>> list(months_between("2026-11", "2027-02"))
    ['2026-12', '2027-01']
    """
    _, first_on = month_days(after)
    while (month := f"{first_on:%Y-%m}") < before:
        yield month
        _, first_on = month_days(month)


def month_at(zone_name: str, instant: datetime) -> str:
    """The local month that holds the instant.

    >>> month_at("Asia/Shanghai", datetime(2026, 5, 31, 16, tzinfo=UTC))
    '2026-06'
    """
    return f"{instant.astimezone(zone(zone_name)):%Y-%m}"


def month_before(period: str) -> str:
    """The month before this one.

    >>> month_before("2027-01")
    '2026-12'
    """
    first_on, _ = month_days(period)
    return f"{first_on - DAY:%Y-%m}"


def month_anywhere(period: str) -> tuple[datetime, datetime]:
    """A span in which it is this month in any time zone: a day more at both ends than in UTC."""
    start, end = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in month_days(period))
    return start - DAY, end + DAY


def months_anywhere(instant: datetime) -> list[str]:
    """The months that it is somewhere at the instant, one or two, in order.

    >>> months_anywhere(datetime(2026, 5, 31, 12, tzinfo=UTC)), months_anywhere(datetime(2026, 5, 20, tzinfo=UTC))
    (['2026-05', '2026-06'], ['2026-05'])
    """
    return sorted({f"{one:%Y-%m}" for one in (instant - DAY, instant, instant + DAY)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Consecutive local days as instants: `starts` ascending, the last one ends at `end`. Days that clocks skip are left out."""

    starts: tuple[datetime, ...]
    end: datetime

    def day_of(self, instant: datetime) -> tuple[datetime, datetime]:
        """Start and end of the day that holds the instant."""
        index = bisect_right(self.starts, instant) - 1
        return self.starts[index], self.starts[index + 1] if index + 1 < len(self.starts) else self.end

    def runs(self) -> list[tuple[datetime, datetime, timedelta]]:
        """(start, end, length of a day) of the longest runs of equally long days: three or fewer where clocks change once."""
        runs: list[tuple[datetime, datetime, timedelta]] = []
        for start, end in zip(self.starts, (*self.starts[1:], self.end), strict=True):
            if runs and runs[-1][2] == end - start == DAY:
                runs[-1] = (runs[-1][0], end, DAY)
            else:
                runs.append((start, end, end - start))
        return runs


def local_days(zone_name: str, from_on: date, until_on: date) -> Days:
    """The local days from `from_on` to before `until_on`, at least one."""
    starts: list[datetime] = []
    day = from_on
    while day < until_on:
        start = day_start(zone_name, day)
        if starts and starts[-1] == start:
            starts.pop()
        starts.append(start)
        day += DAY
    end = day_start(zone_name, until_on)
    if starts[-1] == end:
        starts.pop()
    return Days(starts=tuple(starts), end=end)


def days_touched(zone_name: str, start: datetime, end: datetime) -> Days:
    """The local days that the instants of [start, end) lie in, whole.

    >>> may = day_start("Asia/Shanghai", date(2026, 5, 1))
    >>> [start.isoformat() for start in days_touched("Asia/Shanghai", may - DAY / 2, may + DAY).starts]
    ['2026-04-29T16:00:00+00:00', '2026-04-30T16:00:00+00:00']
    """
    tz, last = zone(zone_name), end - timedelta(microseconds=1)
    # Not by the dates of the instants alone: where clocks go back over midnight, a day's first hour is followed by the day before.
    days = local_days(zone_name, start.astimezone(tz).date() - DAY, last.astimezone(tz).date() + 2 * DAY)
    first, end_of_last = days.day_of(start)[0], days.day_of(last)[1]
    return Days(starts=tuple(one for one in days.starts if first <= one < end_of_last), end=end_of_last)


def window_end(window: str, start: datetime, days: Days) -> datetime:
    """The end of a window that starts at `start` within `days`: a step later, at the latest at the next midnight.

    A month window is its piece: it ends where `days` end.
    """
    if window == "month":
        return days.end
    _, midnight = days.day_of(start)
    return midnight if window == "1d" else min(start + WINDOW_STEPS[window], midnight)
