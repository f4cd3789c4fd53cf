"""Intervals: record the spans in which a circuit breaker was open or a model was loading, from a CSV file, all or none.

Source: specification, sections 4 and 9.
"""

import csv
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.scalar import parse_instant
from ledger.errors import LedgerError
from ledger.store.database import Database
from ledger.store.intervals import Interval, add_interval, lock_intervals, stored_interval
from ledger.workflows.upkeep import mark_intervals

KINDS = ("circuit_breaker", "model_load")
REQUIRED = ("kind", "node", "start", "end")
OPTIONAL = ("model", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalsAdded:
    """How many the file has, and how many of them are new."""

    read: int
    new: int


def add_intervals(database: Database, path: Path, *, author: str) -> IntervalsAdded:
    """Add the intervals of the file. Raises LedgerError with every line that is wrong; nothing is added then."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}", cure="name a CSV file that can be read") from error
    findings: list[Diagnostic] = []
    intervals = list(_intervals(str(path), text, findings))
    if findings:
        raise LedgerError("\n".join(map(str, findings)), cure="correct the file; nothing was added")
    with database.engine.begin() as connection:
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
        mark_intervals(connection, new)
        return IntervalsAdded(read=len(intervals), new=len(new))


def _intervals(file: str, text: str, findings: list[Diagnostic]) -> Iterator[Interval]:
    def refuse(line: int, found: str, expected: str) -> None:
        findings.append(
            Diagnostic(
                severity=Severity.ERROR, code="interval", file=file, line=line, column=1, found=found, expected=expected, cure="correct it"
            )
        )  # fmt: skip

    delimiter = next((one for one in ",;\t" if one in text.partition("\n")[0]), ",")
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, strict=True)
    names = reader.fieldnames or []
    unknown = [name for name in names if name not in REQUIRED + OPTIONAL]
    missing = [name for name in REQUIRED if name not in names]
    if unknown or missing or len(set(names)) != len(names):
        refuse(1, f"the columns {', '.join(names)}", f"{', '.join(REQUIRED)}, and if need be {', '.join(OPTIONAL)}")
        return
    seen: dict[str, Interval] = {}
    try:
        for row in reader:
            interval = _interval(row, reader.line_num, refuse)
            if interval is None:
                continue
            if seen.setdefault(interval.interval_id, interval) != interval:
                refuse(reader.line_num, f"the id {interval.interval_id} again, with other content", "an id of its own")
            yield interval
    except csv.Error as error:
        refuse(reader.line_num, str(error), "a line of CSV")


def _interval(row: dict[str, str], line: int, refuse: Callable[[int, str, str], None]) -> Interval | None:
    if None in row or None in row.values():
        refuse(line, "another number of cells than the header has", "one cell for each column")
        return None
    for name, value in row.items():
        if len(value) > 200 or any(ord(character) < 32 for character in value):
            refuse(line, f"{name} of {len(value)} characters", "one line of at most 200 characters")
            return None
    kind, node, model = row["kind"], row["node"] or None, row.get("model") or None
    if kind not in KINDS:
        refuse(line, f"the kind {kind!r}", " or ".join(KINDS))
        return None
    if kind == "model_load" and (node is None or model is None):
        refuse(line, "a model_load without its node or its model", "both")
        return None
    try:
        starts_at, ends_at = parse_instant(row["start"]), parse_instant(row["end"])
    except ValueError as error:
        refuse(line, f"the span {row['start']!r} to {row['end']!r}", str(error).removeprefix("expected "))
        return None
    if ends_at < starts_at:
        refuse(line, f"an end before the start: {row['start']} to {row['end']}", "an end that is not before the start")
        return None
    content = "\n".join((kind, node or "", model or "", starts_at.isoformat(), ends_at.isoformat()))
    interval_id = row.get("id") or hashlib.sha256(content.encode()).hexdigest()[:16]
    return Interval(interval_id=interval_id, kind=kind, node=node, model=model, starts_at=starts_at, ends_at=ends_at)
