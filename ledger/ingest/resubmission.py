"""Rows that are at hand as values, sent through the same rules as those of a file: corrections, and refused rows that are sent in again.

Takes dictionaries of source fields, by the names under which refused rows keep them, and their mapping; gives a judged chunk. A key that
begins with = is a canonical column that somebody has set: it stands in place of what the mapping reads.
Source: specification, section 2, "Corrections".
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.contract.suggestion import did_you_mean
from ledger.errors import LedgerError
from ledger.ingest.chunk import Chunk, Judge
from ledger.ingest.expression import MACROS, RECORD_COLUMN, Compiled, field_column, field_key
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.file_state import no_room, says_no_room
from ledger.ingest.kept_fields import LONGEST_FIELD
from ledger.ingest.mapping import DURATION_POWERS, DURATIONS, INTEGERS, TEXTS, TYPED
from ledger.ingest.mapping import Mapping as SourceMapping
from ledger.ingest.mapping_file import built_in_mappings
from ledger.ingest.reading.line_file import Piece
from ledger.ingest.reading.record_file import RecordFile, file_stem
from ledger.ingest.reading.scratch import literal, load_writer
from ledger.ingest.reading.scratch_folder import scratch_folder
from ledger.instant import since_1970_us

CANONICAL = "canonical"
REPAIR_ID = "quarantine_id"  # a column of the tables in which people repair rows
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1, "autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_unsigned_extensions": True,
}  # fmt: skip
_SET = "="  # begins the key of a canonical column that was set

Fields = Mapping[str, str | None]

_UNITS = ("us", "ms", "s")
# By duration, the columns that have it: one for each unit.
DURATION_COLUMNS = {name: tuple(f"{name.removesuffix('_us')}_{unit}" for unit in _UNITS) for name in DURATIONS}
# The canonical columns, in the order in which people read them.
CANONICAL_COLUMNS = (
    *("account", "request_id", "model", "received_at"),
    *chain.from_iterable(DURATION_COLUMNS.values()),
    *INTEGERS,
    *("queue", "cold_start", "async_header", "node"),
)


def with_values(fields: Fields, values: Mapping[str, str]) -> dict[str, str | None]:
    """The fields with these canonical columns set; "" empties one. A duration that is set in one unit has no other."""
    return {**fields, **{f"{_SET}{name}": value for name, value in values.items()}}


def check_values(values: Mapping[str, str], *, but: Collection[str] = ()) -> None:
    """Raises LedgerError if one of them is of no canonical column, or of one that may not be set, or no text that could be kept."""
    settable = [name for name in CANONICAL_COLUMNS if name not in but]
    unknown = [name for name in values if name not in settable]
    if unknown:
        raise LedgerError(
            f"{', '.join(unknown)} cannot be set",
            cure=did_you_mean(unknown[0], settable, f"set some of {', '.join(settable)}"),
            exit_code=2,
        )
    for name, value in values.items():
        if len(value) > LONGEST_FIELD or "\0" in value:
            found = "a text with a NUL" if "\0" in value else f"a text of {len(value):,} characters"
            raise LedgerError(f"{name}: {found}", cure=f"set a text of at most {LONGEST_FIELD:,} characters without NUL")


def shape_of(values: Mapping[str, str]) -> tuple[str, ...]:
    """What rows have to have in common to be judged together: the columns that are set."""
    return tuple(sorted(values))


@contextmanager
def judged_rows(
    rows: Sequence[Fields], mapping: SourceMapping, *, now: datetime, sources: Sequence[str] = (), records: Sequence[int] = ()
) -> Iterator[Chunk]:
    """The rows, all of one shape, judged; a field that a row lacks is empty. `sources` are the files that they came in with, `records`
    their numbers, each once: from 1, if none are given."""
    keys = sorted({key for row in rows for key in row})
    with scratch_folder("ledger-rows-") as folder, closing(duckdb.connect(config=_SETTINGS)) as connection:
        load_writer(connection)
        for macro in MACROS:
            connection.execute(macro)
        connection.execute("CREATE TABLE row_at_hand (record BIGINT, stem VARCHAR, cells VARCHAR[])")
        texts = [
            {"record": record, "stem": file_stem(source), "cells": [row.get(key) for key in keys]}
            for row, record, source in zip(rows, records or range(1, len(rows) + 1), sources or [""] * len(rows), strict=True)
        ]
        shape = '[{"record": "BIGINT", "stem": "VARCHAR", "cells": ["VARCHAR"]}]'
        connection.execute(
            "INSERT INTO row_at_hand SELECT row.record, row.stem, row.cells FROM "  # noqa: S608
            f"(SELECT unnest(from_json({literal(json.dumps(texts))}::JSON, {literal(shape)})) AS row)"
        )
        overridden = _overridden(mapping, {key.removeprefix(_SET) for key in keys if key.startswith(_SET)})
        opened = _RowsAtHand.of(keys, overridden, connection, Path(folder))
        try:
            with closing(Judge(opened, now_us=since_1970_us(now)).first_chunk(len(rows))) as chunk:
                yield chunk
        except duckdb.Error as error:
            if says_no_room(str(error)):
                raise no_room("rows that are sent in again") from error
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowsAtHand(RecordFile):
    """The table `row_at_hand` as if it were a file. `keys` are the names of the cells, in their order."""

    keys: tuple[str, ...]

    @classmethod
    def of(cls, keys: Sequence[str], mapping: SourceMapping, connection: duckdb.DuckDBPyConnection, folder: Path) -> "_RowsAtHand":
        """Rows whose cells are the fields of these keys."""
        return cls(
            name="", sha256="", mapping=mapping, fields=tuple({path[0]: None for path in mapping.paths if field_key(path) in keys}),
            ignored=(), records=0, folder=folder, connection=connection, keys=tuple(keys),
        )  # fmt: skip

    def span(self, connection: duckdb.DuckDBPyConnection, first: int, last: int, piece: Piece | None) -> exp.Select:
        """All of the rows, as the base class describes them."""
        places = {key: place for place, key in enumerate(self.keys, start=1)}
        cells: dict[FieldPath, exp.Expr] = {
            path: exp.Bracket(this=exp.column("cells"), expressions=[exp.Literal.number(places[field_key(path)])], offset=1)
            for path in self.mapping.paths
            if field_key(path) in places
        }
        record = exp.column("record")
        return self.columns(line=record, record=record.copy(), cells=cells, stem=exp.column("stem")).from_("row_at_hand")


def _overridden(mapping: SourceMapping, names: Collection[str]) -> SourceMapping:
    """The mapping that reads these canonical columns from what was set."""
    columns, origin = dict(mapping.columns), mapping.origin
    for column, sources in canonical_mapping().columns.items() if names else ():
        if given := tuple(replace(source, value=_was_set(source.name)) for source in sources if source.name in names):
            columns[column] = given
            origin = None if column == "received_at" else origin
    return replace(mapping, columns=columns, origin=origin)


def _was_set(name: str) -> Compiled:
    key = f"{_SET}{name}"
    return Compiled(lambda: (exp.column(field_column((key,)), quoted=True), frozenset({(key,)})))


# A duration in nanoseconds, which no canonical column has, becomes the microseconds that are stored.
_US = "coalesce(scaled_decimal({name}_text, {name}_power)::VARCHAR, {name}_text)"
_CANONICAL_TEXTS = {
    **{name: f"{name}_text" if name in TYPED else name for name in (*TEXTS, *INTEGERS)},
    # An instant of an epoch is written as one; what is none stays as it stands.
    "received_at": "CASE WHEN received_at_power IS NULL THEN received_at_text ELSE coalesce(replace(make_timestamp(within_calendar("
    "scaled_decimal(received_at_text, received_at_power)))::VARCHAR, ' ', 'T') || 'Z', received_at_text) END",
    **{
        column: f"CASE {name}_power WHEN {DURATION_POWERS[unit]} THEN {name}_text "
        + (f"WHEN {DURATION_POWERS['ns']} THEN {_US.format(name=name)} END" if unit == "us" else "END")
        for name, columns in DURATION_COLUMNS.items()
        for column, unit in zip(columns, _UNITS, strict=True)
    },
}


def canonical_texts(chunk: Chunk) -> dict[int, dict[str, str]]:
    """What the mapping reads of each row of `judged_rows`, in CANONICAL_COLUMNS, as the texts that stand there; by record."""
    columns = ", ".join(f"coalesce({_CANONICAL_TEXTS[name]}, '')" for name in CANONICAL_COLUMNS)
    rows = chunk.connection.execute(f"SELECT record, {columns} FROM mapped").fetchall()  # noqa: S608
    return {record: dict(zip(CANONICAL_COLUMNS, values, strict=True)) for record, *values in rows}


@cache
def canonical_mapping() -> SourceMapping:
    """The mapping of the specification's own columns."""
    return built_in_mappings()[CANONICAL]


def record_number(fields: Fields) -> int | None:
    """The number that the record had in its file, if its event depends on it."""
    number = fields.get(RECORD_COLUMN)
    return int(number) if number else None
