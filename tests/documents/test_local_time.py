"""Instants as local days and hours, also where the clocks change."""

from datetime import UTC, datetime

from ledger.documents.local_time import CHINESE, month_words, period_words, window_words_local, zone_words


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


SHANGHAI = (at("2026-05-01T00:00+08:00"), at("2026-06-01T00:00+08:00"))
PARIS = (at("2026-10-01T00:00+02:00"), at("2026-11-01T00:00+01:00"))


def test_a_period_ends_on_its_last_local_day() -> None:
    assert month_words(SHANGHAI[0], "Asia/Shanghai") == "May 2026"
    assert period_words(*SHANGHAI, "Asia/Shanghai") == "1 May 2026 – 31 May 2026"
    assert zone_words(*SHANGHAI, "Asia/Shanghai") == "Asia/Shanghai, UTC+08:00"


def test_windows_are_told_in_local_time() -> None:
    def told(start: str, end: str) -> str:
        return window_words_local(at(start), at(end), SHANGHAI, "Asia/Shanghai")

    assert told("2026-05-06T10:00+08:00", "2026-05-06T11:00+08:00") == "Wed 6 May, 10:00–11:00"
    assert told("2026-05-06T23:00+08:00", "2026-05-07T00:00+08:00") == "Wed 6 May, 23:00–24:00"
    assert told("2026-05-06T00:00+08:00", "2026-05-07T00:00+08:00") == "Wed 6 May"
    assert told("2026-05-01T00:00+08:00", "2026-06-01T00:00+08:00") == "Fri 1 May – Sun 31 May"


def test_the_hour_that_comes_twice_is_told_apart() -> None:
    def told(start: str, end: str) -> str:
        return window_words_local(at(start), at(end), PARIS, "Europe/Paris")

    assert zone_words(*PARIS, "Europe/Paris") == "Europe/Paris, UTC+02:00 and UTC+01:00"
    assert told("2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00") == "Sun 25 Oct, 02:00–02:00 (UTC+02:00 to UTC+01:00)"
    assert told("2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00") == "Sun 25 Oct, 02:00–03:00 (UTC+01:00)"
    assert told("2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00") == "Sun 25 Oct"


def test_a_window_in_chinese_has_no_english_word() -> None:
    def told(start: str, end: str) -> str:
        return window_words_local(at(start), at(end), PARIS, "Europe/Paris", CHINESE)

    assert told("2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00") == "2026-10-25 02:00–02:00 (UTC+02:00 至 UTC+01:00)"
    assert told("2026-10-24T22:00+02:00", "2026-10-25T02:00+02:00") == "2026-10-24 22:00 – 2026-10-25 02:00 (UTC+02:00)"
    assert told("2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00") == "2026-10-25"


def test_a_zone_whose_clocks_change_twice_in_a_month_shows_both_offsets() -> None:
    fasting = (at("2026-02-01T00:00+01:00"), at("2026-04-01T00:00+01:00"))
    assert zone_words(*fasting, "Africa/Casablanca") == "Africa/Casablanca, UTC+01:00 and UTC+00:00"


def test_an_offset_with_seconds_is_told_whole() -> None:
    start, end = at("1970-02-01T00:44:30+00:00"), at("1970-03-01T00:44:30+00:00")
    assert zone_words(start, end, "Africa/Monrovia") == "Africa/Monrovia, UTC-00:44:30"


def test_every_month_and_day_has_its_english_name() -> None:
    instants = [at(f"2026-{month:02d}-{month:02d}T12:00+00:00") for month in range(1, 13)]
    months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
    assert [month_words(instant, "UTC") for instant in instants] == [f"{month} 2026" for month in months]
    told = [window_words_local(instant, instant.replace(hour=13), (instant, instant), "UTC").partition(",")[0] for instant in instants]
    assert told == [
        "Thu 1 Jan",
        "Mon 2 Feb",
        "Tue 3 Mar",
        "Sat 4 Apr",
        "Tue 5 May",
        "Sat 6 Jun",
        "Tue 7 Jul",
        "Sat 8 Aug",
        "Wed 9 Sep",
        "Sat 10 Oct",
        "Wed 11 Nov",
        "Sat 12 Dec",
    ]
