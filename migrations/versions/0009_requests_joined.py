"""How many requests a load made whole, so that one that is run again after a crash can still tell it."""

from alembic import op

revision = "0009"
down_revision = "0008"

# Of earlier loads nobody knows it.
UP = """
ALTER TABLE batch ADD requests_joined bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN batch.requests_joined IS 'that have the figures of their engines by this load';
"""


def upgrade() -> None:
    """Add the column."""
    op.execute(UP)


def downgrade() -> None:
    """Drop it; what was joined stays."""
    op.execute("ALTER TABLE batch DROP COLUMN requests_joined")
