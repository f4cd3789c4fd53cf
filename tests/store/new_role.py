"""Roles that a test makes for itself."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg import sql


@contextmanager
def new_role(connection: psycopg.Connection) -> Iterator[str]:
    """A role that may log in, and nothing else; gone at the end, with all that it was given in the connection's database."""
    name = f"role_{uuid4().hex}"
    role = sql.Identifier(name)
    connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p'").format(role))
    try:
        yield name
    finally:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


def url_of(role: str, url: str) -> str:
    """The URL of the same database for such a role."""
    return re.sub("//[^:]+:[^@]+@", f"//{role}:p@", url)
