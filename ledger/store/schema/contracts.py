"""Tables of contract versions, their approvals, and the spans in which they are in force.

Source: specification, section 3.
"""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, LargeBinary, String, Table, Text
from sqlalchemy.dialects.postgresql import JSON, TSTZRANGE

from ledger.store.schema.common import Instant, Name, metadata

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
