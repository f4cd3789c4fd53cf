"""Tables of settlements before they are issued, and of what kind of database this is.

Source: specification, section 8.
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Identity, String, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, INT8MULTIRANGE, JSONB

from ledger.store.schema.common import Instant, Name, metadata

# What a settlement saw: one snapshot. Never updated, never deleted.
run = Table(
    "run",
    metadata,
    Column("run_id", BigInteger, Identity(always=True), primary_key=True),
    Column("settled_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    Column("period", String(7), nullable=False),
    Column("batches", INT8MULTIRANGE, nullable=False),
    Column("voids", INT8MULTIRANGE, comment="by void_id; null: not recorded"),
    Column("intervals", ARRAY(Text), nullable=False),
    Column("contracts", JSONB, nullable=False, comment="content hash of each version seen, by contract and version"),
    Column("timezone_data", Text, nullable=False),
)

# The draft of a contract's period: replaced by each settle until the period is closed, and then gone.
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
