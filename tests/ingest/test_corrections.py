"""What is changed of stored requests: voids, corrections, rows sent in again, intervals. Nothing is deleted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ingest.sample_rows import counts, row, totals, write_rows

Run = Callable[..., Any]
Query = Callable[[str], list[dict[str, Any]]]


def test_a_void_withdraws_once_and_the_row_stays_a_duplicate(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = write_rows(tmp_path / "rows.csv", [row("X", "a"), row("Y", "a")])
    run_ledger("ingest", file)
    ambiguous = run_ledger("void", "a", "--reason", "test")
    assert (ambiguous.exit_code, "several accounts have a request a: X, Y" in ambiguous.stderr) == (2, True)
    assert run_ledger("void", "a", "--account", "X", "--reason", "test", "--author", "ann").stdout == "X a: revision 1 withdrawn\n"
    again = run_ledger("void", "a", "--account", "X", "--reason", "test")
    assert (again.exit_code, again.stdout) == (0, "X a: revision 1 was withdrawn before\n")
    assert run_ledger("void", "b", "--reason", "test").exit_code == 1
    found = query("SELECT account, request_id, revision, kind, reason, author FROM void")
    assert [tuple(void.values()) for void in found] == [("X", "a", 1, "void", "test", "ann")]
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=2, duplicate=2)
    other = write_rows(tmp_path / "other.csv", [row("X", "a", 11)])
    assert totals(run_ledger("ingest", other, "--format", "json").stdout) == counts(read=1, conflict=1)


def test_a_correction_settles_the_row_in_conflict_and_both_revisions_are_duplicates(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = write_rows(tmp_path / "rows.csv", [row("X", "a", 10), row("X", "a", 30)])
    run_ledger("ingest", file)
    refused = run_ledger("correct", "a", "--set", "input_tokens=-1", "--reason", "meter")
    assert (refused.exit_code, "negative_tokens: input_tokens is '-1'" in refused.stderr) == (1, True)
    done = run_ledger("correct", "a", "--set", "input_tokens=30", "--reason", "meter")
    assert done.stdout == "X a: revision 2 added\n  input_tokens: 10 -> 30\n  settles the rows in conflict 1\n"
    assert run_ledger("correct", "a", "--set", "input_tokens=30", "--reason", "meter").exit_code == 1
    assert query("SELECT revision, input_tokens, inference_us FROM event ORDER BY revision") == [
        {"revision": 1, "input_tokens": 10, "inference_us": 90_000},
        {"revision": 2, "input_tokens": 30, "inference_us": 90_000},
    ]
    assert query("SELECT revision, kind FROM void") == [{"revision": 1, "kind": "correct"}]
    assert query("SELECT resolution FROM quarantine") == [{"resolution": "corrected"}]
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=2, duplicate=2)
    done = run_ledger("correct", "a", "--set", "inference_ms=99.5", "--set", "node=n1", "--reason", "meter")
    assert "inference_us: 90000 -> 99500" in done.stdout
    assert "node: none -> n1" in done.stdout


def test_a_correction_of_something_else_keeps_that_the_queue_was_clamped(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = tmp_path / "rows.csv"
    names = "account,request_id,model,received_at,queue_ms,input_tokens,output_tokens"
    file.write_text(f"{names}\nX,a,m,2026-05-06T10:00:00Z,-5,7,8\n")
    run_ledger("ingest", file)
    for setting in ("output_tokens=9", "queue_ms=1"):
        assert run_ledger("correct", "a", "--set", setting, "--reason", "meter").exit_code == 0
    assert [one["clock_clamped"] for one in query("SELECT clock_clamped FROM event ORDER BY revision")] == [True, True, False]


def test_a_misspelt_column_and_a_status_that_is_none_are_told_plainly(run_ledger: Run) -> None:
    misspelt = run_ledger("correct", "a", "--set", "output_token=9", "--reason", "meter")
    assert (misspelt.exit_code, misspelt.stderr) == (2, "error: output_token cannot be set\n  did you mean `output_tokens`?\n")
    none = run_ledger("void", "--status", "99999999999", "--reason", "meter")
    assert none.exit_code == 2 and none.stderr.endswith("'--status': an HTTP status is a small whole number, such as 503\n")
    assert "2147483647" not in run_ledger("void", "--help").stdout


def test_rows_are_listed_dismissed_and_sent_in_again(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = write_rows(tmp_path / "rows.csv", [row(request_id="a"), row(request_id=""), row(request_id="b").replace("2026", "2026-")])
    future = write_rows(tmp_path / "future.csv", [row(request_id="late")])
    run_ledger("ingest", file)
    run_ledger("ingest", future, now="2026-05-06T09:58:59Z")
    listed = json.loads(run_ledger("quarantine", "list", "--format", "json").stdout)
    assert [(entry["file"], entry["line"], entry["reason"]) for entry in listed] == [
        ("rows.csv", 3, "missing_field"), ("rows.csv", 4, "bad_instant"), ("future.csv", 2, "future"),
    ]  # fmt: skip
    first = str(listed[0]["id"])
    assert run_ledger("quarantine", "dismiss", first, "--reason", "ours").stdout == f"{first} dismissed\n"
    assert run_ledger("quarantine", "dismiss", first, "--reason", "ours").stdout == f"{first} was resolved before\n"
    requeued = run_ledger("quarantine", "requeue", now="2026-05-06T10:00:00Z")
    assert requeued.exit_code == 1
    assert f"{listed[2]['id']} accepted" in requeued.stdout
    assert [event["request_id"] for event in query("SELECT request_id FROM event ORDER BY 1")] == ["a", "late"]
    assert [entry["reason"] for entry in json.loads(run_ledger("quarantine", "list", "--format", "json").stdout)] == ["bad_instant"]


def test_rows_sent_in_again_tell_what_no_contract_knows(tmp_path: Path, run_ledger: Run) -> None:
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row("X", "a", -1), row("X", "b", -1)]))
    for more in (["--dry-run"], []):
        sent = run_ledger("quarantine", "requeue", "--account", "X", "--set", "input_tokens=1", *more)
        assert sent.exit_code == 0 and "no contract covers the requests of X (2)\n" in sent.stderr


def test_what_a_row_says_cannot_act_on_the_terminal(tmp_path: Path, run_ledger: Run) -> None:
    hostile = "\x1b]0;owned\x07\u202e"
    file = write_rows(tmp_path / "rows.csv", [row(request_id="a", account=hostile).replace("90000", f"{hostile}9")])
    shown = run_ledger("ingest", file, "--check").output + run_ledger("ingest", file).output
    shown += run_ledger("quarantine", "list").output + run_ledger("quarantine", "requeue").output
    run_ledger("ingest", write_rows(tmp_path / "two.csv", [row(request_id="b"), row(request_id="b", account=hostile)]))
    shown += run_ledger("void", "b", "--reason", "test").output
    assert "\\u001b]0;owned\\u0007\\u202e9" in shown
    assert not any(character in shown for character in hostile if not character.isprintable())


def test_intervals_are_added_all_or_none_and_once(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    header = "kind,node,start,end,model,id\n"
    good = tmp_path / "good.csv"
    good.write_text(
        header + "circuit_breaker,,2026-05-01T00:00:00Z,2026-05-01T08:00:00+08:00,,\n"
        "model_load,n1,2026-05-01T00:00:00Z,2026-05-01T00:00:09.5Z,m,load-1\n"
    )
    assert run_ledger("interval", "add", good).stdout == "2 read, 2 new\n"
    assert run_ledger("interval", "add", good).stdout == "2 read, 0 new\n"
    bad = tmp_path / "bad.csv"
    bad.write_text(
        header + "circuit_breaker,n2,2026-05-01T00:00:00Z,2026-05-01T01:00:00Z,,\nbreaker,,2026-05-01T00:00:00Z,2026-05-01T01:00:00Z,,\n"
        "circuit_breaker,,2026-05-01T02:00:00Z,2026-05-01T01:00:00Z,,\nmodel_load,,2026-05-01T00:00:00Z,2026-05-01T01:00:00Z,m,\n"
        "circuit_breaker,,2026-05-01T00:00:00,2026-05-01T01:00:00Z,,\n"
    )
    refused = run_ledger("interval", "add", bad)
    assert refused.exit_code == 1
    assert [f"bad.csv:{line}:1: error" in refused.stderr for line in range(2, 7)] == [False, True, True, True, True]
    assert query("SELECT count(*) FROM interval") == [{"count": 2}]
