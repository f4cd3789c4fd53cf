"""`ledger status`: the last loads, each with all that became of its rows."""

import json
from pathlib import Path

import pytest

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
    (line,) = [one for one in run_ledger("status").stdout.splitlines() if "spans to compute again" in one]
    assert line.endswith(" 1   by ledger settle 2026-05; unknown models show then")
    run_ledger("settle", "2026-05", "--dry-run", now="2026-06-02T00:00:00Z")
    assert [one["requests"] for one in unrated(run_ledger)] == [1]


def test_a_month_computed_again_is_no_longer_told_and_other_months_are_by_name(tmp_path: Path, run_ledger: RunLedger) -> None:
    rows = [request(n, f"2026-0{month}-09T10:00:00+08:00") for n, month in enumerate((1, 2, 3, 4, 5))]
    run_ledger("ingest", write_events(tmp_path, rows), now="2026-06-02T00:00:00Z")
    run_ledger("contract", "add", write_contract(tmp_path))

    def months() -> list[list[str]]:
        return [one["months"] for one in json.loads(run_ledger("status", "--format", "json").stdout)["not_fresh"]]

    assert months() == [["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]]
    assert "ledger settle 2026-01, 2026-02, 2026-03, 2026-04 and 1 later month;" in run_ledger("status").stdout
    run_ledger("settle", "2026-03", "--dry-run", now="2026-06-02T00:00:00Z")
    assert months() == [["2026-01", "2026-02", "2026-04", "2026-05"]]


def outdated(run_ledger: RunLedger) -> list[tuple[str, bool]]:
    """Each draft's month, and whether it is older than what it was settled from."""
    return [(one["period"], one["is_outdated"]) for one in json.loads(run_ledger("status", "--format", "json").stdout)["drafts"]]


CHANGES = {
    "a request that was withdrawn": ("void", "r000001", "--reason", "ours"),
    "one that was corrected": ("correct", "r000001", "--set", "output_tokens=1", "--reason", "meter"),
    "one that was loaded": ("ingest", "late.csv"),
    "a row that was repaired": ("quarantine", "requeue", "--refused-for", "usage_missing", "--set", "output_tokens=1"),
    "an interval": ("interval", "add", "intervals.csv"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_draft_is_marked_by_what_changes_its_month_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_ledger: RunLedger, change: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [request(n, f"2026-0{month}-09T10:00:00+08:00") for n, month in enumerate((4, 5))]
    rows.append(request(3, "2026-05-10T10:00:00+08:00").replace(",500,", ",,"))
    write_events(tmp_path, [request(4, "2026-05-11T10:00:00+08:00")], name="late.csv")
    Path("intervals.csv").write_text("kind,node,start,end\ncircuit_breaker,,2026-05-12T00:00:00Z,2026-05-12T01:00:00Z\n")
    run_ledger("contract", "add", write_contract(tmp_path), now="2026-01-01T00:00:00Z")
    run_ledger("ingest", write_events(tmp_path, rows), now="2026-06-02T00:00:00Z")
    for month in ("2026-04", "2026-05"):
        run_ledger("settle", month, now="2026-06-03T00:00:00Z")
    assert outdated(run_ledger) == [("2026-04", False), ("2026-05", False)]
    done = run_ledger(*change, now="2026-06-04T00:00:00Z")
    assert done.exit_code == 0, done.output
    assert "acme-bank-llm 2026-05 has changed since it was settled: ledger settle 2026-05 settles it again\n" in done.stderr
    assert outdated(run_ledger) == [("2026-04", False), ("2026-05", True)]
    run_ledger("settle", "2026-05", "--dry-run", now="2026-06-05T00:00:00Z")  # which computes the days again
    assert outdated(run_ledger) == [("2026-04", False), ("2026-05", True)]
    (line,) = [one for one in run_ledger("status", now="2026-06-05T00:00:00Z").stdout.splitlines() if "to settle again" in one]
    assert line.split()[1] == "2026-05"
    run_ledger("settle", "2026-05", now="2026-06-05T00:00:00Z")
    assert outdated(run_ledger) == [("2026-04", False), ("2026-05", False)]


def test_a_month_that_runs_is_marked_only_when_requests_have_come(tmp_path: Path, run_ledger: RunLedger) -> None:
    run_ledger("contract", "add", write_contract(tmp_path), now="2026-01-01T00:00:00Z")
    now = "2026-05-20T00:30:00Z"
    run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-20T00:29:00Z"), request(2, "2026-05-02T00:00:00Z")]), now=now)
    run_ledger("settle", "2026-05", "--provisional", "--output", tmp_path, now=now)
    assert outdated(run_ledger) == [("2026-05", False)]
    run_ledger("ingest", write_events(tmp_path, [request(3, "2026-05-20T00:29:30Z")]), now=now)
    assert outdated(run_ledger) == [("2026-05", True)]
