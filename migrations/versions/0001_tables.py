"""The first tables, from batches to drafts, and the rules that hold whoever writes."""

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE ledger (
    "only" boolean DEFAULT true NOT NULL CONSTRAINT ck_ledger_only CHECK ("only"),
    is_test boolean NOT NULL,
    CONSTRAINT pk_ledger PRIMARY KEY ("only")
);
COMMENT ON COLUMN ledger.is_test IS 'LEDGER_NOW is honoured and documents say TEST';

CREATE TABLE batch (
    batch_id bigint GENERATED ALWAYS AS IDENTITY,
    source text NOT NULL,
    content_sha256 varchar(64) NOT NULL,
    mapping text NOT NULL,
    mapping_sha256 varchar(64) NOT NULL,
    chunk integer NOT NULL,
    chunk_rows integer NOT NULL,
    rows_read bigint NOT NULL,
    rows_new bigint NOT NULL,
    rows_duplicate bigint NOT NULL,
    rows_conflict bigint NOT NULL,
    rows_refused bigint NOT NULL,
    rows_clamped bigint NOT NULL,
    loaded_at timestamptz NOT NULL,
    author text NOT NULL,
    CONSTRAINT pk_batch PRIMARY KEY (batch_id),
    CONSTRAINT ck_batch_adds_up CHECK (rows_read = rows_new + rows_duplicate + rows_conflict + rows_refused)
);
COMMENT ON COLUMN batch.source IS 'file name as given, without folders';
COMMENT ON COLUMN batch.content_sha256 IS 'of the whole file';
COMMENT ON COLUMN batch.chunk IS '0, 1, 2 ... within the file';

-- Wide columns first, so that no space is lost between them.
CREATE TABLE event (
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
    revision smallint NOT NULL,
    async_header boolean NOT NULL,
    clock_clamped boolean NOT NULL,
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    model varchar COLLATE "C" NOT NULL,
    queue varchar COLLATE "C" NOT NULL,
    cold_start varchar COLLATE "C",
    node varchar COLLATE "C",
    CONSTRAINT pk_event PRIMARY KEY (account, request_id, revision),
    CONSTRAINT ck_event_identity CHECK (length(account) BETWEEN 1 AND 200 AND length(request_id) BETWEEN 1 AND 200 AND revision >= 1),
    CONSTRAINT ck_event_usage CHECK (status NOT BETWEEN 200 AND 299 OR (input_tokens IS NOT NULL AND output_tokens IS NOT NULL)),
    CONSTRAINT ck_event_tokens CHECK (
        input_tokens BETWEEN 0 AND 1000000000000 AND output_tokens BETWEEN 0 AND 1000000000000
        AND cached_input_tokens BETWEEN 0 AND coalesce(input_tokens, 0)
    ),
    CONSTRAINT ck_event_durations CHECK (
        queue_us BETWEEN 0 AND 2592000000000 AND prefill_us BETWEEN 0 AND 2592000000000
        AND decode_us BETWEEN 0 AND 2592000000000 AND inference_us BETWEEN 0 AND 2592000000000
        AND ttft_us BETWEEN 0 AND 2592000000000 AND e2e_us BETWEEN 0 AND 2592000000000
    )
);
CREATE INDEX ix_event_received_at ON event USING brin (received_at);
CREATE INDEX ix_event_cold_start ON event (received_at) WHERE cold_start IS NOT NULL;

CREATE TABLE void (
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    revision smallint NOT NULL,
    kind text NOT NULL CONSTRAINT ck_void_kind CHECK (kind IN ('void', 'correct', 'join')),
    reason text NOT NULL,
    author text NOT NULL,
    voided_at timestamptz NOT NULL,
    CONSTRAINT pk_void PRIMARY KEY (account, request_id, revision)
);

CREATE TABLE quarantine (
    quarantine_id bigint GENERATED ALWAYS AS IDENTITY,
    batch_id bigint NOT NULL,
    line bigint NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    row_sha256 varchar(64) NOT NULL,
    fields jsonb NOT NULL,
    account varchar COLLATE "C",
    received_at timestamptz,
    resolution text CONSTRAINT ck_quarantine_resolution CHECK (resolution IN ('requeued', 'corrected', 'dismissed')),
    resolution_reason text,
    resolved_by text,
    resolved_at timestamptz,
    CONSTRAINT pk_quarantine PRIMARY KEY (quarantine_id),
    CONSTRAINT uq_quarantine_row_sha256 UNIQUE (row_sha256),
    CONSTRAINT ck_quarantine_resolved CHECK ((resolution IS NULL) = (resolved_at IS NULL)),
    CONSTRAINT fk_quarantine_batch_id FOREIGN KEY (batch_id) REFERENCES batch (batch_id)
);
COMMENT ON COLUMN quarantine.account IS 'if it can be read';
COMMENT ON COLUMN quarantine.received_at IS 'if it can be read';

