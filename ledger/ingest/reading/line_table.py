"""Lines of a text in DuckDB: the table `record` (line, text, fault) where they have to be looked at together, else a relation like it.

A line is one cell of a CSV file without quotes, since DuckDB reads nothing else as fast. Records that stand inside others come in the same
way, once they are unfolded: a file of them has one on each line, behind the number of the line that it comes from.
"""

from pathlib import Path

from ledger.errors import LedgerError
from ledger.ingest.reading.compression import Compression
from ledger.ingest.reading.line_file import LineFile, Piece, line_file
from ledger.ingest.reading.scratch import literal
from ledger.ingest.reading.sound_lines import FAULT_MARK, LONGEST_LINE_BYTES, RESERVED, SHA256_DIGITS, sound_file
from ledger.ingest.reading.source_file import SourceFile
from ledger.ingest.unfolding import Broken, Unfolding, unfolder

BUFFER_BYTES = 4_000_000  # of DuckDB's, for a part of a file; more than two lines

_NUMBER_DIGITS = 15  # before an unfolded record
_NUMBER, _BEHIND_NUMBER = f"text[:{_NUMBER_DIGITS}]::BIGINT", f"text[{_NUMBER_DIGITS + 1}:]"
_WITHOUT_RETURN = "CASE WHEN text[-1] = chr(13) THEN text[:-2] ELSE text END"
_LINE_DELIMITER = f"{RESERVED}\x04"  # so that a line is one cell


def lines_call(file: Path, compression: Compression = Compression.NONE) -> str:
    """The call that reads lines, up to its last parameters."""
    return (
        f"read_csv({literal(str(file))}, columns = {{'text': 'VARCHAR'}}, header = false, auto_detect = false, "
        f"delim = {literal(_LINE_DELIMITER)}, quote = '', escape = '', strict_mode = false, compression = '{compression}'"
    )


def lines_query(piece: Piece, lines: LineFile) -> str:
    """The lines of a piece of the file like rows of the table `record`."""
    line, text = (_NUMBER, _BEHIND_NUMBER) if lines.is_numbered else ("rowid + 1", _WITHOUT_RETURN if lines.has_returns else "text")
    rows = f"{lines_call(piece.path)}, buffer_size = {BUFFER_BYTES:d})"
    return (
        f"SELECT rowid, {line} AS line, {text} AS text, NULL::VARCHAR AS fault FROM ("  # noqa: S608
        f"SELECT row_number() OVER () + {piece.before - 1:d} AS rowid, text FROM {rows})"
    )


def load_lines(source: SourceFile, file: Path, *, is_numbered: bool = False) -> None:
    """The table `record` of a file: each line that is not blank, with its number; then the lines that are no text, with their fault.

    Of numbered lines, as `unfold_lines` writes them, all are records.
    """
    connection, before = source.connection, _NUMBER_DIGITS if is_numbered else 0
    sound = sound_file(file, source.folder / "sound", kept_bytes=before)
    connection.execute(
        "CREATE TABLE record AS "  # noqa: S608
        f"SELECT line, {_WITHOUT_RETURN} AS text, NULL::VARCHAR AS fault FROM ("
        f"SELECT row_number() OVER () AS line, text FROM {lines_call(sound)}, max_line_size = {LONGEST_LINE_BYTES + 1_000:d})"
        ") WHERE NOT regexp_full_match(text, '\\s*')"
    )
    if sound == file:
        return
    sound.unlink()
    behind = f"text[{before + 1}:]"
    is_marked = f"starts_with({behind}, {literal(FAULT_MARK)})"
    first = connection.execute(f"SELECT {is_marked} FROM record WHERE rowid = 0").fetchone()  # noqa: S608
    if first and first[0] and not is_numbered:
        raise LedgerError(
            f"{source.path}: the first line is not UTF-8, or longer than 2 MB", cure="export the file as UTF-8, one record a line"
        )
    sha256_end = len(FAULT_MARK) + SHA256_DIGITS
    marked = f"text[:{before}] || {behind}[{len(FAULT_MARK) + 1}:{sha256_end}]", f"{behind}[{sha256_end + 1}:]"
    connection.execute(
        "CREATE OR REPLACE TABLE record AS "  # noqa: S608
        f"SELECT line, CASE WHEN is_marked THEN {marked[0]} ELSE text END AS text, CASE WHEN is_marked THEN {marked[1]} END AS fault "
        f"FROM (SELECT *, {is_marked} AS is_marked FROM record) ORDER BY is_marked, line"
    )


def unfold_lines(source: SourceFile, kind: Unfolding) -> LineFile | None:
    """The flat records that stand inside the file's own, each with its line of the file; None if they had to go into the table `record`."""
    unfolded = source.folder / "unfolded"
    with unfolded.open("wb") as file:
        try:
            for line, text in unfolder(kind).unfold(source.pieces()):
                file.write(b"%0*d%b\n" % (_NUMBER_DIGITS, line, text))
        except Broken as error:
            raise LedgerError(
                f"{source.path}: {error}", cure="repair or split it; docs/operators-ingest.md says what can be read"
            ) from error
    lines = line_file(unfolded, is_numbered=True)
    if lines is None:
        load_lines(source, unfolded, is_numbered=True)
        unfolded.unlink()
        numbered = f"SELECT {_NUMBER} AS line, {_BEHIND_NUMBER} AS text, fault FROM record"  # noqa: S608
        source.connection.execute(f"CREATE OR REPLACE TABLE record AS {numbered}")
    return lines


def count_lines(source: SourceFile, lines: LineFile | None) -> int:
    """How many lines the file has, or rows the table `record`."""
    if lines is not None:
        return lines.lines
    counted = source.connection.execute("SELECT count(*) FROM record").fetchone()
    assert counted is not None
    return int(counted[0])
