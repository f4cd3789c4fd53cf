"""Requests that were withdrawn and come again with a load, and instants that only a wrong unit can mean."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunLedger
from tests.ingest.halves import gateway, written
from tests.ingest.sample_rows import MAPPINGS, counts, row, totals, write_rows
from tests.workflows.base_contract import request, write_contract, write_events

RowsOf = Callable[[str], list[tuple[Any, ...]]]


def file_report(output: str) -> dict[str, Any]:
    (report,) = json.loads(output)["files"]
    return dict(report)


def test_a_load_says_which_rows_are_of_withdrawn_requests_and_leaves_them_so(tmp_path: Path, run_ledger: RunLedger) -> None:
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row(request_id=one) for one in "abc"]))
    run_ledger("void", "a", "--reason", "load test")
    run_ledger("void", "b", "--reason", "wrong unit")
    changed = write_rows(tmp_path / "changed.csv", [row(request_id="a"), row(request_id="b", tokens=11), row(request_id="c")])
    done = run_ledger("ingest", changed, "--format", "json")
    assert totals(done.stdout) == counts(read=3, duplicate=2, conflict=1)
    assert file_report(done.stdout)["withdrawn"] == {"load test": 1, "wrong unit": 1}
    shown = run_ledger("ingest", changed).stdout
    assert "1 row is of a request withdrawn before, and not billed" in shown
    assert "--revive 'wrong unit' lets them count again" in shown


def test_requests_withdrawn_for_the_reason_named_count_again_as_the_file_says_them_and_others_do_not(
    tmp_path: Path, run_ledger: RunLedger, rows_of: RowsOf
) -> None:
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row(request_id=one) for one in "abcd"]))
    run_ledger("void", "a", "--reason", "load test")
    for one in "bc":
        run_ledger("void", one, "--reason", "wrong unit")
    rows = [row(request_id="a"), row(request_id="b", tokens=11), row(request_id="b", tokens=12), row(request_id="c"), row(request_id="e")]
    changed = write_rows(tmp_path / "changed.csv", rows)
    done = run_ledger("ingest", changed, "--revive", "wrong unit", "--format", "json")
    assert totals(done.stdout) == counts(read=5, new=3, duplicate=1, conflict=1)
    assert (file_report(done.stdout)["revived"], file_report(done.stdout)["withdrawn"]) == (2, {"load test": 1})
    standing = "SELECT request_id, revision, input_tokens FROM event e WHERE NOT EXISTS (SELECT FROM void v WHERE "
    standing += "(v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision)) ORDER BY 1"
    assert rows_of(standing) == [("b", 2, 11), ("c", 2, 10), ("d", 1, 10), ("e", 1, 10)]
    again = run_ledger("ingest", changed, "--revive", "wrong unit", "--format", "json")
    assert totals(again.stdout) == counts(read=5, duplicate=4, conflict=1)
    assert json.loads(run_ledger("status", "--format", "json").stdout)["requests"] == 4


def test_a_revived_request_is_settled_where_the_file_says_it_is(tmp_path: Path, run_ledger: RunLedger) -> None:
    run_ledger("contract", "add", write_contract(tmp_path))
    wrong, right = "2026-04-06T10:00:00+08:00", "2026-05-06T10:00:00+08:00"
    settled = []
    for at in (wrong, right):
        events = write_events(tmp_path, [request(number, at) for number in range(3)])
        assert run_ledger("ingest", events, "--revive", "wrong day", now="2026-06-02T00:00:00Z").exit_code == 0
        run = run_ledger("settle", "2026-05", "--dry-run", "--provisional", "--format", "json", now="2026-06-02T00:00:00Z")
        settled.append(json.loads(run.stdout)[0]["events"]["total"])
        run_ledger("void", "--until", "2026-05-01T00:00:00Z", "--reason", "wrong day", "--yes")
    assert settled == [0, 3]


def test_halves_of_requests_are_not_revived_and_a_check_does_not_try(tmp_path: Path, run_ledger: RunLedger) -> None:
    halves = written(tmp_path / "gateway.jsonl", [gateway("g")])
    refused = run_ledger("ingest", "--mapping", MAPPINGS / "gateway-half.yaml", halves, "--revive", "wrong unit")
    assert (refused.exit_code, "are halves of requests" in refused.stderr) == (1, True)
    assert run_ledger("ingest", "--check", halves, "--revive", "wrong unit").exit_code == 2
    assert run_ledger("ingest", halves, "--revive", " ").exit_code == 2


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_instants_before_2000_or_days_ahead_are_warned_of_with_the_first_line(
    tmp_path: Path, run_ledger: RunLedger, check: list[str]
) -> None:
    at = [row(request_id=one) for one in "abcd"]
    at[1] = at[1].replace("2026-05-06T10:00:00Z", "1999-12-31T23:59:59Z")
    at[2] = at[2].replace("2026-05-06T10:00:00Z", "2026-06-03T00:00:01Z")
    at[3] = at[3].replace("2026-05-06T10:00:00Z", "2026-06-02T23:59:59Z")  # refused, as a clock may be wrong by hours
    told = run_ledger("ingest", *check, write_rows(tmp_path / "rows.csv", at), now="2026-06-02T00:00:00Z")
    assert told.exit_code == 0
    if not check:  # which asks the machine's own clock
        assert "rows.csv:3: received_at is in the year 1999 (1999-12-31T23:59:59Z), and so is 1 row more" in told.stderr
    assert "is the unit of received_at right" in told.stderr


def test_the_first_instant_of_2000_is_not_warned_of(tmp_path: Path, run_ledger: RunLedger) -> None:
    told = run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row().replace("2026-05-06T10:00:00Z", "2000-01-01T00:00:00Z")]))
    assert (told.exit_code, told.stderr) == (0, "")
