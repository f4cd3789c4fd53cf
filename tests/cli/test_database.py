"""`ledger database ...` on a database given by URL; tests/store/test_embedded.py has the embedded one."""

import json

import psycopg
from sqlalchemy import text

from ledger.store.database import Database, head_revision
from tests.conftest import RunLedger, RunLedgerProcess


def test_status_shows_server_schema_kind_and_size(run_ledger: RunLedger) -> None:
    result = run_ledger("database", "status", "--format", "json")
    status = json.loads(result.stdout)
    assert result.exit_code == 0 and result.stderr == ""
    assert status["schema"] == status["schema_wanted"] and status["is_test"] is True and status["size_bytes"] > 1_000_000
    lines = run_ledger("database", "status").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["database", "server", "schema", "kind", "size", "events"]


def test_status_estimates_the_number_of_events(run_ledger: RunLedger, database: Database) -> None:
    rows = """INSERT INTO event (account, request_id, revision, received_at, input_tokens, cached_input_tokens, output_tokens, batch_id,
        status, async_header, clock_clamped, model, queue)
        SELECT 'a', 'r' || i, 1, now(), 1, 0, 1, 1, 200, false, false, 'm', 'standard' FROM generate_series(1, 5000) AS i"""
    with database.engine.begin() as connection:
        connection.execute(text(rows))
    with database.engine.begin() as connection:
        connection.execute(text("ANALYZE event"))
    assert abs(json.loads(run_ledger("database", "status", "--format", "json").stdout)["events"] - 5000) < 100


def test_upgrade_of_a_current_database_does_nothing(run_ledger: RunLedger) -> None:
    assert run_ledger("database", "upgrade", "--test").stdout == f"nothing to do, schema {head_revision()}\n"


def test_the_url_opens_the_same_database(run_ledger: RunLedger, database: Database) -> None:
    printed = run_ledger("database", "url").stdout.strip()
    with psycopg.connect(printed) as ours, database.engine.connect() as connection:
        assert ours.execute("SELECT current_database()").fetchone() == (connection.scalar(text("SELECT current_database()")),)


def test_the_shell_is_psql_and_its_command_line_has_no_password(run_ledger_process: RunLedgerProcess) -> None:
    shell = r"\! cat /proc/$PPID/cmdline | tr '\0' ' '" + "\nSELECT is_test FROM ledger;\n"
    result = run_ledger_process("database", "shell", input=shell)
    assert result.returncode == 0, result.stderr
    assert "is_test" in result.stdout and "psql postgresql://ledger@" in result.stdout


def test_only_the_server_that_ledger_keeps_can_be_stopped(run_ledger: RunLedger) -> None:
    result = run_ledger("database", "stop")
    assert result.exit_code == 2 and "leave out --database" in result.stderr
