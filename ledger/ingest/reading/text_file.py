"""Files of texts, one a record: a span of their lines, each split into the fields that the mapping reads.

What splits a text, and what is wrong with one that cannot be split, is for CSV and JSON to say (`Split`). Fields that are read inside a
field whose text is JSON are split once more.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.reading.json_text import json_paths
from ledger.ingest.reading.line_file import SHORT_MEAN_BYTES, LineFile, Piece
from ledger.ingest.reading.line_table import lines_query
from ledger.ingest.reading.record_file import RecordFile
from ledger.ingest.reading.source_file import SOURCE_LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """`found` is what `text` is split into, the column `split` then; `cells` and `malformed` (null of a record) are read from that."""

    found: exp.Expr
    cells: dict[FieldPath, exp.Expr]
    malformed: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile(RecordFile):
    """A file of CSV or JSON."""

    first_row: int  # of its lines: 1 behind a header
    lines: LineFile | None  # from which spans are read; else from the table `record`

    @property
    def reads_source(self) -> bool:
        """As the base class describes it."""
        return self.lines is not None and self.lines.path.name == SOURCE_LINK

    @property
    def has_short_records(self) -> bool:
        """As the base class describes it."""
        return self.lines is not None and self.lines.mean_bytes <= SHORT_MEAN_BYTES

    @property
    @abstractmethod
    def keeps_numbers(self) -> bool:
        """Whether what splits a text leaves every number as it stands."""

    @abstractmethod
    def split(self, paths: list[FieldPath], piece: Piece | None) -> Split:
        """How a text is split into these fields of the record. `piece` has the texts of the span, unless they stand in the table."""

    def cut(self, first: int, last: int, folder: Path) -> Piece | None:
        """As the base class describes it."""
        if self.lines is None:
            return None
        start, end = first + self.first_row, last + self.first_row
        return self.lines.cut(start, end, folder / "lines", find_inexact=not self.keeps_numbers)

    def span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, piece: Piece | None) -> exp.Select:
        """As the base class describes it."""
        start, end = first + self.first_row, last + self.first_row
        relation = "record"
        if self.lines is not None:
            assert piece is not None, "what was cut"
            relation = "chunk_line"
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {relation} AS " + lines_query(piece, self.lines))
        split = self.split(self._outer_paths, piece)
        cells = dict(split.cells)
        rows = (
            exp.select("rowid", "line", "text", "fault", exp.alias_(split.found, "split"))
            .from_(relation)
            .where(f"rowid >= {start:d} AND rowid < {end:d}")
        )
        if self._embedded_paths:
            insides: list[exp.Expr] = []
            for name, paths in self._embedded_paths.items():
                values = exp.func("json_values", cells[(name,)], json_paths([path[1:] for path in paths]))
                insides.append(exp.alias_(values, f"in {name}", quoted=True))
                cells |= {path: item(index, of=f"in {name}") for index, path in enumerate(paths, start=1)}
            rows = exp.select("*", *insides).from_(rows.subquery("split_rows"))
        return self.columns(
            line=exp.column("line"),
            record=exp.Add(this=exp.column("rowid"), expression=exp.Literal.number(1 - self.first_row)),
            malformed=exp.func("coalesce", exp.column("fault"), split.malformed),
            raw=exp.column("text"),
            cells=cells,
        ).from_(rows.subquery("rows"))

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


def item(position: int, of: str = "split") -> exp.Expr:
    """The value at this position, from 1, of what a text was split into."""
    return exp.Bracket(this=exp.column(of, quoted=True), expressions=[exp.Literal.number(position)], offset=1)
