"""Files of drafts and of issued documents: whole or not there, and written again from what is kept at any time."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.store.closings import Closing

AGAIN = "make room or give another folder with --output, and run the command again"


def write_files(folder: Path, contents: Mapping[str, bytes], *, what: str, cure: str = AGAIN) -> list[Path]:
    """Writes the files by name into the folder, which is made if needed. `what` says in an error what is safe all the same."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            _write_whole(folder / name, content)
            written.append(folder / name)
    except OSError as error:
        raise LedgerError(
            f"{what}, but {error.filename or folder} could not be written: {error.strerror}",
            cure=cure,
            exit_code=4,
        ) from error
    return written


def _write_whole(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(content)
        fault_point("settle.before_file")
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def write_issued(folder: Path, closings: Iterable[Closing]) -> list[Path]:
    """Writes the files of issued documents just as they were issued."""
    contents = {file.name: file.content for closing in closings for file in closing.document.files}
    return write_files(folder, contents, what="what is closed is kept")
