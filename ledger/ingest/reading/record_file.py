"""An open file of records: what every format gives.

`RecordFile` knows which fields the file has and how many records, and gives any span of them as a DuckDB relation with the line, the fields
that the mapping reads, and why a line is no record (`#malformed`). How a span is selected is for the format to say.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.ingest.expression import FILE_STEM_COLUMN, RECORD_COLUMN, field_column, field_key
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.file_state import FileState
from ledger.ingest.mapping import Mapping
from ledger.ingest.reading.line_file import Piece

NULL_TEXT = exp.cast(exp.null(), "TEXT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFile(ABC):
    """An open file. `fields` are its top-level names; `ignored` those that the mapping neither reads nor knows."""

    name: str
    sha256: str
    mapping: Mapping
    fields: tuple[str, ...]
    ignored: tuple[str, ...]
    records: int
    folder: Path  # for what nobody needs when the file is closed
    connection: duckdb.DuckDBPyConnection
    state: FileState | None = None  # of the file when it was opened

    def check_unchanged(self) -> None:
        """Raises LedgerError if spans are read from the file itself, and it is another one by now."""
        if self.state is not None and self.reads_source:
            self.state.check()

    @property
    def reads_source(self) -> bool:
        """Whether spans are read from the file itself, and not from what was made of it."""
        return False

    @property
    def has_short_records(self) -> bool:
        """Whether it is known that its records are short: then less memory does."""
        return False

    @property
    def read_paths(self) -> tuple[FieldPath, ...]:
        """The fields that the mapping reads and the file can have."""
        return tuple(path for path in self.mapping.paths if path[0] in self.fields)

    @property
    def values(self) -> dict[FieldPath, str]:
        """The fields that the mapping reads and that are values in the file, with their type: BIGINT, BOOLEAN or TIMESTAMPTZ."""
        return {}

    def cut(self, first: int, last: int, folder: Path) -> Piece | None:
        """The part of the file that has these records, put into the folder, if that is how they are read. Apart from the database."""
        return None

    def read_span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, piece: Piece | None) -> None:
        """Make the temporary view `chunk_record` of the records `first` (from 0) up to but not including `last`: #line, #record (from 1),
        #malformed, #raw, #file_stem, and the fields that the mapping reads, null if the file does not have them. What is a value in the
        file is there as such too (`value_key`), an instant in microseconds since 1970. `piece` is what was cut out for them, where the view
        reads it."""
        span = self.span(connection, first, last, piece)
        connection.execute("CREATE OR REPLACE TEMP VIEW chunk_record AS " + span.sql("duckdb"))

    @abstractmethod
    def span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, piece: Piece | None) -> exp.Select:
        """What `read_span` makes the view of; it may make others that this one reads."""

    def columns(
        self, *, line: exp.Expr, record: exp.Expr, cells: dict[FieldPath, exp.Expr], malformed: exp.Expr = NULL_TEXT,
        raw: exp.Expr = NULL_TEXT, stem: exp.Expr | None = None,
    ) -> exp.Select:  # fmt: skip
        """The columns of a span, from nothing yet; `cells` are the fields that are there, `stem` is the file's unless it is given."""
        fields = [exp.alias_(cells.get(path, NULL_TEXT.copy()), field_column(path), quoted=True) for path in self.mapping.paths]
        return exp.select(
            exp.alias_(line, "#line", quoted=True),
            exp.alias_(record, RECORD_COLUMN, quoted=True),
            exp.alias_(malformed.copy(), "#malformed", quoted=True),
            exp.alias_(raw.copy(), "#raw", quoted=True),
            exp.alias_(stem or exp.Literal.string(file_stem(self.name)), FILE_STEM_COLUMN, quoted=True),
            *fields,
        )


def unread_fields(mapping: Mapping, fields: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the fields that the mapping neither reads nor knows."""
    known = {*(path[0] for path in mapping.paths), *(name.partition(".")[0] for name in (*mapping.identify, *mapping.optional))}
    return tuple(dict.fromkeys(name or "without a name" for name in fields if name not in known))


def value_key(path: FieldPath) -> str:
    """The name under which a field's value is read, where the file has more than its text."""
    return f"#value.{field_key(path)}"


def file_stem(name: str) -> str:
    """The file's name without the endings of compression and format: `a.csv.gz` is a."""
    path = Path(name)
    return Path(path.stem).stem if path.suffix in (".gz", ".zst") else path.stem
