"""Intervals from samples to a settlement: found, written, recorded, listed, and what they exempt."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import Result

from ledger.ingest import prometheus_source
from tests.ingest.prometheus_server import serving

RunLedger = Callable[..., Result]
GOLDEN = Path(__file__).parents[1] / "golden"
MEMORY = GOLDEN / "prometheus" / "memory.json"
FOUND = [("n1", "2026-05-06T04:01:00Z", "2026-05-06T04:10:00Z"), ("n3", "2026-05-06T04:00:00Z", "2026-05-06T04:07:00Z")]
SPAN = ("--from", "2026-05-06T04:00:00Z", "--until", "2026-05-06T06:30:00Z")


def detected(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert [(one["node"], one["start"], one["end"]) for one in found["intervals"]] == FOUND
    return found


def test_breakers_are_found_without_a_database_and_written_for_interval_add(run_ledger: RunLedger, tmp_path: Path) -> None:
    nowhere = "postgresql://nobody@localhost:1/none"
    output = tmp_path / "breakers.csv"
    found = detected(run_ledger("interval", "detect", MEMORY, "--format", "json", "--output", output, database=nowhere))
    assert {name: found[name] for name in ("nodes", "gpus", "samples", "left_out", "gaps", "added")} == {
        "nodes": 4, "gpus": 5, "samples": 52, "left_out": 1, "gaps": 1, "added": None,
    }  # fmt: skip
    text = run_ledger("interval", "detect", MEMORY, database=nowhere).stdout
    assert "2 intervals of 16m in all, in 52 samples of 5 GPUs on 4 nodes\n1 gap between samples" in text
    with open(output) as file:
        assert list(csv.reader(file))[:2] == [["kind", "node", "start", "end"], ["circuit_breaker", *FOUND[0]]]
    for _ in range(2):  # a dry run leaves nothing behind
        assert run_ledger("interval", "add", output, "--dry-run").stdout == "2 read, 2 would be new\n"
        assert run_ledger("interval", "detect", MEMORY, "--add", "--dry-run").stdout.splitlines()[-1].startswith("2 would be recorded;")
    assert run_ledger("interval", "list").stdout == ""
    assert run_ledger("interval", "add", output).stdout == "2 read, 2 new\n"
    assert run_ledger("interval", "add", output).stdout == "2 read, 0 new\n"
    assert run_ledger("interval", "detect", MEMORY, "--add").stdout.endswith("0 recorded; what was recorded before is left out\n")
    assert run_ledger("interval", "detect", MEMORY, "--dry-run").exit_code == 2


def test_detecting_again_over_longer_samples_adds_the_longer_span_and_nothing_that_is_known(run_ledger: RunLedger) -> None:
    for options in (["--until", "2026-05-06T04:08:00Z"], [], ["--from", "2026-05-06T04:03:00Z"]):
        done = run_ledger("interval", "detect", MEMORY, "--add", "--author", "ann", *options)
        assert done.exit_code == 0, done.stderr
    listed = json.loads(run_ledger("interval", "list", "--node", "n1", "--format", "json").stdout)
    assert sorted((one["start"], one["end"]) for one in listed) == [("2026-05-06T04:01:00Z", "2026-05-06T04:07:00Z"), FOUND[0][1:]]
    assert {one["author"] for one in listed} == {"ann"}


def test_intervals_are_listed_by_kind_node_and_span(run_ledger: RunLedger, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text(
        "kind,node,start,end,model,id\ncircuit_breaker,n1,2026-05-06T04:00:00Z,2026-05-06T05:00:00Z,,one\n"
        "circuit_breaker,,2026-05-06T05:00:00Z,2026-05-06T06:00:00Z,,any\nmodel_load,n2,2026-05-06T04:00:00Z,2026-05-06T04:01:00Z,m,load\n"
    )
    assert run_ledger("interval", "list").stdout == ""
    run_ledger("interval", "add", file, "--author", "ann")

    def listed(*options: str) -> list[str]:
        return [one["id"] for one in json.loads(run_ledger("interval", "list", "--format", "json", *options).stdout)]

    assert listed() == ["load", "one", "any"]
    assert listed("--kind", "model_load") == ["load"]
    assert listed("--node", "n1") == ["one", "any"]
    assert listed("--from", "2026-05-06T05:00:00Z") == ["any"]
    assert listed("--until", "2026-05-06T05:00:00Z") == ["load", "one"]
    text = run_ledger("interval", "list", "--kind", "model_load").stdout
    assert [" ".join(line.split()) for line in text.splitlines()][1:] == [
        "load model_load n2 m 2026-05-06T04:00:00Z 2026-05-06T04:01:00Z 1m ann"
    ]
    wrong = run_ledger("interval", "list", "--from", "2026-05-06")
    assert (wrong.exit_code, "an instant with its offset" in wrong.stderr) == (2, True)


def test_each_fault_of_a_file_says_its_own_cure_once(run_ledger: RunLedger, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("kind,node,start,end\nbreaker,,2026-05-01T00:00:00Z,2026-05-01T01:00:00Z\ncircuit_breaker,,2026-05-01,2026-05-02\n")
    refused = run_ledger("interval", "add", file)
    first, second, last = refused.stderr.splitlines()
    assert "correct" not in refused.stderr and last == "  nothing was added"
    assert first.endswith("found the kind 'breaker'; expected circuit_breaker or model_load; write one of them")
    assert second.endswith("such as 2026-05-03T10:00:00+08:00; say when that day begins, for example 2026-05-01T00:00:00+08:00")
    assert [line.count("error") for line in (first, second)] == [1, 1]


def test_an_interval_without_length_is_told_and_one_that_has_not_ended_or_ends_before_it_begins_is_refused(
    run_ledger: RunLedger, tmp_path: Path
) -> None:
    file = tmp_path / "some.csv"

    def added(start: str, end: str) -> Result:
        file.write_text(f"kind,node,start,end\ncircuit_breaker,n1,{start},{end}\n")
        return run_ledger("interval", "add", file, now="2026-05-06T05:00:00Z")

    empty = added("2026-05-06T04:00:00Z", "2026-05-06T04:00:00Z")
    assert (empty.exit_code, empty.stdout) == (0, "1 read, 1 new\n")
    assert empty.stderr == f"warning: {file}:2: an interval without length: no request is received in it\n"
    ahead = added("2026-05-06T04:00:00Z", "2026-05-06T05:01:00.000001Z")
    assert ahead.exit_code == 1
    assert ahead.stderr.startswith(f"{file}:2:1: error interval: found an end in the future: 2026-05-06T05:01:00.000001Z; ")
    assert added("2026-05-06T04:00:00Z", "2026-05-06T05:01:00Z").stdout == "1 read, 1 new\n"
    backwards = added("2026-05-06T04:00:00Z", "2026-05-06T03:59:59Z")
    assert backwards.stderr.startswith(f"{file}:2:1: error interval: found an end before the start: ")


def test_a_request_that_waits_while_its_model_loads_is_exempt_as_a_cold_start(run_ledger: RunLedger, tmp_path: Path) -> None:
    for arguments in (
        ("contract", "add", GOLDEN / "cases" / "cold-starts" / "contract.yaml"), ("ingest", GOLDEN / "intervals" / "events.csv"),
        ("interval", "add", GOLDEN / "intervals" / "loads.csv"),
    ):  # fmt: skip
        assert run_ledger(*arguments).exit_code == 0
    settled = run_ledger("settle", "2026-05", "--format", "json", "--output", tmp_path, now="2026-07-01T00:00:00Z")
    [acme] = json.loads(settled.stdout)
    assert acme["events"]["exempt"] == {"circuit_breaker": 0, "async": 0, "cold_start": 2}
    [exempt] = [line for line in acme["lines"] if (line["band"], line["token"]) == ("cold_start", "input")]
    assert exempt["quantity"] == 11  # a and b


def test_a_server_is_asked_for_raw_samples_by_the_hour_or_for_a_query_at_every_step(run_ledger: RunLedger) -> None:
    with serving(MEMORY) as server:
        url = f"http://ann:s3cret%21@{server.host}/moved"
        found = detected(run_ledger("interval", "detect", "--prometheus", url, *SPAN, "--format", "json"))
        assert found["samples"] == 52
        raw = [path for path in server.asked if not path.startswith("/moved")]
        assert [parse_qs(urlsplit(path).query)["time"][0][-11:] for path in raw] == ["3600.000000", "7200.000000", "9000.000000"]
        assert set(server.authorizations) == {"Basic YW5uOnMzY3JldCE="}
        server.asked.clear()
        detected(run_ledger("interval", "detect", f"http://{server.host}/", *SPAN, "--step", "1m", "--format", "json"))
        assert [urlsplit(path).path for path in server.asked] == ["/api/v1/query_range"]


@pytest.mark.parametrize(
    ("path", "exit_code", "why"),
    [
        ("elsewhere", 1, "redirects to another server"),
        ("file", 1, "is not allowed"), ("refused", 1, "422 too many \\u001b[2J points"),
        ("large", 1, "an answer of more than"), ("cut", 1, "no JSON"), ("warning", 1, "may not be whole: ['one store is down']"),
        ("silent", 4, "nothing came for 0.2 s"), ("slow", 4, "no whole answer in 0.3 s"),
    ],
)  # fmt: skip
def test_a_hostile_server_is_told_off_in_a_line_and_no_password_is_shown(
    path: str, exit_code: int, why: str, run_ledger: RunLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_source, "MOST_BYTES", 1000)
    monkeypatch.setattr(prometheus_source, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(prometheus_source, "LONGEST_SECONDS", 0.3)
    with serving(MEMORY) as server:
        result = run_ledger("interval", "detect", "--prometheus", f"http://ann:s3cret@{server.host}/{path}", *SPAN)
    assert (result.exit_code, why in result.stderr) == (exit_code, True), result.stderr
    assert "s3cret" not in result.output and "ann" not in result.output.replace("cannot", "")


@pytest.mark.parametrize(
    ("url", "exit_code", "why"),
    [
        ("ftp://ann:s3cret@host/", 2, "not understood"), ("file:///etc/passwd", 2, "not understood"),
        ("http://ann:s3cret@", 2, "not understood"),
        ("http://ann:s3cret@host:99999", 2, "not understood"), ("http://[ann:s3cret@x", 2, "not understood"),
        ("http://ann:s3cret@127.0.0.1:1", 4, "http://127.0.0.1:1: Connection refused"),
        ("ann:s3cret@host:9090", 2, "not understood"), ("//ann:s3cret@host", 2, "not understood"),
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_used_is_not_shown_with_its_password(url: str, exit_code: int, why: str, run_ledger: RunLedger) -> None:
    result = run_ledger("interval", "detect", "--prometheus", url, *SPAN)
    assert (result.exit_code, why in result.stderr, "s3cret" in result.output) == (exit_code, True, False), result.stderr
    assert run_ledger("interval", "detect", "--prometheus", url).exit_code == 2
