"""Cells that are kept up while events arrive. What a database holds already is counted, and its cells are marked to be computed."""

from alembic import op
from sqlalchemy import text

revision = "0004"
down_revision = "0003"

TABLES = """
-- From 1980 on the midnights of every zone fall on quarters of an hour; an earlier instant is its own quarter.
CREATE FUNCTION quarter_start(received_at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN received_at < '1980-01-01T00:00:00Z' THEN received_at
        ELSE date_bin('15 minutes', received_at, '1980-01-01T00:00:00Z') END
$$;
CREATE FUNCTION quarter(received_at timestamptz) RETURNS tstzrange LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT tstzrange(quarter_start(received_at), quarter_start(received_at)
        + CASE WHEN received_at < '1980-01-01T00:00:00Z' THEN interval '1 microsecond' ELSE interval '15 minutes' END)
$$;

CREATE TABLE cell (
    contract_id varchar COLLATE "C" NOT NULL,
    version integer NOT NULL,
    day_start timestamptz NOT NULL,
    window_start timestamptz NOT NULL,
    model varchar COLLATE "C" NOT NULL,
    queue varchar COLLATE "C" NOT NULL,
    forfeited boolean NOT NULL,
    outcome varchar COLLATE "C" NOT NULL,
    exemption smallint,
    tier smallint,
    in_objective boolean NOT NULL,
    late boolean NOT NULL,
    over boolean NOT NULL,
    requests bigint NOT NULL,
    requests_without_usage bigint NOT NULL,
    tokens_input bigint NOT NULL,
    tokens_cached_input bigint NOT NULL,
    tokens_output bigint NOT NULL,
    late_latencies_us bigint[]
);
COMMENT ON COLUMN cell.day_start IS 'of the contract''s local day';
COMMENT ON COLUMN cell.late_latencies_us IS 'of late requests that have one, in no order';
CREATE INDEX ix_cell_day_start ON cell (day_start, contract_id);

CREATE TABLE cold_start_event (
    contract_id varchar COLLATE "C" NOT NULL,
    version integer NOT NULL,
    day_start timestamptz NOT NULL,
    account varchar COLLATE "C" NOT NULL,
    request_id varchar COLLATE "C" NOT NULL,
    revision smallint NOT NULL
);
COMMENT ON COLUMN cold_start_event.day_start IS 'of the contract''s local day';
CREATE INDEX ix_cold_start_event_day_start ON cold_start_event (day_start, contract_id);

CREATE TABLE traffic (
    account varchar COLLATE "C" NOT NULL,
    quarter_start timestamptz NOT NULL,
    requests bigint NOT NULL
);

CREATE TABLE stale (
    contract_id varchar COLLATE "C" NOT NULL,
    spans tstzmultirange NOT NULL,
    CONSTRAINT pk_stale PRIMARY KEY (contract_id)
);
"""

# No load may add events between this count and the end of the migration.
FILLED = """
LOCK TABLE event, void IN SHARE MODE;

INSERT INTO traffic (account, quarter_start, requests)
SELECT account, quarter_start(received_at), count(*)
FROM event e
WHERE NOT EXISTS (SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision))
GROUP BY account, quarter_start(received_at);

CREATE INDEX ix_traffic_quarter_start ON traffic (quarter_start);

INSERT INTO stale (contract_id, spans)
SELECT contract_id, range_agg(in_force * hull)
FROM version_in_force, (
    SELECT range_merge(quarter(min(received_at)), quarter(max(received_at))) AS hull FROM event HAVING min(received_at) IS NOT NULL
) events
WHERE in_force && hull
GROUP BY contract_id;
"""

COUNTS = """
SELECT coalesce((SELECT sum(requests) FROM traffic), 0), (SELECT count(*) FROM event) - (SELECT count(*) FROM void)
"""


def upgrade() -> None:
    """Create the tables and fill them."""
    op.execute(TABLES)
    op.execute(FILLED)
    counted, standing = op.get_bind().execute(text(COUNTS)).one()
    assert counted == standing, f"{counted} events are counted, {standing} stand"


def downgrade() -> None:
    """Drop everything; the events hold all that it says."""
    op.execute("DROP TABLE stale, traffic, cold_start_event, cell")
    op.execute("DROP FUNCTION quarter(timestamptz), quarter_start(timestamptz)")
