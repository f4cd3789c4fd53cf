"""What became of refused rows that were sent in again, which request a refused row speaks of, and halves of requests that were repaired."""

from alembic import op

revision = "0007"
down_revision = "0006"

UP = """
CREATE TABLE resubmission (
    quarantine_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    values_set jsonb NOT NULL,
    outcome text NOT NULL,
    detail text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT pk_resubmission PRIMARY KEY (quarantine_id, batch_id),
    CONSTRAINT fk_resubmission_quarantine_id FOREIGN KEY (quarantine_id) REFERENCES quarantine (quarantine_id),
    CONSTRAINT fk_resubmission_batch_id FOREIGN KEY (batch_id) REFERENCES batch (batch_id)
);
COMMENT ON COLUMN resubmission.batch_id IS 'which has the mapping, the author and the time';
COMMENT ON COLUMN resubmission.values_set IS 'canonical columns that were set, as texts';
COMMENT ON COLUMN resubmission.outcome IS 'accepted, duplicate, or the reason why it was refused again';
COMMENT ON COLUMN resubmission.reason IS 'why it was sent in, as its author says';
CREATE INDEX ix_resubmission_conflict ON resubmission (quarantine_id) WHERE outcome = 'conflict';
CREATE INDEX ix_resubmission_request_id ON resubmission ((values_set ->> 'request_id')) WHERE (values_set ->> 'request_id') IS NOT NULL;
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON resubmission FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE quarantine ADD COLUMN request_id varchar COLLATE "C";
COMMENT ON COLUMN quarantine.request_id IS 'if it can be read';

-- Of rows that another mapping has read it is not known without that mapping.
ALTER TABLE quarantine DISABLE TRIGGER resolve_once;
UPDATE quarantine SET request_id = fields ->> 'request_id' FROM batch
WHERE batch.batch_id = quarantine.batch_id AND mapping = 'canonical' AND length(fields ->> 'request_id') BETWEEN 1 AND 200;
-- Only somebody who wrote by hand can have left these out.
UPDATE quarantine SET resolution_reason = coalesce(nullif(resolution_reason, ''), 'not said'),
    resolved_by = coalesce(nullif(resolved_by, ''), 'not said')
WHERE resolution IS NOT NULL AND (coalesce(resolution_reason, '') = '' OR coalesce(resolved_by, '') = '');
ALTER TABLE quarantine ENABLE TRIGGER resolve_once;

CREATE INDEX ix_quarantine_place ON quarantine (batch_id, line, quarantine_id);
CREATE INDEX ix_quarantine_request_id ON quarantine (request_id) WHERE request_id IS NOT NULL;
DROP TRIGGER refuse_change ON quarantine;
CREATE TRIGGER refuse_change
    BEFORE UPDATE OF quarantine_id, batch_id, line, reason, detail, row_sha256, fields, account, received_at, request_id
    ON quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE quarantine DROP CONSTRAINT ck_quarantine_resolved;
ALTER TABLE quarantine ADD CONSTRAINT ck_quarantine_resolved CHECK (
    num_nulls(resolution, resolution_reason, resolved_by, resolved_at) IN (0, 4) AND resolution_reason <> '' AND resolved_by <> '');
"""

# A half that waits for its tokens may get them by a repair: once, and it stays the half that it is.
HALVES = """
ALTER TABLE observation ADD COLUMN repaired boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN observation.repaired IS 'its figures are what somebody set: no other half overrules them';
CREATE INDEX ix_observation_refused_sha256 ON observation (refused_sha256) WHERE refused_sha256 IS NOT NULL;
DROP TRIGGER refuse_change ON observation;
CREATE TRIGGER refuse_removal BEFORE DELETE OR TRUNCATE ON observation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER repair_once BEFORE UPDATE ON observation FOR EACH ROW WHEN (
    old.repaired OR NOT new.repaired OR old.refused_sha256 IS NULL
    OR (old.role, old.account, old.record_id, old.request_id, old.trace, old.header)
        IS DISTINCT FROM (new.role, new.account, new.record_id, new.request_id, new.trace, new.header)
) EXECUTE FUNCTION refuse_change();
"""

DOWN = """
DROP TRIGGER refuse_removal ON observation;
DROP TRIGGER repair_once ON observation;
DROP INDEX ix_observation_refused_sha256;
ALTER TABLE observation DROP COLUMN repaired;
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON observation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE quarantine DROP CONSTRAINT ck_quarantine_resolved;
ALTER TABLE quarantine ADD CONSTRAINT ck_quarantine_resolved CHECK ((resolution IS NULL) = (resolved_at IS NULL));
DROP TABLE resubmission;
DROP TRIGGER refuse_change ON quarantine;
DROP INDEX ix_quarantine_place;
ALTER TABLE quarantine DROP COLUMN request_id;
CREATE TRIGGER refuse_change
    BEFORE UPDATE OF quarantine_id, batch_id, line, reason, detail, row_sha256, fields, account, received_at
    ON quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    """Create the table, and fill the column where the fields have their canonical names."""
    op.execute(UP)
    op.execute(HALVES)


def downgrade() -> None:
    """Drop both: what was sent in again is known no more."""
    op.execute(DOWN)