CREATE TABLE interval (
    interval_id varchar COLLATE "C" NOT NULL,
    kind text NOT NULL CONSTRAINT ck_interval_kind CHECK (kind IN ('circuit_breaker', 'model_load')),
    node varchar COLLATE "C",
    model varchar COLLATE "C",
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    added_at timestamptz NOT NULL,
    author text NOT NULL,
    CONSTRAINT pk_interval PRIMARY KEY (interval_id),
    CONSTRAINT ck_interval_span CHECK (starts_at <= ends_at)
);
COMMENT ON COLUMN interval.interval_id IS 'given in the file, or a hash of the content';
CREATE UNIQUE INDEX uq_interval_content ON interval (kind, coalesce(node, ''), coalesce(model, ''), starts_at, ends_at);

CREATE TABLE contract_version (
    contract_id varchar COLLATE "C" NOT NULL,
    version integer NOT NULL,
    content_sha256 varchar(64) NOT NULL,
    content bytea NOT NULL,
    file text NOT NULL,
    added_at timestamptz NOT NULL,
    author text NOT NULL,
    CONSTRAINT pk_contract_version PRIMARY KEY (contract_id, version),
    CONSTRAINT uq_contract_version_content_sha256 UNIQUE (content_sha256)
);

CREATE TABLE version_in_force (
    contract_id varchar COLLATE "C" NOT NULL,
    version integer NOT NULL,
    in_force tstzrange NOT NULL,
    CONSTRAINT ck_version_in_force_span CHECK (NOT isempty(in_force)),
    CONSTRAINT ex_version_in_force_in_force EXCLUDE USING gist (contract_id WITH =, in_force WITH &&)
);

CREATE TABLE account_covered (
    account varchar COLLATE "C" NOT NULL,
    contract_id varchar COLLATE "C" NOT NULL,
    version integer NOT NULL,
    in_force tstzrange NOT NULL,
    CONSTRAINT ck_account_covered_span CHECK (NOT isempty(in_force)),
    CONSTRAINT ex_account_covered_in_force EXCLUDE USING gist (account WITH =, in_force WITH &&)
);

CREATE TABLE run (
    run_id bigint GENERATED ALWAYS AS IDENTITY,
    settled_at timestamptz NOT NULL,
    author text NOT NULL,
    period varchar(7) NOT NULL,
    batches bigint[] NOT NULL,
    voids bigint NOT NULL,
    intervals text[] NOT NULL,
    contracts jsonb NOT NULL,
    timezone_data text NOT NULL,
    CONSTRAINT pk_run PRIMARY KEY (run_id)
);
COMMENT ON COLUMN run.contracts IS 'content hash of each version seen, by contract and version';

CREATE TABLE settlement (
    contract_id varchar COLLATE "C" NOT NULL,
    period varchar(7) NOT NULL,
    run_id bigint NOT NULL,
    state text NOT NULL CONSTRAINT ck_settlement_state CHECK (state IN ('provisional', 'draft')),
    digest varchar(64) NOT NULL,
    day_starts timestamptz[] NOT NULL,
    document text NOT NULL,
    CONSTRAINT pk_settlement PRIMARY KEY (contract_id, period),
    CONSTRAINT fk_settlement_run_id FOREIGN KEY (run_id) REFERENCES run (run_id)
);
COMMENT ON COLUMN settlement.digest IS 'of the cells and percentiles it was computed from';
COMMENT ON COLUMN settlement.document IS 'the JSON of specification section 9, canonical';
"""

# One statement-level trigger a table costs nothing while loading. RESTRICT_VIOLATION makes it an integrity error for every client.
REFUSAL = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
        MESSAGE = format('rows of %s never change: %s refused', TG_TABLE_NAME, lower(TG_OP)),
        HINT = 'A correction is a new row.';
END $$;
"""

APPEND_ONLY = ("event", "void", "contract_version", "batch", "interval", "ledger")

QUARANTINE = """
CREATE TRIGGER refuse_removal BEFORE DELETE OR TRUNCATE ON quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refuse_change
    BEFORE UPDATE OF quarantine_id, batch_id, line, reason, detail, row_sha256, fields, account, received_at
    ON quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER resolve_once BEFORE UPDATE ON quarantine FOR EACH ROW WHEN (old.resolution IS NOT NULL) EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    """Create everything."""
    op.execute(TABLES)
    op.execute(REFUSAL)
    for table in APPEND_ONLY:
        event = f"UPDATE OR DELETE OR TRUNCATE ON {table}"
        op.execute(f"CREATE TRIGGER refuse_change BEFORE {event} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()")
    op.execute(QUARANTINE)


def downgrade() -> None:
    """Drop everything; the extension stays, since others may use it."""
    op.execute(
        "DROP TABLE settlement, run, account_covered, version_in_force, contract_version, interval, quarantine, void, event, batch, ledger"
    )
    op.execute("DROP FUNCTION refuse_change")
