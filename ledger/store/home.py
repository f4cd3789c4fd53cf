"""The folder of a server that ledger keeps itself: which files it has, and how they are written.

All but the data folder's are small and owned by whoever owns the home. Source: specification, section 9; docs/decisions/embedded-server.md.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ledger.errors import DatabaseUnavailable

OWNER, APPLICATION = "ledger_owner", "ledger"  # the roles of the server
SOCKET = ".s.PGSQL.5432"


def home_folder() -> Path:
    """Where the embedded server lives: `LEDGER_HOME`, else the user's data folder."""
    from platformdirs import user_data_dir

    return Path(os.environ.get("LEDGER_HOME") or user_data_dir("ledger")).expanduser().absolute()


def data_folder(home: Path) -> Path:
    """What PostgreSQL itself keeps."""
    return home / "postgres"


def log_file(home: Path) -> Path:
    """The server's log: no rows, no statements in it."""
    return data_folder(home) / "server.log"


def password_file(home: Path, role: str) -> Path:
    """Where the password of one of the two roles stands."""
    return home / {OWNER: "owner-password", APPLICATION: "password"}[role]


def read_password(home: Path, role: str) -> str:
    """The password of the role."""
    file = password_file(home, role)
    try:
        return file.read_text()
    except FileNotFoundError:
        whose = {OWNER: "the owner's password", APPLICATION: "the password"}[role]
        raise DatabaseUnavailable(
            f"{whose} of the embedded database is missing: {file}", cure="restore that file from a backup of the folder"
        ) from None


def socket_folder(home: Path) -> Path | None:
    """The socket's folder of the last start. It is short and apart: a socket's path may have 107 bytes, a home any number."""
    try:
        text = (home / "socket").read_text()
    except FileNotFoundError:
        return None
    return Path(text) if text else None


def forget_socket(home: Path) -> None:
    """Remove the socket of the last start, and what says where it was."""
    if (folder := socket_folder(home)) is not None:
        for file in (folder / SOCKET, folder / f"{SOCKET}.lock"):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()
    (home / "socket").unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads; it appears whole or not at all. Holds the lock."""
    draft = path.with_name(f"{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(draft, owner.st_uid, owner.st_gid)
    draft.replace(path)


def sync_folder(folder: Path) -> None:
    """Make names that were moved within the folder last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_home(home: Path) -> None:
    """Make the folder if it is not there."""
    if not home.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        # As root the server may run as another user, who has to pass through; the files inside are closed one by one.
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
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
