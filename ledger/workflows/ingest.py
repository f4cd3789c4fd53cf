"""Ingest: telemetry files into the ledger, or (with `check`) a look at what would happen.

Takes paths (files, folders, `-` for standard input, the URL of a LiteLLM proxy's database) and gives one report per file.
Source: specification, sections 2 and 9.
"""

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ledger.errors import LedgerError
from ledger.ingest.chunk import Judge
from ledger.ingest.event_rules import Reason
from ledger.ingest.file_state import errors_named, standard_input
from ledger.ingest.given import Asked, Given
from ledger.ingest.loader import Summary, load_file
from ledger.ingest.mapping import Mapping, Role
from ledger.ingest.mapping_file import built_in_mappings, read_mapping
from ledger.ingest.reading.opening import open_records
from ledger.ingest.reading.record_file import RecordFile
from ledger.ingest.reading.scratch_folder import scratch_folder
from ledger.ingest.resubmission import REPAIR_ID
from ledger.ingest.spend_log_table import TABLE, is_url, source_name, write_spend_logs
from ledger.instant import since_1970_us
from ledger.store.database import Database
from ledger.store.events import analyze_events
from ledger.workflows.unknown import Unknown, UnknownNames
from ledger.workflows.upkeep import LoadUpkeep

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".log", ".pb", ".parquet")
ANALYZED_ROWS = 50_000  # new ones after which the plans of a settlement would be bad
SPEND_LOGS = "litellm"  # the mapping of a database's rows
CHECKED_ROWS = 1_000
SHOWN_ROWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What became of one file. `error` is None unless it could not be read; `role` is that of observations, None of whole requests;
    `unmeasured` says that its format has no latency. Of a check only: `sample` are rows as they would be stored, `repeated` how many have
    the id of an earlier one and say the same, or something else, `waiting` how many refused ones would wait for their engine's tokens,
    and `unseen` how many were not looked at."""

    path: str
    mapping: str | None
    name: str = ""  # what its rows are found by in quarantine
    summary: Summary
    role: Role | None = None
    given: dict[Asked, str] = field(default_factory=dict)  # by the command line
    ignored: tuple[str, ...] = ()
    unmeasured: bool = False
    unknown: Unknown = field(default_factory=Unknown)
    error: LedgerError | None = None
    refused_rows: tuple[tuple[int, str, str], ...] = ()
    sample: tuple[dict[str, object], ...] = ()
    repeated: tuple[int, int] = (0, 0)
    waiting: int = 0
    unseen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How to read: a mapping file or a built-in source by name (neither: found by the columns), and what the files do not say.
    Requests that were withdrawn for the reason `revive` count again."""

    mapping: Path | None = None
    source: str | None = None
    given: Given = field(default_factory=Given)
    again: bool = False
    revive: str | None = None
    name: str | None = None  # of the one file, in place of its own


