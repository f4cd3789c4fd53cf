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
CREATE INDEX ix_observation_received_at ON observation USING brin (received_at);
CREATE INDEX ix_observation_request ON observation (role, account, request_id);
CREATE INDEX ix_observation_trace ON observation (trace, role, received_at) WHERE trace IS NOT NULL;
CREATE INDEX ix_observation_header ON observation (header, role, received_at) WHERE header IS NOT NULL;
COMMENT ON COLUMN observation.account IS 'empty if an engine does not know it';
COMMENT ON COLUMN observation.record_id IS 'of the row itself';
COMMENT ON COLUMN observation.trace IS 'what both halves have, made by the provider''s side';
COMMENT ON COLUMN observation.header IS 'what both halves have, and the client may have chosen';
COMMENT ON COLUMN observation.refused_sha256 IS 'of its row in quarantine, where it waits for tokens';

CREATE TABLE formed_request (
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    of_request varchar COLLATE "C" NOT NULL,
    revision smallint NOT NULL,
    CONSTRAINT pk_formed_request PRIMARY KEY (account, request_id)
);
CREATE INDEX ix_formed_request_of_request ON formed_request (account, of_request);
COMMENT ON COLUMN formed_request.of_request IS 'the request_id of its observations';

CREATE TABLE engine_request (
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    of_account varchar COLLATE "C",
    of_request varchar COLLATE "C",
    merged boolean NOT NULL,
    CONSTRAINT pk_engine_request PRIMARY KEY (account, request_id),
    CONSTRAINT uq_engine_request_of_account_of_request UNIQUE (of_account, of_request),
    CONSTRAINT ck_engine_request_joined CHECK ((of_account IS NULL) = (of_request IS NULL) AND (of_request IS NOT NULL OR NOT merged))
);
CREATE INDEX ix_engine_request_received_at ON engine_request (received_at) WHERE NOT merged;
COMMENT ON COLUMN engine_request.account IS 'empty if the engine does not know it';
COMMENT ON COLUMN engine_request.received_at IS 'by its first record';
COMMENT ON COLUMN engine_request.of_account IS 'the request of a gateway that it belongs to; kept once it is known';
COMMENT ON COLUMN engine_request.merged IS 'whether that request has its figures';

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
DROP TABLE engine_request;
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
