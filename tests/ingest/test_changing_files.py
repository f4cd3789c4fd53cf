"""Files that somebody writes to, cuts off or replaces while they are loaded: what is counted as good is of one content."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import psycopg
import pytest

from ledger.store.database import Database
from ledger.workflows.ingest import IngestOptions, ingest
from tests.ingest.sample_rows import HEADER, row

ROWS = 50


def text(tokens: int) -> str:
    return "\n".join([HEADER, *(row(request_id=f"r{n}", tokens=tokens) for n in range(ROWS))]) + "\n"


def content(folder: Path, ending: str, tokens: int) -> bytes:
    """A file of ROWS rows with so many tokens."""
    if ending == "parquet":
        (folder / "plain.csv").write_text(text(tokens))
        made = folder / "made.parquet"
        duckdb.execute(f"COPY (FROM read_csv('{folder}/plain.csv', all_varchar = true)) TO '{made}' (FORMAT parquet)")
        return made.read_bytes()
    return gzip.compress(text(tokens).encode()) if ending == "csv.gz" else text(tokens).encode()


def append(file: Path, other: bytes) -> None:
    file.write_bytes(file.read_bytes() + other)


def replace(file: Path, other: bytes) -> None:
    new = file.with_suffix(".new")
    new.write_bytes(other)
    os.replace(new, file)


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "written": Path.write_bytes, "appended": append, "replaced": replace, "cut off": lambda file, _: os.truncate(file, 500),
    "removed": lambda file, _: file.unlink(),
}  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_what_is_loaded_of_a_file_that_changes_is_of_its_first_content(
    tmp_path: Path, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("LEDGER_CHUNK_ROWS", "5")
    before, after = (content(tmp_path, ending, tokens) for tokens in (10, 11))
    for what, change in CHANGES.items():
        file = tmp_path / f"rows.{ending}"
        file.write_bytes(before)
        [report] = ingest(
            database,
            [str(file)],
            IngestOptions(),
            author="somebody",
            on_file=lambda _name, _rows, change=change, file=file: change(file, after),
        )
        if ending == "csv.gz":  # read from what was decompressed before
            assert report.error is None and report.summary.read == ROWS, what
        else:
            assert report.error is not None and "the file was " in report.error.message and str(file) in report.error.message, what
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT count(*) FROM event WHERE input_tokens <> 10").fetchone() == (0,), what
            assert connection.execute("SELECT count(*) FROM quarantine").fetchone() == (0,), what
