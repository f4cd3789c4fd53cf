"""Opens the database that a command works on: from a URL, or the server that ledger keeps itself.

Takes the URL or None and gives a `Database`: the engine, and the clock that holds in it. Source: specification, section 9.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, OperationalError, ProgrammingError

from ledger.bundle import bundled_folder
from ledger.errors import DatabaseUnavailable, LedgerError
from ledger.store.embedded import home_folder, running_server

OLDEST_POSTGRESQL = 14
EMBEDDED_DATABASE = "ledger"


class SchemaMismatch(LedgerError):
    """The database has another schema than this ledger works with. `found` is its revision, None if it has none."""

    def __init__(self, place: str, *, found: str | None) -> None:
        newer = found is not None and found > head_revision()
        state = "has no ledger tables yet" if found is None else f"has schema {found}, this ledger works with {head_revision()}"
        cure = "install a newer ledger" if newer else "run: ledger database upgrade"
        super().__init__(f"the database {place} {state}", cure=cure, exit_code=4)
        self.found = found


class ClockRefused(LedgerError):
    """LEDGER_NOW cannot be followed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database with the current schema. A context manager: leaving it closes its connections."""

    engine: Engine
    url: str = field(repr=False)  # with the password
    is_test: bool
    fixed_now: datetime | None = None

    def now(self) -> datetime:
        """The instant that counts as now, aware and in UTC: the clock's, or LEDGER_NOW in a test database."""
        return self.fixed_now or datetime.now(UTC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.engine.dispose()


def open_database(url: str | None) -> Database:
    """Open the database of the URL; None opens the embedded one, which is started, made and given its tables as needed.

    Raises DatabaseUnavailable if none answers, SchemaMismatch if `ledger database upgrade` has to run first, ClockRefused if LEDGER_NOW
    is set and the database is not a test database.
    """
    engine = connect(url)
    try:
        with engine.connect() as connection:
            found = schema_revision(connection)
        if found is None and url is None:
            from ledger.store.migration import upgrade

            upgrade(engine, is_test=False)
            found = head_revision()
        if found != head_revision():
            raise SchemaMismatch(place(engine.url), found=found)
        with engine.connect() as connection:
            is_test = bool(connection.scalar(text("SELECT is_test FROM ledger")))
        rendered = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return Database(engine=engine, url=rendered, is_test=is_test, fixed_now=_fixed_now(is_test=is_test))
    except BaseException:
        engine.dispose()
        raise


def connect(url: str | None) -> Engine:
    """An engine for the URL, or for the embedded server's database, whatever its schema. Sessions have the time zone UTC."""
    parsed = _parse(url) if url is not None else _embedded_url()
    try:
        engine = create_engine(parsed, hide_parameters=True)
    except ArgumentError as error:
        raise _not_understood() from error

    @event.listens_for(engine, "connect")
    def _prepare_session(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute("SET TIME ZONE 'UTC'")
        connection.autocommit = False

    try:
        with engine.connect() as connection:
            version = connection.scalar(text("SELECT current_setting('server_version_num')::integer / 10000"))
    except (ProgrammingError, ValueError) as error:  # an option of the URL that the driver does not know or cannot read
        raise _not_understood() from error
    except OperationalError as error:
        reason = " ".join(str(getattr(error, "orig", error)).split())
        raise DatabaseUnavailable(
            f"no connection to the database {place(engine.url)}: {reason}", cure="check that it runs, and the URL, its user and password"
        ) from error
    if version < OLDEST_POSTGRESQL:
        raise DatabaseUnavailable(
            f"the database {place(engine.url)} is PostgreSQL {version}", cure=f"PostgreSQL {OLDEST_POSTGRESQL} or newer is needed"
        )
    return engine


def schema_revision(connection: Connection) -> str | None:
    """The revision of the database's schema, None if it has no ledger tables."""
    if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def head_revision() -> str:
    """The revision that this ledger works with: that of the last migration, whose file names begin with their revision."""
    return max(file.name.partition("_")[0] for file in (bundled_folder("migrations") / "versions").glob("[0-9]*.py"))


def place(url: URL) -> str:
    """Where a database is, without user and password: for messages."""
    host = url.host or url.query.get("host") or "localhost"
    return f"{url.database or ''} at {host}" if url.port is None else f"{url.database or ''} at {host}:{url.port}"


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise _not_understood()
    parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed if "connect_timeout" in parsed.query else parsed.update_query_dict({"connect_timeout": "10"})


def _not_understood() -> LedgerError:
    """Without the URL, which may hold a password anywhere."""
    return LedgerError("the database URL is not understood", cure="write it as postgresql://user@host:5432/database", exit_code=2)


def _embedded_url() -> URL:
    """The embedded server's database, which is made if it is not there."""
    server = running_server(home_folder())
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [EMBEDDED_DATABASE]).fetchone() is None:
            # Another command may make it at the same moment.
            with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(f"CREATE DATABASE {EMBEDDED_DATABASE}")
    return make_url(server.url(EMBEDDED_DATABASE)).set(drivername="postgresql+psycopg")


def _fixed_now(*, is_test: bool) -> datetime | None:
    written = os.environ.get("LEDGER_NOW")
    if not written:
        return None
    if not is_test:
        raise ClockRefused(
            "LEDGER_NOW is set, but this is not a test database",
            cure="unset LEDGER_NOW, or use a database made with: ledger database upgrade --test",
            exit_code=2,
        )
    from ledger.contract.scalar import parse_instant

    try:
        return parse_instant(written)
    except ValueError as error:
        raise ClockRefused(f"LEDGER_NOW is {written!r}", cure=str(error), exit_code=2) from error
