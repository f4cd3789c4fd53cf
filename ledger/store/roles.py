"""The two roles of a server that ledger keeps: its owner, who made it and may do everything, and the application, which all commands use.

initdb makes the owner alone. A server of an earlier ledger has one role for both, called as the application is called now. Either is
brought to two roles here. Killed at any step, it is repeated as a whole: until the application's password is written nothing is finished.
Source: decision record two-roles.
"""

import secrets
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from ledger.errors import DatabaseUnavailable
from ledger.store.home import APPLICATION, OWNER, password_file, read_password, sync_folder, write_private
from ledger.store.rights import give_rights

_GO_BETWEEN = "ledger_renames_owner"  # nobody can rename the role that he is


def separate_roles(home: Path, socket_folder: Path) -> None:
    """Give the server that answers at the socket its two roles, and the application its rights in all databases. Holds the home's lock.

    Raises DatabaseUnavailable if the owner's password is not the server's.
    """
    if not password_file(home, OWNER).exists():  # of an earlier ledger: the password of its one role is the owner's
        password_file(home, APPLICATION).replace(password_file(home, OWNER))
        sync_folder(home)
    _name_owner(home, socket_folder)
    password = secrets.token_urlsafe(32)
    with _connect(home, socket_folder, OWNER) as connection:
        role = sql.Identifier(APPLICATION)
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(_GO_BETWEEN)))
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [APPLICATION]).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        plain = sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {}")
        connection.execute(plain.format(role, password))
        databases = connection.execute("SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate").fetchall()
    for (database,) in databases:
        with _connect(home, socket_folder, OWNER, database) as connection:
            if connection.execute("SELECT to_regclass('alembic_version')").fetchone() != (None,):
                give_rights(connection, APPLICATION)
    write_private(password_file(home, APPLICATION), password)


def _name_owner(home: Path, socket_folder: Path) -> None:
    """Call the role that owns everything the owner, if it still has the application's name."""
    try:
        _connect(home, socket_folder, OWNER).close()
    except psycopg.OperationalError as error:
        if "password authentication" not in str(error):
            raise
    else:
        return
    go_between, password = sql.Identifier(_GO_BETWEEN), read_password(home, OWNER)
    try:
        with _connect(home, socket_folder, APPLICATION, password=password) as connection:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(go_between))
            connection.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(go_between, password))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"the embedded database refuses its owner: {str(error).strip().splitlines()[-1]}",
            cure=f"restore {password_file(home, OWNER)}: the server runs, but no longer has this password",
        ) from error
    with _connect(home, socket_folder, _GO_BETWEEN, password=password) as connection:
        connection.execute(sql.SQL("ALTER ROLE {} RENAME TO {}").format(sql.Identifier(APPLICATION), sql.Identifier(OWNER)))


def _connect(
    home: Path, socket_folder: Path, role: str, database: str = "postgres", *, password: str | None = None
) -> psycopg.Connection[Any]:
    return psycopg.connect(host=str(socket_folder), user=role, password=password or read_password(home, role), dbname=database)
