"""Reads a file of records: CSV, JSON Lines, a JSON array or Parquet, plain or compressed, every value as the text that stands there.

Takes a file and gives `RecordFile`: which fields it has, how many records, and for any span of them a DuckDB relation with the line, the
fields that a mapping reads, and why a line is no record (`#malformed`). Rows stay inside DuckDB. Source: specification, section 2.
"""

import codecs
import csv
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from sqlglot import exp

from ledger.errors import LedgerError
from ledger.ingest.compression import Compression, compression_of, decompressed
from ledger.ingest.expression import FILE_STEM_COLUMN, MACROS, RECORD_COLUMN, field_column, field_key
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.line_file import LineFile, line_file, may_be_inexact
from ledger.ingest.mapping import DELIMITERS, FileFormat, Mapping
from ledger.ingest.unfolding import PLAIN, START_BYTES, Broken, Unfolding, unfolder, unfolding_of

# The types of a source whose values need not be read from a text, and what they are.
VALUES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "BIGINT"),
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}
BUFFER_BYTES = 4_000_000  # of DuckDB's, for a part of a file; more than two lines
MEMORY_STEPS_MB = (96, 384, 1024)  # 2,048 lines are held at once, and a line may be 2 MB: what long ones need is found by trying
HALVES_EXTRA_MB = 64  # their rows are put together with their fields while the next chunk is judged
SAMPLED_RECORDS = 10_000  # in which the fields of a JSON file are looked up
LONGEST_QUOTED_LINES = 1_000  # lines that one quoted CSV cell may span
LARGEST_BROKEN_ARRAY_BYTES = 64_000_000
SHOWN_FIELDS = 12  # of a file that no format fits
NEAREST_FORMATS = 3