def ingest(
    database: Database,
    paths: list[str],
    options: IngestOptions,
    *,
    author: str,
    on_file: Callable[[str, int], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> list[FileReport]:
    """Load the files. A file that cannot be read is reported and the others are loaded.

    `on_file` hears of a file's name and its records before it is loaded, `on_progress` of records that are done.
    """
    mappings = _mappings(options)
    reports: list[FileReport] = []
    upkeep, names = LoadUpkeep(database), UnknownNames(database)
    for path in _files(paths):
        name = _name(path)
        with _reported(name, reports), _opened(path, mappings, name=options.name) as records:
            if on_file:
                on_file(name, records.records)
            names.take()
            summary = load_file(
                database,
                records,
                author=author,
                upkeep=upkeep.of,
                on_chunk=names.look_at,
                on_progress=on_progress,
                again=options.again,
                revive=options.revive,
                prepare=_import_rules,
            )
            reports.append(
                FileReport(
                    path=name, mapping=records.mapping.name, name=records.name, summary=summary, role=records.mapping.role,
                    given=records.mapping.given.shown(), ignored=records.ignored, unmeasured=records.mapping.is_unmeasured,
                    unknown=names.take(),
                )
            )  # fmt: skip
    with ThreadPoolExecutor(max_workers=1) as beside:
        analyzed = beside.submit(_analyze, database) if sum(report.summary.new for report in reports) >= ANALYZED_ROWS else None
        upkeep.finish()
        if analyzed is not None:
            analyzed.result()
    return reports


def _import_rules() -> None:
    """Import what reads contracts and plans by them, which takes as long as to judge the first rows."""
    import ledger.workflows.plans  # noqa: F401


def _analyze(database: Database) -> None:
    with database.begin() as connection:
        analyze_events(connection)


def check_files(paths: list[str], options: IngestOptions) -> list[FileReport]:
    """Judge the first rows of each file; nothing is written, and duplicates and conflicts are not looked up."""
    mappings = _mappings(options)
    reports: list[FileReport] = []
    now = datetime.now(UTC)
    now_us = since_1970_us(now)
    for path in _files(paths):
        name = _name(path)
        with _reported(name, reports), _opened(path, mappings, name=options.name, limit=CHECKED_ROWS) as records:
            chunk = Judge(records, now_us=now_us).first_chunk(min(records.records, CHECKED_ROWS))
            is_gateway = records.mapping.role is Role.GATEWAY
            summary = Summary(
                read=chunk.read, new=chunk.events, refused=chunk.refused, skipped=chunk.skipped, clamped=chunk.clamped,
                filled=chunk.filled, earliest_us=chunk.earliest_us, latest_us=chunk.latest_us, implausible=chunk.implausible,
            )  # fmt: skip
            reports.append(
                FileReport(
                    path=name, mapping=records.mapping.name, summary=summary, role=records.mapping.role,
                    given=records.mapping.given.shown(), ignored=records.ignored, unmeasured=records.mapping.is_unmeasured,
                    refused_rows=chunk.first_refused(SHOWN_ROWS, waiting=not is_gateway),
                    sample=chunk.first_events(SHOWN_ROWS, waiting=is_gateway), repeated=chunk.repeated(),
                    waiting=chunk.refused[Reason.USAGE_MISSING] if is_gateway else 0, unseen=records.records - chunk.read,
                )
            )  # fmt: skip
            chunk.close()
            records.check_unchanged()
    return reports


def _mappings(options: IngestOptions) -> tuple[Mapping, ...]:
    built_in = built_in_mappings()
    if options.mapping is not None:
        mappings = [read_mapping(options.mapping)]
    elif options.source is None:
        mappings = list(built_in.values())
    elif options.source in built_in:
        mappings = [built_in[options.source]]
    else:
        raise LedgerError(
            f"there is no format {options.source}", cure="`ledger formats` lists them; name a file of your own with --mapping", exit_code=2
        )
    return tuple(mapping.filled(options.given) for mapping in mappings)


def _files(paths: list[str]) -> Iterator[str]:
    """The files named, and those below the folders named, in order of their names; and folders that cannot be read, to be reported."""
    if "" in paths:
        raise LedgerError("an empty path", cure="name a file or a folder; . is this folder", exit_code=2)
    for path in paths:
        if path == "-" or is_url(path) or not os.path.isdir(path):
            yield path
            continue
        unreadable: list[OSError] = []
        walked = [Path(folder, name) for folder, _, names in os.walk(path, onerror=unreadable.append) for name in names]
        yield from map(str, sorted([*filter(_is_wanted, walked), *(Path(error.filename) for error in unreadable)]))


def _is_wanted(file: Path) -> bool:
    """Whether it is telemetry by its name."""
    ending = Path(file.name.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
    return not file.name.startswith(".") and ending in ENDINGS and os.path.isfile(file)


def _name(path: str) -> str:
    """What it is called: the password in a URL is for nobody."""
    return source_name(path) if is_url(path) else path


@contextmanager
def _opened(path: str, mappings: tuple[Mapping, ...], *, name: str | None, limit: int | None = None) -> Iterator[RecordFile]:
    """The records of the file, or of standard input, a pipe or a database, which is put into a temporary file first. `name` is what
    the file is called, if it is not by its own. Of a database only `limit` are fetched."""
    if is_url(path):
        with _fetched(path, mappings, limit) as records:
            yield records
        return
    if path != "-" and not _is_stream(path):
        with open_records(Path(path), mappings, name=name) as records:
            _check_is_telemetry(path, records)
            yield records
        return
    # A stream can be read once only; the copy's name is what messages call it.
    with scratch_folder("ledger-stream-") as folder:
        copy = Path(folder, "stdin" if path == "-" else Path(path).name)
        shown = "stdin" if path == "-" else path
        with errors_named(shown), copy.open("wb") as spooled, standard_input() if path == "-" else open(path, "rb") as stream:
            shutil.copyfileobj(stream, spooled)
        with _opened_copy(copy, mappings, shown=shown, name=name) as records:
            _check_is_telemetry(path, records)
            if name is None and records.mapping.is_identified_by_file:
                raise LedgerError(
                    f"{shown}: the format {records.mapping.name} makes ids of the file's name, and a stream has none",
                    cure="add --name NAME, the name of the file that it comes from, or save it to a file and load that",
                )
            yield records


@contextmanager
def _fetched(url: str, mappings: tuple[Mapping, ...], limit: int | None) -> Iterator[RecordFile]:
    """The spend logs of a LiteLLM proxy, from its database: by the mapping of that name, or the one that the user wrote."""
    mapping = next((one for one in mappings if one.name == SPEND_LOGS), mappings[0])
    with scratch_folder("ledger-stream-") as folder:
        copy = Path(folder, f"{TABLE}.jsonl")
        with copy.open("wb") as spooled:
            write_spend_logs(url, mapping, spooled, limit=limit)
        with _opened_copy(copy, (mapping,), shown=source_name(url)) as records:
            yield replace(records, name=source_name(url))


@contextmanager
def _opened_copy(copy: Path, mappings: tuple[Mapping, ...], *, shown: str, name: str | None = None) -> Iterator[RecordFile]:
    """The records of a temporary file that messages call something else."""
    try:
        with open_records(copy, mappings, name=name) as records:
            yield records
    except LedgerError as error:
        raise LedgerError(error.message.replace(str(copy), shown), cure=error.cure, exit_code=error.exit_code) from error


def _check_is_telemetry(path: str, records: RecordFile) -> None:
    """Texts of a repair table may have an apostrophe in front, and its rows wait in quarantine until they are sent in again."""
    if REPAIR_ID in records.ignored:
        raise LedgerError(
            f"{path}: this is a table of refused rows", cure=f"send it in with: ledger quarantine requeue --from {shlex.quote(path)}"
        )


def _is_stream(path: str) -> bool:
    """Whether it is a pipe, such as a shell's `<(...)`, or a device, such as a terminal; or has only the name of an open file's number."""
    if path.startswith(("/dev/", "/proc/")):
        return True
    try:
        mode = os.stat(path).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
    except OSError:
        return False


@contextmanager
def _reported(path: str, reports: list[FileReport]) -> Iterator[None]:
    """A file that is at fault becomes a report; an environment at fault stops the job."""
    try:
        yield
    except LedgerError as error:
        if error.exit_code != 1:
            raise
        reports.append(FileReport(path=path, mapping=None, summary=Summary(), error=error))
