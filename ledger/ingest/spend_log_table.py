"""LiteLLM's spend logs straight from the proxy's PostgreSQL: the rows of its table as JSON lines, with only what a mapping reads of them.

Takes a URL and writes a file that `reading` opens. The transaction is read-only, and rows come through a cursor of the server, so that
memory does not grow with the table. No message has the URL, which may hold a password. Source: specification, section 2; decision record
gateway-formats.
"""

from collections.abc import Iterable
from typing import BinaryIO

import psycopg
from psycopg import sql

from ledger.errors import LedgerError
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.mapping import Mapping
from ledger.store.connection import Connection, fetch
from ledger.store.database import place, reached, understood

TABLE = "LiteLLM_SpendLogs"
SCHEMES = ("postgresql", "postgres")
FETCHED_ROWS = 5_000


def is_url(path: str) -> bool:
    """Whether it is no file: what stands before the first `://` of a URL is a scheme. Such a path is never printed."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and "/" not in scheme


def source_name(url: str) -> str:
    """What messages and batches call the table of this database. Raises LedgerError, without the URL, if it is none of PostgreSQL's."""
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise LedgerError(
            "a URL of another kind than postgresql:// cannot be read",
            cure="name files, or the database of a LiteLLM proxy as postgresql://user@host:5432/database", exit_code=2,
        )  # fmt: skip
    return f"{TABLE} of {place(understood(url))}"


def write_spend_logs(url: str, mapping: Mapping, file: BinaryIO, *, limit: int | None = None) -> None:
    """Write the rows that stand in the table at this moment, by their start: all, or the first `limit` of them.

    Raises LedgerError if the database does not answer, or the table is not there, is empty or may not be read.
    """
    name = source_name(url)
    connections = reached(url)
    try:
        with connections.begin(psycopg.IsolationLevel.REPEATABLE_READ) as connection:
            connection.read_only = True
            columns = _columns(connection, name)
            with connection.cursor("spend_logs") as cursor:
                cursor.itersize = FETCHED_ROWS
                cursor.execute(_select(mapping, columns, limit))
                for (text,) in cursor:
                    file.write(text.encode() + b"\n")
            if file.tell() == 0:
                raise LedgerError(
                    f"{name}: the table is empty", cure="check that the proxy writes spend logs, and that this is its database"
                )
    except psycopg.Error as error:
        reason = error.diag.message_primary or type(error).__name__
        raise LedgerError(f"{name}: {reason}", cure=f'check that the user may read "{TABLE}", and run it again', exit_code=4) from error
    finally:
        connections.close()


def _columns(connection: Connection, name: str) -> dict[str, str]:
    """The table's columns and their types."""
    rows = fetch(
        connection,
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = to_regclass(quote_ident(%(table)s)) AND attnum > 0 AND NOT attisdropped",
        {"table": TABLE},
    )
    if not rows:
        raise LedgerError(f'{name}: there is no table "{TABLE}"', cure="name the database of a LiteLLM proxy")
    return dict(rows)


def _select(mapping: Mapping, columns: dict[str, str], limit: int | None) -> sql.Composed:
    """One JSON object a row. Prompts, answers, addresses and keys, which stand beside and inside what is read, stay where they are."""
    read = {*mapping.paths, *((name.partition(".")[0],) for name in mapping.identify)}
    parts: list[sql.Composable] = []
    for name in sorted({path[0] for path in read} & set(columns)):
        inner = {path[1:] for path in read if path[0] == name and len(path) > 1}
        parts += [sql.Literal(name), _picked(sql.Identifier(name), inner) if inner else sql.Identifier(name)]
    return sql.SQL('SELECT json_build_object({})::text FROM {} ORDER BY "startTime", request_id{}').format(
        sql.SQL(", ").join(parts), sql.Identifier(TABLE), sql.SQL(" LIMIT {}").format(sql.Literal(limit)) if limit else sql.SQL("")
    )


def _picked(column: sql.Identifier, paths: Iterable[FieldPath]) -> sql.Composed:
    """The column's object with these fields only. JSON in a text is left for the mapping's reader, which knows what is none."""
    value = sql.SQL("{}::jsonb").format(column)
    return sql.SQL("CASE WHEN jsonb_typeof({value}) = 'string' THEN {value} ELSE {picked} END").format(
        value=value, picked=_object(value, frozenset(paths), ())
    )


def _object(value: sql.Composed, paths: frozenset[FieldPath], above: FieldPath) -> sql.Composed:
    parts: list[sql.Composable] = []
    for name in sorted({path[0] for path in paths}):
        here, inner = (*above, name), frozenset(path[1:] for path in paths if path[0] == name and len(path) > 1)
        found = sql.SQL("{} #> {}::text[]").format(value, sql.Literal(list(here)))
        parts += [sql.Literal(name), _object(value, inner, here) if inner else found]
    return sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(parts))
