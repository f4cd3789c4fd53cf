"""Tables of what gateways and engines reported: loads, events, the rows that they are formed of, refused rows, intervals.

Source: specification, section 2; decision records halves and repair.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from ledger.store.limits import LARGEST_TOKENS, LONGEST_US
from ledger.store.schema.common import Instant, Name, metadata

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
    Column("void_id", BigInteger, Identity(always=True), nullable=False, unique=True),
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
