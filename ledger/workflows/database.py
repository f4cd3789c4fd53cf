"""Looks after the database: upgrade it, say where and how it is, stop the embedded server.

Takes the URL of a database, or None for the embedded one. Source: specification, section 9; docs/operators.md, "The database".
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, text

from ledger.errors import DatabaseUnavailable, LedgerError
from ledger.store.database import connect, head_revision, place_of, schema_revision
from ledger.store.embedded import find_server, stop_server
from ledger.store.home import APPLICATION, home_folder
from ledger.store.programs import find_binary
from ledger.store.rights import RoleRights, application_roles, role_rights


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    """What `ledger database status` shows. `schema` is None without tables; `events` an estimate of their number."""

    place: str
    embedded_in: Path | None
    postgresql: str
    schema: str | None
    schema_wanted: str
    is_test: bool
    size_bytes: int
    events: int
    role: RoleRights


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The revision before (None: there were no tables) and after, and the roles that have the rights of the application."""

    before: str | None
    after: str
    applications: list[str]


def upgrade_database(url: str | None, *, is_test: bool, application: str | None = None) -> Upgraded:
    """Bring the schema up to date as its owner, and let the role do what the application does: the one given, those that had its rights
    before, and the embedded server's own. Errors: ledger.store.migration, ledger.store.rights."""
    from ledger.store.migration import upgrade

    engine = connect(url, as_owner=True)
    try:
        given = {*([application] if application else []), *([APPLICATION] if url is None else [])}
        before = upgrade(engine, is_test=is_test, applications=given)
        with engine.connect() as connection:
            return Upgraded(before=before, after=head_revision(), applications=application_roles(connection))
    finally:
        engine.dispose()


def database_url(url: str | None, *, of_owner: bool = False) -> str:
    """The URL that psql understands, password included; the embedded server is started if needed. Its owner's is given on request; raises
    LedgerError if another server's is asked for."""
    if of_owner and url is not None:
        raise LedgerError("ledger does not know the owner of that database", cure="leave out --owner", exit_code=2)
    engine = connect(url, as_owner=of_owner)
    engine.dispose()
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


def find_psql() -> str:
    """The psql of the installed PostgreSQL binaries, else the one on the PATH."""
    try:
        return str(find_binary("psql"))
    except DatabaseUnavailable:
        found = shutil.which("psql")
        if found is None:
            raise LedgerError("psql is not installed", cure="install PostgreSQL's client programs", exit_code=4) from None
        return found


def open_shell(url: str | None) -> None:
    """Become psql on the database. The password goes by the environment, since other users see a command line."""
    engine = connect(url)
    engine.dispose()
    psql = find_psql()
    url_, password = engine.url, engine.url.password
    open_url = URL.create("postgresql", url_.username, None, url_.host, url_.port, url_.database, url_.query)
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    os.execve(psql, [psql, open_url.render_as_string()], environment)


def stop_database(url: str | None) -> bool:
    """Stop the embedded server; False if none was running. Raises LedgerError for a server that is not ledger's."""
    if url is not None:
        raise LedgerError("only the server that ledger keeps itself can be stopped", cure="leave out --database", exit_code=2)
    return stop_server(home_folder())


def database_status(url: str | None) -> DatabaseStatus | None:
    """How the database is. None: the embedded server does not run; asking does not start it."""
    if url is None and find_server(home_folder()) is None:
        return None
    engine = connect(url)
    try:
        with engine.connect() as connection:
            schema = schema_revision(connection)
            role = role_rights(connection)
            version, size = connection.execute(text("SELECT current_setting('server_version'), pg_database_size(current_database())")).one()
            is_test, events = False, 0
            if schema is not None:
                is_test = bool(connection.scalar(text("SELECT is_test FROM ledger")))
                events = connection.scalar(text(EVENTS_ESTIMATE)) or connection.scalar(text("SELECT count(*) FROM event")) or 0
    finally:
        engine.dispose()
    return DatabaseStatus(
        place=place_of(engine),
        embedded_in=home_folder() if url is None else None,
        postgresql=version,
        schema=schema,
        schema_wanted=head_revision(),
        is_test=is_test,
        size_bytes=size,
        events=events,
        role=role,
    )


# Counting a billion rows takes minutes; the planner's own estimate, scaled to the table's present size, takes none.
# A table that the planner has not looked at yet is small or new, and is counted.
EVENTS_ESTIMATE = """
    SELECT (reltuples / greatest(relpages, 1) * (pg_relation_size(oid) / current_setting('block_size')::integer))::bigint
    FROM pg_class WHERE oid = 'event'::regclass AND reltuples > 0
"""
