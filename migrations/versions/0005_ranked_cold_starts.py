"""Cells of the events that cold starts may have delayed: kept as well, so that a settlement only adds up."""

from alembic import op

revision = "0005"
down_revision = "0004"

# Nothing to fill: a day whose listed events are not all in these cells is ranked before it is used.
TABLE = """
CREATE TABLE delayed_cell (LIKE cell INCLUDING COMMENTS);
CREATE INDEX ix_delayed_cell_day_start ON delayed_cell (day_start, contract_id);
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(TABLE)


def downgrade() -> None:
    """Drop it; the events hold all that it says."""
    op.execute("DROP TABLE delayed_cell")
