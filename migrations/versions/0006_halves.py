"""Rows of gateways and engines that are halves of requests, what is formed of them, and loads that count what they skip and merge."""

from alembic import op

revision = "0006"
down_revision = "0005"

TABLES = """
CREATE TABLE observation (
    received_at timestamptz NOT NULL,
    queue_us bigint,
    prefill_us bigint,
    decode_us bigint,
    inference_us bigint,
    ttft_us bigint,
    e2e_us bigint,
    input_tokens bigint,
    cached_input_tokens bigint NOT NULL,
    output_tokens bigint,
    batch_id bigint NOT NULL,
    status integer NOT NULL,
    async_header boolean NOT NULL,
    clock_clamped boolean NOT NULL,
    role varchar COLLATE "C" NOT NULL,
    account varchar COLLATE "C" NOT NULL,
    record_id varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    trace varchar COLLATE "C",
    header varchar COLLATE "C",
    model varchar COLLATE "C",
    queue varchar COLLATE "C" NOT NULL,
    cold_start varchar COLLATE "C",
    node varchar COLLATE "C",
    refused_sha256 varchar(64),
    CONSTRAINT pk_observation PRIMARY KEY (role, account, record_id),
    CONSTRAINT ck_observation_role CHECK (role IN ('gateway', 'engine')),
    CONSTRAINT ck_observation_gateway CHECK (role = 'engine' OR (account <> '' AND model IS NOT NULL))
);
CREATE INDEX ix_observation_request ON observation (role, account, request_id);
CREATE INDEX ix_observation_trace ON observation (trace) WHERE trace IS NOT NULL;
CREATE INDEX ix_observation_header ON observation (header) WHERE header IS NOT NULL;
COMMENT ON COLUMN observation.account IS 'empty if an engine does not know it';
COMMENT ON COLUMN observation.record_id IS 'of the row itself';
COMMENT ON COLUMN observation.trace IS 'what both halves have, made by the provider''s side';
COMMENT ON COLUMN observation.header IS 'what both halves have, and the client may have chosen';
COMMENT ON COLUMN observation.refused_sha256 IS 'of its row in quarantine, where it waits for tokens';

CREATE TABLE formed_request (
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    revision smallint NOT NULL,
    CONSTRAINT pk_formed_request PRIMARY KEY (account, request_id)
);

CREATE TABLE unjoined (
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    CONSTRAINT pk_unjoined PRIMARY KEY (account, request_id)
);
COMMENT ON COLUMN unjoined.account IS 'empty if the engine does not know it';

CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON observation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

# Checked against all rows at once: loads are few.
COUNTS = """
ALTER TABLE batch ADD rows_skipped bigint NOT NULL DEFAULT 0, ADD rows_merged bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN batch.rows_skipped IS 'records that are no requests';
COMMENT ON COLUMN batch.rows_merged IS 'halves that made no request of their own';
ALTER TABLE batch DROP CONSTRAINT ck_batch_adds_up;
ALTER TABLE batch ADD CONSTRAINT ck_batch_adds_up
    CHECK (rows_read = rows_new + rows_duplicate + rows_conflict + rows_refused + rows_skipped + rows_merged);
ALTER TABLE quarantine DROP CONSTRAINT ck_quarantine_resolution;
ALTER TABLE quarantine ADD CONSTRAINT ck_quarantine_resolution CHECK (resolution IN ('requeued', 'corrected', 'dismissed', 'joined'));
"""

# What was skipped or merged cannot be told without its column, nor rows that a join resolved: going back is for databases without them.
BACK = """
ALTER TABLE quarantine DROP CONSTRAINT ck_quarantine_resolution;
ALTER TABLE quarantine ADD CONSTRAINT ck_quarantine_resolution CHECK (resolution IN ('requeued', 'corrected', 'dismissed'));
ALTER TABLE batch DROP CONSTRAINT ck_batch_adds_up;
ALTER TABLE batch DROP rows_skipped, DROP rows_merged;
ALTER TABLE batch ADD CONSTRAINT ck_batch_adds_up CHECK (rows_read = rows_new + rows_duplicate + rows_conflict + rows_refused);
DROP TABLE unjoined;
DROP TABLE formed_request;
DROP TABLE observation;
"""


def upgrade() -> None:
    """Create the tables, and let a load count what it skips and merges."""
    op.execute(TABLES)
    op.execute(COUNTS)


def downgrade() -> None:
    """Drop them; refused, if a load skipped or merged a row."""
    op.execute(BACK)
