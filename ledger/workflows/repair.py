"""Repair: refused rows as a table in canonical columns that a person corrects in a spreadsheet, and the corrected table back.

A table is CSV or JSON Lines with the columns quarantine_id, reason, detail and those of the event; of what comes back, only the columns
that differ from what the row says are set. Source: specification, section 2.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeVar

from ledger.errors import LedgerError
from ledger.ingest.resubmission import CANONICAL_COLUMNS, DURATION_COLUMNS, REPAIR_ID, canonical_texts, check_values
from ledger.spreadsheet import defused, delimiter_of, restored
from ledger.store.database import Database
from ledger.store.quarantine import PIECE_ROWS, START, RefusedRow, RowFilter, last_refused_id, piece_end, piece_of_refused
from ledger.workflows.quarantine import check_ids
from ledger.workflows.requeue import RESOLVED, Requeue, Requeued
from ledger.workflows.reread import Mappings, alike
from ledger.workflows.unknown import UnknownNames

# What is repaired most stands first; of durations there are many columns.
_DURATIONS = tuple(chain.from_iterable(DURATION_COLUMNS.values()))
COLUMNS = (REPAIR_ID, "reason", "detail", *(name for name in CANONICAL_COLUMNS if name not in _DURATIONS), *_DURATIONS)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row of a table that came back: where it stands, which row in quarantine it is, and the event's columns that the table has."""

    place: str
    quarantine_id: int
    texts: Mapping[str, str]


def export_rows(database: Database, wanted: RowFilter, *, mappings: Sequence[Path] = ()) -> Iterator[dict[str, str]]:
    """The rows by load and line, each as COLUMNS: read by its mapping, as `requeue_rows` says.

    Raises LedgerError, before the first, if an id is none or a mapping is not at hand."""
    with database.begin() as connection:
        check_ids(connection, wanted.ids or ())
        known = Mappings.for_rows(connection, wanted, mappings)
        after, last = START, last_refused_id(connection)
        while (end := piece_end(connection, wanted, after=after, last_id=last)) is not None:
            rows = piece_of_refused(connection, wanted, after=after, end=end, last_id=last)
            texts = _texts(rows, known, database.now())
            for row in rows:
                yield {REPAIR_ID: str(row.quarantine_id), "reason": row.reason, "detail": row.detail, **texts[row.quarantine_id]}
            after = end


def write_table(rows: Iterable[Mapping[str, str]], stream: IO[str], *, as_csv: bool) -> int:
    """Write the rows as CSV or as JSON Lines; gives their number."""
    return _write_csv(rows, stream) if as_csv else _write_json_lines(rows, stream)


def _write_csv(rows: Iterable[Mapping[str, str]], stream: IO[str]) -> int:
    """With a line of headings. No cell is run by a spreadsheet; every cell is quoted, so that none becomes two."""
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for row in rows:
        writer.writerow([defused(row[name]) for name in COLUMNS])
        count += 1
    return count


def _write_json_lines(rows: Iterable[Mapping[str, str]], stream: IO[str]) -> int:
    """One object a row, without empty columns."""
    count = 0
    for row in rows:
        stream.write(json.dumps({name: text for name, text in row.items() if text}, ensure_ascii=False) + "\n")
        count += 1
    return count


def requeue_table(
    database: Database, path: Path, *, reason: str, author: str, mappings: Sequence[Path] = (), dry_run: bool = False,
    names: UnknownNames,
) -> Iterator[Requeued]:  # fmt: skip
    """Send the rows of the table in again, with the columns that were changed in it, and tell of each; those with none are left alone.

    Raises LedgerError, before anything is done, if the file is not such a table, or an id is none or stands in it twice.
    """
    with database.begin() as connection:
        seen: set[int] = set()
        known = None
        for rows in _pieces(read_table(path)):
            for row in rows:
                if row.quarantine_id in seen:
                    raise LedgerError(f"{row.place}: row {row.quarantine_id} a second time", cure="leave one of the two; nothing was done")
                seen.add(row.quarantine_id)
            check_ids(connection, [row.quarantine_id for row in rows])
            found = Mappings.for_rows(connection, _waiting(rows), mappings)
            known = found if known is None else known.with_others(found)
        last = last_refused_id(connection)
    if known is None:
        return
    requeue = Requeue(database=database, mappings=known, author=author, reason=reason, last_id=last, names=names)
    for rows in _pieces(read_table(path)):
        given = {row.quarantine_id: row.texts for row in rows}

        def changes(refused: list[RefusedRow], given: Mapping[int, Mapping[str, str]] = given) -> dict[int, dict[str, str]]:
            texts = _texts(refused, known, database.now())
            changed = {one: _changed(texts[one], given[one]) for one in (row.quarantine_id for row in refused)}
            return {one: values for one, values in changed.items() if values}

        told = set()
        for one in requeue.each(_waiting(rows), changes, dry_run=dry_run):
            told.add(one.quarantine_id)
            yield one
        yield from (Requeued(quarantine_id=one, outcome=RESOLVED) for one in sorted(given.keys() - told))


