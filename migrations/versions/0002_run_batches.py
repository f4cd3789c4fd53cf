"""A run says which batches it saw as ranges of their numbers: a year of loads is a few ranges, and was a list of every number."""

from alembic import op

revision = "0002"
down_revision = "0001"

# A column's new type may not be computed by a subquery, but by a function.
RANGES = """
CREATE FUNCTION pg_temp.ranges(bigint[]) RETURNS int8multirange LANGUAGE sql AS $$
    SELECT coalesce(range_agg(int8range(number, number, '[]')), '{}') FROM unnest($1) AS number
$$;
ALTER TABLE run ALTER COLUMN batches TYPE int8multirange USING pg_temp.ranges(batches);
DROP FUNCTION pg_temp.ranges;
"""

NUMBERS = """
CREATE FUNCTION pg_temp.numbers(int8multirange) RETURNS bigint[] LANGUAGE sql AS $$
    SELECT coalesce(array_agg(number ORDER BY number), '{}')
    FROM unnest($1) AS span, generate_series(lower(span), upper(span) - 1) AS number
$$;
ALTER TABLE run ALTER COLUMN batches TYPE bigint[] USING pg_temp.numbers(batches);
DROP FUNCTION pg_temp.numbers;
"""


def upgrade() -> None:
    """Lists become ranges."""
    op.execute(RANGES)


def downgrade() -> None:
    """Ranges become lists."""
    op.execute(NUMBERS)
