"""`ledger status` as the month-end checklist: what each month waits for, what closed months will adjust, what is to be paid out."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, REQUIRED, request, write_contract, write_events
from tests.workflows.issued_months import CLOSED_AT, close_month, done

MAY, NOW = "2026-05-15T10:00:00+08:00", CLOSED_AT["2026-05"]
GRACE_ENDS = "2026-06-01T16:00:00Z"


def load_months(run_ledger: RunLedger, folder: Path, *changes: tuple[str, str], requests: int = 1) -> None:
    """The base contract with texts replaced and requests from May to July, all of it known before May is settled."""
    done(run_ledger("contract", "add", write_contract(folder, *changes), now="2026-01-01T00:00:00Z"))
    rows = [request(10_000 * at + n, f"{month}-15T10:00:00+08:00") for at, month in enumerate(CLOSED_AT) for n in range(requests)]
    done(run_ledger("ingest", write_events(folder, rows), now="2026-06-01T00:00:00Z"))


def status(run_ledger: RunLedger, now: str = NOW) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(run_ledger("status", "--format", "json", now=now)).stdout)
    return found


def steps(run_ledger: RunLedger, now: str = NOW) -> list[tuple[object, ...]]:
    """Of each month in the checklist its contract, name and step, and what it waits for: an instant, a month, commands."""
    return [
        (one["contract"], one["period"], one["step"], one["until"] or one["after"] or one["document"] or "; ".join(one["commands"]))
        for one in status(run_ledger, now)["month_end"]
    ]


def settle(run_ledger: RunLedger, folder: Path, month: str, *options: str, now: str = NOW) -> None:
    done(run_ledger("settle", month, "--output", folder / "out", *options, now=now))


def changed(run_ledger: RunLedger, now: str) -> list[tuple[str, dict[str, int]]]:
    return [(one["period"], one["causes"]) for one in status(run_ledger, now)["changed_after_close"]]


def test_a_month_is_told_from_its_first_day_to_its_invoice(tmp_path: Path, run_ledger: RunLedger) -> None:
    done(run_ledger("contract", "add", write_contract(tmp_path), now="2026-05-01T00:00:00Z"))
    rows = [request(1, MAY), request(2, "2026-06-01T10:00:00+08:00")]
    done(run_ledger("ingest", write_events(tmp_path, rows), now="2026-05-31T15:00:00Z"))
    may, june = ("acme-bank-llm", "2026-05"), ("acme-bank-llm", "2026-06", "running", "2026-06-30T16:00:00Z")
    assert steps(run_ledger, "2026-05-31T15:59:59Z") == [(*may, "running", "2026-05-31T16:00:00Z")]
    assert steps(run_ledger, "2026-05-31T16:00:00Z") == [(*may, "in grace", GRACE_ENDS), june]
    assert steps(run_ledger, GRACE_ENDS) == [(*may, "to settle", "ledger settle 2026-05"), june]
    settle(run_ledger, tmp_path, "2026-05", "--provisional")
    assert steps(run_ledger) == [(*may, "to settle", "ledger settle 2026-05"), june]
    settle(run_ledger, tmp_path, "2026-05")
    assert steps(run_ledger) == [(*may, "to close", "ledger close 2026-05"), june]
    done(run_ledger("void", "r000001", "--reason", "ours", now=NOW))
    assert steps(run_ledger) == [(*may, "to settle again", "ledger settle 2026-05"), june]
    close_month(run_ledger, tmp_path, "2026-05")
    assert steps(run_ledger) == [(*may, "closed", "INV-2026-000001"), june]
    shown = run_ledger("status", now=NOW).stdout.split("Month end\n")[1].splitlines()
    assert [line.split() for line in shown[1:3]] == [
        ["acme-bank-llm", "2026-05", "closed:", "INV-2026-000001"],
        ["acme-bank-llm", "2026-06", "running", "until", "2026-06-30T16:00:00Z"],
    ]


def test_a_month_before_the_first_request_is_not_told_and_one_without_any_is(tmp_path: Path, run_ledger: RunLedger) -> None:
    done(run_ledger("contract", "add", write_contract(tmp_path)))
    done(run_ledger("contract", "add", write_contract(tmp_path, *OTHER, name="other.yaml")))
    done(run_ledger("ingest", write_events(tmp_path, [request(1, "2026-03-31T23:00:00+08:00")])))
    assert [(contract, month) for contract, month, _, _ in steps(run_ledger)] == [
        *(("acme-bank-llm", month) for month in ("2026-03", "2026-04", "2026-05", "2026-06")),
        *(("other", month) for month in ("2026-05", "2026-06")),
    ]


def test_months_that_wait_for_the_same_step_are_one_row(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path)
    shown = run_ledger("status", now=CLOSED_AT["2026-07"]).stdout.split("Month end")[1].splitlines()[2:4]
    assert [" ".join(row.split()) for row in shown] == [
        "acme-bank-llm 2026-05 to 2026-07 to settle ledger settle 2026-05",
        "acme-bank-llm 2026-08 running until 2026-08-31T16:00:00Z",
    ]


def test_a_month_waits_for_those_that_are_to_approve_it(tmp_path: Path, run_ledger: RunLedger) -> None:
    file = write_contract(tmp_path, REQUIRED)
    done(run_ledger("contract", "add", file))
    (_, _, step, commands), _ = steps(run_ledger)
    assert step == "to approve"
    for command in str(commands).split("; "):
        assert command.startswith("ledger contract approve acme-bank-llm"), commands
        done(run_ledger(*command.removeprefix("ledger ").split()))
    assert steps(run_ledger)[0][2] == "to settle"


def test_a_draft_waits_for_the_month_before_it_once_months_are_closed(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path)
    settle(run_ledger, tmp_path, "2026-07", now=CLOSED_AT["2026-07"])
    assert steps(run_ledger, CLOSED_AT["2026-07"])[2][2:] == ("to close", "ledger close 2026-07")  # any may be the first
    close_month(run_ledger, tmp_path, "2026-05")
    assert [one[1:] for one in steps(run_ledger, CLOSED_AT["2026-07"])][:3] == [
        ("2026-05", "closed", "INV-2026-000001"),
        ("2026-06", "to settle", "ledger settle 2026-06"),
        ("2026-07", "to close", "2026-06"),
    ]
    assert "when 2026-06 is closed" in run_ledger("status", now=CLOSED_AT["2026-07"]).stdout


def test_a_draft_before_a_closed_month_is_to_be_taken_back(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path)
    settle(run_ledger, tmp_path, "2026-05")
    close_month(run_ledger, tmp_path, "2026-06")
    told = steps(run_ledger, CLOSED_AT["2026-06"])[0]
    assert told == ("acme-bank-llm", "2026-05", "passed by", "ledger reopen 2026-05 --contract acme-bank-llm")
    done(run_ledger(*str(told[3]).removeprefix("ledger ").split(), now=CLOSED_AT["2026-06"]))
    assert steps(run_ledger, CLOSED_AT["2026-06"])[0][1:3] == ("2026-06", "closed")


def test_what_came_for_a_closed_month_is_told_until_it_is_adjusted_and_then_what_came_since(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path, requests=3)
    close_month(run_ledger, tmp_path, "2026-05")
    assert changed(run_ledger, NOW) == []
    done(run_ledger("ingest", write_events(tmp_path, [request(70 + n, MAY) for n in range(4)], "late.csv"), now=NOW))
    (ids := tmp_path / "ids.txt").write_text("r000001\nr000002\n")
    done(run_ledger("void", "--ids", ids, "--reason", "ours", "--yes", now=NOW))
    assert changed(run_ledger, NOW) == [("2026-05", {"late": 4, "void": 2})]
    shown = run_ledger("status", now=NOW).stdout.split("Changed since")[1].splitlines()
    assert shown[2].split() == ["acme-bank-llm", "2026-05", "INV-2026-000001", "4", "late,", "2", "withdrawn"]
    close_month(run_ledger, tmp_path, "2026-06")
    assert changed(run_ledger, CLOSED_AT["2026-06"]) == []
    done(run_ledger("ingest", write_events(tmp_path, [request(90, MAY)], "later.csv"), now=CLOSED_AT["2026-06"]))
    assert changed(run_ledger, CLOSED_AT["2026-06"]) == [("2026-05", {"late": 1})]


def test_a_closed_month_is_told_no_more_when_its_time_for_corrections_has_passed(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path, ("within: 365d", "within: 60d"))
    close_month(run_ledger, tmp_path, "2026-05")
    done(run_ledger("void", "r000000", "--reason", "ours", now=NOW))
    assert changed(run_ledger, "2026-07-30T15:59:59Z") == [("2026-05", {"void": 1})]
    assert changed(run_ledger, "2026-07-30T16:00:00Z") == []


def test_a_version_is_a_change_of_the_closed_months_in_which_it_is_in_force(tmp_path: Path, run_ledger: RunLedger) -> None:
    load_months(run_ledger, tmp_path)
    close_month(run_ledger, tmp_path, "2026-05")
    for number, month in ((2, "2026-06"), (3, "2026-05")):
        text = ("version: 1\n", f"version: {number}\nreplaces: {number - 1}\n"), ("from: 2026-01-01", f"from: {month}-10")
        added = run_ledger("contract", "add", write_contract(tmp_path, *text, name=f"{number}.yaml"), now=NOW)
        if number == 2:
            assert (added.exit_code, changed(run_ledger, NOW)) == (0, []), added.stderr
    assert added.exit_code == 0, added.stderr
    assert changed(run_ledger, NOW) == [("2026-05", {"contract": 1})]


@pytest.mark.parametrize("ends_on", ("2026-06-01", "2026-07-15"))
def test_the_balance_of_a_contract_is_to_be_paid_out_when_it_has_ended_and_its_last_month_is_closed(
    tmp_path: Path, run_ledger: RunLedger, ends_on: str
) -> None:
    load_months(run_ledger, tmp_path, ("until: 2027-01-01", f"until: {ends_on}"), requests=3)
    close_month(run_ledger, tmp_path, "2026-05")
    of_line = ("--line", "1", "--amount", "1.00", "--reason", "goodwill", "--yes", "--output", tmp_path / "out")
    done(run_ledger("credit-note", "create", "INV-2026-000001", *of_line, now=NOW))
    paid = status(run_ledger, NOW)["payouts"]
    assert [one["contract"] for one in paid] == (["acme-bank-llm"] if ends_on == "2026-06-01" else [])
    if paid:
        assert paid[0]["amount_minor"] == 106  # with its tax of 6 %
        shown = run_ledger("status", now=NOW).stdout.split("To be paid out")[1].splitlines()
        assert shown[2].split() == ["acme-bank-llm", "CNY", "1.06"]
