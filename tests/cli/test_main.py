"""The command line as a whole: quick help, errors in one line, exit codes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.cli.main import COMMANDS, GROUPS
from tests.cli.watched_command import run_watched
from tests.conftest import RunLedger, RunLedgerProcess

ROOT = Path(__file__).parents[2]
HEAVY = {"sqlalchemy", "psycopg", "alembic", "duckdb", "pydantic", "rich", "sqlglot", "jinja2", "yaml"}


def run_with(raising: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """The command line with one more command, `fail`, whose body is given."""
    body = "\n    ".join(raising.splitlines())
    program = f"""
import sys, types, click
from ledger.cli import main
@click.command()
def fail():
    {body}
sys.modules["extra"] = types.SimpleNamespace(fail=fail)
main.COMMANDS["database fail"] = ("extra:fail", "Fail.")
sys.argv = ["ledger", "database", "fail"]
main.main()
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | env, check=False, cwd=ROOT)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([group, "--help"] for group in GROUPS)], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    result = run_watched(arguments, HEAVY)
    assert (result.returncode, result.stderr) == (0, "[]\n")


def test_reading_kept_cells_imports_nothing_that_plans_need(run_ledger: RunLedger, database_url: str) -> None:
    case = ROOT / "tests" / "golden" / "cases" / "edges"
    assert run_ledger("contract", "add", case / "contract.yaml").exit_code == 0
    assert run_ledger("ingest", case / "events.csv").exit_code == 0
    assert run_ledger("settle", "2026-05", "--dry-run", now="2026-06-15T00:00:00Z").exit_code == 0  # reads the contract's file, once
    contracts = (["contract", "list"], ["contract", "show", "acme-bank-llm"], ["contract", "history", "acme-bank-llm"])
    for arguments in (["settle", "2026-05", "--dry-run"], ["budget"], *contracts):
        env = {
            "LEDGER_DATABASE_URL": database_url,
            "LEDGER_NOW": "2026-06-15T00:00:00Z" if arguments[0] == "settle" else "2026-05-20T00:00:00Z",
        }
        result = run_watched(arguments, {"sqlglot", "duckdb", "sqlalchemy", "alembic", "yaml", "pandas"}, **env)
        assert result.returncode in (0, 3) and result.stderr.endswith("[]\n"), result.stderr


def test_a_load_does_without_what_it_does_not_need(run_ledger: RunLedger, database_url: str) -> None:
    case = ROOT / "tests" / "golden" / "cases" / "edges"
    assert run_ledger("contract", "add", case / "contract.yaml").exit_code == 0
    result = run_watched(["ingest", str(case / "events.csv")], {"sqlalchemy", "alembic", "pandas"}, LEDGER_DATABASE_URL=database_url)
    assert result.returncode == 0 and result.stderr.endswith("[]\n"), result.stderr


def test_every_command_and_group_has_its_help_with_an_example(run_ledger: RunLedger) -> None:
    for words in ("", *GROUPS, *COMMANDS, "formats show"):
        result = run_ledger(*words.split(), "--help")
        assert result.exit_code == 0 and f"Usage: ledger {words}" in result.stdout
        examples = result.stdout.partition("Example")[2].splitlines()
        assert any(line.strip().removeprefix('pg_dump "$(').startswith(f"ledger {words}".strip()) for line in examples), words


@pytest.mark.parametrize("arguments", [["nope"], ["database", "nope"], ["database", "status", "--format", "xml"], ["--nope"]], ids=" ".join)
def test_wrong_usage_exits_2(run_ledger: RunLedger, arguments: list[str]) -> None:
    result = run_ledger(*arguments)
    assert result.exit_code == 2 and result.stdout == "" and "Usage:" in result.stderr


def test_an_unreachable_database_exits_4(run_ledger_process: RunLedgerProcess) -> None:
    result = run_ledger_process("database", "status", env={"LEDGER_DATABASE_URL": "postgresql://u:secret@localhost:1/d"})
    assert result.returncode == 4 and result.stdout == ""
    assert result.stderr.startswith("error: no connection to the database d at localhost:1") and "secret" not in result.stderr


def of_the_database(kind: str, words: str) -> str:
    """Raise one of SQLAlchemy's errors."""
    return f"import psycopg, sqlalchemy.exc\nraise sqlalchemy.exc.{kind}('SELECT', {{}}, psycopg.{kind}({words!r}))"


NO_ROOM = "from ledger.errors import LedgerError\nraise LedgerError('no room', cure='make room', exit_code=1)"


@pytest.mark.parametrize(
    ("raising", "code", "message"),
    [
        (NO_ROOM, 1, "error: no room\n  make room\n"),
        ("assert 1 == 2", 5, "error: a defect in ledger: AssertionError"),
        ("{}['secret']", 5, "error: a defect in ledger: KeyError"),
        ("raise KeyboardInterrupt", 130, ""),
        (of_the_database("OperationalError", "gone away"), 4, "error: the database failed: gone away\n"),
        (of_the_database("IntegrityError", "a duplicate"), 5, "error: the database refused a change that must not happen: a duplicate\n"),
        (of_the_database("ProgrammingError", "secret"), 5, "error: a defect in ledger: ProgrammingError"),
    ],
)
def test_what_stops_a_command_is_one_message_and_its_exit_code(raising: str, code: int, message: str) -> None:
    result = run_with(raising)
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.startswith(message) and "Traceback" not in result.stderr and "secret" not in result.stderr


@pytest.mark.parametrize("raising", ["assert 1 == 2", "{}['secret']"])
def test_a_developer_can_ask_for_the_traceback(raising: str) -> None:
    result = run_with(raising, LEDGER_TRACEBACK="1")
    assert result.returncode == 5 and "Traceback" in result.stderr


def test_ctrl_c_ends_a_command_with_130() -> None:
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell may have told its background jobs to ignore it
    program = f"import signal, os, time\n{heard}\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)"
    start = time.monotonic()
    assert run_with(program).returncode == 128 + signal.SIGINT
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "--help"], ["formats"]], ids=" ".join)
def test_a_closed_pipe_ends_a_command_without_a_word(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ledger", *arguments]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (141, "")
