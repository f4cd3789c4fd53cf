"""Instants as the contract's local days and hours, in words: periods, windows, the offset from UTC.

Takes aware instants and an IANA zone. Ends are exclusive: a month that ends at the midnight of 1 June is shown up to 31 May.
The names of days and months are English, as all words of the documents, unless a window is asked for in other words: no part of ledger
sets a locale.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from ledger.settlement.calendar import zone as zone_of

_INSTANT = timedelta(microseconds=1)


def month_words(start: datetime, zone: str) -> str:
    """The local month in which the instant lies: `May 2026`."""
    return f"{start.astimezone(zone_of(zone)):%B %Y}"


def period_words(start: datetime, end: datetime, zone: str) -> str:
    """First and last local day: `1 May 2026 – 31 May 2026`."""
    first, last = (instant.astimezone(zone_of(zone)) for instant in (start, end - _INSTANT))
    return f"{first.day} {first:%B %Y} – {last.day} {last:%B %Y}"


def zone_words(start: datetime, end: datetime, zone: str) -> str:
    """The zone and its offset, both offsets if the clocks change: `Asia/Shanghai, UTC+08:00`."""
    return f"{zone}, {' and '.join(_offsets(start, end, zone))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWords:
    """How a language writes a day (a format of the local instant `day`), what parts it from the hour, and a pair of offsets."""

    day: str
    comma: str
    to: str


ENGLISH = WindowWords(day="{day:%a} {day.day} {day:%b}", comma=", ", to=" to ")
CHINESE = WindowWords(day="{day:%Y-%m-%d}", comma=" ", to=" 至 ")


def window_words_local(start: datetime, end: datetime, period: tuple[datetime, datetime], zone: str, words: WindowWords = ENGLISH) -> str:
    """A window: `Wed 6 May, 10:00–11:00`; a whole day: `Wed 6 May`; the offset is added in a month in which the clocks change."""
    local_start, local_last, local_end = (instant.astimezone(zone_of(zone)) for instant in (start, end - _INSTANT, end))
    first, last = (words.day.format(day=local) for local in (local_start, local_last))
    begins_day, ends_day = local_start.date() != (start - _INSTANT).astimezone(zone_of(zone)).date(), local_end.date() != local_last.date()
    if begins_day and ends_day:
        return first if first == last else f"{first} – {last}"
    until = "24:00" if ends_day else f"{local_end:%H:%M}"
    offset = f" ({words.to.join(_offsets(start, end, zone))})" if len(_offsets(*period, zone)) > 1 else ""
    begin = f"{first}{words.comma}{local_start:%H:%M}"
    return f"{begin}–{until}{offset}" if first == last else f"{begin} – {last}{words.comma}{until}{offset}"


@lru_cache  # asked anew for each window of a period
def _offsets(start: datetime, end: datetime, zone: str) -> tuple[str, ...]:
    """Every offset between the two instants, in order, each once. Some zones change twice in a month, so each day is looked at."""
    days = [start + timedelta(days=day) for day in range((end - start).days + 1)]
    instants = [*(day for day in days if day < end), end]
    return tuple(dict.fromkeys(_offset(instant.astimezone(zone_of(zone))) for instant in instants))


def _offset(local: datetime) -> str:
    text = f"{local:%z}"
    return f"UTC{text[:3]}:{text[3:5]}" + (f":{text[5:]}" if text[5:] else "")  # seconds, as Liberia had until 1972
