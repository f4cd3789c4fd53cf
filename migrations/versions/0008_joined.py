"""Which of the requests that were formed has the figures of their engines: no other gets them as well."""

from alembic import op

revision = "0008"
down_revision = "0007"

# Of several of one request it was the first answer.
UP = """
ALTER TABLE formed_request ADD COLUMN joined boolean NOT NULL DEFAULT false;
ALTER TABLE formed_request ALTER COLUMN joined DROP DEFAULT;
COMMENT ON COLUMN formed_request.joined IS 'it has the figures of its engines';
UPDATE formed_request SET joined = true FROM (
    SELECT DISTINCT ON (formed.account, formed.of_request) formed.account, formed.request_id
    FROM formed_request formed JOIN event USING (account, request_id, revision)
    JOIN engine_request ON of_account = formed.account AND engine_request.of_request = formed.of_request AND merged
    ORDER BY formed.account, formed.of_request, event.status BETWEEN 200 AND 299 DESC, event.received_at, formed.request_id
) first WHERE first.account = formed_request.account AND first.request_id = formed_request.request_id;
"""


def upgrade() -> None:
    """Add the column, and fill it from the pairs that were joined."""
    op.execute(UP)


def downgrade() -> None:
    """Drop it; what was formed stays."""
    op.execute("ALTER TABLE formed_request DROP COLUMN joined")
