"""The two roles of the server that ledger keeps, and how the server of an earlier ledger, which had one, gets them."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ledger.errors import DatabaseUnavailable
from ledger.store import roles
from ledger.store.database import connect
from ledger.store.embedded import Server, find_server, running_server, stop_server
from ledger.store.home import APPLICATION, OWNER
from ledger.store.migration import migrate, upgrade


@pytest.fixture
def home() -> Iterator[Path]:
    """The home of a server that holds a database, as an earlier ledger left it: with one role, the server's superuser."""
    made = Path(tempfile.mkdtemp(prefix="ledger-home-", dir="/tmp")) / "home"
    made.parent.chmod(0o755)
    server = running_server(made)
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as owner:
        owner.execute("CREATE DATABASE ledger")
    engine = connect(server.owner_url("ledger"))
    upgrade(engine, is_test=True)
    with engine.begin() as connection:
        migrate(connection, "0013")
    engine.dispose()
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as owner:
        owner.execute(f"DROP ROLE {APPLICATION}".encode())
        owner.execute("CREATE ROLE other SUPERUSER LOGIN PASSWORD 'p'")
    with psycopg.connect(
        server.owner_url("postgres").replace(f"{OWNER}:", "other:").replace(owner_password(made), "p"), autocommit=True
    ) as other:
        other.execute(f"ALTER ROLE {OWNER} RENAME TO {APPLICATION}".encode())
    (made / "owner-password").rename(made / "password")
    with psycopg.connect(
        Server(home=made, socket_folder=server.socket_folder, password=(made / "password").read_text()).url("postgres")
    ) as one:
        one.execute("DROP ROLE other")
    yield made
    stop_server(made)
    shutil.rmtree(made.parent)


def owner_password(home: Path) -> str:
    """What stands in the owner's file."""
    return (home / "owner-password").read_text()


def assert_two_roles(server: Server) -> None:
    """The application is a plain role that reads the tables, and the owner, whose password is another, owns them."""
    with psycopg.connect(server.url("ledger")) as application:
        plain = "SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin FROM pg_roles WHERE rolname = current_user"
        assert application.execute(plain).fetchone() == (APPLICATION, False, False, False, True)
        assert application.execute("SELECT count(*), min(version_num) FROM alembic_version").fetchone() == (1, "0013")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute("UPDATE event SET status = 200")
    with psycopg.connect(server.owner_url("ledger")) as owner:
        assert owner.execute("SELECT relowner::regrole::text FROM pg_class WHERE relname = 'event'").fetchone() == (OWNER,)
        known = "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1"
        assert owner.execute(known).fetchall() == [(APPLICATION,), (OWNER,)]
    for name in ("password", "owner-password"):
        assert (server.home / name).stat().st_mode & 0o777 == 0o600
    assert server.password != owner_password(server.home)


def test_the_server_of_an_earlier_ledger_gets_its_two_roles_while_it_runs(home: Path) -> None:
    assert_two_roles(running_server(home))
    assert_two_roles(running_server(home))


def test_asking_how_an_earlier_ledgers_server_is_brings_it_over_too(home: Path) -> None:
    server = find_server(home)
    assert server is not None
    assert_two_roles(server)


def test_an_earlier_ledgers_server_that_is_not_running_gets_them_when_it_starts(home: Path) -> None:
    pid = int((home / "postgres" / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, signal.SIGKILL)
    assert_two_roles(running_server(home))


def test_an_earlier_ledgers_server_can_be_stopped(home: Path) -> None:
    assert stop_server(home)
    assert find_server(home) is None
    assert_two_roles(running_server(home))


class Killed(BaseException):
    """Stands for the end of the process."""


def test_bringing_over_that_is_killed_at_any_step_is_repeated_by_the_next_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = ("sync_folder", "_name_owner", "give_rights", "write_private")

    def killed_before(step: str) -> None:
        def end(*arguments: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(roles, step, end)
            with pytest.raises(Killed):
                running_server(home)

    def killed_before_renaming() -> None:
        connect_as = roles._connect

        def connect_or_end(home: Path, folder: Path, role: str, *rest: str, **named: str) -> psycopg.Connection:
            if role == roles._GO_BETWEEN:
                raise Killed
            return connect_as(home, folder, role, *rest, **named)

        with monkeypatch.context() as patch:
            patch.setattr(roles, "_connect", connect_or_end)
            with pytest.raises(Killed):
                running_server(home)

    for step in steps[:2]:
        killed_before(step)
    killed_before_renaming()
    for step in steps[2:]:
        killed_before(step)
    assert_two_roles(running_server(home))


def test_the_application_works_where_the_owners_password_is_kept_elsewhere_and_what_needs_it_says_so(home: Path) -> None:
    server = running_server(home)
    file = home / "owner-password"
    kept = file.read_text()
    file.unlink()
    assert running_server(home) == server
    for act in (lambda: running_server(home).owner_url("ledger"), lambda: stop_server(home)):
        with pytest.raises(DatabaseUnavailable, match="owner's password of the embedded database is missing") as refused:
            act()
        assert refused.value.cure.startswith("restore that file")
    file.write_text(kept)


def test_a_wrong_password_of_the_owner_is_said_when_the_roles_are_made(home: Path) -> None:
    running_server(home)
    kept = owner_password(home)
    (home / "password").unlink()
    (home / "owner-password").write_text("another")
    with pytest.raises(DatabaseUnavailable, match="refuses its owner") as refused:
        running_server(home)
    assert "owner-password" in refused.value.cure
    (home / "owner-password").write_text(kept)
    assert_two_roles(running_server(home))
