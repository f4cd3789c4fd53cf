"""A mapping says how the fields of one source format become the columns of an event: for each column its alternatives, compiled.

`mapping_file` reads one; here is what it is, and how it is filled with what the command line gives.
Source: specification, sections 1 and 2; `docs/operators-ingest.md`.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sqlglot import exp

from ledger.errors import LedgerError
from ledger.ingest.expression import FILE_STEM_COLUMN, RECORD_COLUMN, Compiled, constant
from ledger.ingest.given import EXAMPLES, Asked, Given
from ledger.ingest.unfolding import Unfolding

TEXTS = ("account", "request_id", "model", "queue", "cold_start", "node", "async_header")
INTEGERS = ("input_tokens", "cached_input_tokens", "output_tokens", "status")
DURATIONS = ("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us")
REQUIRED = ("request_id", "model", "received_at")
REQUIRED_OF_ENGINE = ("request_id", "received_at")  # the model is the gateway's
TYPED = ("async_header", *INTEGERS, *DURATIONS, "received_at")  # a source may have these as values instead of texts
COLUMNS = (*TEXTS, *INTEGERS, *DURATIONS, "received_at")
DELIMITERS = (",", ";", "\t", "|")
# What a settlement may ask for, and the columns that answer it: any of them will do.
FACTS = {
    "account": ("account",),
    "model": ("model",),
    "input tokens": ("input_tokens",),
    "cached input tokens": ("cached_input_tokens",),
    "output tokens": ("output_tokens",),
    "status": ("status",),
    "any latency": DURATIONS,
    "queue wait": ("queue_us",),
    "time to the first token": ("ttft_us", "prefill_us"),
    "time to the last token": ("e2e_us", "inference_us", "decode_us"),
    "queue class": ("queue",),
    "async header": ("async_header",),
    "cold starts": ("cold_start",),
    "node": ("node",),
}
_PARTS_OF_LATENCY = ("queue wait", "time to the first token", "time to the last token")

# A value of the unit times ten to this power is microseconds.
DURATION_POWERS = {"us": 0, "ms": 3, "s": 6, "ns": -3}
EPOCH_POWERS = {"epoch_us": 0, "epoch_ms": 3, "epoch_s": 6, "epoch_ns": -3}
RFC3339 = "rfc3339"


class FileFormat(StrEnum):
    """How a file holds its records."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    JSON_ARRAY = "json"
    PARQUET = "parquet"


