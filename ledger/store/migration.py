"""Brings a database to the current schema by the one linear history of `migrations/`.

Takes an engine and gives the revision before and after. Source: docs/operators.md, "The database".
"""

from collections.abc import Collection

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import ProgrammingError

from ledger.bundle import bundled_folder
from ledger.errors import LedgerError
from ledger.store.database import SchemaMismatch, head_revision, place_of, schema_revision
from ledger.store.rights import application_roles, give_rights

_ADVISORY_LOCK = 0x6C6564676572  # "ledger": one upgrade at a time


def upgrade(engine: Engine, *, is_test: bool, applications: Collection[str] = ()) -> str | None:
    """Upgrade in one transaction and give the revision found before, None for a new database, which becomes a test database on request.

    These roles get the rights of the application, and those that had them before get what is new. Two upgrades at once are harmless: the
    second waits and finds nothing to do. What kind of database it is never changes afterwards.
    """
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
            before = schema_revision(connection)
            if before is None:
                _refuse_foreign_tables(connection)
            elif before > head_revision():
                raise SchemaMismatch(place_of(engine), found=before)
            elif is_test and not connection.scalar(text("SELECT is_test FROM ledger")):
                raise LedgerError(
                    f"the database {place_of(engine)} is not a test database, and never becomes one",
                    cure="create an empty database for tests and run: ledger --database URL database upgrade --test",
                )
            migrate(connection, "head")
            if before is None:
                connection.execute(text("INSERT INTO ledger (is_test) VALUES (:is_test)"), {"is_test": is_test})
            for role in {*applications, *application_roles(connection)}:
                give_rights(connection, role)
            return before
    except (ProgrammingError, psycopg.errors.InsufficientPrivilege) as error:
        refused = error.orig if isinstance(error, ProgrammingError) else error
        if not isinstance(refused, psycopg.errors.InsufficientPrivilege):
            raise
        raise LedgerError(
            f"the role may not make tables in the database {place_of(engine)}: {refused}",
            cure="do this as the owner of the database: ledger --database URL database upgrade --application ROLE",
            exit_code=4,
        ) from error


def migrate(connection: Connection, revision: str) -> None:
    """Go to a revision, forwards or (`base` or an earlier one) backwards, within the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(bundled_folder("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    if revision == "base" or revision < (schema_revision(connection) or ""):  # "head" comes after every number
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)


def _refuse_foreign_tables(connection: Connection) -> None:
    tables = sorted(inspect(connection).get_table_names())
    if tables:
        raise LedgerError(
            f"the database holds tables that are not ledger's: {', '.join(tables[:5])}",
            cure="give ledger a database of its own: CREATE DATABASE ledger",
        )
