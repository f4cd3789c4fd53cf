"""Folders for what a load needs on disk: removed at the end, and those of killed processes when the next one is made.

Takes the beginning of a name and gives a folder. Whoever lives holds a lock on a file in it; the system gives up the lock of the dead.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_LOCK = "lock"


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A new folder where TMPDIR points, for as long as the context lasts."""
    _remove_left(prefix)
    with TemporaryDirectory(prefix=prefix) as name:
        folder = Path(name)
        taken = folder / f"{_LOCK}-taken"
        with taken.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            taken.rename(folder / _LOCK)  # only now, so that nobody meets it without its lock
            yield folder


def _remove_left(prefix: str) -> None:
    """Remove what killed processes of this user have left. A folder without a lock is nobody's to remove."""
    for folder in Path(gettempdir()).glob(f"{prefix}*"):
        try:
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its process lives
            pass
        finally:
            os.close(lock)
