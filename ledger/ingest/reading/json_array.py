"""JSON objects that are not one to a line: the table `record` of a JSON array, or of objects that span lines.

DuckDB reads them; what it leaves out in silence is found by counting bytes, and an array with an object that is no JSON is read piece by
piece, so that its neighbours stay.
"""

import codecs
import json
import re
from collections.abc import Iterator

import duckdb

from ledger.errors import LedgerError
from ledger.ingest.mapping import FileFormat
from ledger.ingest.reading.scratch import literal
from ledger.ingest.reading.source_file import SourceFile

LARGEST_BROKEN_ARRAY_BYTES = 64_000_000

_NO_SPACE = re.compile(r"[^ \t\r\n]")


def load_objects(source: SourceFile) -> FileFormat:
    """The table `record` of objects that span lines, numbered from 1, if the lines are no records and the whole file is such objects."""
    connection = source.connection
    lines = connection.execute("SELECT json_valid(text) FROM record WHERE rowid < 2").fetchall()
    if any(valid for (valid,) in lines):
        return FileFormat.JSON_LINES
    connection.execute("CREATE TEMP TABLE line AS FROM record")
    try:
        connection.execute(
            "CREATE OR REPLACE TABLE record AS SELECT row_number() OVER () AS line, json::VARCHAR AS text, NULL::VARCHAR AS fault "  # noqa: S608
            f"FROM read_json_objects({literal(str(source.link))}, format = 'unstructured', compression = '{source.compression}')"
        )
        if _is_whole(source, bracket_bytes=0, comma_bytes=0):
            return FileFormat.JSON_ARRAY
    except duckdb.InvalidInputException:
        pass
    connection.execute("CREATE OR REPLACE TABLE record AS FROM line")
    return FileFormat.JSON_LINES


def load_array(source: SourceFile) -> None:
    """The table `record` of the objects of a JSON array, numbered from 1."""
    statement = (
        "CREATE OR REPLACE TABLE record AS SELECT row_number() OVER () AS line, json::VARCHAR AS text, NULL::VARCHAR AS fault "  # noqa: S608
        f"FROM read_json_objects({literal(str(source.link))}, format = 'array', compression = '{source.compression}')"
    )
    try:
        source.connection.execute(statement)
        if _is_whole(source, bracket_bytes=len("[]"), comma_bytes=len(",")):
            return
    except duckdb.InvalidInputException:
        pass
    # One object that is no JSON (half a surrogate, say) must not take its neighbours with it.
    source.connection.execute("CREATE OR REPLACE TABLE record (line BIGINT, text VARCHAR, fault VARCHAR)")
    objects = list(_array_objects(source))
    source.connection.execute("INSERT INTO record SELECT generate_subscripts($1, 1), unnest($1), NULL", [objects])


def _is_whole(source: SourceFile, *, bracket_bytes: int, comma_bytes: int) -> bool:
    """Whether the objects in `record`, brackets and commas are all that the file has: DuckDB ignores a missing `]` and what follows one.

    The byte order mark is left out, and white space wherever it stands.
    """
    row = source.connection.execute("SELECT count(*), sum(strlen(regexp_replace(text, '[ \\t\\r\\n]+', '', 'g'))) FROM record").fetchone()
    assert row is not None
    count, object_bytes = row
    file_bytes, first, last = 0, b"", b""
    for piece in source.pieces():
        significant = piece.translate(None, b" \t\r\n")
        file_bytes, first, last = file_bytes + len(significant), first or significant[:3], significant[-1:] or last
    mark_bytes = len(codecs.BOM_UTF8) if first == codecs.BOM_UTF8 else 0
    expected = mark_bytes + bracket_bytes + (object_bytes or 0) + comma_bytes * max(count - 1, 0)
    return last == (b"]" if bracket_bytes else b"}") and file_bytes == expected


def _array_objects(source: SourceFile) -> Iterator[str]:
    """The texts of the array's objects. Raises LedgerError if it is no array, or not alone in the file."""
    broken = LedgerError(f"{source.path}: not one whole JSON array", cure="check that the file is whole, or write JSON Lines")
    if source.path.stat().st_size > LARGEST_BROKEN_ARRAY_BYTES:
        raise broken
    content = b"".join(source.pieces())
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
