"""Which request a refused row has become when it was sent in again: another mapping may have read its account or its id."""

from alembic import op

revision = "0012"
down_revision = "0011"

# Of what was sent in before it is known as far as the row said it, or somebody set it; not where there is no such request, since another
# mapping has read the row.
UP = """
ALTER TABLE resubmission ADD account varchar COLLATE "C", ADD request_id varchar COLLATE "C";
COMMENT ON COLUMN resubmission.account IS 'of the request that the row is now; null: it was refused again, or not recorded';
ALTER TABLE resubmission DISABLE TRIGGER refuse_change;
UPDATE resubmission SET account = said.account, request_id = said.request_id
FROM (SELECT r.quarantine_id, r.batch_id, coalesce(values_set ->> 'account', q.account) AS account,
    coalesce(values_set ->> 'request_id', q.request_id) AS request_id
    FROM resubmission r JOIN quarantine q USING (quarantine_id) WHERE outcome IN ('accepted', 'duplicate')) said
WHERE said.quarantine_id = resubmission.quarantine_id AND said.batch_id = resubmission.batch_id AND (
    EXISTS (SELECT FROM event e WHERE e.account = said.account AND e.request_id = said.request_id
        AND (outcome = 'duplicate' OR e.batch_id = said.batch_id))
    OR EXISTS (SELECT FROM observation o WHERE o.role = 'gateway' AND o.account = said.account AND o.record_id = said.request_id
        AND (outcome = 'duplicate' OR o.batch_id = said.batch_id))
    OR EXISTS (SELECT FROM observation o WHERE o.role = 'engine' AND o.account = coalesce(said.account, '')
        AND o.request_id = said.request_id AND (outcome = 'duplicate' OR o.batch_id = said.batch_id)));
ALTER TABLE resubmission ENABLE TRIGGER refuse_change;
DROP INDEX ix_resubmission_request_id;
CREATE INDEX ix_resubmission_request_id ON resubmission (request_id) WHERE request_id IS NOT NULL;
"""
DOWN = """
DROP INDEX ix_resubmission_request_id;
ALTER TABLE resubmission DROP COLUMN account, DROP COLUMN request_id;
CREATE INDEX ix_resubmission_request_id ON resubmission ((values_set ->> 'request_id')) WHERE (values_set ->> 'request_id') IS NOT NULL;
"""


def upgrade() -> None:
    """Add the columns, and fill them from what was set and what the rows say."""
    op.execute(UP)


def downgrade() -> None:
    """Drop them; what was set says it again."""
    op.execute(DOWN)
