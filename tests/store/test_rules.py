"""What the database itself holds, whoever writes: rows that never change, spans that never overlap, numbers in range."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Table, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from ledger.store.database import Database
from ledger.store.schema import approval, batch, contract_version, event, interval, observation, quarantine
from tests.store.sample_rows import AT, BATCH, EVENT, INTERVAL, ROWS

TOKENS_MAX, DURATION_MAX_US = 10**12, 30 * 86_400 * 10**6
EVENT_DURATIONS = [column.name for column in event.columns if column.name.endswith("_us")]


@pytest.mark.parametrize("table", ROWS, ids=str)
def test_what_was_written_never_changes(owner_database: Database, table: Table) -> None:
    column = next(column.name for column in table.columns if column.identity is None)
    with owner_database.engine.begin() as connection:
        connection.execute(insert(table), ROWS[table])
    for change in (update(table).values({column: table.c[column]}), delete(table), text(f"TRUNCATE {table} CASCADE")):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
            connection.execute(change)
    with owner_database.engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(table)) == 1


def test_an_approval_is_of_a_stored_version_once_for_each_role_and_never_changes(owner_database: Database) -> None:
    given = {"content_sha256": "0", "role": "legal", "author": "me", "reason": None, "approved_at": AT}
    with owner_database.engine.begin() as connection:
        connection.execute(insert(contract_version), ROWS[contract_version])
        connection.execute(insert(approval), [given, given | {"role": "finance"}])
    for wrong, constraint in (
        ({}, "pk_approval"),
        ({"role": "board", "content_sha256": "1"}, "fk_approval_content_sha256"),
        ({"role": ""}, "ck_approval_said"),
        ({"role": "board", "author": ""}, "ck_approval_said"),
        ({"role": "board", "reason": ""}, "ck_approval_said"),
    ):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match=constraint):
            connection.execute(insert(approval), given | wrong)
    for change in ("UPDATE approval SET author = 'other'", "DELETE FROM approval", "TRUNCATE approval"):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
            connection.execute(text(change))


def quarantine_one(database: Database) -> None:
    """A refused row."""
    with database.engine.begin() as connection:
        batch_id = connection.scalar(insert(batch).returning(batch.c.batch_id), BATCH)
        row = {"batch_id": batch_id, "line": 2, "reason": "bad_number", "detail": "", "row_sha256": "0" * 64, "fields": {}}
        connection.execute(insert(quarantine), row)


def test_what_became_of_a_row_that_was_sent_in_again_never_changes(owner_database: Database) -> None:
    quarantine_one(owner_database)
    with owner_database.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO resubmission SELECT quarantine_id, batch_id, '{}', 'accepted', '', 'test' FROM quarantine"),
        )
    for change in ("UPDATE resubmission SET outcome = 'other'", "DELETE FROM resubmission", "TRUNCATE resubmission"):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
            connection.execute(text(change))


def test_a_refused_row_can_only_be_resolved_and_only_once(owner_database: Database) -> None:
    quarantine_one(owner_database)
    for change in (
        "UPDATE quarantine SET reason = 'other'",
        "UPDATE quarantine SET fields = '{}'",
        "DELETE FROM quarantine",
        "TRUNCATE quarantine CASCADE",
    ):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
            connection.execute(text(change))
    whole = "UPDATE quarantine SET resolution = 'dismissed', resolution_reason = 'test', resolved_by = 'me', resolved_at = now()"
    for silent in (
        "UPDATE quarantine SET resolution = 'dismissed'",
        whole.replace("resolution_reason = 'test', ", ""),
        whole.replace("'test'", "''"),
        whole.replace("resolved_by = 'me', ", ""),
        whole.replace("'dismissed'", "'gone'"),
    ):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="ck_quarantine_resol"):
            connection.execute(text(silent))
    resolve = text(whole)
    with owner_database.engine.begin() as connection:
        assert connection.execute(resolve).rowcount == 1
    with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
        connection.execute(resolve)


OBSERVATION = {
    **{name: value for name, value in EVENT.items() if name not in ("revision", "input_tokens", "output_tokens")},
    "role": "gateway",
}


def test_a_half_is_changed_by_a_repair_only_and_once_and_stays_the_half_that_it_is(owner_database: Database) -> None:
    with owner_database.engine.begin() as connection:
        for record_id, waits_as in (("waits", "0" * 64), ("whole", None)):
            connection.execute(insert(observation), {**OBSERVATION, "record_id": record_id, "refused_sha256": waits_as})
    repair = "UPDATE observation SET repaired = true, output_tokens = 5 WHERE record_id = 'waits'"
    for change in (
        repair.replace("'waits'", "'whole'"),
        repair.replace("repaired = true, ", ""),
        repair.replace("output_tokens = 5", "header = 'other'"),
        repair.replace("output_tokens = 5", "account = 'other'"),
        "DELETE FROM observation",
        "TRUNCATE observation",
    ):
        with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
            connection.execute(text(change))
    with owner_database.engine.begin() as connection:
        assert connection.execute(text(repair)).rowcount == 1
    with owner_database.engine.connect() as connection, pytest.raises(IntegrityError, match="never change"):
        connection.execute(text(repair))


IMPOSSIBLE: list[dict[str, object]] = [
    {"account": ""},
    {"account": "a" * 201},
    {"request_id": ""},
    {"request_id": "r" * 201},
    {"revision": 0},
    {"input_tokens": -1},
    {"input_tokens": TOKENS_MAX + 1},
    {"output_tokens": -1},
    {"output_tokens": TOKENS_MAX + 1},
    {"cached_input_tokens": -1},
    {"cached_input_tokens": 11},
    {"input_tokens": None},
    {"output_tokens": None},
    {"input_tokens": None, "status": 499, "cached_input_tokens": 1},
    *({name: value} for name in EVENT_DURATIONS for value in (-1, DURATION_MAX_US + 1)),
]


def test_an_impossible_event_is_refused(database: Database) -> None:
    with database.engine.connect() as connection:
        for wrong in IMPOSSIBLE:
            with pytest.raises(IntegrityError, match="ck_event"):
                connection.execute(insert(event), EVENT | wrong)
            connection.rollback()


def test_the_largest_event_and_one_without_usage_are_taken(database: Database) -> None:
    largest = dict.fromkeys(EVENT_DURATIONS, DURATION_MAX_US) | {"input_tokens": TOKENS_MAX, "cached_input_tokens": TOKENS_MAX}
    rows = [
        EVENT | largest | {"account": "a" * 200, "request_id": "r" * 200, "output_tokens": TOKENS_MAX},
        EVENT | {"status": 499, "input_tokens": None, "output_tokens": None},
    ]
    with database.engine.begin() as connection:
        for row in rows:
            connection.execute(insert(event), row)


def test_a_revision_of_a_request_exists_once(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(insert(event), [EVENT, EVENT | {"revision": 2}, EVENT | {"account": "other"}])
    with database.engine.connect() as connection, pytest.raises(IntegrityError, match="pk_event"):
        connection.execute(insert(event), EVENT | {"received_at": datetime(2030, 1, 1, tzinfo=UTC)})


def test_events_come_in_by_copy(database: Database) -> None:
    columns = ", ".join(EVENT)
    with database.engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        with driver.cursor() as cursor, cursor.copy(f"COPY event ({columns}) FROM STDIN") as copy:
            for i in range(3):
                copy.write_row(list((EVENT | {"request_id": f"r{i}"}).values()))
        assert connection.scalar(text("SELECT count(*) FROM event")) == 3


def test_the_same_interval_is_not_added_under_another_id(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(insert(interval), [INTERVAL | {"node": None}, INTERVAL | {"interval_id": "i2", "node": "n"}])
    with database.engine.connect() as connection, pytest.raises(IntegrityError, match="uq_interval_content"):
        connection.execute(insert(interval), INTERVAL | {"interval_id": "i3"})


IN_FORCE = "INSERT INTO version_in_force (contract_id, version, in_force) VALUES (:id, :version, tstzrange(:from, :until))"
COVERED = "INSERT INTO account_covered (account, contract_id, version, in_force) VALUES (:id, 'c', :version, tstzrange(:from, :until))"


@pytest.mark.parametrize("statement", [IN_FORCE, COVERED], ids=["version_in_force", "account_covered"])
def test_spans_of_one_contract_and_of_one_account_never_overlap(database: Database, statement: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(statement), {"id": "x", "version": 1, "from": "2026-01-01Z", "until": "2026-05-01Z"})
        connection.execute(text(statement), {"id": "x", "version": 2, "from": "2026-05-01Z", "until": None})
        connection.execute(text(statement), {"id": "y", "version": 1, "from": "2026-01-01Z", "until": None})
    for start, end in (("2025-01-01Z", "2026-01-01T00:00:01Z"), ("2026-04-30Z", "2026-05-02Z"), ("2030-01-01Z", None)):
        with database.engine.connect() as connection, pytest.raises(IntegrityError, match="in_force"):
            connection.execute(text(statement), {"id": "x", "version": 3, "from": start, "until": end})
    with database.engine.connect() as connection, pytest.raises(IntegrityError, match="span"):
        connection.execute(text(statement), {"id": "z", "version": 1, "from": "2026-01-01Z", "until": "2026-01-01Z"})
