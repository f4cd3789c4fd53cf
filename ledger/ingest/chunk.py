"""A chunk of a file, judged: its events and its refused rows, ready to be stored.

Takes a span of records and the mapping and gives a `Chunk`: counts, the events and the refused rows as streams for COPY, and (later, when
the store has found them) the rows in conflict. Rows stay inside DuckDB. Source: specification, section 2.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO
from uuid import uuid4

import duckdb
from sqlglot import exp

from ledger.ingest.event_rules import OBSERVATION_NAMES, Reason, define_macros, judge
from ledger.ingest.expression import RECORD_COLUMN, Compiled, field_column, field_key
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.mapping import DURATION_POWERS, DURATIONS, EPOCH_POWERS, INTEGERS, RFC3339, TEXTS, Mapping, Origin, Role, Source
from ledger.ingest.reading.line_file import Piece
from ledger.ingest.reading.record_file import RecordFile, value_key
from ledger.ingest.reading.scratch import literal
from ledger.store.events import COMPARED_FIELDS, EVENT_FIELDS
from ledger.store.observations import OBSERVATION_FIELDS

LONGEST_FIELD = 1_000  # characters of a field that are kept with a refused row

# What a row is known by in quarantine, so that it stands there once.
_ROW_SHA256 = "sha256({kind} || fields || coalesce(raw, ''))"
_NULL_TEXT = exp.cast(exp.null(), "TEXT")


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
    """The records [first, last) of a file, judged. `refused` counts by reason, `skipped` by the mapping's names for what is no request;
    instants are microseconds since 1970, of events only."""

    number: int
    first: int
    last: int
    refused: Counter[Reason]
    skipped: Counter[str]
    clamped: int
    earliest_us: int | None
    latest_us: int | None
    connection: duckdb.DuckDBPyConnection
    folder: Path  # of its own
    written: dict[int | None, Path] = field(default_factory=dict)  # the events, by the batch that they are written for

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

    def observation_stream(self, role: Role) -> IO[bytes]:
        """Binary rows of the rows that are observations: the store's OBSERVATION_FIELDS, then the hash under which the row stands in
        quarantine if it has no tokens, and the record's number. A gateway's row without tokens may get them from its engine: it is among
        them."""
        columns = {name: f"event_{name}" for name in EVENT_FIELDS} | {name: name for name in ("record_id", "trace", "header")}
        columns |= {"role": f"'{role}'", "account": "coalesce(event_account, '')"}
        row_sha256 = _ROW_SHA256.format(kind="'refused'")
        waits = f"judged.reason IS NOT DISTINCT FROM '{Reason.USAGE_MISSING}'"
        query = (
            f"SELECT {', '.join(columns[name] for name in OBSERVATION_FIELDS)}, "  # noqa: S608
            f"CASE WHEN {waits} THEN {row_sha256} END, record "
            f"FROM judged JOIN chunk_fields USING (record) WHERE judged.reason IS NULL OR {waits}"
        )
        return self.write(query).open("rb")

    def refused_stream(
        self,
        conflicts: Sequence[tuple[int, str]] = (),
        *,
        conflicts_only: bool = False,
        waiting: Sequence[int] | None = None,
        role: Role | None = None,
    ) -> IO[bytes]:
        """Binary rows of those that are refused, those in conflict (record and detail) among them, or alone: line, reason, detail,
        row_sha256, fields, account, received_at, request_id. Of those without tokens only `waiting`, if it is given. `role` is that of
        observations: those of a gateway become requests under the ids of their records."""
        request_id = "record_id" if role is Role.GATEWAY else "event_request_id"
        self._list("conflict", {"record": "BIGINT", "detail": "VARCHAR"}, conflicts)
        self._list("waiting", {"record": "BIGINT"}, [(record,) for record in waiting or ()])
        chosen = "" if waiting is None else f" AND (judged.reason <> '{Reason.USAGE_MISSING}' OR record IN (FROM waiting))"
        refused = "" if conflicts_only else f" OR (judged.reason IS NOT NULL{chosen})"
        query = (
            f"SELECT line, reason, detail, {_ROW_SHA256.format(kind='kind')}, fields, readable_account, make_timestamp(received_us), "  # noqa: S608
            "CASE WHEN length(request_id) <= 200 AND NOT contains(request_id, chr(0)) THEN request_id END FROM ("
            "SELECT judged.line, CASE WHEN conflict.record IS NULL THEN judged.reason ELSE 'conflict' END AS reason, "
            "coalesce(conflict.detail, judged.detail) AS detail, "
            "CASE WHEN conflict.record IS NULL THEN 'refused' ELSE 'conflict' END AS kind, fields, raw, readable_account, received_us, "
            f"{request_id} AS request_id "
            "FROM judged LEFT JOIN conflict USING (record) JOIN chunk_fields USING (record) "
            f"WHERE conflict.record IS NOT NULL{refused})"
        )
        return self.write(query).open("rb")

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
            texts = json.dumps([dict(zip(columns, row, strict=True)) for row in rows])
            listed = f"from_json({literal(texts)}::JSON, {literal(json.dumps([columns]))})"
            self.connection.execute(f"INSERT INTO {name} SELECT unnest({listed}, recursive := true)")

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

    def first_refused(self, limit: int) -> tuple[tuple[int, str, str], ...]:
        """Line, reason and detail of refused rows, the first of each reason before the second of any."""
        refused = self.connection.table("judged").filter("reason IS NOT NULL")
        spread = refused.order("row_number() OVER (PARTITION BY reason ORDER BY record), record")
        rows = spread.project("line, reason, detail").limit(limit).fetchall()
        return tuple(rows)

    def first_events(self, limit: int, *, waiting: bool = False) -> tuple[dict[str, object], ...]:
        """The first events, or observations with what joins them, as they would be stored; with `waiting`, those without tokens too."""
        judged = self.connection.table("judged")
        names = (*EVENT_FIELDS, *(name for name in OBSERVATION_NAMES if name in judged.columns))
        shown = {"received_at": "event_received_at::VARCHAR || '+00'"} | {name: name for name in OBSERVATION_NAMES}
        columns = ", ".join(shown.get(name, f"event_{name}") for name in names)
        stored = "reason IS NULL" + (f" OR reason = '{Reason.USAGE_MISSING}'" if waiting else "")
        rows = judged.filter(stored).project(columns).limit(limit).fetchall()
        return tuple(dict(zip(names, row, strict=True)) for row in rows)

    def first_identity(self) -> tuple[str, str] | None:
        """Account and request id of the first event."""
        judged = self.connection.table("judged").filter("reason IS NULL")
        return judged.order("record").project("event_account, event_request_id").limit(1).fetchone()

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
        """Whose events these are."""
        rows = self.connection.table("judged").filter("reason IS NULL AND event_account IS NOT NULL").project("event_account").distinct()
        return frozenset(account for (account,) in rows.fetchall())

    def names_used(self, spans: Sequence[tuple[str, int, int | None]]) -> list[tuple[str, str, str, bool, int | None, int]]:
        """Account, model, queue, whether the client was at fault, the place in `spans` that holds the receipt (None: none does), and how
        many events are like that. A span is an account with its start and end (None: open) in microseconds since 1970."""
        rows = [(place, *span) for place, span in enumerate(spans)]
        self._list("covered_span", {"place": "BIGINT", "account": "VARCHAR", "starts_us": "BIGINT", "ends_us": "BIGINT"}, rows)
        return self.connection.execute(
            "SELECT event_account, event_model, event_queue, event_status BETWEEN 400 AND 498, place, count(*) FROM judged "
            "LEFT JOIN covered_span ON account = event_account AND received_us >= starts_us AND (ends_us IS NULL OR received_us < ends_us) "
            "WHERE reason IS NULL AND event_account IS NOT NULL GROUP BY ALL"
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
        self._fields = _fields_select(records).sql("duckdb")
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
        judge(connection, now_us=self.now_us, role=mapping.observations.role if mapping.observations else None, skips=bool(mapping.skip))
        kinds = connection.execute("SELECT skipped, count(*) FROM mapped GROUP BY skipped").fetchall() if mapping.skip else []
        skipped = Counter({kind: count for kind, count in kinds if kind is not None})
        refused = connection.execute("SELECT reason, count(*) FROM judged WHERE reason IS NOT NULL GROUP BY reason").fetchall()
        totals = connection.execute(
            "SELECT count(*) FILTER (event_clock_clamped), min(received_us), max(received_us) FROM judged WHERE reason IS NULL"
        ).fetchone()
        assert totals is not None
        return Chunk(
            number=cut.number, first=cut.first, last=cut.last, refused=Counter({Reason(reason): count for reason, count in refused}),
            skipped=skipped, clamped=totals[0], earliest_us=totals[1], latest_us=totals[2], connection=connection,
            folder=cut.folder,
        )  # fmt: skip


def mapped_select(mapping: Mapping, fields: Sequence[str], values: dict[FieldPath, str]) -> exp.Select:
    """From `chunk_record` to the relation `mapped` that the event rules judge. `values` are those of the fields that are no texts."""
    usable = {
        column: [s for s in sources if not s.value.paths or any(path[0] in fields for path in s.value.paths)]
        for column, sources in mapping.columns.items()
    }
    columns: list[exp.Expr] = [exp.alias_(exp.column(f"#{name}", quoted=True), name) for name in ("line", "record", "malformed")]
    if mapping.observations:
        observations = {
            "record_id": mapping.observations.record,
            "trace": mapping.observations.trace,
            "header": mapping.observations.header,
        }
        columns += [exp.alias_(value.sql.copy() if value else _NULL_TEXT.copy(), name) for name, value in observations.items()]
    if mapping.skip:
        kinds = exp.case().when(exp.column("#malformed", quoted=True).is_(exp.null()).not_(), _NULL_TEXT.copy())
        for name, condition in mapping.skip.items():
            kinds = kinds.when(condition.sql.copy(), exp.Literal.string(name))
        columns.append(exp.alias_(kinds, "skipped"))
    columns += [exp.alias_(_first(usable.get(name, [])), name) for name in TEXTS if name != "async_header"]
    columns += _text_or_value("async_header", usable.get("async_header", []), values, "BOOLEAN")
    for name in INTEGERS:
        columns += _text_or_value(name, usable.get(name, []), values, "BIGINT")
    for name in DURATIONS:
        columns += _text_or_value(name, usable.get(name, []), values, "BIGINT", unit="us")
        columns += _measured(name, usable.get(name, []), DURATION_POWERS)
    if mapping.origin is not None:
        columns += [
            exp.alias_(_since(mapping.origin, fields), "received_at_text"),
            exp.alias_(_null("BIGINT"), "received_at_value"),
            exp.alias_(exp.Literal.number(0), "received_at_power"),
            exp.alias_(exp.false(), "received_at_twice"),
        ]
    else:
        columns += _text_or_value("received_at", usable.get("received_at", []), values, "TIMESTAMPTZ", unit=RFC3339)
        columns += _measured("received_at", usable.get("received_at", []), EPOCH_POWERS)
    return _numbers_once(exp.select(*columns))


def _numbers_once(select: exp.Select) -> exp.Select:
    """The select from `chunk_record`, in which each number that expressions read is parsed once, below them: DuckDB would otherwise keep
    a vector for every step of every parsing."""
    numbers: dict[str, exp.Expr] = {}

    def named(node: exp.Expr) -> exp.Expr:
        is_parsing = isinstance(node, exp.Anonymous) and node.name == "number_of"
        if not is_parsing or any(isinstance(inner, exp.Anonymous) and inner.name == "number_of" for inner in node.expressions[0].walk()):
            return node
        name = f"#number {node.sql('duckdb')}"
        numbers[name] = node.copy()
        return exp.column(name, quoted=True)

    found = select.transform(named)
    if not numbers:
        return select.from_("chunk_record")
    parsed = [exp.alias_(number, name, quoted=True) for name, number in numbers.items()]
    assert isinstance(found, exp.Select), "what became of a select"
    return found.from_(exp.select("*", *parsed).from_("chunk_record").subquery("parsed"))


def _since(origin: Origin, fields: Sequence[str]) -> exp.Expr:
    """The instant, microseconds since 1970 as text; a text that is no time since the start stays as it is."""
    assert origin.start_us is not None, "the start is given"
    start, stepped = exp.cast(exp.Literal.number(origin.start_us), "BIGINT"), _NULL_TEXT.copy()
    if origin.step_us is not None:
        before = exp.paren(exp.Sub(this=exp.column(RECORD_COLUMN, quoted=True), expression=exp.Literal.number(1)))
        steps = exp.Mul(this=exp.Literal.number(origin.step_us), expression=before)
        stepped = exp.cast(exp.Add(this=start.copy(), expression=steps), "TEXT")
    if origin.after is None or not any(path[0] in fields for path in origin.after.value.paths):
        return stepped
    after = _value(origin.after)
    after_us = exp.func("duration_us", after.copy(), exp.Literal.number(DURATION_POWERS[origin.after.unit]))
    instant = exp.cast(exp.Add(this=start, expression=after_us.copy()), "TEXT")
    return exp.case().when(after.copy().is_(exp.null()), stepped).when(after_us.is_(exp.null()), after).else_(instant)


def _value(source: Source) -> exp.Expr:
    """The source's text; null if it is empty."""
    value = exp.func("nullif", source.value.sql.copy(), exp.Literal.string(""))
    if source.integer_from_decimal:
        return exp.func("regexp_replace", value, exp.Literal.string(r"^(-?[0-9]+)\.0+$"), exp.Literal.string(r"\1"))
    if source.offset:
        return exp.paren(exp.DPipe(this=value, expression=exp.Literal.string(source.offset), safe=True))
    return value


