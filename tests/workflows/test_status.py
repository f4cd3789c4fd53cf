"""`ledger status`: the last loads, each with all that became of its rows."""

import json
from pathlib import Path

from tests.conftest import RunLedger, RunLedgerProcess
from tests.ingest.halves import engine, gateway, written
from tests.ingest.sample_rows import MAPPINGS, row, write_rows

COUNTS = ("file", "read", "new", "duplicate", "refused", "conflict", "skipped", "merged", "joined")


def loads(run_ledger: RunLedger) -> list[tuple[object, ...]]:
    """The last loads, the latest first, by COUNTS."""
    return [tuple(load[name] for name in COUNTS) for load in json.loads(run_ledger("status", "--format", "json").stdout)["loads"]]


def test_a_file_that_is_loaded_again_is_a_load_of_its_own(tmp_path: Path, run_ledger: RunLedger) -> None:
    file = write_rows(tmp_path / "rows.csv", [row(), row(request_id="")])
    for _ in range(2):
        assert run_ledger("ingest", file).exit_code == 0
    assert loads(run_ledger) == [("rows.csv", 2, 0, 1, 1, 0, 0, 0, 0), ("rows.csv", 2, 1, 0, 1, 0, 0, 0, 0)]
    headings, *rows = [line.split() for line in run_ledger("status").stdout.split("Last loads")[1].splitlines()[1:]]
    assert headings == ["File", "Mapping", "At", "By", "Read", "New", "Duplicate", "Refused", "Conflict"]
    assert [cells[4:] for cells in rows] == [["2", "0", "1", "1"], ["2", "1", "1"]]


def test_a_load_that_was_cut_off_and_run_again_is_one(tmp_path: Path, run_ledger: RunLedger, run_ledger_process: RunLedgerProcess) -> None:
    file = write_rows(tmp_path / "rows.csv", [row(request_id=f"r{number}") for number in range(5)])
    chunks = {"LEDGER_CHUNK_ROWS": "2"}
    assert run_ledger_process("ingest", file, env=chunks | {"LEDGER_FAULT": "ingest.after_commit:1"}).returncode < 0
    assert loads(run_ledger) == [("rows.csv", 2, 2, 0, 0, 0, 0, 0, 0)]
    assert run_ledger_process("ingest", file, env=chunks).returncode == 0
    assert loads(run_ledger) == [("rows.csv", 5, 5, 0, 0, 0, 0, 0, 0)]
    assert run_ledger_process("ingest", file, env=chunks).returncode == 0
    assert loads(run_ledger) == [("rows.csv", 5, 0, 5, 0, 0, 0, 0, 0), ("rows.csv", 5, 5, 0, 0, 0, 0, 0, 0)]


def test_halves_are_shown_as_merged_and_the_requests_that_they_completed_as_joined(tmp_path: Path, run_ledger: RunLedger) -> None:
    for role, rows in (("gateway", [gateway("g"), gateway("h")]), ("engine", [engine("s", "g")])):
        file = written(tmp_path / f"{role}.jsonl", rows)
        assert run_ledger("ingest", "--mapping", MAPPINGS / f"{role}-half.yaml", file).exit_code == 0
    assert loads(run_ledger) == [("engine.jsonl", 1, 0, 0, 0, 0, 0, 1, 1), ("gateway.jsonl", 2, 0, 0, 2, 0, 0, 0, 0)]
    headings, first, second = [line.split() for line in run_ledger("status").stdout.split("Last loads")[1].splitlines()[1:]]
    assert (headings[-2:], first[-2:], second[-2:]) == (["Merged", "Joined"], ["1", "1"], ["0", "2"])
