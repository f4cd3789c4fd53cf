"""A gateway's row whose engine's record is there and was not paired with it: everybody who looks is told where that is."""

import json
import shlex
from typing import Any

from tests.ingest.halves import Halves, engine, gateway
from tests.ingest.sample_rows import MAPPINGS

TOKENS = {"in": 7, "out": 8}


def told(halves: Halves, *command: str) -> list[str]:
    """The lines of the command."""
    lines: list[str] = halves.run_ledger(*command).stdout.splitlines()
    return lines


def unmet(halves: Halves, *command: str) -> Any:
    """What a program reads of it."""
    return json.loads(halves.run_ledger(*command, "--format", "json").stdout)["unmet"]


def waiting_id(halves: Halves, request_id: str) -> str:
    rows = halves.query("SELECT quarantine_id, request_id FROM quarantine")
    [row] = [one for one in rows if one["request_id"] == request_id]
    return str(row["quarantine_id"])


def test_an_engines_record_that_is_hours_away_is_told_with_its_tokens(halves: Halves) -> None:
    halves.load(gateway("g"), gateway("other", 1))
    halves.load(engine("s", "g", at="2026-05-06T13:20:00Z"), engine("t", "other", 1.01))
    row = waiting_id(halves, "g")
    lines = [
        "an engine's record of the same id, s/g, is 3 h 20 min later:",
        "  further apart than 1 hour, so they are not joined; look at the clocks and time zones of both logs",
        f"  if it is the same request: ledger quarantine requeue {row} --set input_tokens=100 --set output_tokens=20 --reason TEXT",
    ]
    for command in (("explain", "g"), ("quarantine", "show", row)):
        assert lines == [line for line in told(halves, *command) if line in lines]
    assert unmet(halves, "explain", "g")["far"]["engine_request"] == "s/g" and unmet(halves, "explain", "other") is None
    assert unmet(halves, "status") == {"far": 1, "refused": 0}
    assert (
        " ".join(next(line for line in told(halves, "status") if "over 1 hour" in line).split())
        == "gateways' rows with an engine's over 1 hour away 1 ledger explain g --account acme (the first) says why"
    )
    repaired = halves.run_ledger(*lines[2].partition("ledger ")[2].split(), "--mapping", MAPPINGS / "gateway-half.yaml")
    assert repaired.exit_code == 0, repaired.output
    assert unmet(halves, "status") == {"far": 0, "refused": 0}


def test_the_nearest_of_several_is_told_and_none_where_one_is_within_the_hour(halves: Halves) -> None:
    halves.load(gateway("g", trace="t"), gateway("twice", 1))
    halves.load(engine("far", "x", trace="t", at="2026-05-08T10:00:00Z"), engine("nearer", "g", at="2026-05-06T08:58:20Z"))
    halves.load(engine("a", "twice", 1.01), engine("b", "twice", 1.02), engine("c", "twice", at="2026-05-06T13:20:00Z"))
    assert unmet(halves, "explain", "g")["far"]["engine_request"] == "nearer/g"
    assert any(line.endswith("is 1 h 1 min earlier:") for line in told(halves, "explain", "g"))
    assert unmet(halves, "explain", "twice") is None  # two within the hour: nobody can tell which


def test_an_engines_record_of_another_account_or_of_a_joined_request_is_none(halves: Halves) -> None:
    halves.load(gateway("g", customer="acme"), gateway("joined", 1))
    halves.load(engine("s", "joined", 1.01), engine("later", "joined", at="2026-05-06T13:20:00Z"))
    assert unmet(halves, "explain", "joined") is None and unmet(halves, "status") == {"far": 0, "refused": 0}


def test_an_engines_record_that_was_refused_is_told_with_the_reason(halves: Halves) -> None:
    halves.load(gateway("g"), gateway("h", 1, header="x", trace="t"))
    halves.load(engine("s", "y", 1.01, trace="t", wait_ms=-500), engine("u", "chatcmpl-g", run_ms="NaN"))
    assert unmet(halves, "status") == {"far": 0, "refused": 2}
    rows = halves.query("SELECT quarantine_id, detail FROM quarantine WHERE reason <> 'usage_missing'")
    refused = {one["detail"].split()[0]: str(one["quarantine_id"]) for one in rows}
    for one, reason, field in (("g", "bad_number", "run_ms"), ("h", "negative_duration", "wait_ms")):
        for command in (("explain", one), ("quarantine", "show", waiting_id(halves, one))):
            first, cure = [line for line in told(halves, *command) if "refused: " in line or "send it in again" in line][-2:]
            assert first.startswith(f"an engine's record of the same id was refused: {reason}: {field} is ")
            assert cure == f"  ledger quarantine show {refused[field]}; repair it and send it in again, and both can be joined"
    sent = halves.run_ledger(
        "quarantine", "requeue", refused["wait_ms"], "--set", "queue_ms=5", "--reason", "clock", "--mapping", MAPPINGS / "engine-half.yaml"
    )  # fmt: skip
    assert sent.exit_code == 0, sent.output
    assert "h counts" in told(halves, "explain", "h")[0]
    halves.run_ledger("quarantine", "dismiss", refused["run_ms"], "--reason", "lost")
    assert unmet(halves, "status") == {"far": 0, "refused": 0} and unmet(halves, "explain", "g") is None


def test_a_refused_row_of_the_gateway_itself_is_no_engines(halves: Halves) -> None:
    halves.load(gateway("g", header="h"), gateway("bad", 1, header="h", ms=-5))
    assert unmet(halves, "explain", "g") is None and unmet(halves, "status")["refused"] == 0


def test_a_header_with_a_prefix_in_both_logs_is_the_same_id(halves: Halves) -> None:
    halves.load(gateway("g", header="chatcmpl-x"))
    halves.load(engine("s", "chatcmpl-x", wait_ms=-500))
    assert unmet(halves, "status") == {"far": 0, "refused": 1}


def test_the_command_that_says_why_can_be_run_as_it_stands(halves: Halves) -> None:
    halves.load(gateway("-rf x", customer="a"), gateway("-rf x", customer="b", header="y"))
    halves.load(engine("s", "-rf x", at="2026-05-06T13:20:00Z"))
    line = next(line for line in told(halves, "status") if "over 1 hour" in line)
    command = line.partition("ledger explain ")[2].removesuffix(" (the first) says why")
    assert command == "--account a -- '-rf x'"
    assert told(halves, "explain", *shlex.split(command))[0] == "a -rf x is no request yet"
