"""CSV (RFC 4180): the header, how a line is split into cells, and lines that are one record because a quoted cell spans them."""

import csv
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from ledger.errors import LedgerError
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.mapping import DELIMITERS, FileFormat, Mapping
from ledger.ingest.reading.format_choice import choose_mapping
from ledger.ingest.reading.json_text import JSON_MACROS
from ledger.ingest.reading.line_file import LineFile, Piece
from ledger.ingest.reading.line_table import count_lines
from ledger.ingest.reading.record_file import unread_fields
from ledger.ingest.reading.source_file import SourceFile
from ledger.ingest.reading.text_file import Split, TextFile, item

LONGEST_QUOTED_LINES = 1_000  # lines that one quoted cell may span


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile(TextFile):
    """A file of cells, by the header's names."""

    @property
    def keeps_numbers(self) -> bool:
        """As the base class describes it."""
        return True

    def split(self, paths: list[FieldPath], piece: Piece | None) -> Split:
        """By position."""
        return Split(
            found=exp.func("csv_cells", exp.column("text")),
            cells={path: item(self.fields.index(path[0]) + 1) for path in paths if len(path) == 1},
            malformed=exp.func("csv_fault", exp.column("split"), exp.Literal.number(len(self.fields))),
        )


def open_csv(source: SourceFile, mappings: tuple[Mapping, ...], header: str, lines: LineFile | None) -> CsvFile:
    """The file whose first line is the header, and whose lines are in the table `record` unless they are given."""
    headers: dict[str | None, tuple[str, ...]] = {
        delimiter: tuple(next(csv.reader([header], delimiter=delimiter))) for delimiter in DELIMITERS
    }
    mapping, fields, delimiter = choose_mapping(source.path, mappings, FileFormat.CSV, headers)
    assert delimiter is not None
    twice = sorted({name for name in fields if name and fields.count(name) > 1})  # those without a name are read by nobody
    if twice:
        raise LedgerError(f"{source.path}: the header has {', '.join(twice)} twice", cure="rename or remove one of them")
    for macro in (*_csv_macros(delimiter), *JSON_MACROS):
        source.connection.execute(macro)
    if lines is None:
        _join_quoted_lines(source.connection, cells=len(fields))
    return CsvFile(
        name=source.path.name, sha256="", mapping=mapping, fields=fields, ignored=unread_fields(mapping, fields),
        records=count_lines(source, lines) - 1, folder=source.folder, connection=source.connection, first_row=1, lines=lines,
    )  # fmt: skip


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
