"""Intervals: record the spans in which a circuit breaker was open or a model was loading, from a CSV file, all or none; and look at them.

Source: specification, sections 4 and 9.
"""

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Refusal, Severity
from ledger.contract.scalar import parse_instant
from ledger.errors import FileRefused, LedgerError
from ledger.spreadsheet import delimiter_of
from ledger.store.database import Database
from ledger.store.intervals import Interval, RecordedInterval, add_interval, lock_intervals, recorded_intervals, stored_interval
from ledger.workflows.upkeep import mark_intervals

BREAKER = "circuit_breaker"
KINDS = (BREAKER, "model_load")
REQUIRED = ("kind", "node", "start", "end")
OPTIONAL = ("model", "id")
AHEAD = timedelta(seconds=60)  # by which the clock of whoever records a span may differ from ours, as with events


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalsAdded:
    """How many there are, how many of them are new, and the places in the file of those that have no length: they hold no instant."""

    read: int
    new: int
    empty: tuple[str, ...] = ()


def add_intervals(database: Database, path: Path, *, author: str, dry_run: bool = False) -> IntervalsAdded:
    """Add the intervals of the file; a dry run says how many are new. Raises LedgerError with every wrong line; none is added then."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}", cure="name a CSV file that can be read") from error
    findings: list[Diagnostic] = []
    empty: list[str] = []
    latest = database.now() + AHEAD
    intervals = []
    for line, interval in _intervals(str(path), text, latest, findings):
        intervals.append(interval)
        if interval.starts_at == interval.ends_at:
            empty.append(f"{path}:{line}")
    if findings:
        raise FileRefused("\n".join(map(str, findings)), cure="nothing was added")
    return replace(record_intervals(database, intervals, author=author, dry_run=dry_run), empty=tuple(empty))


def record_intervals(database: Database, intervals: Sequence[Interval], *, author: str, dry_run: bool = False) -> IntervalsAdded:
    """Add these intervals, all or none. One that overlaps another is added beside it: breakers are open where any says so. A dry run does
    the same, and is undone."""
    with database.engine.connect() as connection, connection.begin() as transaction:
        lock_intervals(connection)
        new: list[Interval] = []
        for interval in intervals:
            before = stored_interval(connection, interval.interval_id)
            if before is not None and before != interval:
                raise LedgerError(
                    f"the interval {interval.interval_id} is stored with other content", cure="give it another id; nothing was added"
                )
            if add_interval(connection, interval, author=author, added_at=database.now()):
                new.append(interval)
        if dry_run:
            transaction.rollback()
        else:
            mark_intervals(connection, new)
        return IntervalsAdded(read=len(intervals), new=len(new))


def list_intervals(
    database: Database, *, kind: str | None = None, node: str | None = None, start: datetime | None = None, end: datetime | None = None
) -> list[RecordedInterval]:
    """The recorded intervals that touch [start, end), by start and id; of a kind; that hold for a node, also those of any node."""
    with database.begin() as connection:
        return recorded_intervals(connection, kind=kind, node=node, start=start, end=end)


def _intervals(file: str, text: str, latest: datetime, findings: list[Diagnostic]) -> Iterator[tuple[int, Interval]]:
    """The intervals with their lines; what is wrong goes to the findings, also an end after `latest`."""

    def refuse(line: int, found: str, expected: str, cure: str) -> None:
        findings.append(
            Diagnostic(severity=Severity.ERROR, code="interval", file=file, line=line, column=1, found=found, expected=expected, cure=cure)
        )

    delimiter = delimiter_of(text.partition("\n")[0])
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, strict=True)
    names = reader.fieldnames or []
    unknown = [name for name in names if name not in REQUIRED + OPTIONAL]
    missing = [name for name in REQUIRED if name not in names]
    if unknown or missing or len(set(names)) != len(names):
        refuse(1, f"the columns {', '.join(names)}", f"{', '.join(REQUIRED)}, and if need be {', '.join(OPTIONAL)}", "name each once")
        return
    seen: dict[str, Interval] = {}
    try:
        for row in reader:
            interval = _interval(row, reader.line_num, latest, refuse)
            if interval is None:
                continue
            if seen.setdefault(interval.interval_id, interval) != interval:
                again = f"the id {interval.interval_id} again, with other content"
                refuse(reader.line_num, again, "an id of its own", "leave the id empty")
            yield reader.line_num, interval
    except csv.Error as error:
        refuse(reader.line_num, str(error), "a line of CSV", "put a cell with quotes or delimiters in quotes")


def _interval(row: dict[str, str], line: int, latest: datetime, refuse: Callable[[int, str, str, str], None]) -> Interval | None:
    if None in row or None in row.values():
        refuse(line, "another number of cells than the header has", "one cell for each column", "put cells with delimiters in quotes")
        return None
    for name, value in row.items():
        if len(value) > 200 or any(ord(character) < 32 for character in value):
            refuse(line, f"{name} of {len(value)} characters", "one line of at most 200 characters", "shorten it")
            return None
    kind, node, model = row["kind"], row["node"] or None, row.get("model") or None
    if kind not in KINDS:
        refuse(line, f"the kind {kind!r}", " or ".join(KINDS), "write one of them")
        return None
    if kind == "model_load" and (node is None or model is None):
        refuse(line, "a model_load without its node or its model", "both", "add the column or the value")
        return None
    try:
        starts_at, ends_at = parse_instant(row["start"]), parse_instant(row["end"])
    except Refusal as refusal:
        refuse(line, f"the span {row['start']!r} to {row['end']!r}", refusal.expected, refusal.cure)
        return None
    if ends_at < starts_at:
        refuse(line, f"an end before the start: {row['start']} to {row['end']}", "an end that is not before the start", "exchange them")
        return None
    if ends_at > latest:
        refuse(line, f"an end in the future: {row['end']}", "a span that has ended", "record it when it has; if it has, correct the clock")
        return None
    return interval_of(kind=kind, node=node, model=model, starts_at=starts_at, ends_at=ends_at, interval_id=row.get("id") or None)


def interval_of(
    *, kind: str, node: str | None, model: str | None, starts_at: datetime, ends_at: datetime, interval_id: str | None = None
) -> Interval:
    """The interval; without an id of its own it has a hash of its content."""
    content = "\n".join((kind, node or "", model or "", starts_at.isoformat(), ends_at.isoformat()))
    own_id = interval_id or hashlib.sha256(content.encode()).hexdigest()[:16]
    return Interval(interval_id=own_id, kind=kind, node=node, model=model, starts_at=starts_at, ends_at=ends_at)