def read_table(path: Path) -> Iterator[TableRow]:
    """The rows of the table in order. Raises LedgerError with the place of what is wrong."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            yield from _json_rows(path, stream) if first.lstrip().startswith("{") else _csv_rows(path, first, stream)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}", cure="name a table that ledger quarantine export has written") from error
    except UnicodeDecodeError as error:
        raise LedgerError(f"{path}: not UTF-8", cure="save it as CSV in UTF-8") from error


def _csv_rows(path: Path, first: str, stream: IO[str]) -> Iterator[TableRow]:
    delimiter = delimiter_of(first)
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        names = next(reader, [])
        if REPAIR_ID not in names or len(set(names)) != len(names):
            raise LedgerError(
                f"{path}: the columns {', '.join(names)[:200]}",
                cure=f"each column once, and {REPAIR_ID} among them, as in an exported table",
            )
        for cells in reader:
            if not any(cells):
                continue
            place = f"{path}:{reader.line_num}"
            if len(cells) != len(names):
                raise LedgerError(f"{place}: {len(cells)} cells under {len(names)} columns", cure="correct the line; nothing was done")
            yield _row(place, dict(zip(names, map(restored, cells), strict=True)))
    except csv.Error as error:
        raise LedgerError(f"{path}:{reader.line_num}: {error}", cure="correct the line; nothing was done") from error


def _json_rows(path: Path, stream: IO[str]) -> Iterator[TableRow]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            # Numbers as they are written: no digit is lost.
            found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
        except (json.JSONDecodeError, RecursionError) as error:
            raise LedgerError(f"{place}: no JSON", cure="correct the line; nothing was done") from error
        if not isinstance(found, dict):
            raise LedgerError(f"{place}: not an object", cure="correct the line; nothing was done")
        yield _row(place, {name: _json_text(place, name, value) for name, value in found.items()})


def _json_text(place: str, name: str, value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str() if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
            return value
        case _:
            raise LedgerError(f"{place}: {name} is no text", cure="write a text; nothing was done")


def _row(place: str, cells: Mapping[str, str]) -> TableRow:
    written = cells.get(REPAIR_ID, "")
    if not re.fullmatch(r"[0-9]{1,18}", written, re.ASCII):
        raise LedgerError(f"{place}: the {REPAIR_ID} is {written[:60]!r}", cure=f"leave {REPAIR_ID} as it was exported; nothing was done")
    texts = {name: text for name, text in cells.items() if name in CANONICAL_COLUMNS}
    try:
        check_values(texts)
    except LedgerError as error:
        raise LedgerError(f"{place}: {error.message}", cure=error.cure) from error
    return TableRow(place=place, quarantine_id=int(written), texts=texts)


def _changed(current: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The columns that differ. A duration goes as a whole: whoever changes it in one unit has to empty it in the others."""
    changed = {name: text for name, text in given.items() if text != current[name]}
    for units in DURATION_COLUMNS.values():
        if any(name in changed for name in units):
            changed |= {name: text for name in units if (text := given.get(name, current[name]))}
    return changed


def _texts(rows: list[RefusedRow], mappings: Mappings, now: datetime) -> dict[int, dict[str, str]]:
    """What the mapping reads of each row, in canonical columns."""
    texts: dict[int, dict[str, str]] = {}
    for group in alike([(row, {}) for row in rows], mappings):
        with group.judged(now) as chunk:
            found = canonical_texts(chunk)
        texts |= {row.quarantine_id: found[record] for record, row in zip(group.records, group.rows, strict=True)}
    return texts


def _waiting(rows: list[TableRow]) -> RowFilter:
    return RowFilter(ids=[row.quarantine_id for row in rows])


def _pieces(rows: Iterator[T]) -> Iterator[list[T]]:
    while piece := list(islice(rows, PIECE_ROWS)):
        yield piece