_LINE_DIGITS = 15  # of the line's number before an unfolded record
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_WITHOUT_RETURN = "CASE WHEN text[-1] = chr(13) THEN text[:-2] ELSE text END"
_LINE_DELIMITER = "\x01\x02\x03\x04"  # stands in no text, so that a line is one cell


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFile:
    """An open file. `fields` are its top-level names; `ignored` those that the mapping neither reads nor knows."""

    name: str
    sha256: str
    mapping: Mapping
    file_format: FileFormat
    fields: tuple[str, ...]
    ignored: tuple[str, ...]
    records: int
    first_row: int  # of the table `record`: 1 behind a header
    types: dict[str, str]  # of Parquet columns
    folder: Path  # for what nobody needs when the file is closed; `source` in it is the file
    lines: LineFile | None  # from which spans are read; else from the table `record`, or the Parquet file
    connection: duckdb.DuckDBPyConnection

    @property
    def read_paths(self) -> tuple[FieldPath, ...]:
        """The fields that the mapping reads and the file can have."""
        return tuple(path for path in self.mapping.paths if path[0] in self.fields)

    @property
    def values(self) -> dict[FieldPath, str]:
        """The fields that the mapping reads and that are values in the file, with their type: BIGINT, BOOLEAN or TIMESTAMPTZ."""
        return {path: VALUES[kind] for path in self.read_paths if len(path) == 1 and (kind := self.types.get(path[0])) in VALUES}

    @property
    def _embedded_paths(self) -> dict[str, list[FieldPath]]:
        """What is read inside fields whose text is JSON, by the field."""
        inner = [path for path in self.read_paths if len(path) > 1 and path[0] in self.mapping.embedded]
        return {name: [path for path in inner if path[0] == name] for name in sorted({path[0] for path in inner})}

    @property
    def _outer_paths(self) -> list[FieldPath]:
        """What is read of the record itself."""
        embedded = self._embedded_paths
        inner = {path for paths in embedded.values() for path in paths}
        return sorted({path for path in self.read_paths if path not in inner} | {(name,) for name in embedded})

    def read_span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, folder: Path) -> None:
        """Make the temporary view `chunk_record` of the records `first` (from 0) up to but not including `last`: #line, #record (from 1),
        #malformed, #raw, #file_stem, and the fields that the mapping reads, null if the file does not have them. What is a value in the
        file is there as such too (`value_key`), an instant in microseconds since 1970. A part of the file may be put into the folder, where
        the view reads it."""
        if self.file_format is FileFormat.PARQUET:
            span = self._parquet_span(first, last)
        else:
            relation, inexact = "record", True
            if self.lines is not None:
                relation = "chunk_line"
                piece = folder / "lines"
                before = self.lines.cut(first + self.first_row, last + self.first_row, piece)
                connection.execute(f"CREATE OR REPLACE TEMP VIEW {relation} AS " + _lines_query(piece, self.lines, before))
                inexact = self.file_format is not FileFormat.CSV and may_be_inexact(piece)
            span = self._text_span(relation, first, last, inexact=inexact)
        connection.execute("CREATE OR REPLACE TEMP VIEW chunk_record AS " + span.sql("duckdb"))

    def _text_span(self, relation: str, first: int, last: int, *, inexact: bool) -> exp.Select:
        """`inexact` is false if no record has a number that DuckDB would write anew: see exact_json."""
        cells: dict[FieldPath, exp.Expr]
        malformed: exp.Expr
        if self.file_format is FileFormat.CSV:
            split = exp.func("csv_cells", exp.column("text"))
            cells = {path: _item(self.fields.index(path[0]) + 1) for path in self._outer_paths if len(path) == 1}
            malformed = exp.func("csv_fault", exp.column("split"), exp.Literal.number(len(self.fields)))
        else:
            exact = exp.func("exact_json", exp.column("text")) if inexact else exp.column("text")
            if _are_columns(self._outer_paths):
                structure = json.dumps({name: "VARCHAR" for (name,) in self._outer_paths})
                split = exp.func("json_columns", exp.column("text"), exact, exp.Literal.string(structure))
                cells = {path: exp.func("struct_extract", exp.column("split"), exp.Literal.string(path[0])) for path in self._outer_paths}
            else:
                split = exp.func("json_items", exp.column("text"), exact, _json_paths(self._outer_paths))
                cells = {path: _item(index) for index, path in enumerate(self._outer_paths, start=1)}
            malformed = exp.func("json_fault", exp.column("split"))
        start, end = first + self.first_row, last + self.first_row
        rows = (
            exp.select("rowid", "line", "text", "fault", exp.alias_(split, "split"))
            .from_(relation)
            .where(f"rowid >= {start:d} AND rowid < {end:d}")
        )
        if self._embedded_paths:
            insides: list[exp.Expr] = []
            for name, paths in self._embedded_paths.items():
                values = exp.func("json_values", cells[(name,)], _json_paths([path[1:] for path in paths]))
                insides.append(exp.alias_(values, f"in {name}", quoted=True))
                cells |= {path: _item(index, of=f"in {name}") for index, path in enumerate(paths, start=1)}
            rows = exp.select("*", *insides).from_(rows.subquery("split_rows"))
        return self._columns(
            line=exp.column("line"),
            record=exp.Add(this=exp.column("rowid"), expression=exp.Literal.number(1 - self.first_row)),
            malformed=exp.func("coalesce", exp.column("fault"), malformed),
            raw=exp.column("text"),
            cells=cells,
        ).from_(rows.subquery("rows"))

    def _parquet_span(self, first: int, last: int) -> exp.Select:
        cells = {path: self._parquet_cell(path) for path in self.read_paths}
        values = [exp.alias_(_parquet_value(path, kind), value_key(path), quoted=True) for path, kind in self.values.items()]
        source = exp.func("read_parquet", exp.Literal.string(str(self.folder / "source")), exp.PropertyEQ(
            this=exp.to_identifier("file_row_number"), expression=exp.true()))  # fmt: skip
        return (
            self._columns(
                line=exp.Add(this=exp.column("file_row_number"), expression=exp.Literal.number(1)),
                record=exp.Add(this=exp.column("file_row_number"), expression=exp.Literal.number(1)),
                malformed=exp.cast(exp.null(), "TEXT"),
                raw=exp.cast(exp.null(), "TEXT"),
                cells=cells,
            )
            .select(*values)
            .from_(exp.Table(this=source))
            .where(f"file_row_number >= {first:d} AND file_row_number < {last:d}")
        )

    def _parquet_cell(self, path: FieldPath) -> exp.Expr:
        if len(path) > 1 and path[0] in self.mapping.embedded and self.types[path[0]] in ("VARCHAR", "JSON"):
            values = exp.func("json_values", _parquet_text(path[:1], "VARCHAR"), _json_paths([path[1:]]))
            return exp.Bracket(this=exp.paren(values), expressions=[exp.Literal.number(1)], offset=1)
        return _parquet_text(path, self.types[path[0]])

    def _columns(
        self, *, line: exp.Expr, record: exp.Expr, malformed: exp.Expr, raw: exp.Expr,
        cells: dict[FieldPath, exp.Expr],
    ) -> exp.Select:  # fmt: skip
        fields = [exp.alias_(cells.get(path, exp.cast(exp.null(), "TEXT")), field_column(path), quoted=True) for path in self.mapping.paths]
        return exp.select(
            exp.alias_(line, "#line", quoted=True),
            exp.alias_(record, RECORD_COLUMN, quoted=True),
            exp.alias_(malformed, "#malformed", quoted=True),
            exp.alias_(raw, "#raw", quoted=True),
            exp.alias_(exp.Literal.string(file_stem(self.name)), FILE_STEM_COLUMN, quoted=True),
            *fields,
        )


def value_key(path: FieldPath) -> str:
    """The name under which a field's value is read, where the file has more than its text."""
    return f"#value.{field_key(path)}"


def file_stem(name: str) -> str:
    """The file's name without the endings of compression and format: `a.csv.gz` is a."""
    path = Path(name)
    return Path(path.stem).stem if path.suffix in (".gz", ".zst") else path.stem


