"""What every test may ask for: a real PostgreSQL server, a database of its own, and the `ledger` command."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from ledger.cli.main import cli
from ledger.store.database import Database, connect, open_database
from ledger.store.embedded import Server, running_server, stop_server
from ledger.store.home import APPLICATION
from ledger.store.migration import upgrade
from tests.ingest.halves import Halves

ROOT = Path(__file__).parents[1]
TEMPLATE = "template_ledger"


@pytest.fixture
def shared() -> Path:
    """The folder of cases and telemetry beside the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"the folder of shared cases is missing: {folder}")
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One embedded server for the whole run, however many processes test; the last one to finish stops it."""
    base, run = tmp_path_factory.getbasetemp(), os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid4().hex)
    users = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "server-users"
    # A folder that the unprivileged user of a server started by root can enter, unlike pytest's own.
    home = Path(tempfile.gettempdir()) / f"ledger-tests-{run}"
    with _counted(users, +1):
        found = running_server(home)
        _make_template(found)
    yield found
    with _counted(users, -1) as left:
        if left == 0:
            stop_server(home)
            shutil.rmtree(home)


@contextmanager
def _counted(file: Path, change: int) -> Iterator[int]:
    """Change the number of processes that use the server, and keep the others waiting meanwhile."""
    with open(file, "a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        users = int(counter.read() or 0) + change
        counter.truncate(0)
        counter.write(str(users))
        counter.flush()
        yield users


def _make_template(server: Server) -> None:
    """The migrated database that every test's own is copied from."""
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone() is None:
            connection.execute(f"CREATE DATABASE {TEMPLATE}".encode())
            engine = connect(server.owner_url(TEMPLATE))
            upgrade(engine, is_test=True, applications=[APPLICATION])
            engine.dispose()


@contextmanager
def _databases(server: Server) -> Iterator[Callable[[], str]]:
    """Makes fresh test databases with the current schema, as many as are asked for; gives their URLs, of the application. They are dropped
    at the end."""
    names: list[str] = []
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:

        def make() -> str:
            names.append(f"test_{uuid4().hex}")
            connection.execute(f"CREATE DATABASE {names[-1]} TEMPLATE {TEMPLATE} STRATEGY wal_log".encode())
            return server.url(names[-1])

        yield make
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def new_database(server: Server) -> Iterator[Callable[[], str]]:
    """Makes fresh test databases with the current schema, as many as a test asks for; gives their URLs."""
    with _databases(server) as make:
        yield make


@pytest.fixture(scope="module")
def module_database_url(server: Server) -> Iterator[str]:
    """The URL of a test database that the tests of a module share: what they load together is looked at by each."""
    with _databases(server) as make:
        yield make()


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """The URL of a fresh test database. Tests are the application in it: those that have to be the owner say so (`owner_url`)."""
    return new_database()


@pytest.fixture
def owner_url(server: Server, database_url: str) -> str:
    """The URL of the fresh database for the owner of its tables, who may do behind the back of the triggers what nobody else can."""
    return owner_url_of(server, database_url)


def owner_url_of(server: Server, url: str) -> str:
    """The owner's URL of a database of the server."""
    return server.owner_url(conninfo_to_dict(url)["dbname"])


@pytest.fixture
def owner_database(owner_url: str) -> Iterator[Database]:
    """The fresh database, open for the owner of its tables."""
    with open_database(owner_url) as opened:
        yield opened


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The fresh database, open."""
    with open_database(database_url) as opened:
        yield opened


@pytest.fixture
def query(database_url: str) -> Callable[[str], list[dict[str, Any]]]:
    """`query("select ...")` on the fresh database."""

    def run(statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(database_url, row_factory=dict_row) as connection:
            return connection.execute(statement.encode()).fetchall()

    return run


@pytest.fixture
def rows_of(database_url: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """`rows_of("select ...")` on the fresh database: the same as tuples."""

    def run(statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(database_url) as connection:
            return connection.execute(statement.encode()).fetchall()

    return run


RunLedger = Callable[..., Result]


@pytest.fixture
def run_ledger(database_url: str) -> RunLedger:
    """`run_ledger("settle", "2026-05", now="...")` in this process, on the fresh database; an unforeseen exception fails the test."""
    return ledger_on(database_url)


@pytest.fixture
def halves(tmp_path: Path, run_ledger: RunLedger, query: Callable[[str], list[dict[str, Any]]]) -> Halves:
    """Loads rows of a gateway and of an engine into the fresh database."""
    return Halves(tmp_path, run_ledger, query)


def ledger_on(url: str) -> RunLedger:
    """What runs the command on the database of this URL."""

    def run(*arguments: str | os.PathLike[str], now: str | None = None, database: str | None = url) -> Result:
        environment = {"LEDGER_DATABASE_URL": database, "LEDGER_NOW": now}
        result = CliRunner().invoke(cli, [os.fspath(argument) for argument in arguments], env=environment, prog_name="ledger")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


RunLedgerProcess = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_ledger_process(database_url: str) -> RunLedgerProcess:
    """The same in a process of its own, as a user's shell would."""

    def run(
        *arguments: str | os.PathLike[str], env: Mapping[str, str] | None = None, input: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"LEDGER_DATABASE_URL": database_url} | (env or {})
        command = [sys.executable, "-m", "ledger", *map(os.fspath, arguments)]
        return subprocess.run(command, env=environment, input=input, capture_output=True, text=True, timeout=120, check=False)

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows what tests recorded as `kills`: how often each named step was hit, whichever process ran the test."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "kills":
                terminalreporter.write_line(str(text))
