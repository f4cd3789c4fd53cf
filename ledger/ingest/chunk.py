"""A chunk of a file, judged: its events and its refused rows, ready to be stored.

Takes a span of records and the mapping and gives a `Chunk`: counts, the events and the refused rows as streams for COPY, and (later, when
the store has found them) the rows in conflict. Rows stay inside DuckDB. Source: specification, section 2.
"""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO
from uuid import uuid4

import duckdb

from ledger.ingest.event_rules import OBSERVATION_NAMES, Reason, define_macros, judge
from ledger.ingest.given import Asked
from ledger.ingest.implausible import Implausible, find_implausible
from ledger.ingest.kept_fields import fields_select
from ledger.ingest.mapped_columns import filled_name, given_powers, mapped_select
from ledger.ingest.mapping import Role
from ledger.ingest.reading.line_file import Piece
from ledger.ingest.reading.record_file import RecordFile, file_stem
from ledger.ingest.reading.scratch import literal
from ledger.store.events import COMPARED_FIELDS, EVENT_FIELDS
from ledger.store.observations import OBSERVATION_FIELDS

_IS_EVENT = "reason IS NULL"
_IS_OBSERVATION = f"(reason IS NULL OR reason = '{Reason.USAGE_MISSING}')"  # its engine may have the tokens

