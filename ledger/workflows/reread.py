"""Refused rows read again: by which mapping each is read, and which are judged together.

Takes rows of quarantine and what is set of them, gives groups that become a judged chunk each. For whoever sends them in again (`requeue`)
and who shows what they say (`repair`). Source: specification, section 2.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from ledger.errors import LedgerError
from ledger.ingest.chunk import Chunk
from ledger.ingest.given import Asked, Given
from ledger.ingest.mapping import Mapping as SourceMapping
from ledger.ingest.mapping import Role
from ledger.ingest.mapping_file import built_in_mappings, read_mapping
from ledger.ingest.resubmission import canonical_mapping, judged_rows, record_number, shape_of, with_values
from ledger.store.connection import Connection
from ledger.store.quarantine import RefusedRow, RowFilter, mappings_of

Values: TypeAlias = Mapping[str, str]  # canonical columns and their texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Mappings:
    """By which mapping refused rows are read: of the given ones by the one under which they came in, or that has its name; else by their
    own; and if that is not at hand, by the only one given, which may have been renamed."""

    given: tuple[SourceMapping, ...]
    built_in: tuple[SourceMapping, ...]
    known: dict[tuple[str, Given], SourceMapping] = field(default_factory=dict)

    @classmethod
    def of_ledger(cls) -> "Mappings":
        """Those that are always at hand."""
        return cls(given=(), built_in=tuple(built_in_mappings().values()))

    @classmethod
    def for_rows(cls, connection: Connection, wanted: RowFilter, given: Sequence[Path]) -> "Mappings":
        """Those of these rows. Raises LedgerError if one is not at hand."""
        made = replace(cls.of_ledger(), given=tuple(map(read_mapping, given)))
        for name, sha256, fields in mappings_of(connection, wanted, [f"#{asked}" for asked in Asked]):
            made._find(name, sha256, Given.of_fields(fields))
        return made

    def with_others(self, others: "Mappings") -> "Mappings":
        """These and those that others know."""
        return replace(self, known={**self.known, **others.known})

    def of(self, row: RefusedRow) -> SourceMapping:
        """The mapping of the row. A row of which nothing was kept has nothing to map."""
        return self._find(row.mapping, row.mapping_sha256, Given.of_fields(row.fields)) if row.fields else canonical_mapping()

    def as_it_came(self, row: RefusedRow) -> SourceMapping | None:
        """The mapping under which the row came in; None if it is not at hand, or nothing of the row was kept."""
        key = row.mapping_sha256, Given.of_fields(row.fields)
        if row.fields and key not in self.known:
            filled = (mapping.filled(key[1]) for mapping in (*self.given, *self.built_in))
            if same := next((mapping for mapping in filled if mapping.sha256 == row.mapping_sha256), None):
                self.known[key] = same
        return self.known.get(key)

    @property
    def of_observations(self) -> bool:
        """Whether one of them reads observations."""
        return any(mapping.observations for mapping in self.known.values())

    def _find(self, name: str, sha256: str, filling: Given) -> SourceMapping:
        if (sha256, filling) not in self.known:
            self.known[sha256, filling] = self._chosen(name, sha256, filling)
        return self.known[sha256, filling]

    def _chosen(self, name: str, sha256: str, filling: Given) -> SourceMapping:
        given = [mapping.filled(filling) for mapping in self.given]
        built_in = [mapping.filled(filling) for mapping in self.built_in]
        by_rank: list[SourceMapping] = [
            *(mapping for mapping in given if mapping.sha256 == sha256),
            *(mapping for mapping in given if mapping.name == name),
            *(mapping for mapping in built_in if mapping.sha256 == sha256),
            *(given if len(given) == 1 else ()),
        ]
        if not by_rank:
            raise LedgerError(f"the mapping {name} under which a row was read is not at hand", cure="name its file with --mapping")
        chosen = by_rank[0]
        if chosen.origin is not None and chosen.origin.start_us is None:
            raise LedgerError(
                f"the mapping {chosen.name} asks when a file starts, and a row under {name} came in without that",
                cure="write the start into the mapping, or load the file again with --start",
            )
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeRows:
    """Rows that are judged together: of one file and mapping and with the same columns set, and what is set of each."""

    rows: tuple[RefusedRow, ...]
    mapping: SourceMapping
    values: tuple[Values, ...]

    @property
    def records(self) -> tuple[int, ...]:
        """The number by which each is known in the chunk: its own, if its event depends on it."""
        if not self.mapping.counts_records:
            return tuple(range(1, len(self.rows) + 1))
        return tuple(record_number(row.fields) or place for place, row in enumerate(self.rows, start=1))

    @property
    def role(self) -> Role | None:
        """Whose observations they are; None of whole requests."""
        return self.mapping.role

    @property
    def hashes(self) -> dict[int, str]:
        """Under which each stands in quarantine, by its record."""
        return {record: row.row_sha256 for record, row in zip(self.records, self.rows, strict=True)}

    @contextmanager
    def judged(self, now: datetime) -> Iterator[Chunk]:
        """The rows as a chunk."""
        fields = [with_values(row.fields, values) for row, values in zip(self.rows, self.values, strict=True)]
        sources = [row.source for row in self.rows]
        with judged_rows(fields, self.mapping, now=now, sources=sources, records=self.records) as chunk:
            yield chunk


def alike(rows: Iterable[tuple[RefusedRow, Values]], mappings: Mappings) -> list[AlikeRows]:
    """The rows, in groups. A record of a file may have been refused more than once: where its number counts, each is in another group."""
    groups: dict[tuple[str, tuple[str, ...], str, int], list[tuple[RefusedRow, SourceMapping, Values]]] = defaultdict(list)
    seen: Counter[tuple[str, str, int | None]] = Counter()
    counting: dict[str, bool] = {}  # by mapping: to ask it takes longer than all else here
    for row, values in rows:
        mapping, shape = mappings.of(row), shape_of(values)
        if mapping.sha256 not in counting:
            counting[mapping.sha256] = mapping.counts_records
        occurrence = 0
        if counting[mapping.sha256]:
            key = mapping.sha256, row.source, record_number(row.fields)
            occurrence, seen[key] = seen[key], seen[key] + 1
        groups[mapping.sha256, shape, row.source, occurrence].append((row, mapping, values))
    return [
        AlikeRows(rows=tuple(row for row, _, _ in group), mapping=group[0][1], values=tuple(values for _, _, values in group))
        for group in groups.values()
    ]
