"""`ledger database ...` on a database given by URL; tests/store/test_embedded.py has the embedded one."""

import json

import psycopg
import pytest
from sqlalchemy import text

from ledger.store.database import Database, head_revision
from ledger.store.embedded import Server
from ledger.store.home import APPLICATION, OWNER, read_password
from tests.conftest import RunLedger, RunLedgerProcess
from tests.store.new_role import new_role, url_of


def test_status_shows_server_schema_kind_and_size(run_ledger: RunLedger) -> None:
    result = run_ledger("database", "status", "--format", "json")
    status = json.loads(result.stdout)
    assert result.exit_code == 0 and result.stderr == ""
    assert status["schema"] == status["schema_wanted"] and status["is_test"] is True and status["size_bytes"] > 1_000_000
    lines = run_ledger("database", "status").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["database", "server", "schema", "kind", "size", "events", "role"]


def test_status_estimates_the_number_of_events(run_ledger: RunLedger, database: Database) -> None:
    rows = """INSERT INTO event (account, request_id, revision, received_at, input_tokens, cached_input_tokens, output_tokens, batch_id,
        status, async_header, clock_clamped, model, queue)
        SELECT 'a', 'r' || i, 1, now(), 1, 0, 1, 1, 200, false, false, 'm', 'standard' FROM generate_series(1, 5000) AS i"""
    with database.engine.begin() as connection:
        connection.execute(text(rows))
    with database.engine.begin() as connection:
        connection.execute(text("SELECT analyze_events()"))
    assert abs(json.loads(run_ledger("database", "status", "--format", "json").stdout)["events"] - 5000) < 100


def test_upgrade_of_a_current_database_does_nothing(run_ledger: RunLedger) -> None:
    assert run_ledger("database", "upgrade", "--test").stdout == f"nothing to do, schema {head_revision()}\n"


def test_the_owner_lets_a_role_do_what_the_application_does(run_ledger: RunLedger, owner_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner, new_role(owner) as role:
        given = run_ledger("database", "upgrade", "--application", role, database=owner_url)
        expected = ", ".join(sorted([APPLICATION, role]))
        assert (given.exit_code, given.stdout) == (0, f"nothing to do, schema {head_revision()}\nrights of the application: {expected}\n")
        refused = run_ledger("database", "upgrade", "--application", role)
        assert refused.exit_code == 4 and "the role ledger does not own the tables" in refused.stderr


def test_status_warns_of_what_is_not_protected_from_a_superuser_and_an_owner(run_ledger: RunLedger, owner_url: str) -> None:
    status = run_ledger("database", "status", database=owner_url)
    assert status.exit_code == 0 and status.stdout.splitlines()[-1] == "role      ledger_owner"
    assert status.stderr.startswith(
        "warning: the role ledger_owner is a superuser: through it closed settlements, their lines, invoices and "
    )
    assert "run as the owner: ledger database upgrade --application ROLE (" in status.stderr
    with psycopg.connect(owner_url, autocommit=True) as owner, new_role(owner) as role:
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; ALTER TABLE closing OWNER TO {role}".encode())
        assert (
            f"warning: the role {role} owns the tables, or can" in run_ledger("database", "status", database=url_of(role, owner_url)).stderr
        )
        owner.execute(f"REASSIGN OWNED BY {role} TO ledger_owner".encode())


def test_status_warns_of_rights_that_are_too_wide_or_lack_and_the_cure_cures(run_ledger: RunLedger, owner_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner, new_role(owner) as role:
        url = url_of(role, owner_url)
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; REVOKE INSERT, UPDATE ON run FROM {role}".encode())
        wide, lacking = run_ledger("database", "status", database=url).stderr.split("warning: ")[1:]
        assert wide.startswith(
            f"the role {role} may do what the application need not: INSERT ON alembic_version, UPDATE ON alembic_version, "
        )
        assert lacking.startswith(f"the role {role} may not do what commands have to: INSERT ON run\n")
        for warning in (wide, lacking):
            assert warning.endswith(f"the owner of the tables run, with a URL of its own: ledger database upgrade --application {role}\n")
        assert run_ledger("database", "upgrade", "--application", role, database=owner_url).exit_code == 0
        cured = run_ledger("database", "status", database=url)
        assert (cured.exit_code, cured.stderr, cured.stdout.splitlines()[-1]) == (0, "", f"role      {role}")


def test_the_owners_url_is_known_of_the_server_that_ledger_keeps_alone(
    run_ledger: RunLedger, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(server.home))
    for options, name, password in (([], "ledger", server.password), (["--owner"], "ledger_owner", read_password(server.home, OWNER))):
        printed = run_ledger("database", "url", *options, database=None).stdout
        assert printed.startswith(f"postgresql://{name}:{password}@/ledger?")
    refused = run_ledger("database", "url", "--owner")
    assert refused.exit_code == 2 and "leave out --owner" in refused.stderr


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
