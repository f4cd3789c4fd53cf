"""Which format a file is, by its content: its records are found, and the file is opened as what it is."""

import codecs

from ledger.errors import LedgerError
from ledger.ingest.mapping import FileFormat, Mapping
from ledger.ingest.reading.csv_file import open_csv
from ledger.ingest.reading.json_array import load_array, load_objects
from ledger.ingest.reading.json_file import open_json
from ledger.ingest.reading.line_file import LineFile, line_file
from ledger.ingest.reading.line_table import lines_query, load_lines, unfold_lines
from ledger.ingest.reading.parquet_file import open_parquet
from ledger.ingest.reading.record_file import RecordFile
from ledger.ingest.reading.source_file import SourceFile
from ledger.ingest.unfolding import PLAIN, START_BYTES, unfolding_of

_PARQUET = b"PAR1"


def open_recognised(source: SourceFile, mappings: tuple[Mapping, ...]) -> RecordFile:
    """The file as what it is. Raises LedgerError if it is damaged, or no mapping (or more than one) fits."""
    content = source.content()
    if source.magic == _PARQUET:
        return open_parquet(source, mappings)
    start = source.start(START_BYTES)
    kind = unfolding_of(start)
    named, mappings = mappings, tuple(mapping for mapping in mappings if mapping.unfolding == (None if kind in PLAIN else kind))
    if not mappings:
        raise LedgerError(
            f"{source.path}: no file of the format {', '.join(mapping.name for mapping in named)}",
            cure="leave out --source or --mapping, so that the format is found by what the file contains",
        )
    if kind is not None:
        return open_json(source, mappings, FileFormat.JSON_LINES, unfold_lines(source, kind), numbers_are_texts=kind not in PLAIN)
    if _is_array(start):
        load_array(source)
        return open_json(source, mappings, FileFormat.JSON_ARRAY, None)
    lines = line_file(content)
    if lines is not None:
        first_line = lines.first_line
    else:
        load_lines(source, content)
        first_line = _first_line(source)
    if not first_line.lstrip().startswith("{"):
        return open_csv(source, mappings, first_line, lines)
    if lines is not None and not _begins_with_a_record(source, lines):
        load_lines(source, content)
        lines = None
    file_format = FileFormat.JSON_LINES if lines is not None else load_objects(source)
    return open_json(source, mappings, file_format, lines)


def _is_array(start: bytes) -> bool:
    """Whether the text that begins so is a JSON array, whose objects may all stand on one line."""
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def _first_line(source: SourceFile) -> str:
    first = source.connection.execute("SELECT text FROM record WHERE rowid = 0").fetchone()
    if first is None:
        raise LedgerError(f"{source.path}: the file is empty", cure="leave it out, or export it again if it should have records")
    return str(first[0])


def _begins_with_a_record(source: SourceFile, lines: LineFile) -> bool:
    """Whether one of the first two lines is JSON by itself."""
    sample = lines.cut(0, min(2, lines.lines), source.folder / "sample")
    query = f"SELECT json_valid(text) FROM ({lines_query(sample, lines)}) WHERE rowid < 2"  # noqa: S608
    return any(valid for (valid,) in source.connection.execute(query).fetchall())
