"""The tables of ledger, described once. Migrations create them, queries are built from them.

Text that can reach a document is ordered by code point (`COLLATE "C"`). Instants are timestamptz in UTC. Durations are integer
microseconds, tokens integers. Triggers and exclusion constraints, which metadata cannot say, are in the migrations.
Source: specification, sections 2, 3 and 8.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, INT8MULTIRANGE, JSON, JSONB, TSTZMULTIRANGE, TSTZRANGE

from ledger.store.limits import LARGEST_TOKENS, LONGEST_US

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Name = String(collation="C")
Instant = DateTime(timezone=True)

# One row per load: a file, or an ordered chunk of one. It is committed together with its events and refused rows.
batch = Table(
    "batch",
    metadata,
    Column("batch_id", BigInteger, Identity(always=True), primary_key=True),
    Column("source", Text, nullable=False, comment="file name as given, without folders"),
    Column("content_sha256", String(64), nullable=False, comment="of the whole file"),
    Column("mapping", Text, nullable=False),
    Column("mapping_sha256", String(64), nullable=False),
    Column("chunk", Integer, nullable=False, comment="0, 1, 2 ... within the file"),
    Column("chunk_rows", Integer, nullable=False),
    Column("rows_read", BigInteger, nullable=False),
    Column("rows_new", BigInteger, nullable=False),
    Column("rows_duplicate", BigInteger, nullable=False),
    Column("rows_conflict", BigInteger, nullable=False),
    Column("rows_refused", BigInteger, nullable=False),
    Column("rows_clamped", BigInteger, nullable=False),
    Column("loaded_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    Column("rows_skipped", BigInteger, nullable=False, server_default=text("0"), comment="records that are no requests"),
    Column("rows_merged", BigInteger, nullable=False, server_default=text("0"), comment="halves that made no request of their own"),
    Column(
        "requests_joined",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="that have the figures of their engines by this load",
    ),
    Column("given", JSONB, comment="what the command line added to the mapping, by option; null: not recorded"),
    CheckConstraint("rows_read = rows_new + rows_duplicate + rows_conflict + rows_refused + rows_skipped + rows_merged", name="adds_up"),
)


def _measured() -> tuple[Column[Any], ...]:
    """What was seen of a request or of a half of one, and the load that brought it."""
    return (
        Column("received_at", Instant, nullable=False),
        Column("queue_us", BigInteger),
        Column("prefill_us", BigInteger),
        Column("decode_us", BigInteger),
        Column("inference_us", BigInteger),
        Column("ttft_us", BigInteger),
        Column("e2e_us", BigInteger),
        Column("input_tokens", BigInteger),
        Column("cached_input_tokens", BigInteger, nullable=False),
        Column("output_tokens", BigInteger),
        Column("batch_id", BigInteger, nullable=False),
        Column("status", Integer, nullable=False),
    )


# One row per revision of a logical request; never updated, never deleted.
event = Table(
    "event",
    metadata,
    *_measured(),
    Column("revision", SmallInteger, nullable=False),
    Column("async_header", Boolean, nullable=False),
    Column("clock_clamped", Boolean, nullable=False),
    Column("account", Name, nullable=False),
    Column("request_id", Name, nullable=False),
    Column("model", Name, nullable=False),
    Column("queue", Name, nullable=False),
    Column("cold_start", Name),
    Column("node", Name),
    PrimaryKeyConstraint("account", "request_id", "revision"),
    CheckConstraint("length(account) between 1 and 200 and length(request_id) between 1 and 200 and revision >= 1", name="identity"),
    CheckConstraint("status not between 200 and 299 or (input_tokens is not null and output_tokens is not null)", name="usage"),
    CheckConstraint(
        f"input_tokens between 0 and {LARGEST_TOKENS} and output_tokens between 0 and {LARGEST_TOKENS}"
        " and cached_input_tokens between 0 and coalesce(input_tokens, 0)",
        name="tokens",
    ),
    CheckConstraint(
        " and ".join(f"{name}_us between 0 and {LONGEST_US}" for name in ("queue", "prefill", "decode", "inference", "ttft", "e2e")),
        name="durations",
    ),
    Index("ix_event_received_at", "received_at", postgresql_using="brin"),
    Index("ix_event_cold_start", "received_at", postgresql_where=text("cold_start is not null")),
)

# Observations, as their sources gave them: rows of gateways and of engines. Events are formed of them (decision record halves); never
# deleted, and changed once at most: one that waits for its tokens may be repaired. Rows of one role, account and request_id belong to one
# request, as tries of a gateway or choices of an engine.
observation = Table(
    "observation",
    metadata,
    *_measured(),
    Column("async_header", Boolean, nullable=False),
    Column("clock_clamped", Boolean, nullable=False),
    Column("role", Name, nullable=False),
    Column("account", Name, nullable=False, comment="empty if an engine does not know it"),
    Column("record_id", Name, nullable=False, comment="of the row itself"),
    Column("request_id", Name, nullable=False),
    Column("trace", Name, comment="what both halves have, made by the provider's side"),
    Column("header", Name, comment="what both halves have, and the client may have chosen"),
    Column("model", Name),
    Column("queue", Name, nullable=False),
    Column("cold_start", Name),
    Column("node", Name),
    Column("refused_sha256", String(64), comment="of its row in quarantine, where it waits for tokens"),
    Column(
        "repaired",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="its figures are what somebody set: no other half overrules them",
    ),
    PrimaryKeyConstraint("role", "account", "record_id"),
    CheckConstraint("role in ('gateway', 'engine')", name="role"),
    CheckConstraint("role = 'engine' or (account <> '' and model is not null)", name="gateway"),
    Index("ix_observation_received_at", "received_at", postgresql_using="brin"),
    Index("ix_observation_request", "role", "account", "request_id"),
    Index("ix_observation_trace", "trace", "role", "received_at", postgresql_where=text("trace is not null")),
    Index("ix_observation_header", "header", "role", "received_at", postgresql_where=text("header is not null")),
    Index("ix_observation_refused_sha256", "refused_sha256", postgresql_where=text("refused_sha256 is not null")),
)

# The requests that were formed of observations, and the revision that says what they are now. A request that stands in another revision, or
# whose revision was withdrawn, was decided by somebody: nothing is formed of it any more.
formed_request = Table(
    "formed_request",
    metadata,
    Column("account", Name, primary_key=True),
    Column("request_id", Name, primary_key=True),
    Column("of_request", Name, nullable=False, comment="the request_id of its observations"),
    Column("revision", SmallInteger, nullable=False),
    Column("joined", Boolean, nullable=False, comment="it has the figures of its engines"),
    Index("ix_formed_request_of_request", "account", "of_request"),
)

# Requests as engines know them, and the gateway's request that each belongs to. It is kept once it is known: a client that sends an id
# again later changes nothing of what was joined.
engine_request = Table(
    "engine_request",
    metadata,
    Column("account", Name, primary_key=True, comment="empty if the engine does not know it"),
    Column("request_id", Name, primary_key=True),
    Column("received_at", Instant, nullable=False, comment="by its first record"),
    Column("of_account", Name, comment="the request of a gateway that it belongs to; kept once it is known"),
    Column("of_request", Name),
    Column("merged", Boolean, nullable=False, comment="whether that request has its figures"),
    UniqueConstraint("of_account", "of_request"),
    CheckConstraint("(of_account is null) = (of_request is null) and (of_request is not null or not merged)", name="joined"),
    Index("ix_engine_request_received_at", "received_at", postgresql_where=text("not merged")),
)

# Withdraws one revision of a request; the revision is current no more.
void = Table(
    "void",
    metadata,
    Column("account", Name, primary_key=True),
    Column("request_id", Name, primary_key=True),
    Column("revision", SmallInteger, primary_key=True),
    Column("kind", Text, CheckConstraint("kind in ('void', 'correct', 'join')", name="kind"), nullable=False),
    Column("reason", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("voided_at", Instant, nullable=False),
)

# Rows that were refused, with the fields that the mapping reads. `row_sha256` is over those fields and the reason's kind of
# refusal (conflict or not), so that loading the same row again adds nothing.
quarantine = Table(
    "quarantine",
    metadata,
    Column("quarantine_id", BigInteger, Identity(always=True), primary_key=True),
    Column("batch_id", BigInteger, ForeignKey("batch.batch_id"), nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("row_sha256", String(64), nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("account", Name, comment="if it can be read"),
    Column("received_at", Instant, comment="if it can be read"),
    Column("resolution", Text, CheckConstraint("resolution in ('requeued', 'corrected', 'dismissed', 'joined')", name="resolution")),
    Column("resolution_reason", Text),
    Column("resolved_by", Text),
    Column("resolved_at", Instant),
    Column("request_id", Name, comment="if it can be read"),
    UniqueConstraint("row_sha256"),
    CheckConstraint(
        "num_nulls(resolution, resolution_reason, resolved_by, resolved_at) in (0, 4) and resolution_reason <> '' and resolved_by <> ''",
        name="resolved",
    ),
    Index("ix_quarantine_place", "batch_id", "line", "quarantine_id"),
    Index("ix_quarantine_request_id", "request_id", postgresql_where=text("request_id is not null")),
)

# One row per refused row and time it was sent in again; never updated, never deleted. The batch has the mapping, the author and the time.
resubmission = Table(
    "resubmission",
    metadata,
    Column("quarantine_id", BigInteger, ForeignKey("quarantine.quarantine_id"), nullable=False),
    Column("batch_id", BigInteger, ForeignKey("batch.batch_id"), nullable=False, comment="which has the mapping, the author and the time"),
    Column("values_set", JSONB, nullable=False, comment="canonical columns that were set, as texts"),
    Column("outcome", Text, nullable=False, comment="accepted, duplicate, or the reason why it was refused again"),
    Column("detail", Text, nullable=False),
    Column("reason", Text, nullable=False, comment="why it was sent in, as its author says"),
    Column("account", Name, comment="of the request that the row is now; null: it was refused again, or not recorded"),
    Column("request_id", Name),
    PrimaryKeyConstraint("quarantine_id", "batch_id"),
    Index("ix_resubmission_conflict", "quarantine_id", postgresql_where=text("outcome = 'conflict'")),
    Index("ix_resubmission_request_id", "request_id", postgresql_where=text("request_id is not null")),
)

# Recorded spans of time: open circuit breakers and model loads, [starts_at, ends_at). node null matches any node.
interval = Table(
    "interval",
    metadata,
    Column("interval_id", Name, primary_key=True, comment="given in the file, or a hash of the content"),
    Column("kind", Text, CheckConstraint("kind in ('circuit_breaker', 'model_load')", name="kind"), nullable=False),
    Column("node", Name),
    Column("model", Name),
    Column("starts_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
    Column("added_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    CheckConstraint("starts_at <= ends_at", name="span"),
    # The same span twice would count twice, whatever ids it comes with.
    Index("uq_interval_content", "kind", text("coalesce(node, '')"), text("coalesce(model, '')"), "starts_at", "ends_at", unique=True),
)

# One row per contract version: the file's bytes, and their hash. Never updated, never deleted.
contract_version = Table(
    "contract_version",
    metadata,
    Column("contract_id", Name, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("content_sha256", String(64), nullable=False, unique=True),
    Column("content", LargeBinary, nullable=False),
    Column("file", Text, nullable=False),
    Column("added_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
)

# What a version's file says, as the texts that stand in it: YAML is slow to read. It holds for the code that read it and no other, and is
# never the contract itself: that is made of the texts each time, by all rules.
contract_reading = Table(
    "contract_reading",
    metadata,
    Column("content_sha256", String(64), ForeignKey("contract_version.content_sha256"), primary_key=True),
    Column("reader_sha256", String(64), primary_key=True, comment="of the code that read the file"),
    Column("texts", JSON, nullable=False),
)

# One row per role that has approved a version, by what it has read: the file's bytes. Never updated, never deleted. Which roles a version
# needs stands in its file.
approval = Table(
    "approval",
    metadata,
    Column(
        "content_sha256",
        String(64),
        ForeignKey("contract_version.content_sha256"),
        primary_key=True,
        comment="of the version's file: no other version has it",
    ),
    Column("role", Name, primary_key=True),
    Column("author", Text, nullable=False),
    Column("reason", Text, comment="if one was given"),
    Column("approved_at", Instant, nullable=False),
    CheckConstraint("role <> '' and author <> '' and reason <> ''", name="said"),
)

# The spans in which versions are in force, after replacement; rewritten when a version is added. No two overlap (exclusion).
version_in_force = Table(
    "version_in_force",
    metadata,
    Column("contract_id", Name, nullable=False),
    Column("version", Integer, nullable=False),
    Column("in_force", TSTZRANGE, nullable=False),
    CheckConstraint("not isempty(in_force)", name="span"),
)

# Which contract an account belongs to, and when. An account belongs to one contract at a time (exclusion).
account_covered = Table(
    "account_covered",
    metadata,
    Column("account", Name, nullable=False),
    Column("contract_id", Name, nullable=False),
    Column("version", Integer, nullable=False),
    Column("in_force", TSTZRANGE, nullable=False),
    CheckConstraint("not isempty(in_force)", name="span"),
)


def _cell_columns() -> list[Column[Any]]:
    """Sums over the events of a contract day that are alike."""
    return [
        Column("contract_id", Name, nullable=False),
        Column("version", Integer, nullable=False),
        Column("day_start", Instant, nullable=False, comment="of the contract's local day"),
        Column("window_start", Instant, nullable=False),
        Column("model", Name, nullable=False),
        Column("queue", Name, nullable=False),
        Column("forfeited", Boolean, nullable=False),
        Column("outcome", Name, nullable=False),
        Column("exemption", SmallInteger),
        Column("tier", SmallInteger),
        Column("in_objective", Boolean, nullable=False),
        Column("late", Boolean, nullable=False),
        Column("over", Boolean, nullable=False),
        Column("requests", BigInteger, nullable=False),
        Column("requests_without_usage", BigInteger, nullable=False),
        Column("tokens_input", BigInteger, nullable=False),
        Column("tokens_cached_input", BigInteger, nullable=False),
        Column("tokens_output", BigInteger, nullable=False),
        Column("late_latencies_us", ARRAY(BigInteger), comment="of late requests that have one, in no order"),
    ]


# Sums over the events of a contract day that are alike, kept up while events arrive: settlements read these. A bag of deltas: several rows
# may have one key, and what holds is their sum. It equals the events wherever `stale` does not say otherwise (decision record kept-cells).
cell = Table("cell", metadata, *_cell_columns(), Index("ix_cell_day_start", "day_start", "contract_id"))

# Events that may be cold starts under their contract. Which of them are exempt needs an order over their day, so that no delta is known.
cold_start_event = Table(
    "cold_start_event",
    metadata,
    Column("contract_id", Name, nullable=False),
    Column("version", Integer, nullable=False),
    Column("day_start", Instant, nullable=False, comment="of the contract's local day"),
    Column("account", Name, nullable=False),
    Column("request_id", Name, nullable=False),
    Column("revision", SmallInteger, nullable=False),
    Index("ix_cold_start_event_day_start", "day_start", "contract_id"),
)

# The cells of those events, ranked. A day's are up to date when they sum up to as many requests as are listed of it; if not, they are put
# anew before they are used.
delayed_cell = Table("delayed_cell", metadata, *_cell_columns(), Index("ix_delayed_cell_day_start", "day_start", "contract_id"))

# How many standing events an account has in a quarter of an hour, whoever covers it; before 1980, at the instant itself. A bag of deltas.
traffic = Table(
    "traffic",
    metadata,
    Column("account", Name, nullable=False),
    Column("quarter_start", Instant, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Index("ix_traffic_quarter_start", "quarter_start"),
)

# The local days of a contract that these spans touch are computed from the events again before their cells are used.
stale = Table(
    "stale",
    metadata,
    Column("contract_id", Name, primary_key=True),
    Column("spans", TSTZMULTIRANGE, nullable=False),
)

# What a settlement saw: one snapshot.
run = Table(
    "run",
    metadata,
    Column("run_id", BigInteger, Identity(always=True), primary_key=True),
    Column("settled_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    Column("period", String(7), nullable=False),
    Column("batches", INT8MULTIRANGE, nullable=False),
    Column("voids", BigInteger, nullable=False),
    Column("intervals", ARRAY(Text), nullable=False),
    Column("contracts", JSONB, nullable=False, comment="content hash of each version seen, by contract and version"),
    Column("timezone_data", Text, nullable=False),
)

# The draft of a contract's period: replaced by each settle until the period is closed.
settlement = Table(
    "settlement",
    metadata,
    Column("contract_id", Name, primary_key=True),
    Column("period", String(7), primary_key=True),
    Column("run_id", BigInteger, ForeignKey("run.run_id"), nullable=False),
    Column("state", Text, CheckConstraint("state in ('provisional', 'draft')", name="state"), nullable=False),
    Column("digest", String(64), nullable=False, comment="of the cells and percentiles it was computed from"),
    Column("day_starts", ARRAY(Instant), nullable=False),
    Column("document", Text, nullable=False, comment="the JSON of specification section 9, canonical"),
)

# What kind of database this is. One row.
ledger = Table(
    "ledger",
    metadata,
    Column("only", Boolean, CheckConstraint('"only"', name="only"), primary_key=True, server_default="true"),
    Column("is_test", Boolean, nullable=False, comment="LEDGER_NOW is honoured and documents say TEST"),
)
