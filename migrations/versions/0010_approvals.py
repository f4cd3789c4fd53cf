"""Approvals of contract versions: of what was read, by role, once."""

from alembic import op

revision = "0010"
down_revision = "0009"

# Which roles a version needs stands in its file, which the database does not read: an approval of another role counts for nothing.
TABLE = """
CREATE TABLE approval (
    content_sha256 varchar(64) NOT NULL,
    role varchar COLLATE "C" NOT NULL,
    author text NOT NULL,
    reason text,
    approved_at timestamptz NOT NULL,
    CONSTRAINT pk_approval PRIMARY KEY (content_sha256, role),
    CONSTRAINT fk_approval_content_sha256 FOREIGN KEY (content_sha256) REFERENCES contract_version (content_sha256),
    CONSTRAINT ck_approval_said CHECK (role <> '' AND author <> '' AND reason <> '')
);
COMMENT ON COLUMN approval.content_sha256 IS 'of the version''s file: no other version has it';
COMMENT ON COLUMN approval.reason IS 'if one was given';
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON approval FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    """Create the table: no version has an approval yet."""
    op.execute(TABLE)


def downgrade() -> None:
    """Drop it: what was approved is known no more."""
    op.execute("DROP TABLE approval")
