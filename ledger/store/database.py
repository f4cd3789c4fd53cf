"""Opens the database that a command works on: from a URL, or the server that ledger keeps itself.

Takes the URL or None and gives a `Database`: the engine, and the clock that holds in it. Source: specification, section 9.
"""

import os
import re
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, LiteralString, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ledger.bundle import bundled_folder
from ledger.errors import DatabaseUnavailable, LedgerError
from ledger.store.connection import Connection, Connections, fetch
from ledger.store.embedded import running_server
from ledger.store.home import APPLICATION, home_folder

if TYPE_CHECKING:
    from sqlalchemy import Engine

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
    """An open database with the current schema. A context manager: leaving it closes its connections.

    `embedded_in` is the folder of the server that ledger keeps itself, None for another one; `is_made` says that opening it made it.
    """

    connections: Connections = field(repr=False)
    url: str = field(repr=False)  # with the password
    is_test: bool
    fixed_now: datetime | None = None
    embedded_in: Path | None = None
    is_made: bool = False

    @property
    def engine(self) -> "Engine":
        """The database for what builds statements with SQLAlchemy."""
        return self.connections.engine

    def begin(self, isolation: psycopg.IsolationLevel | None = None) -> AbstractContextManager[psycopg.Connection[Any]]:
        """A connection of the driver, in a transaction that the end of the block commits."""
        return self.connections.begin(isolation)

    def now(self) -> datetime:
        """The instant that counts as now, aware and in UTC: the clock's, or LEDGER_NOW in a test database."""
        return self.fixed_now or datetime.now(UTC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.connections.close()


def open_database(url: str | None) -> Database:
    """Open the database of the URL; None opens the embedded one, which is started, made and given its tables as needed.

    Raises DatabaseUnavailable if none answers, SchemaMismatch if `ledger database upgrade` has to run first, ClockRefused if LEDGER_NOW
    is set and the database is not a test database.
    """
    connections = reached(url)
    try:
        with connections.begin() as connection:
            found = schema_revision(connection)
        is_made = found is None and url is None
        if is_made:
            from ledger.store.migration import upgrade

            owner = connect(None, as_owner=True)
            upgrade(owner, is_test=False, applications=[APPLICATION])
            owner.dispose()
            found = head_revision()
        if found != head_revision():
            raise SchemaMismatch(place(connections.url), found=found)
        with connections.begin() as connection:
            is_test = bool(_value(connection, "SELECT is_test FROM ledger"))
        return Database(
            connections=connections,
            url=connections.url,
            is_test=is_test,
            fixed_now=_fixed_now(is_test=is_test),
            embedded_in=home_folder() if url is None else None,
            is_made=is_made,
        )
    except BaseException:
        connections.close()
        raise


def connect(url: str | None, *, as_owner: bool = False) -> "Engine":
    """An engine for the URL, or for the embedded server's database, whatever its schema. Sessions have the time zone UTC. The owner of the
    embedded one may do everything; a URL says itself whose it is."""
    connections = reached(url, as_owner=as_owner)
    connections.close()
    return connections.engine


def reached(url: str | None, *, as_owner: bool = False) -> Connections:
    """Connections to the database of the URL, or the embedded one, which answers and is of a version that ledger works with."""
    connections = Connections(_embedded_url(as_owner=as_owner) if url is None else understood(url))
    try:
        with connections.begin() as connection:
            version = _value(connection, "SELECT current_setting('server_version_num')::integer / 10000")
    except (psycopg.ProgrammingError, ValueError) as error:  # an option of the URL that the driver does not know or cannot read
        raise _not_understood() from error
    except psycopg.OperationalError as error:  # whose words do not have the password
        raise DatabaseUnavailable(
            f"no connection to the database {place(connections.url)}: {' '.join(str(error).split())}",
            cure="check that it runs, and the URL, its user and password",
        ) from error
    if version < OLDEST_POSTGRESQL:
        connections.close()
        raise DatabaseUnavailable(
            f"the database {place(connections.url)} is PostgreSQL {version}", cure=f"PostgreSQL {OLDEST_POSTGRESQL} or newer is needed"
        )
    return connections


def schema_revision(connection: Connection) -> str | None:
    """The revision of the database's schema, None if it has no ledger tables."""
    if _value(connection, "SELECT to_regclass('alembic_version')::text") is None:
        return None
    revision: str | None = _value(connection, "SELECT version_num FROM alembic_version")
    return revision


def _value(connection: Connection, query: LiteralString) -> Any:
    """What a query gives in its only column and row, None if there is no row."""
    rows = fetch(connection, query)
    return rows[0][0] if rows else None


def head_revision() -> str:
    """The revision that this ledger works with: that of the last migration, whose file names begin with their revision."""
    return max(file.name.partition("_")[0] for file in (bundled_folder("migrations") / "versions").glob("[0-9]*.py"))


def place(url: str) -> str:
    """Where a database is, without user and password: for messages."""
    parts = conninfo_to_dict(url)
    host, name = parts.get("host") or "localhost", parts.get("dbname") or ""
    return f"{name} at {host}:{parts['port']}" if "port" in parts else f"{name} at {host}"


def place_of(engine: "Engine") -> str:
    """Where the database of an engine is."""
    return place(engine.url.set(drivername="postgresql").render_as_string(hide_password=False))


def understood(url: str) -> str:
    """The URL as the driver writes it."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise _not_understood()
    try:
        parts = conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.ProgrammingError:
        parts = {"port": ""}
    if not re.fullmatch(r"[0-9]{1,5}(,[0-9]{1,5})*", str(parts.get("port", "5432"))):
        raise _not_understood()
    return f"postgresql://{rest}"


def _not_understood() -> LedgerError:
    """Without the URL, which may hold a password anywhere."""
    return LedgerError("the database URL is not understood", cure="write it as postgresql://user@host:5432/database", exit_code=2)


def _embedded_url(*, as_owner: bool) -> str:
    """The embedded server's database, which is made if it is not there."""
    server = running_server(home_folder())
    with psycopg.connect(server.url("postgres")) as connection:
        is_there = connection.execute("SELECT FROM pg_database WHERE datname = %s", [EMBEDDED_DATABASE]).fetchone() is not None
    if not is_there:
        # Another command may make it at the same moment.
        taken = suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation)
        with taken, psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {EMBEDDED_DATABASE}")
    return server.owner_url(EMBEDDED_DATABASE) if as_owner else server.url(EMBEDDED_DATABASE)


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
