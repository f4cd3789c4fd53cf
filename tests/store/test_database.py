"""Opening a database: its URL, its clock, its schema."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text

from ledger.errors import DatabaseUnavailable, LedgerError
from ledger.store.database import ClockRefused, Database, SchemaMismatch, connect, open_database
from ledger.store.embedded import Server
from ledger.store.migration import upgrade
from tests.store.new_role import new_role, url_of


@pytest.fixture
def empty_url(server: Server) -> Iterator[str]:
    """A database without tables, for its owner."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield server.owner_url(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_the_clock_is_real_and_in_utc(database: Database) -> None:
    assert abs(database.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert database.now().tzinfo is UTC


def test_sessions_have_the_time_zone_utc_whatever_the_server_says(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        connection.execute(text("ALTER ROLE ledger IN DATABASE postgres SET timezone = 'Asia/Shanghai'"))
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f"ALTER DATABASE {name} SET timezone = 'Asia/Shanghai'"))
    owner_database.engine.dispose()
    with owner_database.engine.connect() as connection:
        assert connection.scalar(text("SHOW timezone")) == "UTC"


def test_ledger_now_sets_the_clock_of_a_test_database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_NOW", "2026-06-02T08:00:00+08:00")
    with open_database(database_url) as database:
        assert database.is_test
        assert database.now() == datetime(2026, 6, 2, tzinfo=UTC)


@pytest.mark.parametrize("written", ["2026-06-02T08:00:00", "yesterday", "2026-06-02T24:00:00Z"])
def test_a_ledger_now_that_is_no_instant_with_an_offset_is_refused(
    database_url: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_NOW", written)
    with pytest.raises(ClockRefused) as refused:
        open_database(database_url)
    assert written in refused.value.message and "offset" in refused.value.cure


def test_ledger_now_is_refused_by_a_production_database(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert upgrade(connect(empty_url), is_test=False) is None
    with open_database(empty_url) as database:
        assert not database.is_test
    monkeypatch.setenv("LEDGER_NOW", "2026-06-02T08:00:00+08:00")
    with pytest.raises(ClockRefused, match="not a test database") as refused:
        open_database(empty_url)
    assert "unset LEDGER_NOW" in refused.value.cure


def test_a_production_database_never_becomes_a_test_database(empty_url: str) -> None:
    engine = connect(empty_url)
    assert upgrade(engine, is_test=False) is None
    with pytest.raises(LedgerError, match="never becomes one"):
        upgrade(engine, is_test=True)
    with engine.connect() as connection, pytest.raises(Exception, match="rows of ledger never change"):
        connection.execute(text("UPDATE ledger SET is_test = true"))
    engine.dispose()


def test_a_database_without_tables_names_the_cure(empty_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="no ledger tables") as refused:
        open_database(empty_url)
    assert refused.value.cure == "run: ledger database upgrade" and refused.value.exit_code == 4 and refused.value.found is None


def test_a_database_of_a_newer_ledger_is_left_alone(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for use in (lambda: open_database(owner_database.url), lambda: upgrade(owner_database.engine, is_test=True)):
        with pytest.raises(SchemaMismatch, match="9999") as refused:
            use()
        assert refused.value.cure == "install a newer ledger"


def test_a_database_with_tables_of_others_is_refused(empty_url: str) -> None:
    engine = connect(empty_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE customers (n integer)"))
    with pytest.raises(LedgerError, match="customers"):
        upgrade(engine, is_test=False)
    engine.dispose()


def test_the_application_is_told_that_tables_are_the_owners_to_make(empty_url: str, server: Server) -> None:
    engine = connect(server.url(conninfo_to_dict(empty_url)["dbname"]))
    with pytest.raises(LedgerError, match="may not make tables") as refused:
        upgrade(engine, is_test=False)
    engine.dispose()
    assert refused.value.cure == "do this as the owner of the database: ledger --database URL database upgrade --application ROLE"


def test_a_role_that_may_not_read_the_tables_is_not_told_that_its_url_is_wrong(owner_url: str) -> None:
    missing = pytest.raises(psycopg.errors.InsufficientPrivilege, match="alembic_version")
    with psycopg.connect(owner_url, autocommit=True) as owner, new_role(owner) as role, missing:
        open_database(url_of(role, owner_url))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_usual_ways_to_write_a_url_are_understood(database_url: str, scheme: str) -> None:
    with open_database(database_url.replace("postgresql", scheme, 1)) as database:
        assert psycopg.connect(database.url).execute("SELECT is_test FROM ledger").fetchone() == (True,)


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "mysql://u:secret@h/d", "postgresql+asyncpg://u:secret@h/d", "no url", "postgresql://h:port/d"]
)
def test_other_urls_are_refused_without_repeating_their_password(url: str) -> None:
    with pytest.raises(LedgerError, match="not understood") as refused:
        open_database(url)
    assert refused.value.exit_code == 2 and "secret" not in str(refused.value)


def test_an_unreachable_database_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseUnavailable, match="y at localhost:1") as refused:
        open_database("postgresql://x:secret@localhost:1/y")
    assert refused.value.exit_code == 4 and "refused" in str(refused.value) and "secret" not in str(refused.value)


def test_an_old_postgresql_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.store.database.OLDEST_POSTGRESQL", 99)  # every server is too old for that
    with pytest.raises(DatabaseUnavailable, match="is PostgreSQL 1") as refused:
        open_database(database_url)
    assert refused.value.cure == "PostgreSQL 99 or newer is needed"


def test_no_password_is_shown_by_a_database(database: Database, server: Server) -> None:
    assert server.password in database.url
    assert server.password not in repr(database) + str(database.engine.url)
