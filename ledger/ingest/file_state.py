"""Whether a file is still the one that was opened, and what keeps it from being read. It is read more than once: its hash, its lines, then
chunk by chunk.

Half of one content and half of another would be counted as good, under the hash of neither. Source: specification, section 2.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ledger.errors import LedgerError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """What a change of the file's content changes: its identity, size, and when it was written."""

    path: Path
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """How it is now. Raises OSError if it cannot be looked at."""
        found = os.stat(path)
        return cls(path=path, stamp=(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))

    def check(self) -> None:
        """Raises LedgerError if it is another one by now."""
        try:
            unchanged = FileState.of(self.path) == self
        except OSError:
            unchanged = False
        if not unchanged:
            raise LedgerError(
                f"{self.path}: the file was changed while it was loaded",
                cure="load it again when nobody writes to it any more, or a copy of it; what was loaded until then stays",
            )


@contextmanager
def errors_named(path: str | Path) -> Iterator[None]:
    """What the system says of reading the file, and of the room that it takes, as a LedgerError that names it."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise no_room(path) from error
        if error.errno == errno.EPIPE:  # whoever read the output has seen enough
            raise
        raise LedgerError(f"{path}: {error.strerror or error}", cure="name a file that can be read") from error


def no_room(path: str | Path) -> LedgerError:
    """The disk on which temporary files stand is full, or a limit of this user or process is reached."""
    return LedgerError(
        f"{path}: no room for what reading it takes", cure="make room where TMPDIR points, or name another folder in it", exit_code=4
    )


def says_no_room(message: str) -> bool:
    """Whether this is what a library says of it."""
    return any(os.strerror(number) in message for number in _NO_ROOM)


def standard_input() -> AbstractContextManager[IO[bytes]]:
    """To be read, and not closed. Raises LedgerError if there is none."""
    if sys.stdin is None:
        raise LedgerError("stdin: it is closed", cure="send a file into it, or name one")
    return nullcontext(sys.stdin.buffer)
