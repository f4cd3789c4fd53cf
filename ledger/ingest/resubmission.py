"""Rows that are at hand as values, sent through the same rules as those of a file: corrections, and refused rows that are sent in again.

Takes dictionaries of source fields and their mapping, and gives a judged chunk. Source: specification, section 2, "Corrections".
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ledger.errors import LedgerError
from ledger.ingest.chunk import Chunk, judge_chunk
from ledger.ingest.event_rules import since_1970_us
from ledger.ingest.expression import RECORD_COLUMN, field_key
from ledger.ingest.given import Given
from ledger.ingest.mapping import FileFormat
from ledger.ingest.mapping import Mapping as SourceMapping
from ledger.ingest.record_file import open_records


@contextmanager
def judged_rows(
    rows: Sequence[Mapping[str, str | None]], mapping: SourceMapping, *, name: str, now: datetime, first_record: int = 1
) -> Iterator[Chunk]:
    """The rows, judged; `name` stands for their file, and they are numbered from `first_record`."""
    optional = frozenset(path[0] for path in mapping.paths)
    anyhow = replace(mapping, file_format=None, delimiter=None, identify=(), optional=optional, unfolding=None)
    with tempfile.TemporaryDirectory(prefix="ledger-rows-") as folder:
        file = Path(folder, "rows.jsonl")
        with file.open("w", encoding="utf-8") as lines:
            for row in rows:
                lines.write(json.dumps({"#row": True} | _nested(row, mapping)) + "\n")  # so that no row looks like a document
        with open_records(file, (anyhow,), name=name) as records:
            assert records.file_format is FileFormat.JSON_LINES
            numbered = replace(records, first_row=1 - first_record)
            now_us = since_1970_us(now)
            first = first_record - 1
            with closing(judge_chunk(numbered, number=0, first=first, last=first + len(rows), now_us=now_us)) as chunk:
                yield chunk


def mapping_of(fields: Mapping[str, str | None], candidates: Sequence[SourceMapping], *, sha256: str, name: str) -> SourceMapping:
    """The mapping under which the fields were read. Raises LedgerError if it is none of the candidates."""
    given = Given.of_fields(fields)
    for candidate in candidates:
        mapping = candidate.filled(given)
        if mapping.sha256 == sha256:
            return mapping
    raise LedgerError(f"the mapping {name} under which the row was read is not at hand", cure="name its file with --mapping")


def record_number(fields: Mapping[str, str | None]) -> int | None:
    """The number that the record had in its file, if its event depends on it."""
    number = fields.get(RECORD_COLUMN)
    return int(number) if number else None


def _nested(row: Mapping[str, str | None], mapping: SourceMapping) -> dict[str, object]:
    """The fields as they stood in the source: `a.b` is b inside a."""
    nested: dict[str, object] = {}
    for path in mapping.paths:
        if field_key(path) not in row:
            continue
        inner: dict[str, object] = nested
        for part in path[:-1]:
            below = inner.setdefault(part, {})
            assert isinstance(below, dict)
            inner = below
        inner[path[-1]] = row[field_key(path)]
    return nested