def _null(kind: str) -> exp.Expr:
    return exp.cast(exp.null(), kind)


def _text_or_value(name: str, sources: Sequence[Source], values: dict[FieldPath, str], kind: str, *, unit: str = "") -> list[exp.Expr]:
    """The column as a value, if its only source is a field that is one in the file, of this kind and unit; else as a text."""
    text, value = _first(sources), _null("BOOLEAN" if kind == "BOOLEAN" else "BIGINT")
    match sources:
        case [Source(value=Compiled(sql=exp.Column()) as field, offset="") as source] if source.unit == unit:
            (path,) = field.paths or ((),)
            if values.get(path) == kind:
                text, value = _NULL_TEXT.copy(), exp.column(value_key(path), quoted=True)
    return [exp.alias_(text, f"{name}_text"), exp.alias_(value, f"{name}_value")]


def _first(sources: Sequence[Source]) -> exp.Expr:
    values = [_value(source) for source in sources]
    if not values:
        return _NULL_TEXT.copy()
    return exp.func("coalesce", *values) if len(values) > 1 else values[0]


def _measured(name: str, sources: Sequence[Source], powers: dict[str, int]) -> list[exp.Expr]:
    """The power of ten of a column, the name under which it was found, and whether two sources have a value."""
    choose = {"power": exp.case(), "name": exp.case()}
    given: list[exp.Expr] = []
    for source in sources:
        is_given = _value(source).is_(exp.null()).not_()
        power = powers.get(source.unit)
        choose["power"] = choose["power"].when(is_given.copy(), exp.null() if power is None else exp.Literal.number(power))
        choose["name"] = choose["name"].when(is_given.copy(), exp.Literal.string(source.name))
        given.append(exp.cast(is_given.copy(), "INT"))
    power_value: exp.Expr
    name_value: exp.Expr
    twice: exp.Expr
    match sources:
        case []:
            power_value, name_value, twice = exp.cast(exp.null(), "INT"), exp.Literal.string(name), exp.false()
        case [source]:
            power = powers.get(source.unit)
            power_value = exp.cast(exp.null() if power is None else exp.Literal.number(power), "INT")
            name_value, twice = exp.Literal.string(source.name), exp.false()
        case _:
            power_value, name_value = exp.cast(choose["power"], "INT"), choose["name"]
            total: exp.Expr = given[0]
            for one in given[1:]:
                total = exp.Add(this=total, expression=one)
            twice = exp.GT(this=exp.paren(total), expression=exp.Literal.number(1))
    columns: list[exp.Expr] = [
        exp.alias_(power_value, f"{name}_power"),
        exp.alias_(twice, f"{name}_twice"),
    ]
    return columns if name == "received_at" else [*columns, exp.alias_(name_value, f"{name}_name")]