@contextmanager
def open_records(path: Path, mappings: tuple[Mapping, ...], *, name: str | None = None) -> Iterator[RecordFile]:
    """Read the file by the one of the mappings whose identifying fields it has. What it needs on disk is removed at the end.

    Raises LedgerError if the file cannot be read, or no mapping (or more than one) fits.
    """
    try:
        path.name.encode()
    except UnicodeEncodeError as error:
        raise LedgerError(f"{path}: the name of the file is not UTF-8", cure="rename it") from error
    with TemporaryDirectory(prefix="ledger-ingest-") as folder:
        try:
            with path.open("rb"):
                pass
            # A link, since DuckDB would take `*` and `[` in a name for a pattern.
            os.symlink(path.resolve(), Path(folder, "source"))
        except OSError as error:
            raise LedgerError(f"{path}: {error.strerror}", cure="name a file that can be read") from error
        memory_mb = MEMORY_STEPS_MB[0]
        connection = _connected(folder, memory_mb)
        try:
            with ThreadPoolExecutor(max_workers=1) as beside:
                digest = beside.submit(_sha256, path)
                for more_mb in (*MEMORY_STEPS_MB[1:], None):
                    try:
                        opened = _read(connection, path, mappings)
                        break
                    except duckdb.Error as error:
                        if _lacks_room(error) or not _lacks_memory(error) or more_mb is None:
                            raise
                    connection.close()
                    memory_mb = more_mb
                    connection = _connected(folder, memory_mb)
            extra_mb = HALVES_EXTRA_MB if opened.mapping.halves else 0
            if memory_mb > MEMORY_STEPS_MB[0]:
                extra_mb = memory_mb  # what the rules make of long lines comes in addition
            connection.execute(f"SET memory_limit = '{memory_mb + extra_mb:d}MB'")
            yield replace(opened, name=name or path.name, sha256=digest.result())
        except duckdb.Error as error:
            if _lacks_room(error):
                raise LedgerError(
                    f"{path}: no room for what reading it takes", cure="make room where TMPDIR points, or name another folder in it",
                    exit_code=4,
                ) from error  # fmt: skip
            if _lacks_memory(error):
                raise LedgerError(f"{path}: its lines are too long", cure="leave out prompts and answers, or split it") from error
            reason = str(error).splitlines()[0].replace(str(Path(folder, "source")), path.name)
            raise LedgerError(f"{path}: {reason}", cure="check that the file is whole") from error
        finally:
            connection.close()


def _connected(folder: str, memory_mb: int) -> duckdb.DuckDBPyConnection:
    """An empty database in the folder."""
    database = Path(folder, "records.duckdb")
    database.unlink(missing_ok=True)
    connection = duckdb.connect(
        str(database),
        config={
            "memory_limit": f"{memory_mb}MB",
            "threads": 1,  # more of them cost twice the work; chunks are judged and stored beside each other already
            "temp_directory": folder,
            "force_compression": "uncompressed",  # half the time; the lines stand on disk once more while the file is loaded
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_unsigned_extensions": True,  # the only one came with the package, and its signature takes a tenth of a second
        },
    )
    load_writer(connection)
    for macro in MACROS:
        connection.execute(macro)
    return connection


def _lacks_room(error: duckdb.Error) -> bool:
    """Whether the disk is full."""
    return os.strerror(errno.ENOSPC) in str(error) or "max_temp_directory_size" in str(error)