# Whether a record is one of those of `kept`. A join that asks for it would take all records for few, and hold their fields in memory.
_IS_KEPT = (
    "CASE WHEN record BETWEEN getvariable('kept_first') AND getvariable('kept_last') "
    "THEN get_bit(getvariable('kept'), (record - getvariable('kept_first'))::INTEGER) = 1 END"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The records [first, last) of a file, before they are judged: what was cut out for them, and the chunk's folder."""

    number: int
    first: int
    last: int
    folder: Path
    piece: Piece | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The records [first, last) of a file, judged. `refused` counts by reason, `skipped` by the mapping's names for what is no request,
    `filled` the rows that have no account or model but what the command line gives;
    instants are microseconds since 1970, of the stored rows only."""

    number: int
    first: int
    last: int
    refused: Counter[Reason]
    skipped: Counter[str]
    clamped: int
    filled: dict[Asked, int]
    earliest_us: int | None
    latest_us: int | None
    implausible: Implausible | None
    connection: duckdb.DuckDBPyConnection
    folder: Path  # of its own
    stored: str = _IS_EVENT  # which rows of `judged` are, as a condition
    identifying_stem: str | None = None  # of the file's name, if that and their number identify the records
    written: dict[int | Role | None, Path] = field(default_factory=dict)  # events by their batch, observations by their role

    @property
    def read(self) -> int:
        return self.last - self.first

    @property
    def events(self) -> int:
        return self.read - self.refused.total() - self.skipped.total()

    def write_events(self, *, batch_id: int | None) -> Path:
        """Write what event_stream gives, so that it need not be waited for then."""
        columns = ", ".join(f"event_{name}" for name in EVENT_FIELDS)
        behind = "record" if batch_id is None else f"{batch_id:d}::BIGINT, 1::SMALLINT"
        path = self.written[batch_id] = self.write(f"SELECT {columns}, {behind} FROM judged WHERE reason IS NULL")  # noqa: S608
        return path

    def event_stream(self, *, batch_id: int | None) -> IO[bytes]:
        """Binary rows of the events: EVENT_FIELDS, then batch_id and revision 1; or, without a batch, the record's number behind them."""
        return (self.written.get(batch_id) or self.write_events(batch_id=batch_id)).open("rb")

    def write_observations(self, role: Role) -> Path:
        """Write what observation_stream gives, so that it need not be waited for then."""
        columns = {name: f"event_{name}" for name in EVENT_FIELDS} | {name: name for name in ("record_id", "trace", "header")}
        columns |= {"role": f"'{role}'", "account": "coalesce(event_account, '')"}
        selected = ", ".join(columns[name] for name in OBSERVATION_FIELDS)
        if self.refused[Reason.USAGE_MISSING]:
            self._keep_fields()
            row_sha256 = self._row_sha256("'refused'")
            query = (
                f"SELECT {selected}, row_sha256, record FROM judged "  # noqa: S608
                f"LEFT JOIN (SELECT record, {row_sha256} AS row_sha256 FROM kept) USING (record) WHERE {_IS_OBSERVATION}"
            )
        else:
            query = f"SELECT {selected}, NULL::VARCHAR, record FROM judged WHERE reason IS NULL"  # noqa: S608
        path = self.written[role] = self.write(query)
        return path

    def observation_stream(self, role: Role) -> IO[bytes]:
        """Binary rows of the rows that are observations: the store's OBSERVATION_FIELDS, then the hash under which the row stands in
        quarantine if it has no tokens, and the record's number. A gateway's row without tokens may get them from its engine: it is among
        them."""
        return (self.written.get(role) or self.write_observations(role)).open("rb")

    def refused_stream(
        self,
        conflicts: Sequence[tuple[int, str]] = (),
        *,
        waiting: Sequence[int] | None = None,
        role: Role | None = None,
    ) -> IO[bytes]:
        """Binary rows of those that are refused, those in conflict (record and detail) among them: line, reason, detail, row_sha256,
        fields, account, received_at, request_id. Of those without tokens only `waiting`, if it is given. `role` is that of
        observations: those of a gateway become requests under the ids of their records."""
        request_id = "record_id" if role is Role.GATEWAY else "event_request_id"
        self._list("conflict", {"record": "BIGINT", "detail": "VARCHAR"}, conflicts)
        chosen = ""
        if waiting is not None and len(waiting) < self.refused[Reason.USAGE_MISSING]:
            self._list("waiting", {"record": "BIGINT"}, [(record,) for record in waiting])
            chosen = f" AND (judged.reason <> '{Reason.USAGE_MISSING}' OR record IN (FROM waiting))"
        if role is None or conflicts or not self.refused[Reason.USAGE_MISSING]:  # else they are kept already
            self._keep_fields(with_conflicts=bool(conflicts))
        query = (
            f"SELECT line, reason, detail, {self._row_sha256('kind')}, fields, readable_account, make_timestamp(received_us), "  # noqa: S608
            "CASE WHEN length(request_id) <= 200 AND NOT contains(request_id, chr(0)) THEN request_id END FROM ("
            "SELECT judged.line, CASE WHEN conflict.record IS NULL THEN judged.reason ELSE 'conflict' END AS reason, "
            "coalesce(conflict.detail, judged.detail) AS detail, "
            "CASE WHEN conflict.record IS NULL THEN 'refused' ELSE 'conflict' END AS kind, "
            "record, fields, raw, readable_account, received_us, request_id FROM ("
            # Both have the same records in the same order: a join by number would keep the fields of all of them in memory.
            f"SELECT record, line, reason, detail, readable_account, received_us, {request_id} AS request_id "
            f"FROM judged WHERE {_IS_KEPT}) AS judged "
            "POSITIONAL JOIN (SELECT record AS kept_record, fields, raw FROM kept) LEFT JOIN conflict USING (record) "
            "WHERE CASE WHEN record = kept_record THEN true ELSE error('the fields of another record') END "
            f"AND (conflict.record IS NOT NULL OR (judged.reason IS NOT NULL{chosen})))"
        )
        return self.write(query).open("rb")

    def _row_sha256(self, kind: str) -> str:
        """What a row is known by in quarantine, so that it stands there once: what it says and, where that identifies it, its place."""
        place = "" if self.identifying_stem is None else f" || {literal(self.identifying_stem)} || '/' || record"
        return f"sha256({kind} || fields || coalesce(raw, ''){place})"

    def _keep_fields(self, *, with_conflicts: bool = False) -> None:
        """Make the temporary table `kept` of the fields of the refused rows, in their order; or of those in conflict too."""
        conflicts = " UNION ALL FROM (SELECT record FROM conflict)" if with_conflicts else ""
        rows = f"SELECT record FROM judged WHERE reason IS NOT NULL{conflicts}"  # noqa: S608
        bounds = self.connection.execute(f"SELECT min(record), max(record) FROM ({rows})").fetchone()  # noqa: S608
        first, last = bounds if bounds is not None and bounds[0] is not None else (0, 0)
        self.connection.execute(f"SET VARIABLE kept_first = {first:d}::BIGINT")
        self.connection.execute(f"SET VARIABLE kept_last = {last:d}::BIGINT")
        self.connection.execute(f"SET VARIABLE kept = (SELECT bitstring_agg(record, {first:d}::BIGINT, {last:d}::BIGINT) FROM ({rows}))")  # noqa: S608
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE kept AS FROM chunk_fields WHERE {_IS_KEPT}")

    def write(self, query: str) -> Path:
        """A file with the rows of the query as PostgreSQL reads them in binary, each column in the type of its own."""
        path = self.folder / uuid4().hex
        self.connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT postgres_binary)")
        return path

    def list_events(self, new: Sequence[tuple[str, str]] | None) -> None:
        """Make the temporary view `arrived` of the events as a plan reads them, with `received_at` in microseconds since 1970: of all, or
        of the first one of each of these identities (account, request_id)."""
        self._list("arrived_identity", {"account": "VARCHAR", "request_id": "VARCHAR"}, new or ())
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE arrived_record AS SELECT min(record) AS record FROM judged "
            "JOIN arrived_identity ON account = event_account AND request_id = event_request_id "
            "WHERE reason IS NULL GROUP BY event_account, event_request_id"
        )
        columns = ", ".join(f"event_{name} AS {name}" for name in EVENT_FIELDS if name != "received_at")
        chosen = "" if new is None else "AND record IN (FROM arrived_record)"
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW arrived AS SELECT received_us AS received_at, 1::SMALLINT AS revision, {columns} "  # noqa: S608
            f"FROM judged WHERE reason IS NULL {chosen}"
        )

    def _list(self, name: str, columns: dict[str, str], rows: Sequence[tuple[object, ...]]) -> None:
        """Make a temporary table of these rows."""
        # They go over as one JSON text, and as no parameter: for each the driver would look for pandas.
        names = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({names})")
        if rows:
            texts = json.dumps(dict(zip(columns, zip(*rows, strict=True), strict=True)))
            kinds = json.dumps({column: [kind] for column, kind in columns.items()})
            values = ", ".join(f"unnest(listed.{column})" for column in columns)
            self.connection.execute(
                f"INSERT INTO {name} SELECT {values} FROM (SELECT from_json({literal(texts)}::JSON, {literal(kinds)}) AS listed)"  # noqa: S608
            )

    def refused_records(self) -> dict[int, tuple[Reason, str]]:
        """Reason and detail of every refused record, by its number."""
        rows = self.connection.execute("SELECT record, reason, detail FROM judged WHERE reason IS NOT NULL").fetchall()
        return {record: (Reason(reason), detail) for record, reason, detail in rows}

    def skipped_records(self) -> dict[int, str]:
        """The mapping's name for each record that is no request, by its number."""
        rows = self.connection.execute("SELECT record, skipped FROM mapped WHERE skipped IS NOT NULL").fetchall() if self.skipped else []
        return dict(rows)

    def clamped_records(self) -> list[int]:
        """The numbers of the events whose queue was taken as 0."""
        rows = self.connection.execute("SELECT record FROM judged WHERE reason IS NULL AND event_clock_clamped").fetchall()
        return [record for (record,) in rows]

    def first_refused(self, limit: int, *, waiting: bool = True) -> tuple[tuple[int, str, str], ...]:
        """Line, reason and detail of refused rows, the first of each reason before the second of any; those without tokens among them only
        if `waiting`."""
        refused = self.connection.table("judged").filter("reason IS NOT NULL" if waiting else f"NOT {_IS_OBSERVATION}")
        spread = refused.order("row_number() OVER (PARTITION BY reason ORDER BY record), record")
        rows = spread.project("line, reason, detail").limit(limit).fetchall()
        return tuple(rows)

    def first_events(self, limit: int, *, waiting: bool = False) -> tuple[dict[str, object], ...]:
        """The first events, or observations with what joins them, as they would be stored; with `waiting`, those without tokens too."""
        judged = self.connection.table("judged")
        names = (*EVENT_FIELDS, *(name for name in OBSERVATION_NAMES if name in judged.columns))
        shown = {"received_at": "event_received_at::VARCHAR || '+00'"} | {name: name for name in OBSERVATION_NAMES}
        columns = ", ".join(shown.get(name, f"event_{name}") for name in names)
        rows = judged.filter(_IS_OBSERVATION if waiting else _IS_EVENT).project(columns).limit(limit).fetchall()
        return tuple(dict(zip(names, row, strict=True)) for row in rows)

    def first_identity(self) -> tuple[str, str] | None:
        """Account and request id of the first event."""
        judged = self.connection.table("judged").filter("reason IS NULL")
        return judged.order("record").project("event_account, event_request_id").limit(1).fetchone()

    def identities(self, role: Role | None) -> dict[int, tuple[str | None, str]]:
        """Account, None if an engine's row says none, and id of each record that is stored, by its number. `role` is that of
        observations: those of a gateway become requests under the ids of their records."""
        name = "record_id" if role is Role.GATEWAY else "event_request_id"
        rows = self.connection.table("judged").filter(self.stored).project(f"record, event_account, {name}").fetchall()
        return {record: (account, request_id) for record, account, request_id in rows}

    def repeated(self) -> tuple[int, int]:
        """How many rows that would be stored have the id of an earlier one of the chunk: those that say what the first of them says, and
        those that differ from it."""
        columns = self.connection.table("judged").columns
        links = [name for name in OBSERVATION_NAMES if name in columns]
        identity = "event_account, " + ("record_id" if links else "event_request_id")
        said = f"row({', '.join([*(f'event_{name}' for name in COMPARED_FIELDS), 'event_request_id', *links])})"
        rows = self.connection.execute(
            "SELECT count(*) FILTER (same), count(*) FILTER (NOT same) FROM ("  # noqa: S608
            f"SELECT {said} IS NOT DISTINCT FROM first_value({said}) OVER request AS same, row_number() OVER request AS place "
            f"FROM judged WHERE reason IS NULL WINDOW request AS (PARTITION BY {identity} ORDER BY record)) WHERE place > 1"
        ).fetchone()
        assert rows is not None
        return rows[0], rows[1]

    def accounts(self) -> frozenset[str]:
        """Whose rows are stored."""
        rows = self.connection.table("judged").filter(f"{self.stored} AND event_account IS NOT NULL").project("event_account").distinct()
        return frozenset(account for (account,) in rows.fetchall())

    def names_used(self, bounds_us: Collection[int]) -> list[tuple[str, str, str, bool, int, int]]:
        """Account, model, queue, whether the client was at fault, when the first of them was received, and how many rows are like that with
        none of the bounds between them. Instants are microseconds since 1970; a row at a bound is behind it."""
        if self.earliest_us is None or self.latest_us is None:
            return []
        sides = [f"received_us >= {bound:d}" for bound in sorted(bounds_us) if self.earliest_us < bound <= self.latest_us]
        return self.connection.execute(
            "SELECT event_account, event_model, event_queue, event_status BETWEEN 400 AND 498 AS wrong, min(received_us), count(*) "  # noqa: S608
            f"FROM judged WHERE {self.stored} AND event_account IS NOT NULL "
            f"GROUP BY {', '.join(['event_account', 'event_model', 'event_queue', 'wrong', *sides])}"
        ).fetchall()

    def close(self) -> None:
        """Give back what the chunk holds."""
        self.connection.close()
        rmtree(self.folder)


