"""What the page on the database says of two roles runs as written, on a server of one's own."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ledger.store.embedded import Server
from tests.conftest import RunLedger, ledger_on

PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
SECTION = PAGE.split("### A server of your own\n")[1].split("\n### ")[0]
SET_UP, SEPARATED = (
    [line.strip() for line in re.findall(r"^    (.+)$", part, re.MULTILINE)] for part in SECTION.split("**From one role to two.**")
)


class OwnServer:
    """A server with an administrator, on which names are those of the page with something after them; runs lines of the page."""

    def __init__(self, server: Server) -> None:
        self.server, self.mark = server, uuid4().hex[:8]
        self.url: str | None = None

    def run(self, *lines: str) -> list[tuple[str, str]]:
        """Standard output and error of each command of ledger among the lines, none of which fails."""
        return [said for line in lines if (said := self._run(line)) is not None]

    def _run(self, line: str) -> tuple[str, str] | None:
        if line.endswith(";"):
            marked = re.sub(r"(?<=ROLE |BASE |WNER )(ledger\w*)", rf"\1_{self.mark}", line)
            with psycopg.connect(self.server.owner_url("postgres"), autocommit=True) as administrator:
                administrator.execute(marked.replace("'...'", "'p'").encode())
            return None
        line = re.sub(r"postgresql://(\w+)@db\.example:5432/(\w+)", self._url, line)
        line = re.sub(r"(--application \w+)", rf"\1_{self.mark}", line)
        if line.startswith("export LEDGER_DATABASE_URL="):
            self.url = line.partition("=")[2]
            return None
        result = ledger_on(self.url or "")(*shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}: {result.stderr}"
        return result.stdout.replace(f"_{self.mark}", ""), result.stderr.replace(f"_{self.mark}", "")

    def _url(self, match: re.Match[str]) -> str:
        return f"postgresql://{match[1]}_{self.mark}:p@/{match[2]}_{self.mark}?host={self.server.socket_folder}"


@pytest.fixture
def own_server(server: Server) -> Iterator[OwnServer]:
    """One, whose database and roles are gone at the end."""
    made = OwnServer(server)
    yield made
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as administrator:
        administrator.execute(f"DROP DATABASE ledger_{made.mark} WITH (FORCE)".encode())
        for (role,) in administrator.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE %s", [f"%_{made.mark}"]).fetchall():
            administrator.execute(f"DROP ROLE {role}".encode())


def test_the_set_up_with_two_roles_runs_as_written_and_status_finds_nothing_wrong(own_server: OwnServer) -> None:
    upgrade, status = own_server.run(*SET_UP)
    assert upgrade[0].startswith("created tables") and upgrade[0].endswith("rights of the application: ledger\n")
    assert status[0].endswith("role      ledger\n") and status[1] == ""
    assert own_server.run("ledger status")[0][0].startswith("0 requests")


def test_one_role_becomes_two_as_written(own_server: OwnServer) -> None:
    earlier = ("CREATE ROLE ledger LOGIN PASSWORD '...';", "CREATE DATABASE ledger OWNER ledger;")
    at = "postgresql://ledger@db.example:5432/ledger"
    _, before = own_server.run(*earlier, f"ledger --database {at} database upgrade", f"ledger --database {at} database status")
    assert before[1].startswith("warning: the role ledger owns the tables, or can become their owner: through it closed settlements, ")
    upgrade, status = own_server.run(*SEPARATED)
    assert upgrade[0].endswith("rights of the application: ledger_app\n")
    assert status[0].endswith("role      ledger_app\n") and status[1] == ""


def test_what_the_page_says_that_postgresql_refuses_is_what_it_says(run_ledger: RunLedger, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as application:
        for change in ("UPDATE closing SET carried_out_minor = 0", "ALTER TABLE closing DISABLE TRIGGER ALL"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                application.execute(change.encode())
            assert any(f"`{words}`" in PAGE for words in ("permission denied", "must be owner of table") if words in str(refused.value))
