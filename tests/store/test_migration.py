"""The migrations give what the schema says, forwards and backwards, and twice at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, insert, text
from sqlalchemy.exc import IntegrityError

from ledger.bundle import bundled_folder
from ledger.store.closings import keep_closing
from ledger.store.database import Database, connect, head_revision
from ledger.store.embedded import Server
from ledger.store.events import EVENT_FIELDS
from ledger.store.migration import migrate, upgrade
from ledger.store.observations import OBSERVATION_FIELDS
from ledger.store.schema import contract_version, event, metadata, observation, void
from tests.store.sample_closings import whole_closing
from tests.store.sample_rows import EVENT, VOID
from tests.store.sample_rows import ROWS as SAMPLES

CATALOG = {
    "columns": """
        SELECT table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable, column_default, is_identity,
            collation_name, col_description(format('%I', table_name)::regclass, ordinal_position)
        FROM information_schema.columns WHERE table_schema = current_schema() AND table_name <> 'alembic_version' ORDER BY 1, 3""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = current_schema()::regnamespace AND contype IN ('c', 'p', 'u', 'f')
            AND conrelid::regclass::text <> 'alembic_version' ORDER BY 1, 2""",
    "indexes": """
        SELECT tablename, indexname, replace(indexdef, schemaname || '.', '') FROM pg_indexes
        WHERE schemaname = current_schema() AND tablename <> 'alembic_version' AND indexname NOT LIKE 'ex_%' ORDER BY 1, 2""",
}


def catalog(connection: Connection) -> dict[str, list[object]]:
    """What PostgreSQL itself says about the tables of the current schema."""
    return {name: [tuple(row) for row in connection.execute(text(query))] for name, query in CATALOG.items()}


def test_the_migrated_database_is_what_the_schema_describes(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        migrated = catalog(connection)
        connection.execute(text("CREATE SCHEMA described"))
        connection.execute(text("SET search_path = described"))
        metadata.create_all(connection)
        described = catalog(connection)
        connection.rollback()
    for kind in CATALOG:
        assert migrated[kind] == described[kind]
    assert len(migrated["constraints"]) > 20


def test_the_history_is_one_line_and_its_end_is_known_without_alembic() -> None:
    config = Config()
    config.set_main_option("script_location", str(bundled_folder("migrations")))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [head_revision()]
    assert all(not revision.is_branch_point and not revision.is_merge_point for revision in script.walk_revisions())


def test_down_and_up_again_gives_the_same_database(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        before = catalog(connection)
        migrate(connection, "base")
        assert catalog(connection) == {"columns": [], "constraints": [], "indexes": []}
        migrate(connection, "head")
        assert catalog(connection) == before


def test_the_batches_that_a_run_saw_are_kept_as_ranges_and_come_back(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        migrate(connection, "0001")
        for batches in ("{}", "{1}", "{1,2,3,7,9,10}"):
            connection.execute(
                text(
                    "INSERT INTO run (settled_at, author, period, batches, voids, intervals, contracts, timezone_data) "
                    "VALUES (now(), 'test', '2026-05', :batches, 0, '{}', '{}', '')"
                ),
                {"batches": batches},
            )
        migrate(connection, "0002")
        ranges = connection.scalars(text("SELECT batches::text FROM run ORDER BY run_id")).all()
        assert ranges == ["{}", "{[1,2)}", "{[1,4),[7,8),[9,11)}"]
        migrate(connection, "0001")
        lists = connection.scalars(text("SELECT batches::text FROM run ORDER BY run_id")).all()
        assert lists == ["{}", "{1}", "{1,2,3,7,9,10}"]


def test_what_a_database_holds_already_is_counted_and_its_cells_are_to_be_computed(owner_database: Database) -> None:
    at = datetime(2026, 5, 3, 2, 7, tzinfo=UTC)
    with owner_database.engine.begin() as connection:
        migrate(connection, "0003")
        migrate(connection, "0004")  # nothing is there
        assert connection.execute(text("SELECT (SELECT count(*) FROM traffic), (SELECT count(*) FROM stale)")).one() == (0, 0)
        migrate(connection, "0003")
        for number, received_at in enumerate((at, at, at + timedelta(minutes=8), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))):
            connection.execute(insert(event), EVENT | {"request_id": f"r{number}", "received_at": received_at})
        connection.execute(insert(void), VOID | {"account": EVENT["account"], "request_id": "r1"})
        spans = {"before": "[1960-01-01,1970-01-01)", "around": "[2026-01-01,2026-05-02)", "after": "[2026-06-01,)"}
        for contract_id, span in spans.items():
            connection.execute(text("INSERT INTO version_in_force VALUES (:id, 1, :span)"), {"id": contract_id, "span": span})
        migrate(connection, "0004")
        traffic = connection.execute(text("SELECT account, quarter_start, requests FROM traffic ORDER BY 2")).all()
        assert [tuple(row) for row in traffic] == [
            ("acme-bank", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1),
            ("acme-bank", datetime(2026, 5, 3, 2, 0, tzinfo=UTC), 1),
            ("acme-bank", datetime(2026, 5, 3, 2, 15, tzinfo=UTC), 1),
        ]
        assert connection.scalars(text("SELECT contract_id FROM stale")).all() == ["around"]


def test_rows_in_quarantine_get_their_requests_id_and_a_silent_resolution_says_so(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        migrate(connection, "0006")
        load = text(
            "INSERT INTO batch (source, content_sha256, mapping, mapping_sha256, chunk, chunk_rows, rows_read, rows_new, rows_duplicate, "
            "rows_conflict, rows_refused, rows_clamped, loaded_at, author) "
            "VALUES ('f', '', :mapping, '', 0, 2, 2, 0, 0, 0, 2, 0, now(), 'me') RETURNING batch_id"
        )
        for mapping in ("canonical", "own"):
            row = {"batch_id": connection.scalar(load, {"mapping": mapping}), "hash": mapping}
            connection.execute(
                text(
                    "INSERT INTO quarantine (batch_id, line, reason, detail, row_sha256, fields, resolution, resolved_at) VALUES "
                    "(:batch_id, 1, 'bad_number', '', :hash, '{\"request_id\": \"r1\"}', 'dismissed', now())"
                ),
                row,
            )
        migrate(connection, "0007")
        found = connection.execute(text("SELECT request_id, resolution, resolution_reason, resolved_by FROM quarantine ORDER BY batch_id"))
        assert [tuple(row) for row in found] == [("r1", "dismissed", "not said", "not said"), (None, "dismissed", "not said", "not said")]


def test_going_back_forgets_approvals_and_keeps_the_versions_which_then_have_none(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        connection.execute(insert(contract_version), SAMPLES[contract_version])
        connection.execute(text("INSERT INTO approval VALUES ('0', 'legal', 'me', NULL, now())"))
        migrate(connection, "0009")
        migrate(connection, "0010")
        counts = "SELECT (SELECT count(*) FROM contract_version), (SELECT count(*) FROM approval)"
        assert connection.execute(text(counts)).one() == (1, 0)


def test_of_earlier_runs_is_not_known_which_voids_they_saw_and_going_back_counts_those_of_later_ones(owner_database: Database) -> None:
    columns = "INSERT INTO run (settled_at, author, period, batches, voids, intervals, contracts, timezone_data) "
    with owner_database.engine.begin() as connection:
        migrate(connection, "0012")
        connection.execute(text(columns + "VALUES (now(), 'test', '2026-05', '{}', 7, '{}', '{}', '')"))
        for request_id in ("r1", "r2"):
            connection.execute(text("INSERT INTO void VALUES ('a', :id, 1, 'void', 'test', 'test', now())"), {"id": request_id})
        migrate(connection, "0013")
        assert connection.scalars(text("SELECT void_id FROM void ORDER BY void_id")).all() == [1, 2]
        connection.execute(insert(void), VOID)
        assert connection.scalar(text("SELECT max(void_id) FROM void")) == 3
        connection.execute(text(columns + "VALUES (now(), 'test', '2026-05', '{}', '{[1,3),[9,10)}', '{}', '{}', '')"))
        assert connection.scalars(text("SELECT voids::text FROM run ORDER BY run_id")).all() == [None, "{[1,3),[9,10)}"]
        migrate(connection, "0012")
        assert connection.scalars(text("SELECT voids FROM run ORDER BY run_id")).all() == [0, 3]


def test_a_database_with_issued_documents_does_not_go_back_to_a_schema_without_them(owner_database: Database) -> None:
    with owner_database.begin() as driver:
        keep_closing(driver, whole_closing(driver, "2026-05"))
    with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="documents are issued"):
        migrate(connection, "0012")


def test_two_upgrades_at_once_are_harmless(server: Server) -> None:
    admin = create_engine(server.owner_url("postgres").replace("postgresql", "postgresql+psycopg", 1), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE upgraded_twice"))
        engines = [connect(server.owner_url("upgraded_twice")) for _ in range(4)]
        try:
            with ThreadPoolExecutor(4) as pool:
                before = list(pool.map(lambda engine: upgrade(engine, is_test=True), engines))
        finally:
            for engine in engines:
                engine.dispose()
            connection.execute(text("DROP DATABASE upgraded_twice WITH (FORCE)"))
    admin.dispose()
    assert sorted(before, key=str) == [head_revision()] * 3 + [None]


def test_the_columns_that_a_source_decides_are_the_tables_in_their_order() -> None:
    decided_here = {"batch_id", "revision", "refused_sha256", "repaired"}
    assert [column.name for column in event.columns if column.name not in decided_here] == list(EVENT_FIELDS)
    assert [column.name for column in observation.columns if column.name not in decided_here] == list(OBSERVATION_FIELDS)


def test_rows_that_were_sent_in_again_get_the_request_that_they_are_as_far_as_it_is_known(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        migrate(connection, "0011")
        load = (
            "INSERT INTO batch (source, content_sha256, mapping, mapping_sha256, chunk, chunk_rows, rows_read, rows_new, rows_duplicate, "
            "rows_conflict, rows_refused, rows_clamped, loaded_at, author) "
            "VALUES ('f', '', 'm', '', 0, 2, 2, 0, 0, 0, 2, 0, now(), 'me') RETURNING batch_id"
        )
        batch_id = connection.scalar(text(load))
        other_id = connection.scalar(text(load))
        connection.execute(insert(event), EVENT | {"account": "a", "request_id": "r", "batch_id": batch_id})
        connection.execute(insert(event), EVENT | {"account": "a", "request_id": "set", "batch_id": other_id})
        sent = [("{}", "accepted"), ('{"request_id": "set"}', "duplicate"), ("{}", "bad_number")]
        read_otherwise = [('{"account": "b"}', "duplicate"), ('{"request_id": "set"}', "accepted")]
        for line, (set_, outcome) in enumerate([*sent, *read_otherwise]):
            row = {"batch_id": batch_id, "line": line, "hash": str(line), "set": set_, "outcome": outcome}
            quarantine = (
                "INSERT INTO quarantine (batch_id, line, reason, detail, row_sha256, fields, account, request_id) "
                "VALUES (:batch_id, :line, 'bad_number', '', :hash, '{}', 'a', 'r') RETURNING quarantine_id"
            )
            row["id"] = connection.scalar(text(quarantine), row)
            connection.execute(
                text(
                    "INSERT INTO resubmission (quarantine_id, batch_id, values_set, outcome, detail, reason) "
                    "VALUES (:id, :batch_id, :set, :outcome, '', 'why')"
                ),
                row,
            )
        migrate(connection, "0012")
        found = connection.execute(text("SELECT account, request_id FROM resubmission ORDER BY quarantine_id"))
        assert [tuple(row) for row in found] == [("a", "r"), ("a", "set"), *[(None, None)] * 3]
