"""Opens a file of records by the mapping that fits it, in as little memory as will do, and says in words why one cannot be read."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from ledger.errors import LedgerError
from ledger.ingest.file_state import FileState, errors_named, no_room
from ledger.ingest.mapping import Mapping
from ledger.ingest.reading.recognition import open_recognised
from ledger.ingest.reading.record_file import RecordFile
from ledger.ingest.reading.scratch import connect_scratch, lacks_memory, lacks_room
from ledger.ingest.reading.scratch_folder import scratch_folder
from ledger.ingest.reading.source_file import SOURCE_LINK, SourceFile

MEMORY_STEPS_MB = (96, 384, 1024)  # 2,048 lines are held at once, and a line may be 2 MB: what long ones need is found by trying
# Any number of observations may wait in quarantine, with their fields: long ones need the room inside DuckDB, short ones outside.
SHORT_OBSERVATIONS_MB, LONG_OBSERVATIONS_MB = 80, 128


@contextmanager
def open_records(path: Path, mappings: tuple[Mapping, ...], *, name: str | None = None) -> Iterator[RecordFile]:
    """Read the file by the one of the mappings whose identifying fields it has. What it needs on disk is removed at the end.

    Raises LedgerError if the file cannot be read, or no mapping (or more than one) fits.
    """
    try:
        path.name.encode()
    except UnicodeEncodeError as error:
        raise LedgerError(f"{path}: the name of the file is not UTF-8", cure="rename it") from error
    with errors_named(path), scratch_folder("ledger-ingest-") as folder:
        state, link = FileState.of(path), folder / SOURCE_LINK
        with path.open("rb"):
            pass
        link.symlink_to(path.resolve())
        try:
            with ThreadPoolExecutor(max_workers=1) as beside:
                digest = beside.submit(_sha256, path)
                opened = _opened(path, folder, mappings)
            with closing(opened.connection):
                state.check()
                yield replace(opened, name=name or path.name, sha256=digest.result(), state=state)
        except FileNotFoundError:
            state.check()
            raise
        except duckdb.Error as error:
            state.check()
            raise _in_words(error, path, link) from error


def _opened(path: Path, folder: Path, mappings: tuple[Mapping, ...]) -> RecordFile:
    """The file, with the first of the steps of memory that reading it does not exhaust."""
    for memory_mb in MEMORY_STEPS_MB:
        with ExitStack() as undo:
            connection = connect_scratch(folder, memory_mb)
            undo.callback(connection.close)
            try:
                opened = open_recognised(SourceFile.of(path, folder, connection), mappings)
            except duckdb.Error as error:
                if lacks_room(error) or not lacks_memory(error) or memory_mb == MEMORY_STEPS_MB[-1]:
                    raise
                continue
            limit_mb = memory_mb
            if memory_mb > MEMORY_STEPS_MB[0]:
                limit_mb = 2 * memory_mb  # what the rules make of long lines comes in addition
            elif opened.mapping.observations:
                limit_mb = SHORT_OBSERVATIONS_MB if opened.has_short_records else LONG_OBSERVATIONS_MB
            connection.execute(f"SET memory_limit = '{limit_mb:d}MB'")
            undo.pop_all()
            return opened
    raise AssertionError("the last step gives the file, or its error")


def _in_words(error: duckdb.Error, path: Path, link: Path) -> LedgerError:
    """What an error of DuckDB means to whoever named the file."""
    if lacks_room(error):
        return no_room(path)
    if lacks_memory(error):
        return LedgerError(
            f"{path}: its lines are too long to be read together, 2,048 of which may have some 100 MB",
            cure="leave out prompts and answers, or split it into files of fewer lines",
        )
    reason = str(error).splitlines()[0].replace(str(link), path.name)
    return LedgerError(f"{path}: {reason}", cure="check that the file is whole")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
