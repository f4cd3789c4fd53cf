"""Connections to PostgreSQL, and cursors of the driver on them.

What settles and looks takes the driver's own connections: to import SQLAlchemy would take a fifth of its time. What builds statements with
SQLAlchemy has its connections; a query of the store runs on either. Source: decision record driver-connections.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, LiteralString, TypeAlias, TypeVar, Union

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import kwargs_row

if TYPE_CHECKING:
    import sqlalchemy

Connection: TypeAlias = Union[psycopg.Connection[Any], "sqlalchemy.Connection"]
Query: TypeAlias = LiteralString | sql.SQL | sql.Composed
Cursor: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
Row = TypeVar("Row")

PIECE_BYTES = 1 << 18
PATIENCE_SECONDS = 10  # for a server that does not answer


def driver_cursor(connection: Connection) -> Cursor:
    """A cursor of the driver, in the connection's transaction."""
    return _driver_connection(connection).cursor()


def streaming_cursor(connection: Connection) -> "psycopg.ServerCursor[tuple[Any, ...]]":
    """A cursor in the connection's transaction whose rows stay on the server until they are asked for, some at a time."""
    return _driver_connection(connection).cursor(name="streamed")


def _driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    if isinstance(connection, psycopg.Connection):
        return connection
    raw = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    return raw


def column_list(columns: Iterable[str]) -> sql.Composed:
    """The columns, as they stand in a statement."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def fetch(connection: Connection, query: Query, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of the query."""
    with driver_cursor(connection) as cursor:
        return cursor.execute(query, parameters).fetchall()


def fetch_as(connection: Connection, make: Callable[..., Row], query: Query, parameters: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of the query, each made by a class or function that takes its columns by their names."""
    with _driver_connection(connection).cursor(row_factory=kwargs_row(make)) as cursor:
        return cursor.execute(query, parameters).fetchall()


def execute(connection: Connection, statement: Query, parameters: Mapping[str, Any] | None = None) -> None:
    """Run a statement that gives no rows, or none that anybody needs."""
    with driver_cursor(connection) as cursor:
        cursor.execute(statement, parameters)


def put_aside(cursor: Cursor, name: str, query: Query) -> None:
    """Keep what the query gives as a temporary table until the transaction ends, with statistics: what joins it is planned by its size."""
    table, content = sql.Identifier(name), sql.SQL(query) if isinstance(query, str) else query
    cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier("pg_temp", name)))
    cursor.execute(sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS {}").format(table, content))
    cursor.execute(sql.SQL("ANALYZE {}").format(table))


def copy_rows(connection: Connection, table: str, columns: Sequence[str], stream: IO[bytes]) -> int:
    """Copy the stream's binary rows into these columns of the table, whose types they have; gives the number of rows."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), column_list(columns))
    with driver_cursor(connection) as cursor:
        with cursor.copy(statement) as copy:
            while piece := stream.read(PIECE_BYTES):
                copy.write(piece)
        return cursor.rowcount


class Connections:
    """The connections of one command to one database, opened when they are needed and closed together. Sessions have the time zone UTC."""

    def __init__(self, url: str) -> None:
        """The URL is one that the driver understands: postgresql://..."""
        self.url = url
        self._idle: list[psycopg.Connection[Any]] = []

    @contextmanager
    def begin(self, isolation: psycopg.IsolationLevel | None = None) -> Iterator[psycopg.Connection[Any]]:
        """A connection whose transaction begins with its first statement, is committed at the end of the block, and undone by an error."""
        try:
            connection = self._idle.pop()  # a thread beside this one may have taken the last
        except IndexError:
            connection = self._open()
        try:
            connection.isolation_level = isolation
            yield connection
            connection.commit()
        except BaseException:
            connection.close()  # which undoes what it did
            raise
        self._idle.append(connection)

    @cached_property
    def engine(self) -> "sqlalchemy.Engine":
        """The same database for SQLAlchemy."""
        from sqlalchemy import create_engine, event, make_url

        url = make_url(self.url).set(drivername="postgresql+psycopg")
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": str(PATIENCE_SECONDS)})
        engine = create_engine(url, hide_parameters=True)

        @event.listens_for(engine, "connect")
        def _prepare(connection: psycopg.Connection[Any], _record: object) -> None:
            _use_utc(connection)

        return engine

    def close(self) -> None:
        """Close them all; asking for one opens it anew."""
        while self._idle:
            self._idle.pop().close()
        if "engine" in self.__dict__:
            self.engine.dispose()

    def _open(self) -> psycopg.Connection[Any]:
        patience = conninfo_to_dict(self.url).get("connect_timeout", PATIENCE_SECONDS)
        connection = psycopg.connect(self.url, connect_timeout=patience)
        _use_utc(connection)
        return connection


def _use_utc(connection: psycopg.Connection[Any]) -> None:
    connection.autocommit = True
    connection.execute("SET TIME ZONE 'UTC'")
    connection.autocommit = False