class Judge:
    """Judges the records of one file. What its chunks have in common is done once."""

    def __init__(self, records: RecordFile, *, now_us: int) -> None:
        """`now_us` is the ingesting clock, microseconds since 1970."""
        self.records, self.now_us = records, now_us
        self._mapped = mapped_select(records.mapping, records.fields, records.values).sql("duckdb")
        self._fields = fields_select(records).sql("duckdb")
        self._powers = given_powers(records.mapping, records.fields)
        define_macros(records.connection)

    def cut(self, *, number: int, first: int, last: int) -> Cut:
        """Look up the records from `first` (from 0) up to but not including `last`; beside chunks that are judged."""
        folder = Path(mkdtemp(prefix="chunk-", dir=self.records.folder))
        return Cut(number=number, first=first, last=last, folder=folder, piece=self.records.cut(first, last, folder))

    def first_chunk(self, last: int) -> Chunk:
        """The records up to but not including `last`."""
        return self.chunk(self.cut(number=0, first=0, last=last))

    def chunk(self, cut: Cut) -> Chunk:
        """Read, map and judge the records."""
        connection, mapping = self.records.connection.cursor(), self.records.mapping
        # Temporary, so that each chunk has its own: the next one is judged beside this one.
        self.records.read_span(connection, cut.first, cut.last, cut.piece)
        connection.execute("CREATE TEMP VIEW mapped AS " + self._mapped)
        connection.execute("CREATE TEMP VIEW chunk_fields AS " + self._fields)
        judge(
            connection, now_us=self.now_us, role=mapping.role, skips=bool(mapping.skip), kept=[filled_name(one) for one in mapping.fills],
            powers=self._powers,
        )  # fmt: skip
        kinds = connection.execute("SELECT skipped, count(*) FROM mapped GROUP BY skipped").fetchall() if mapping.skip else []
        skipped = Counter({kind: count for kind, count in kinds if kind is not None})
        refused = connection.execute("SELECT reason, count(*) FROM judged WHERE reason IS NOT NULL GROUP BY reason").fetchall()
        refused_by_reason = Counter({Reason(reason): count for reason, count in refused})
        stored = _IS_OBSERVATION if mapping.observations else _IS_EVENT
        totals = connection.execute(
            f"SELECT count(*) FILTER (event_clock_clamped), min(received_us), max(received_us) FROM judged WHERE {stored}"  # noqa: S608
        ).fetchone()
        assert totals is not None
        filled = {}
        for asked in mapping.fills:
            [(filled[asked],)] = connection.table("judged").filter(filled_name(asked)).aggregate("count(*)").fetchall()
        return Chunk(
            number=cut.number, first=cut.first, last=cut.last, refused=refused_by_reason,
            skipped=skipped, clamped=totals[0], filled=filled, earliest_us=totals[1], latest_us=totals[2], connection=connection,
            folder=cut.folder, stored=stored,
            implausible=find_implausible(
                connection, stored=stored, earliest_us=totals[1], has_future=refused_by_reason[Reason.FUTURE] > 0, now_us=self.now_us
            ),
            identifying_stem=file_stem(self.records.name) if mapping.is_identified_by_file else None,
        )  # fmt: skip