class Role(StrEnum):
    """Of whom a record is an observation: a row of one source, which is not the whole of a request."""

    GATEWAY = "gateway"  # the list of requests: account, status, receipt, header; it may have everything
    ENGINE = "engine"  # timing and tokens; never a request by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """How records become requests. Those of one account and `request_id` are one request: tries of a gateway, choices of an engine.

    `record` is the record's own id. A gateway's and an engine's belong together by `trace`, which the provider's side made, or by
    `header`, which the client may have chosen: that one counts only where nobody else has it.
    """

    role: Role
    record: Compiled
    trace: Compiled | None
    header: Compiled | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One way to fill a column. `name` is what the source calls it, for messages.

    `unit` is a duration's, or an instant's: rfc3339 or an epoch unit. `offset` ("" if none) belongs to instants written without one.
    """

    name: str
    value: Compiled
    unit: str = ""
    offset: str = ""
    integer_from_decimal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Instants of a file that has none of its own: the start, and the time `after` it that a record says, or a step for each record.

    What is None is asked for, or not needed.
    """

    start_us: int | None
    step_us: int | None
    after: Source | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """How one source format becomes events. `sha256` is of its content, and of what the command line added to it.

    A name in `identify` is a field, or `a.b` for b inside the field a of a JSON record.
    """

    name: str
    description: str
    file_format: FileFormat | None
    delimiter: str | None
    identify: tuple[str, ...]
    optional: frozenset[str]
    columns: dict[str, tuple[Source, ...]]
    sha256: str
    origin: Origin | None = None
    asks: frozenset[Asked] = frozenset()  # what the command line has to give
    given: Given = field(default_factory=Given)
    text_sha256: str = ""  # of the mapping's content alone, once it is filled
    observations: Observations | None = None  # None: each record is a request
    skip: dict[str, Compiled] = field(default_factory=dict)  # conditions of records that are no requests, by the name of their kind
    refusal: str | None = None  # why nothing can be loaded from such a file
    embedded: frozenset[str] = frozenset()  # fields whose text is JSON
    unfolding: Unfolding | None = None  # of files whose records do not stand one by one

    @property
    def counts_records(self) -> bool:
        """Whether a record's number is part of its event."""
        columns = (column for value in self._values for column in value.sql.find_all(exp.Column))
        by_step = self.origin is not None and self.origin.step_us is not None
        return by_step or any(column.name == RECORD_COLUMN for column in columns)

    @property
    def is_identified_by_file(self) -> bool:
        """Whether the file's name is part of what identifies a request: then the same content under another name is other requests."""
        values = [source.value for column in ("account", "request_id") for source in self.columns.get(column, ())]
        values += [self.observations.record] if self.observations else []
        return any(column.name == FILE_STEM_COLUMN for value in values for column in value.sql.find_all(exp.Column))

    @property
    def lacks(self) -> tuple[str, ...]:
        """The FACTS that neither the file nor the command line says."""
        known = {name for name, sources in self.columns.items() if sources} | set(self.asks)
        lacking = [fact for fact, columns in FACTS.items() if known.isdisjoint(columns)]
        return tuple(fact for fact in lacking if not ("any latency" in lacking and fact in _PARTS_OF_LATENCY))

    @property
    def role(self) -> Role | None:
        """Whose observations its records are; None if they are requests."""
        return self.observations.role if self.observations else None

    @property
    def fills(self) -> tuple[Asked, ...]:
        """What the command line gives to those rows that have none of their own."""
        given = (asked for asked, _ in self.given.texts() if asked in (Asked.ACCOUNT, Asked.MODEL))
        return tuple(asked for asked in given if len(self.columns[asked]) > 1)

    @property
    def is_unmeasured(self) -> bool:
        """Whether none of its requests can have a latency."""
        return self.observations is None and "any latency" in self.lacks

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The fields that the mapping reads, in order of their names."""
        return tuple(sorted({path for value in self._values for path in value.paths}))

    @property
    def _values(self) -> tuple[Compiled, ...]:
        observations = self.observations
        of_observations = (observations.record, observations.trace, observations.header) if observations else ()
        of_columns = [source.value for sources in self.columns.values() for source in sources]
        of_columns += [self.origin.after.value] if self.origin and self.origin.after else []
        return (*of_columns, *(value for value in of_observations if value), *self.skip.values())

    def filled(self, given: Given) -> "Mapping":
        """The mapping that fills what is empty with what is given."""
        columns = dict(self.columns)
        for asked, text in given.texts():
            if asked in (Asked.ACCOUNT, Asked.MODEL):
                columns[asked] = (*columns.get(asked, ()), Source(name=f"--{asked}", value=constant(text)))
        origin = self.origin
        if origin is not None:
            origin = replace(
                origin,
                start_us=given.start_us if Asked.START in self.asks else origin.start_us,
                step_us=given.step_us if Asked.STEP in self.asks else origin.step_us,
            )
        sha256 = filled_sha256(self.sha256, given)
        return replace(self, columns=columns, sha256=sha256, text_sha256=self.sha256, origin=origin, given=given)

    def check_given(self, file: object, fields: Iterable[str]) -> None:
        """Raises LedgerError if the mapping asks for more than is given, of a file with these fields; or for no start, and one is given."""
        given = {asked for asked, _ in self.given.texts()}
        needed = set(self.asks)
        if self.origin and self.origin.after and any(path[0] in fields for path in self.origin.after.value.paths):
            needed.discard(Asked.STEP)
        lacking = [asked for asked in Asked if asked in needed - given]
        if lacking:
            words = {Asked.ACCOUNT: "account", Asked.MODEL: "model", Asked.START: "instant", Asked.STEP: "time between its records"}
            raise LedgerError(
                f"{file}: a file of the format {self.name} does not say its {', '.join(words[asked] for asked in lacking)}",
                cure="add " + ", and ".join(EXAMPLES[asked] for asked in lacking),
            )
        unasked = [asked for asked in Asked if asked in (given & {Asked.START, Asked.STEP}) - self.asks]
        if unasked:
            raise LedgerError(
                f"{file}: a file of the format {self.name} says itself when its records were received, and --{unasked[0]} is for those "
                "that do not",
                cure=f"load it without --{unasked[0]}",
            )
        for asked in sorted(given & {Asked.ACCOUNT, Asked.MODEL}):
            *own, _ = self.columns[asked]  # the last one is what is given
            if any(not source.value.paths for source in own):  # never empty
                raise LedgerError(
                    f"{file}: the format {self.name} gives each row its {asked} itself, and --{asked} is for rows that have none",
                    cure=f"load it without --{asked}, or write a mapping of your own",
                )


def filled_sha256(text_sha256: str, given: Given) -> str:
    """The hash of a mapping with this text, filled with what is given."""
    digest = text_sha256
    for asked, text in given.texts():
        # As it always was for an account, so that what was loaded before is known again.
        digest = hashlib.sha256((f"{digest}\n{text}" if asked is Asked.ACCOUNT else f"{digest}\0{asked}\0{text}").encode()).hexdigest()
    return digest
