"""Parquet: its columns as the texts that a mapping reads, and as values where they are some already."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.errors import LedgerError
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.mapping import FileFormat, Mapping
from ledger.ingest.reading.format_choice import choose_mapping
from ledger.ingest.reading.json_text import JSON_MACROS, json_paths
from ledger.ingest.reading.line_file import Piece
from ledger.ingest.reading.record_file import RecordFile, unread_fields, value_key
from ledger.ingest.reading.scratch import literal
from ledger.ingest.reading.source_file import SourceFile

_ROW_NUMBER = "file_row_number"  # the column that DuckDB adds

# The types of a source whose values need not be read from a text, and what they are.
VALUES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "BIGINT"),
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile(RecordFile):
    """A file of columns with types."""

    link: Path
    types: dict[str, str]  # DuckDB's, by the column

    @property
    def values(self) -> dict[FieldPath, str]:
        """As the base class describes them."""
        return {path: VALUES[kind] for path in self.read_paths if len(path) == 1 and (kind := self.types.get(path[0])) in VALUES}

    @property
    def reads_source(self) -> bool:
        """As the base class describes it."""
        return True

    def span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, piece: Piece | None) -> exp.Select:
        """As the base class describes it."""
        values = [exp.alias_(_value(path, kind), value_key(path), quoted=True) for path, kind in self.values.items()]
        source = exp.func("read_parquet", exp.Literal.string(str(self.link)), exp.PropertyEQ(
            this=exp.to_identifier(_ROW_NUMBER), expression=exp.true()))  # fmt: skip
        row = exp.Add(this=exp.column(_ROW_NUMBER), expression=exp.Literal.number(1))
        return (
            self.columns(line=row, record=row.copy(), cells={path: self._cell(path) for path in self.read_paths})
            .select(*values)
            .from_(exp.Table(this=source))
            .where(f"{_ROW_NUMBER} >= {first:d} AND {_ROW_NUMBER} < {last:d}")
        )

    def _cell(self, path: FieldPath) -> exp.Expr:
        if len(path) > 1 and path[0] in self.mapping.embedded and self.types[path[0]] in ("VARCHAR", "JSON"):
            values = exp.func("json_values", _text(path[:1], "VARCHAR"), json_paths([path[1:]]))
            return exp.Bracket(this=exp.paren(values), expressions=[exp.Literal.number(1)], offset=1)
        return _text(path, self.types[path[0]])


def open_parquet(source: SourceFile, mappings: tuple[Mapping, ...]) -> ParquetFile:
    """The file, with the columns that it says it has."""
    connection, relation = source.connection, f"read_parquet({literal(str(source.link))})"
    for macro in JSON_MACROS:
        connection.execute(macro)
    types = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {relation})").fetchall())  # noqa: S608
    written = {name for (name,) in connection.execute(f"SELECT name FROM parquet_schema({literal(str(source.link))})").fetchall()}  # noqa: S608
    # DuckDB gives another name to a column whose name it has seen, in large letters or small ones: its values would be missing in silence.
    if renamed := [name for name in types if name not in written]:
        raise LedgerError(
            f"{source.path}: {len(renamed):,} of its columns have the name of another, large and small letters aside, such as {renamed[0]}",
            cure="rename or remove them; those names are as DuckDB shows them",
        )
    if _ROW_NUMBER in types:
        raise LedgerError(f"{source.path}: a column may not be called {_ROW_NUMBER}", cure="rename or remove it")
    mapping, fields, _ = choose_mapping(source.path, mappings, FileFormat.PARQUET, {None: tuple(types)})
    counted = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()  # noqa: S608
    assert counted is not None
    return ParquetFile(
        name=source.path.name, sha256="", mapping=mapping, fields=fields, ignored=unread_fields(mapping, fields), records=counted[0],
        folder=source.folder, connection=connection, link=source.link, types=types,
    )  # fmt: skip


def _text(path: FieldPath, type_name: str) -> exp.Expr:
    """The column's value as text: integers and decimals exact, doubles by their shortest text, instants with their offset."""
    value: exp.Expr = exp.column(path[0], quoted=True)
    for name in path[1:]:
        value = exp.func("struct_extract", value, exp.Literal.string(name))
    if type_name == "TIMESTAMP WITH TIME ZONE":
        instant = exp.cast(exp.func("make_timestamp", exp.func("epoch_us", value)), "TEXT")
        return exp.DPipe(this=instant, expression=exp.Literal.string("Z"), safe=True)
    return exp.cast(value, "TEXT")


def _value(path: FieldPath, kind: str) -> exp.Expr:
    value = exp.column(path[0], quoted=True)
    return exp.func("epoch_us", value) if kind == "TIMESTAMPTZ" else exp.cast(value, kind)
