"""Local days: where a day of a time zone starts, which days a span has. Source: specification, section 6."""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@cache
def first_instant_bearing(day: date, timezone: str) -> datetime | None:
    """ "A day starts at the first instant that bears its local date." None for a day that the zone skipped.

    Found by looking: minute by minute through all instants that could bear the date, then second by second.
    """
    zone = ZoneInfo(timezone)
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    for minute in range(-30 * 60, 30 * 60):
        at = noon + timedelta(minutes=minute)
        if at.astimezone(zone).date() == day:
            while (at - timedelta(seconds=1)).astimezone(zone).date() == day:
                at -= timedelta(seconds=1)
            return at
    return None


def day_start(day: date, timezone: str) -> datetime:
    """The start of the day, or of the next one that exists."""
    start = first_instant_bearing(day, timezone)
    while start is None:
        day += ONE_DAY
        start = first_instant_bearing(day, timezone)
    return start


def month_days(period: str) -> tuple[date, date]:
    """The first day of the month `2026-05`, and the first of the next."""
    year, month = int(period[:4]), int(period[5:])
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def days_touched(start: datetime, end: datetime, timezone: str) -> list[tuple[datetime, datetime]]:
    """The local days of [start, end), each with its start and the start of the next; skipped days are left out."""
    zone = ZoneInfo(timezone)
    starts = set()
    day = start.astimezone(zone).date() - 2 * ONE_DAY
    while day <= end.astimezone(zone).date() + 2 * ONE_DAY:
        starts.add(day_start(day, timezone))
        day += ONE_DAY
    inside = sorted(at for at in starts if start <= at < end)
    assert inside and inside[0] == start and end in starts
    return list(zip(inside, [*inside[1:], end], strict=True))
