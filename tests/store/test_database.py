"""Opening a database: the clock, the schema, what holds whoever writes."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from ledger.store.database import Database


def test_the_clock_is_real_in_utc(database: Database) -> None:
    assert abs(database.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert database.now().tzinfo is UTC
    with database.engine.connect() as connection:
        assert connection.scalar(text("SHOW timezone")) == "UTC"