def _fields_select(records: RecordFile) -> exp.Select:
    """The fields of each record that the mapping reads and that it has, as JSON; of a line that is none the line (`raw`), to be hashed."""
    values: dict[str, exp.Expr] = {}
    for path in records.read_paths:
        shown = exp.func("left", exp.column(field_column(path), quoted=True), exp.Literal.number(LONGEST_FIELD))
        values[field_key(path)] = exp.func("replace", shown, exp.func("chr", exp.Literal.number(0)), exp.Literal.string("�"))
    values |= {key: exp.Literal.string(text) for key, text in records.mapping.given.kept().items()}
    if records.mapping.counts_records:
        values[RECORD_COLUMN] = exp.cast(exp.column(RECORD_COLUMN, quoted=True), "TEXT")
    # Without what is null: the same row in a file whose other rows have more fields is the same row. Put together as text, since DuckDB's
    # functions that make an object of many fields need many times the memory.
    parts: list[exp.Expr] = [
        exp.DPipe(this=exp.Literal.string(json.dumps(name, ensure_ascii=False) + ":"), expression=_json_text(value), safe=True)
        for name, value in values.items()
    ]
    listed = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(","), *(parts or [exp.Literal.string("")])])
    present = exp.Anonymous(this="concat", expressions=[exp.Literal.string("{"), listed, exp.Literal.string("}")])
    is_record = exp.column("#malformed", quoted=True).is_(exp.null())
    fields = exp.case().when(is_record, present).else_(exp.Literal.string("{}"))
    raw = exp.case().when(is_record.copy(), _NULL_TEXT.copy()).else_(exp.column("#raw", quoted=True))
    # The limit keeps what a join asks for above the fields: below them, DuckDB would copy what each record was split into for every one.
    return (
        exp.select(exp.alias_(exp.column(RECORD_COLUMN, quoted=True), "record"), exp.alias_(fields, "fields"), exp.alias_(raw, "raw"))
        .from_("chunk_record")
        .limit(2**62)
    )


def _json_text(value: exp.Expr) -> exp.Expr:
    return exp.cast(exp.func("to_json", value), "TEXT")
