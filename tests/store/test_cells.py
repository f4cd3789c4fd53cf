"""Traffic by the quarter of an hour says of every zone's days what the events say; what is stale is found and forgotten by spans."""

import random
from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import available_timezones

from sqlalchemy import insert, text

from ledger.settlement.calendar import DAY, day_start, zone
from ledger.store.cells import Basis, change_events, current_basis, remove_days, stale_spans
from ledger.store.database import Database
from ledger.store.schema import account_covered, event
from ledger.store.settlements import count_unassigned
from tests.store.sample_rows import EVENT

FIRST_QUARTER = datetime(1980, 1, 1, tzinfo=UTC)


def test_since_1980_every_zone_begins_its_days_on_a_quarter_of_an_hour() -> None:
    """Offsets are whole quarters, and so are the jumps over a midnight. The last zone to join the others was Kiritimati, in 1979."""
    names = sorted(name for name in available_timezones() if resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).is_file())
    assert len(names) > 400
    for name in names:
        found = zone(name)
        instant, before = FIRST_QUARTER, None
        while instant.year < 2040:
            offset = instant.astimezone(found).utcoffset()
            assert offset is not None
            if offset != before:
                on = instant.astimezone(found).date()
                for day in (on - DAY, on, on + DAY):
                    start = day_start(name, day)
                    assert start < FIRST_QUARTER or start.timestamp() % 900 == 0, (name, day, start)
                assert offset % timedelta(minutes=15) == timedelta(0), (name, instant, offset)
            instant, before = instant + timedelta(days=7), offset


def test_unassigned_events_are_counted_from_traffic_as_from_the_events(database: Database) -> None:
    draw = random.Random(7)
    begins, ends = day_start("Asia/Kathmandu", datetime(2026, 5, 11).date()), day_start("Asia/Shanghai", datetime(2026, 5, 21).date())
    old = datetime(1970, 5, 5, 4, 44, 30, tzinfo=UTC)
    received: list[tuple[str, datetime]] = [("early", old), ("early", old - timedelta(microseconds=1))]
    for _ in range(300):
        at = datetime(2026, 5, 1, tzinfo=UTC) + draw.randrange(31 * 86_400) * timedelta(seconds=1)
        edge = draw.choice((begins, ends)) + draw.choice((-1, 0, 1)) * timedelta(microseconds=1)
        received.append((draw.choice(("early", "other", "third")), draw.choice((at, at, edge))))
    spans = {"early": (old, ends), "other": (begins, None)}
    with database.engine.begin() as connection:
        for number, (account, at) in enumerate(received):
            connection.execute(insert(event), EVENT | {"account": account, "request_id": f"r{number}", "received_at": at})
        for account, (start, end) in spans.items():
            connection.execute(
                insert(account_covered).values(account=account, contract_id=account, version=1, in_force=text("tstzrange(:a, :b)")),
                {"a": start, "b": end},
            )
        change_events(connection, [(account, at, 1) for account, at in received])
        change_events(connection, [("third", at, -1) for account, at in received if account == "third"])
        for start, end in (
            (datetime(2026, 4, 30, 16, tzinfo=UTC), datetime(2026, 5, 31, 16, tzinfo=UTC)),
            (begins, ends),
            (datetime(1970, 1, 1, tzinfo=UTC), begins),
            (old, old + timedelta(microseconds=1)),
        ):
            expected: dict[str, int] = {}
            for account, at in received:
                first, last = spans.get(account, (None, None))
                covered = first is not None and first <= at and (last is None or at < last)
                if start <= at < end and not covered and account != "third":
                    expected[account] = expected.get(account, 0) + 1
            assert count_unassigned(connection, start, end) == expected
            assert list(expected) == [] or sum(expected.values()) > 0


def test_stale_spans_are_cut_to_what_is_asked_and_forgotten_with_their_days(database: Database) -> None:
    may = [datetime(2026, 5, day, tzinfo=UTC) for day in range(1, 11)]
    with database.engine.begin() as connection:
        assert current_basis(connection) == Basis(versions=0, intervals=0)
        connection.execute(text("INSERT INTO stale VALUES ('a', '{[2026-05-02,2026-05-04),[2026-05-06,2026-05-07)}')"))
        connection.execute(text("INSERT INTO stale VALUES ('b', '{[2026-05-03,2026-05-05)}')"))
        assert stale_spans(connection, None, may[2], may[6]) == {"a": [(may[2], may[3]), (may[5], may[6])], "b": [(may[2], may[4])]}
        assert stale_spans(connection, ["a"], may[3], may[5]) == {}
        remove_days(connection, {"a": [(may[2], may[3])], "b": [(may[0], may[9])]})
        assert stale_spans(connection) == {"a": [(may[1], may[2]), (may[5], may[6])]}
