"""Tables of what was issued: documents with their numbers and seals, closed periods, their lines, credit notes, the journal, files.

Rows never change. What metadata cannot say is in the migration: numbers and seals without a gap, periods in order, sums at the end of the
transaction. Source: specification, section 8; decision record issued-documents.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from ledger.store.schema.common import Instant, Name, metadata

Money = Numeric(38, 0)  # minor units; debit positive

# One row per issued document: its number in the provider's series of the year, and its place in the provider's one chain of seals.
issued_document = Table(
    "issued_document",
    metadata,
    Column("tax_id", Name, nullable=False, comment="of the provider"),
    Column("number_text", Name, nullable=False, comment="the number as it is printed"),
    Column("series", Text, nullable=False),
    Column("year", SmallInteger, nullable=False),
    Column("number", Integer, nullable=False, comment="1, 2, 3 ... in the series and year"),
    Column("position", BigInteger, nullable=False, comment="1, 2, 3 ... in the provider's chain of seals"),
    Column("currency", String(3), nullable=False),
    Column("minor_digits", SmallInteger, nullable=False),
    Column("total_minor", Money, nullable=False),
    Column("issued_at", Instant, nullable=False),
    Column("issued_on", Date, nullable=False, comment="in the contract's zone"),
    Column("author", Text, nullable=False),
    Column("content", Text, nullable=False, comment="canonical JSON; of a closed period that of specification section 9"),
    Column("previous_seal", String(64), comment="null: the provider's first"),
    Column("seal", String(64), nullable=False, unique=True),
    Column("sealed", LargeBinary, nullable=False, comment="the bytes whose SHA-256 is the seal"),
    Column("issued_in", BigInteger, nullable=False, comment="transaction of the server; its parts come in the same"),
    PrimaryKeyConstraint("tax_id", "number_text"),
    UniqueConstraint("tax_id", "series", "year", "number"),
    UniqueConstraint("tax_id", "position"),
    CheckConstraint("series = 'invoice' and total_minor >= 0 or series = 'credit_note' and total_minor <= 0", name="series"),
    CheckConstraint("number >= 1 and year = extract(year from issued_on) and number_text <> ''", name="number"),
    CheckConstraint("position >= 1 and (position = 1) = (previous_seal is null)", name="position"),
    CheckConstraint("seal = encode(sha256(sealed), 'hex')", name="seal"),
    CheckConstraint("minor_digits between 0 and 4", name="minor_digits"),
)

# One row per closed period of a contract, each with the one closed before it.
closing = Table(
    "closing",
    metadata,
    Column("contract_id", Name, nullable=False),
    Column("period", String(7), nullable=False),
    Column("previous_period", String(7), comment="closed before it; null: the contract's first"),
    Column("tax_id", Name, nullable=False),
    Column("number_text", Name, nullable=False),
    Column("run_id", BigInteger, ForeignKey("run.run_id"), nullable=False, comment="what was seen"),
    Column("digest", String(64), nullable=False),
    Column("basis", JSONB, nullable=False, comment="what else the figures follow from: the days of their months, credit notes carried in"),
    Column("contract_hashes", JSONB, nullable=False, comment="content hash of each version in force, by version"),
    Column("carried_out_minor", Money, nullable=False),
    PrimaryKeyConstraint("contract_id", "period"),
    UniqueConstraint("tax_id", "number_text"),
    ForeignKeyConstraint(["tax_id", "number_text"], ["issued_document.tax_id", "issued_document.number_text"]),
    ForeignKeyConstraint(["contract_id", "previous_period"], ["closing.contract_id", "closing.period"]),
    CheckConstraint("period ~ '^[0-9]{4}-(0[1-9]|1[0-2])$' and previous_period < period", name="period"),
    CheckConstraint("carried_out_minor >= 0", name="carried_out_minor"),
    # Two that are closed at once, each as the one after the same, cannot both be kept.
    Index("uq_closing_previous_period", "contract_id", text("coalesce(previous_period, '')"), unique=True),
)

# The lines of closed periods, with how each was taxed. What was posted for a month is its own lines and all adjustments of it.
invoice_line = Table(
    "invoice_line",
    metadata,
    Column("contract_id", Name, nullable=False),
    Column("period", String(7), nullable=False),
    Column("position", Integer, nullable=False, comment="1, 2, 3 ... as they stand on the invoice"),
    Column("kind", Text, nullable=False),
    Column("of_period", String(7), comment="of an adjustment: the closed month"),
    Column("of_kind", Text),
    Column("version", Integer),
    Column("model", Name),
    Column("variant", Name),
    Column("queue", Name),
    Column("forfeited", Boolean, nullable=False),
    Column("band", Name),
    Column("token", Name),
    Column("multiplier", Numeric),
    Column("rate", Numeric),
    Column("quantity", Numeric(38, 0)),
    Column("amount_minor", Money, nullable=False),
    Column("tax_rate", Numeric, nullable=False),
    Column("credits_outside_scope", Boolean, nullable=False),
    Column("causes", JSONB, comment="of an adjustment: [kind, ref] of each that is named"),
    Column("causes_total", Integer),
    PrimaryKeyConstraint("contract_id", "period", "position"),
    ForeignKeyConstraint(["contract_id", "period"], ["closing.contract_id", "closing.period"]),
    ForeignKeyConstraint(["contract_id", "of_period"], ["closing.contract_id", "closing.period"]),
    CheckConstraint(
        "kind in ('usage', 'true_up', 'credit', 'cap', 'adjustment') and of_kind in ('usage', 'true_up', 'credit', 'cap')", name="kind"
    ),
    CheckConstraint(
        "num_nulls(of_period, of_kind, causes, causes_total) = case kind when 'adjustment' then 0 else 4 end and of_period < period",
        name="adjustment",
    ),
    CheckConstraint("position >= 1", name="position"),
)

# One row per credit on demand of a line of a closed period; in the basis of a later period stands that it was carried in.
credit_note = Table(
    "credit_note",
    metadata,
    Column("tax_id", Name, nullable=False),
    Column("number_text", Name, nullable=False),
    Column("contract_id", Name, nullable=False),
    Column("period", String(7), nullable=False, comment="of the closed period whose line it credits"),
    Column("line_position", Integer, nullable=False),
    Column("tokens", Numeric(38, 0), comment="null: by amount"),
    Column("net_minor", Money, nullable=False),
    Column("tax_minor", Money, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("tax_id", "number_text"),
    ForeignKeyConstraint(["tax_id", "number_text"], ["issued_document.tax_id", "issued_document.number_text"]),
    ForeignKeyConstraint(
        ["contract_id", "period", "line_position"], ["invoice_line.contract_id", "invoice_line.period", "invoice_line.position"]
    ),
    CheckConstraint("tokens > 0", name="tokens"),
    CheckConstraint("net_minor >= 0 and (net_minor > 0 or tokens is not null)", name="net_minor"),
    CheckConstraint("tax_minor >= 0", name="tax_minor"),
    CheckConstraint("reason <> ''", name="reason"),
    Index("ix_credit_note_contract_id_period", "contract_id", "period"),
)

# The double entry of a document: its postings sum to 0.
journal_posting = Table(
    "journal_posting",
    metadata,
    Column("tax_id", Name, nullable=False),
    Column("number_text", Name, nullable=False),
    Column("position", Integer, nullable=False),
    Column("account", Name, nullable=False),
    Column("amount_minor", Money, nullable=False, comment="debit positive; currency and date are the document's"),
    Column("memo", Text, nullable=False),
    PrimaryKeyConstraint("tax_id", "number_text", "position"),
    ForeignKeyConstraint(["tax_id", "number_text"], ["issued_document.tax_id", "issued_document.number_text"]),
)

# The files of a document, as they were issued.
issued_file = Table(
    "issued_file",
    metadata,
    Column("tax_id", Name, nullable=False),
    Column("number_text", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("sha256", String(64), nullable=False),
    PrimaryKeyConstraint("tax_id", "number_text", "name"),
    ForeignKeyConstraint(["tax_id", "number_text"], ["issued_document.tax_id", "issued_document.number_text"]),
    CheckConstraint("sha256 = encode(sha256(content), 'hex')", name="sha256"),
)

# How a provider's numbers are written, by series: the row that came last holds.
numbering = Table(
    "numbering",
    metadata,
    Column("numbering_id", BigInteger, Identity(always=True), primary_key=True),
    Column("tax_id", Name, nullable=False),
    Column("series", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("set_at", Instant, nullable=False),
    Column("author", Text, nullable=False),
    CheckConstraint("series in ('invoice', 'credit_note')", name="series"),
    CheckConstraint("format ~ '[{]year[}]' and format ~ '[{]number[^}]*[}]'", name="format"),
    Index("ix_numbering_tax_id_series", "tax_id", "series", "numbering_id"),
)
