"""What only the owner of `event` may do after a large load, for whom the owner lets do it: look at the rows that are new."""

from alembic import op

revision = "0014"
down_revision = "0013"

# It runs as the owner, so every name in it says its schema: the caller's temporary tables may be called as they like.
UP = """
DO $$ BEGIN EXECUTE format('
CREATE FUNCTION analyze_events() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    ANALYZE %1$I.event;
    PERFORM pg_catalog.brin_summarize_new_values(''%1$I.ix_event_received_at''::pg_catalog.regclass);
END $body$', current_schema()); END $$;
REVOKE ALL ON FUNCTION analyze_events() FROM PUBLIC;
COMMENT ON FUNCTION analyze_events() IS 'to be called after a large load';
"""
DOWN = """
DROP FUNCTION analyze_events();
"""


def upgrade() -> None:
    """Run the statements."""
    op.execute(UP)


def downgrade() -> None:
    """Take it back."""
    op.execute(DOWN)
