"""`ledger status`: the last loads, each with all that became of its rows."""

import json
from pathlib import Path

from tests.conftest import RunLedger, RunLedgerProcess
from tests.ingest.halves import engine, gateway, written
from tests.ingest.sample_rows import MAPPINGS, row, write_rows
from tests.workflows.base_contract import SECOND, request, write_contract, write_events

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


def unrated(run_ledger: RunLedger) -> list[dict[str, object]]:
    """What the status says that no contract prices."""
    found: list[dict[str, object]] = json.loads(run_ledger("status", "--format", "json").stdout)["unrated"]
    return found


def test_a_model_that_its_contract_does_not_know_is_told_with_the_month_that_it_stops(tmp_path: Path, run_ledger: RunLedger) -> None:
    may, june = "2026-05-06T10:00:00+08:00", "2026-06-01T00:00:00+08:00"  # the latter is still May in UTC
    rows = [request(1, may, model="mystery"), request(2, may), request(3, june, model="mystery"), request(4, june, model="mystery")]
    rows += [request(5, may, model="no-such-model", status=404)]
    run_ledger("contract", "add", write_contract(tmp_path))
    assert run_ledger("ingest", write_events(tmp_path, rows), now="2026-06-02T00:00:00Z").exit_code == 0
    named = {"contract": "acme-bank-llm", "what": "model", "name": "mystery"}
    assert unrated(run_ledger) == [{**named, "period": "2026-05", "requests": 1}, {**named, "period": "2026-06", "requests": 2}]
    first, second = [line for line in run_ledger("status").stdout.splitlines() if "mystery" in line]
    assert first.split("  ledger")[0].split() == ["acme-bank-llm,", "2026-05:", "unknown", "model", "mystery", "1"]
    assert second.rstrip().endswith("ledger settle 2026-06 --dry-run --provisional says what to do")
    told = run_ledger("settle", "2026-06", "--dry-run", "--provisional", now="2026-06-02T00:00:00Z")
    assert "model 'mystery' with 2 requests, such as r000003, r000004" in told.stderr


def test_a_model_that_a_newer_version_knows_is_told_no_more(tmp_path: Path, run_ledger: RunLedger) -> None:
    known = ("    - deepseek-ai/DeepSeek-V4\n", "    - mystery\n")
    rows = [request(n, f"2026-05-{day}T10:00:00+08:00", model="mystery") for n, day in enumerate(("09", "10", "11"))]
    run_ledger("contract", "add", write_contract(tmp_path))
    run_ledger("ingest", write_events(tmp_path, rows), now="2026-06-02T00:00:00Z")
    assert [one["requests"] for one in unrated(run_ledger)] == [3]
    added = run_ledger("contract", "add", write_contract(tmp_path, *SECOND, known, name="second.yaml"))
    assert added.exit_code == 0, added.output
    assert [one["requests"] for one in unrated(run_ledger)] == [1]  # the days of the others wait to be computed again
    run_ledger("settle", "2026-05", "--dry-run", now="2026-06-02T00:00:00Z")
    assert [one["requests"] for one in unrated(run_ledger)] == [1]