def _lacks_memory(error: duckdb.Error) -> bool:
    """Whether more memory would do: there is a class for it, but a commit that fails for it says so in words alone."""
    return "memory_limit" in str(error)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_writer(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB write rows as PostgreSQL reads them; its settings have to allow unsigned extensions."""
    spec = find_spec("duckdb_extension_postgres_scanner")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
    connection.load_extension(str(folder / "postgres_scanner.duckdb_extension"))


def _folder(connection: duckdb.DuckDBPyConnection) -> Path:
    row = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert row is not None
    return Path(row[0])


def _source_link(connection: duckdb.DuckDBPyConnection) -> str:
    return str(_folder(connection) / "source")


def literal(text: str) -> str:
    """The text in a statement. Whatever is given as a parameter, DuckDB looks for pandas, and imports it where it is installed."""
    return exp.Literal.string(text).sql("duckdb")


def _read(connection: duckdb.DuckDBPyConnection, path: Path, mappings: tuple[Mapping, ...]) -> RecordFile:
    source = _source_link(connection)
    with open(source, "rb") as file:
        start = file.read(4)
    compression = compression_of(start)
    content = _content(path, source, compression)
    if start == b"PAR1":
        return _read_parquet(connection, path, mappings, source)
    kind = unfolding_of(_start_of(path, compression))
    named, mappings = mappings, tuple(mapping for mapping in mappings if mapping.unfolding == (None if kind in PLAIN else kind))
    if not mappings:
        raise LedgerError(
            f"{path}: no file of the format {', '.join(mapping.name for mapping in named)}",
            cure="leave out --source or --mapping, so that the format is found by what the file contains",
        )
    if kind is not None:
        _load_unfolded(connection, path, source, compression, kind)
        return _described_json(connection, path, mappings, FileFormat.JSON_LINES, None)
    if _is_array(connection, path, source, compression):
        _load_array(connection, path, source, compression)
        return _described_json(connection, path, mappings, FileFormat.JSON_ARRAY, None)
    lines = line_file(content)
    if lines is not None:
        first_line = lines.first_line
    else:
        _load_lines(connection, path, str(content), Compression.NONE)
        first = connection.execute("SELECT text FROM record WHERE rowid = 0").fetchone()
        if first is None or first[0] is None:
            raise LedgerError(f"{path}: the file is empty, or its first line is not UTF-8", cure="export it as UTF-8")
        first_line = first[0]
    if first_line.lstrip().startswith("{"):
        if lines is not None and not _begins_with_a_record(connection, lines):
            _load_lines(connection, path, str(content), Compression.NONE)
            lines = None
        file_format = FileFormat.JSON_LINES if lines is not None else _load_objects(connection, path, source, compression)
        return _described_json(connection, path, mappings, file_format, lines)
    return _described_csv(connection, path, mappings, first_line, lines)


def _begins_with_a_record(connection: duckdb.DuckDBPyConnection, lines: LineFile) -> bool:
    """Whether one of the first two lines is JSON by itself."""
    piece = _folder(connection) / "sample"
    lines.cut(0, min(2, lines.lines), piece)
    found = connection.execute(f"SELECT json_valid(text) FROM ({_lines_query(piece, lines, 0)}) WHERE rowid < 2").fetchall()  # noqa: S608
    return any(valid for (valid,) in found)


def _content(path: Path, source: str, compression: Compression) -> Path:
    """A file with what the file holds, decompressed; raises LedgerError if it is compressed and not whole."""
    if compression is Compression.NONE:
        return Path(source)
    content = Path(source).with_name("content")
    with content.open("wb") as file:
        for piece in decompressed(path, compression):
            file.write(piece)
    return content


def _start_of(path: Path, compression: Compression) -> bytes:
    """The first bytes of the content."""
    start = b""
    for piece in decompressed(path, compression):
        start += piece
        if len(start) >= START_BYTES:
            break
    return start[:START_BYTES]


def _load_unfolded(connection: duckdb.DuckDBPyConnection, path: Path, source: str, compression: Compression, kind: Unfolding) -> None:
    """The table `record` of the flat records that stand inside the file's own, each with its line of the file."""
    unfolded = Path(source).with_name("unfolded")
    with unfolded.open("wb") as file:
        try:
            for line, text in unfolder(kind).unfold(decompressed(path, compression)):
                file.write(b"%0*d%b\n" % (_LINE_DIGITS, line, text))
        except Broken as error:
            raise LedgerError(f"{path}: {error}", cure="repair or split it; docs/operators-ingest.md says what can be read") from error
    _load_lines(connection, path, str(unfolded), Compression.NONE)
    unfolded.unlink()
    connection.execute(
        f"CREATE OR REPLACE TABLE record AS SELECT text[:{_LINE_DIGITS}]::BIGINT AS line, text[{_LINE_DIGITS + 1}:] AS text, fault "  # noqa: S608
        "FROM record"
    )


def _lines_of(source: str, compression: Compression) -> str:
    """The call that reads lines, up to its last parameters."""
    return (
        f"read_csv({literal(source)}, columns = {{'text': 'VARCHAR'}}, header = false, auto_detect = false, "
        f"delim = {literal(_LINE_DELIMITER)}, quote = '', escape = '', strict_mode = false, compression = '{compression}'"
    )


def _lines_query(piece: Path, lines: LineFile, before: int) -> str:
    """The lines of a piece of the file like rows of the table `record`; `before` it are as many."""
    text = _WITHOUT_RETURN if lines.has_returns else "text"
    rows = f"{_lines_of(str(piece), Compression.NONE)}, buffer_size = {BUFFER_BYTES:d})"
    return (
        f"SELECT rowid, rowid + 1 AS line, {text} AS text, NULL::VARCHAR AS fault FROM ("  # noqa: S608
        f"SELECT row_number() OVER () + {before - 1:d} AS rowid, text FROM {rows})"
    )


def _is_array(connection: duckdb.DuckDBPyConnection, path: Path, source: str, compression: Compression) -> bool:
    """Whether the text begins with `[`."""
    try:
        rows = connection.execute(
            f"SELECT text FROM {_lines_of(source, compression)}, ignore_errors = true) WHERE trim(text) <> '' LIMIT 1"  # noqa: S608
        ).fetchone()
    except duckdb.Error:  # a first line longer than a line may be, or no text at all
        return path.name.removesuffix(".gz").removesuffix(".zst").endswith(".json")
    return rows is not None and rows[0].lstrip().startswith("[")


def _load_lines(connection: duckdb.DuckDBPyConnection, path: Path, source: str, compression: Compression) -> None:
    """The table `record`: each line that is not blank, with its number; then the lines that are no text, with their fault."""
    connection.execute(
        "CREATE TABLE record AS "  # noqa: S608
        f"SELECT line, {_WITHOUT_RETURN} AS text, NULL::VARCHAR AS fault FROM ("
        f"SELECT row_number() OVER () AS line, text FROM {_lines_of(source, compression)}, store_rejects = true, rejects_limit = 0)"
        ") WHERE NOT regexp_full_match(text, '\\s*')"
    )
    rejected = connection.execute("SELECT count(*), min(line) FROM reject_errors").fetchone()
    assert rejected is not None
    if rejected[0] == 0:
        return
    if rejected[1] == 1:
        raise LedgerError(f"{path}: the first line is not UTF-8, or longer than 2 MB", cure="export the file as UTF-8, one record a line")
    # The good lines were counted without the rejected ones before them.
    connection.execute(
        "CREATE TEMP TABLE rejected AS SELECT line, row_number() OVER (ORDER BY line) AS ordinal, any_value(csv_line) AS text, "
        "any_value(CASE error_type WHEN 'INVALID ENCODING' THEN 'the line is not UTF-8' "
        "ELSE 'the line is longer than 2 MB or holds control characters' END) AS fault FROM reject_errors GROUP BY line"
    )
    connection.execute(
        "CREATE OR REPLACE TABLE record AS SELECT line + coalesce(ordinal, 0) AS line, record.text, record.fault "
        "FROM record ASOF LEFT JOIN (SELECT line - ordinal + 1 AS since, max(ordinal) AS ordinal FROM rejected GROUP BY since) shift "
        "ON record.line >= shift.since ORDER BY record.line"
    )
    connection.execute("INSERT INTO record SELECT line, text, fault FROM rejected ORDER BY line")


def _load_objects(connection: duckdb.DuckDBPyConnection, path: Path, source: str, compression: Compression) -> FileFormat:
    """The table `record` of objects that span lines, numbered from 1, if the lines are no records and the whole file is such objects."""
    lines = connection.execute("SELECT json_valid(text) FROM record WHERE rowid < 2").fetchall()
    if any(valid for (valid,) in lines):
        return FileFormat.JSON_LINES
    connection.execute("CREATE TEMP TABLE line AS FROM record")
    try:
        connection.execute(
            "CREATE OR REPLACE TABLE record AS SELECT row_number() OVER () AS line, json::VARCHAR AS text, NULL::VARCHAR AS fault "  # noqa: S608
            f"FROM read_json_objects({literal(source)}, format = 'unstructured', compression = '{compression}')"
        )
        if _is_whole(connection, path, compression, bracket_bytes=0, comma_bytes=0):
            return FileFormat.JSON_ARRAY
    except duckdb.InvalidInputException:
        pass
    connection.execute("CREATE OR REPLACE TABLE record AS FROM line")
    return FileFormat.JSON_LINES


def _load_array(connection: duckdb.DuckDBPyConnection, path: Path, source: str, compression: Compression) -> None:
    """The table `record` of the objects of a JSON array, numbered from 1."""
    statement = (
        "CREATE OR REPLACE TABLE record AS SELECT row_number() OVER () AS line, json::VARCHAR AS text, NULL::VARCHAR AS fault "  # noqa: S608
        f"FROM read_json_objects({literal(source)}, format = 'array', compression = '{compression}')"
    )
    try:
        connection.execute(statement)
        if _is_whole(connection, path, compression, bracket_bytes=len("[]"), comma_bytes=len(",")):
            return
    except duckdb.InvalidInputException:
        pass
    # One object that is no JSON (half a surrogate, say) must not take its neighbours with it.
    connection.execute("CREATE OR REPLACE TABLE record (line BIGINT, text VARCHAR, fault VARCHAR)")
    objects = list(_array_objects(path, compression))
    connection.execute("INSERT INTO record SELECT generate_subscripts($1, 1), unnest($1), NULL", [objects])


def _is_whole(connection: duckdb.DuckDBPyConnection, path: Path, compression: Compression, *, bracket_bytes: int, comma_bytes: int) -> bool:
    """Whether the objects in `record`, brackets and commas are all that the file has: DuckDB ignores a missing `]` and what follows one.

    The byte order mark is left out, and white space wherever it stands.
    """
    row = connection.execute("SELECT count(*), sum(strlen(regexp_replace(text, '[ \\t\\r\\n]+', '', 'g'))) FROM record").fetchone()
    assert row is not None
    count, object_bytes = row
    file_bytes, first, last = 0, b"", b""
    for piece in decompressed(path, compression):
        significant = piece.translate(None, b" \t\r\n")
        file_bytes, first, last = file_bytes + len(significant), first or significant[:3], significant[-1:] or last
    mark_bytes = len(codecs.BOM_UTF8) if first == codecs.BOM_UTF8 else 0
    expected = mark_bytes + bracket_bytes + (object_bytes or 0) + comma_bytes * max(count - 1, 0)
    return last == (b"]" if bracket_bytes else b"}") and file_bytes == expected


def _array_objects(path: Path, compression: Compression) -> Iterator[str]:
    """The texts of the array's objects. Raises LedgerError if it is no array, or not alone in the file."""
    broken = LedgerError(f"{path}: not one whole JSON array", cure="check that the file is whole, or write JSON Lines")
    if path.stat().st_size > LARGEST_BROKEN_ARRAY_BYTES:
        raise broken
    content = b"".join(decompressed(path, compression))
    text = content.decode("utf-8-sig", errors="replace").strip()
    decoder, position = json.JSONDecoder(), 1
    try:
        while (start := _after_space(text, position)) < len(text) - 1:
            _, position = decoder.raw_decode(text, start)
            yield text[start:position]
            position = _after_space(text, position)
            if text[position : position + 1] == "," and text[_after_space(text, position + 1)] != "]":
                position += 1
            elif position != len(text) - 1:
                raise broken
    except (json.JSONDecodeError, IndexError, RecursionError) as error:
        raise broken from error
    if not text.endswith("]"):
        raise broken


def _after_space(text: str, position: int) -> int:
    """The first place from here on where no white space stands."""
    found = _NO_SPACE.search(text, position)
    return found.start() if found else len(text)


def _described_json(
    connection: duckdb.DuckDBPyConnection, path: Path, mappings: tuple[Mapping, ...], file_format: FileFormat, lines: LineFile | None
) -> RecordFile:
    for macro in _JSON_MACROS:
        connection.execute(macro)
    if lines is not None:  # as the table would be that is not made
        connection.execute("CREATE TEMP VIEW record AS " + _lines_query(lines.path, lines, 0))
        piece = _folder(connection) / "sample"
        lines.cut(0, min(SAMPLED_RECORDS, lines.lines), piece)
        connection.execute("CREATE TEMP VIEW sampled AS " + _lines_query(piece, lines, 0))
    else:
        connection.execute("CREATE TEMP VIEW sampled AS SELECT rowid, text FROM record")
    rows = connection.execute(
        "SELECT key FROM (SELECT unnest(json_keys(text)) AS key, rowid AS r FROM sampled "  # noqa: S608
        f"WHERE rowid < {SAMPLED_RECORDS:d} AND json_valid(text) AND ltrim(text)[1] = '{{') GROUP BY key ORDER BY min(r), key"
    ).fetchall()
    fields = tuple(row[0] for row in rows)
    mapping, _, _ = _chosen(path, mappings, file_format, {None: (*fields, *_inner_fields(connection, mappings, fields))})
    # Any field may stand in a later record: a field too many does no harm.
    later = sorted({path[0] for path in mapping.paths} - set(fields))
    return _opened(connection, path, (mapping, (*fields, *later), None), file_format, lines=lines, first_row=0)


def _inner_fields(connection: duckdb.DuckDBPyConnection, mappings: tuple[Mapping, ...], fields: tuple[str, ...]) -> list[str]:
    """The fields inside others by which a mapping identifies a file, as `a.b`, and that the file has: in the sampled records if any of
    them is there, else behind them."""
    wanted = {name: name.partition(".") for mapping in mappings for name in mapping.identify if name not in fields}
    inner = sorted((name, outer, key) for name, (outer, _, key) in wanted.items() if key and outer in fields)
    if not inner:
        return []
    for relation, where in (("sampled", f"rowid < {SAMPLED_RECORDS:d}"), ("record", f"rowid >= {SAMPLED_RECORDS:d}")):
        conditions = [
            exp.and_(
                exp.func("contains", exp.column("text"), exp.Literal.string(f'"{key}"')),
                exp.func("json_exists", exp.column("text"), exp.Literal.string(f'$."{outer}"."{key}"')),
            )
            for _, outer, key in inner
        ]
        query = exp.select(*(exp.func("bool_or", condition) for condition in conditions)).from_(relation).where(where)
        row = connection.execute(query.where("json_valid(text)").sql("duckdb")).fetchone()
        assert row is not None
        if any(row):
            return [name for (name, _, _), there in zip(inner, row, strict=True) if there]
    return []


def _described_csv(
    connection: duckdb.DuckDBPyConnection, path: Path, mappings: tuple[Mapping, ...], header: str, lines: LineFile | None
) -> RecordFile:
    headers: dict[str | None, tuple[str, ...]] = {}
    for delimiter in DELIMITERS:
        headers[delimiter] = tuple(next(csv.reader([header], delimiter=delimiter)))
    mapping, fields, chosen = _chosen(path, mappings, FileFormat.CSV, headers)
    assert chosen is not None
    twice = sorted({name for name in fields if fields.count(name) > 1})
    if twice:
        raise LedgerError(f"{path}: the header has {', '.join(twice)} twice", cure="rename or remove one of them")
    for macro in (*_csv_macros(chosen), *_JSON_MACROS):
        connection.execute(macro)
    if lines is None:
        _join_quoted_lines(connection, cells=len(fields))
    return _opened(connection, path, (mapping, fields, chosen), FileFormat.CSV, lines=lines, first_row=1)


def _join_quoted_lines(connection: duckdb.DuckDBPyConnection, *, cells: int) -> None:
    """Lines of one record whose quoted cell spans them become one row, if together they make a record; else they stay apart."""
    odd = connection.execute(
        "SELECT count(*) FROM record WHERE contains(text, '\"') AND (length(text) - length(replace(text, '\"', ''))) % 2 = 1"
    ).fetchone()
    if odd is None or odd[0] == 0:
        return
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE record AS
        WITH quotes AS (SELECT rowid AS r, *, (length(text) - length(replace(text, '"', ''))) % 2 AS odd FROM record WHERE fault IS NULL),
        opened AS (SELECT *, coalesce(sum(odd) OVER (ORDER BY r ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) % 2 AS inside
            FROM quotes),
        grouped AS (SELECT *, sum(1 - inside) OVER (ORDER BY r) AS record FROM opened),
        sized AS (SELECT *, count(*) OVER (PARTITION BY record) AS size FROM grouped),
        joined AS (SELECT record, string_agg(text, chr(10) ORDER BY r) AS text FROM sized
            WHERE size BETWEEN 2 AND {LONGEST_QUOTED_LINES:d} GROUP BY record),
        whole AS (SELECT record, text FROM joined WHERE len(csv_cells(text)) = {cells:d})
        SELECT line, text, fault FROM (
            SELECT r, line, coalesce(whole.text, sized.text) AS text, fault
            FROM sized LEFT JOIN whole USING (record) WHERE whole.record IS NULL OR inside = 0
            UNION ALL SELECT rowid + 1e15::BIGINT, line, text, fault FROM record WHERE fault IS NOT NULL
        ) ORDER BY r
        """  # noqa: S608
    )


def _read_parquet(connection: duckdb.DuckDBPyConnection, path: Path, mappings: tuple[Mapping, ...], source: str) -> RecordFile:
    for macro in _JSON_MACROS:
        connection.execute(macro)
    described = f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet({literal(source)}))"  # noqa: S608
    columns = connection.execute(described).fetchall()
    fields = tuple(name for name, _ in columns)
    chosen = _chosen(path, mappings, FileFormat.PARQUET, {None: fields})
    opened = _opened(connection, path, chosen, FileFormat.PARQUET, lines=None, first_row=0)
    return replace(opened, types=dict(columns))


def _item(position: int, of: str = "split") -> exp.Expr:
    """The value at this position, from 1, of what a line was split into."""
    return exp.Bracket(this=exp.column(of, quoted=True), expressions=[exp.Literal.number(position)], offset=1)


def _are_columns(paths: Sequence[FieldPath]) -> bool:
    """Whether the fields can be the columns of a struct, which does not tell large letters from small ones: it takes one pass over a
    record and a third of the time."""
    return bool(paths) and all(len(path) == 1 and path[0] for path in paths) and len({path[0].casefold() for path in paths}) == len(paths)


def _json_paths(paths: Sequence[FieldPath]) -> exp.Expr:
    return exp.array(*(exp.Literal.string("$" + "".join(f'."{name}"' for name in path)) for path in paths))


def _parquet_text(path: FieldPath, type_name: str) -> exp.Expr:
    """The column's value as text: integers and decimals exact, doubles by their shortest text, instants with their offset."""
    value: exp.Expr = exp.column(path[0], quoted=True)
    for name in path[1:]:
        value = exp.func("struct_extract", value, exp.Literal.string(name))
    if type_name == "TIMESTAMP WITH TIME ZONE":
        instant = exp.cast(exp.func("make_timestamp", exp.func("epoch_us", value)), "TEXT")
        return exp.DPipe(this=instant, expression=exp.Literal.string("Z"), safe=True)
    return exp.cast(value, "TEXT")


def _parquet_value(path: FieldPath, kind: str) -> exp.Expr:
    value = exp.column(path[0], quoted=True)
    return exp.func("epoch_us", value) if kind == "TIMESTAMPTZ" else exp.cast(value, kind)


_Chosen = tuple[Mapping, tuple[str, ...], str | None]


def _chosen(
    path: Path, mappings: tuple[Mapping, ...], file_format: FileFormat, fields_by_delimiter: dict[str | None, tuple[str, ...]]
) -> _Chosen:
    """The mapping that the fields fit, with the fields and the delimiter under which they were found."""
    fitting: list[_Chosen] = [
        (mapping, fields, delimiter)
        for mapping in mappings
        for delimiter, fields in fields_by_delimiter.items()
        if mapping.file_format in (None, file_format)
        and (delimiter is None or mapping.delimiter in (None, delimiter))
        and set(mapping.identify) <= set(fields)
    ]
    found = _most_specific(fitting)
    if len({mapping.name for mapping, _, _ in found}) == 1:
        mapping, fields, _ = found[0]
        if mapping.refusal is not None:
            raise LedgerError(f"{path}: {mapping.description.removesuffix('.')}, which cannot be settled", cure=mapping.refusal)
        _check_fields(path, mapping, fields)
        mapping.check_given(path, fields)
        return found[0]
    if found:
        names = ", ".join(sorted({mapping.name for mapping, _, _ in found}))
        raise LedgerError(
            f"{path}: more than one format fits, and the file does not say which it is: {names}",
            cure="name one with --source; `ledger formats` says what each takes for granted",
        )
    raise _unknown_format(path, mappings, file_format, list(fields_by_delimiter.values()))


def _unknown_format(path: Path, mappings: tuple[Mapping, ...], file_format: FileFormat, readings: Sequence[tuple[str, ...]]) -> LedgerError:
    """No mapping fits: what the file has, the formats that come nearest, and what they miss."""
    fields = max(readings, key=len)
    shown = ", ".join(fields[:SHOWN_FIELDS]) + (", ..." if len(fields) > SHOWN_FIELDS else "")
    near = []
    for mapping in mappings:
        reading = max(readings, key=lambda names: len(set(mapping.identify) & set(names)))
        missed = [name for name in mapping.identify if name not in reading]
        found = len(mapping.identify) - len(missed)
        if mapping.refusal is None and missed and (found or len(mappings) == 1):
            near.append((len(missed) / len(mapping.identify), -found, mapping.name, missed))
    near.sort()
    close = [one for one in near if one[0] <= 0.5] or near[:1]
    nearest = [f"{name}, which misses {', '.join(missed)}" for _, _, name, missed in close[:NEAREST_FORMATS]]
    named = f"; nearest {'is' if len(nearest) == 1 else 'are'} {'; '.join(nearest)}" if nearest else ""
    return LedgerError(
        f"{path}: no format fits a {file_format} file with the fields {shown}{named}",
        cure="`ledger formats` lists the formats and what they are for; for a log of your own write a mapping and name it with --mapping",
    )


def _most_specific(fitting: list[_Chosen]) -> list[_Chosen]:
    """Those than which no other one asks for more of the same fields."""
    return [one for one in fitting if not any(set(one[0].identify) < set(other[0].identify) for other in fitting)]


def _check_fields(path: Path, mapping: Mapping, fields: tuple[str, ...]) -> None:
    """Raises LedgerError if the mapping reads what the file does not have."""
    for read in mapping.paths:
        # Read as b inside a, a field called a.b would be missing from every row, and a discount with it.
        if len(read) > 1 and read[0] not in fields and field_key(read) in fields:
            raise LedgerError(
                f"{path}: the mapping {mapping.name} reads {read[-1]} inside {field_key(read[:-1])}, "
                f"but the file has a field whose name is {field_key(read)}",
                cure=f"""write it with both quotes in the mapping: '"{field_key(read)}"'""",
            )
    lacking = [field_key(read) for read in mapping.paths if not {read[0], field_key(read)} & (set(fields) | mapping.optional)]
    if lacking:
        raise LedgerError(
            f"{path}: the mapping {mapping.name} reads {', '.join(lacking)}, which the file does not have",
            cure="correct the mapping, or list the field under optional; a name with a dash or a dot stands in both quotes: "
            """'"x-request-id"'""",
        )


def _opened(
    connection: duckdb.DuckDBPyConnection, path: Path, chosen: _Chosen, file_format: FileFormat, *, lines: LineFile | None, first_row: int
) -> RecordFile:
    mapping, fields, _ = chosen
    rows = lines.lines if lines else 0
    if lines is None:
        relation = f"read_parquet({literal(_source_link(connection))})" if file_format is FileFormat.PARQUET else "record"
        counted = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()  # noqa: S608
        assert counted is not None
        rows = counted[0]
    known = {*(p[0] for p in mapping.paths), *(name.partition(".")[0] for name in (*mapping.identify, *mapping.optional))}
    return RecordFile(
        name=path.name,
        sha256="",
        mapping=mapping,
        file_format=file_format,
        fields=fields,
        ignored=tuple(name for name in fields if name not in known),
        records=rows - first_row,
        first_row=first_row,
        types={},
        folder=_folder(connection),
        lines=lines,
        connection=connection,
    )


def _csv_macros(delimiter: str) -> tuple[str, ...]:
    """Splitting a line into cells (RFC 4180); the cells are null if a quote stands where it may not."""
    assert delimiter in DELIMITERS
    return (
        """CREATE MACRO quoted_cells(line, found) AS CASE WHEN array_to_string(found, '') = line THEN list_transform(found,
        lambda cell: CASE WHEN cell[2] = '"' THEN replace(cell[3:-2], '""', '"') ELSE cell[2:] END) END""",
        f"""CREATE MACRO csv_cells(text) AS CASE WHEN contains(text, '"')
        THEN quoted_cells('{delimiter}' || text, regexp_extract_all('{delimiter}' || text,
            '[{delimiter}](?:"(?:[^"]|"")*"|[^"{delimiter}]*)'))
        ELSE string_split(text, '{delimiter}') END""",
        """CREATE MACRO csv_fault(cells, wanted) AS CASE WHEN cells IS NULL THEN 'a quote is not closed, or stands inside a cell'
        WHEN len(cells) <> wanted THEN 'the line has ' || len(cells) || ' cells, the header has ' || wanted END""",
    )


_JSON_MACROS = (
    # DuckDB writes a number of more than 15 digits or with an exponent anew, through a double; as a text it stays what it is. The quote
    # that ends a key is never preceded by these characters, the quote that begins a text always is.
    r"""CREATE MACRO exact_json(text) AS CASE WHEN regexp_matches(text, '[1-9](?:\.?[0-9]){15}|[0-9][eE][-+]?[0-9]')
    THEN regexp_replace(text, '([^\\:,\[{\s]"\s*:\s*)(-?[0-9][0-9.eE+-]*)', '\1"\2"', 'g') ELSE text END""",
    # The text is looked at, and what is to be read is its exact one. Of two fields with the same key the first one counts.
    """CREATE MACRO json_items(text, exact, paths) AS CASE WHEN ltrim(text)[1] = '{' AND json_valid(text)
    THEN json_extract_string(exact, paths) END""",
    """CREATE MACRO json_columns(text, exact, structure) AS CASE WHEN ltrim(text)[1] = '{' AND json_valid(text)
    THEN json_transform(exact, structure) END""",
    "CREATE MACRO json_values(text, paths) AS json_items(text, exact_json(text), paths)",
    "CREATE MACRO json_fault(found) AS CASE WHEN found IS NULL THEN 'the record is not a JSON object' END",
)
