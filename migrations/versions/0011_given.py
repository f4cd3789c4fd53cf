"""What the command line added to a load, so that a load of the same content with something else can be told what differs."""

from alembic import op

revision = "0011"
down_revision = "0010"

# Of earlier loads nobody knows it.
UP = """
ALTER TABLE batch ADD given jsonb;
COMMENT ON COLUMN batch.given IS 'what the command line added to the mapping, by option; null: not recorded';
"""


def upgrade() -> None:
    """Add the column."""
    op.execute(UP)


def downgrade() -> None:
    """Drop it; loads stay."""
    op.execute("ALTER TABLE batch DROP COLUMN given")
