"""`ledger budget`: the error budgets of the month that runs, by value, and what a script learns from the exit code."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases import NOW, CaseMissing, read_case
from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, write_contract, write_events


def request(number: int, at: str, latency_us: int = 310_000, *, account: str = "acme-bank", model: str = "deepseek-v4") -> str:
    """A request of 310 ms misses the target and is within the tolerance, one of 400 ms is over it."""
    return f"{account},r{number:06},{model},{at},0,{latency_us},1000,500,200"


@pytest.fixture
def month(run_ledger: RunLedger, tmp_path: Path) -> Callable[..., None]:
    """Contracts, and a month of requests."""

    def prepare(rows: list[str], *contracts: Path) -> None:
        added = run_ledger("contract", "add", *(contracts or (write_contract(tmp_path),)))
        assert added.exit_code == 0, added.stderr
        loaded = run_ledger("ingest", write_events(tmp_path, rows))
        assert loaded.exit_code == 0, loaded.stderr

    return prepare


@pytest.fixture
def budgets(run_ledger: RunLedger) -> Callable[..., list[dict[str, Any]]]:
    """The JSON of the command at an instant, which has to end with the exit code."""

    def run(now: str, *options: str, exit_code: int = 0) -> list[dict[str, Any]]:
        result = run_ledger("budget", "--format", "json", *options, now=now)
        assert result.exit_code == exit_code, result.stderr
        found: list[dict[str, Any]] = json.loads(result.stdout)
        return found

    return run


def test_a_month_that_is_over_is_shown_when_it_is_named(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], run_ledger: RunLedger
) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00", 400_000)])
    after = "2026-07-01T00:00:00Z"
    assert budgets(after)[0]["period"] == "2026-07"
    (told,) = budgets(after, "2026-05", exit_code=3)
    assert (told["period"], told["budget"]) == ("2026-05", {"allowed": 3, "used": 0, "refunded": 1, "alert": True})
    nobody = run_ledger("budget", "2020-01", now=after)
    assert (nobody.exit_code, "no contract is in force in 2020-01" in nobody.stderr) == (1, True)


def test_the_json_says_what_was_used_and_of_what(month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]]) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00"), request(2, "2026-05-06T11:00:00+08:00", 150_000)])
    assert budgets("2026-05-20T00:00:00Z") == [
        {
            "contract": "acme-bank-llm",
            "period": "2026-05",
            "timezone": "Asia/Shanghai",
            "budget": {"allowed": 3, "used": 1, "refunded": 0, "alert": False},
            "windows": {"judged": 2, "breached": 1},
            "unrated": [],
        }
    ]


def test_the_table_says_the_same_and_what_its_columns_mean(month: Callable[..., None], run_ledger: RunLedger) -> None:
    month([request(n, f"2026-05-06T1{n}:00:00+08:00", 400_000 if n == 3 else 310_000) for n in range(4)])
    result = run_ledger("budget", now="2026-05-20T00:00:00Z")
    assert result.exit_code == 3
    assert result.stdout == (
        "Error budgets at 2026-05-20T00:00:00Z, from the windows that have ended\n"
        "\n"
        "  Contract        Customer        Month     Windows   Missed   Forgiven   Left   Refunded\n"
        "  acme-bank-llm   Acme Bank Co.   2026-05         4        4     3 of 3      0          1   ALERT\n"
        "\n"
        "  Missed windows are forgiven while the budget lasts; the others are refunded.\n"
        "  ALERT acme-bank-llm: 1 missed window refunded, after 3 of the 3 misses that the contract forgives\n"
    )


def test_an_alert_is_told_where_it_is_due_and_only_there(month: Callable[..., None], run_ledger: RunLedger, tmp_path: Path) -> None:
    other = write_contract(tmp_path, *OTHER, name="other.yaml")
    rows = [request(n, f"2026-05-06T1{n}:00:00+08:00") for n in range(3)]
    month(rows, write_contract(tmp_path), other)
    quiet = run_ledger("budget", now="2026-05-06T10:30:00+08:00")
    assert (quiet.exit_code, "ALERT" in quiet.stdout) == (0, False)
    due = run_ledger("budget", now="2026-05-20T00:00:00Z")
    assert [line for line in due.stdout.splitlines() if line.startswith("  ALERT")] == [
        "  ALERT acme-bank-llm: 3 of the 3 misses that the contract forgives are used, which is its alert_at"
    ]
    assert due.exit_code == 3 and "ALERT" not in due.stdout.split("  other ")[1].splitlines()[0]


def test_a_window_that_has_not_ended_is_not_judged(month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]]) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00")])
    (during,), (after,) = (budgets(f"2026-05-06T{at}+08:00") for at in ("10:59:59.999999", "11:00:00"))
    assert (during["windows"], during["budget"]["used"]) == ({"judged": 0, "breached": 0}, 0)
    assert (after["windows"], after["budget"]["used"]) == ({"judged": 1, "breached": 1}, 1)


def test_a_verdict_stays_while_the_month_runs_and_is_that_of_the_settlement(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], run_ledger: RunLedger, tmp_path: Path
) -> None:
    """At every instant the budget is what the final verdicts of the windows that have ended come to; some arrive late, and out of order."""
    latencies = [310_000, 150_000, 400_000, 310_000, 310_000, 310_000, 400_000]
    rows = [request(n, f"2026-05-{20 - n:02}T10:00:00+08:00", latency) for n, latency in enumerate(latencies)]
    month(rows)
    seen = {day: budgets(f"2026-05-{day:02}T11:00:00+08:00", exit_code=3)[0] for day in (14, 15, 16, 18, 20)}
    settled = run_ledger("settle", "2026-05", "--dry-run", "--format", "json", now=NOW)
    breaches = json.loads(settled.stdout)[0]["windows"]["breaches"]
    assert [breach["result"] for breach in breaches] == ["refunded", "forgiven", "forgiven", "forgiven", "refunded", "refunded"]
    for day, one in seen.items():
        ended = [breach["result"] for breach in breaches if breach["end"] <= f"2026-05-{day:02}T03:00:00Z"]
        assert one["budget"] == {"allowed": 3, "used": ended.count("forgiven"), "refunded": ended.count("refunded"), "alert": True}
        assert one["windows"]["breached"] == len(ended)


def test_the_last_instant_of_a_month_that_was_worked_out_by_hand_has_its_verdicts(
    run_ledger: RunLedger, budgets: Callable[..., list[dict[str, Any]]]
) -> None:
    try:
        case = read_case("clocks-back-paris")
    except CaseMissing as missing:
        pytest.skip(str(missing))
    expected = case.expected
    run_ledger("contract", "add", *case.contract_files, now=NOW)
    run_ledger("ingest", case.folder / "events.csv", now=NOW)
    now = datetime.fromisoformat(expected["end"]) - timedelta(microseconds=1)
    ended = [one["result"] for one in expected["windows"]["breaches"] if datetime.fromisoformat(one["end"]) <= now]
    (one,) = budgets(now.isoformat(), exit_code=3)
    assert ended and one["period"] == case.period
    assert one["budget"] == {**expected["budget"], "used": ended.count("forgiven"), "refunded": ended.count("refunded")}
    assert budgets(expected["end"])[0]["period"] > case.period


@pytest.mark.parametrize(
    ("latencies", "alert"), [([310_000], False), ([310_000] * 2, True), ([310_000] * 4, True), ([400_000], True), ([150_000], False)]
)
def test_an_alert_is_due_when_little_is_left_or_anything_is_refunded(
    latencies: list[int], alert: bool, month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]]
) -> None:
    month([request(n, f"2026-05-06T1{n}:00:00+08:00", latency) for n, latency in enumerate(latencies)])
    (one,) = budgets("2026-05-20T00:00:00Z", exit_code=3 if alert else 0)
    assert one["budget"]["alert"] is alert


def test_a_model_that_the_contract_does_not_know_is_an_error_and_hides_no_other_contract(
    month: Callable[..., None], run_ledger: RunLedger, budgets: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    at = "2026-05-06T10:00:00+08:00"
    rows = [request(1, at, model="mystery"), request(2, at), request(3, at, account="other-account")]
    month(rows, write_contract(tmp_path), write_contract(tmp_path, *OTHER, name="other.yaml"))
    unknown, other = budgets("2026-05-20T00:00:00Z", exit_code=1)
    assert unknown["unrated"] == [{"what": "model", "name": "mystery", "requests": 1}] and unknown["windows"]["judged"] == 0
    assert (other["contract"], other["budget"]["used"], other["unrated"]) == ("other", 1, [])
    result = run_ledger("budget", now="2026-05-20T00:00:00Z")
    assert result.exit_code == 1
    assert "error: acme-bank-llm cannot be judged: it does not know the model 'mystery' (1 request)" in result.stderr
    unjudged, judged = (line.split() for line in result.stdout.splitlines()[3:5])
    assert unjudged[-3:] == ["cannot", "be", "judged"] and "-" in unjudged and judged[5:9] == ["1", "1", "1", "of"]
    assert budgets("2026-05-20T00:00:00Z", "--contract", "other")[0]["contract"] == "other"


def test_an_alert_comes_before_a_contract_that_cannot_be_judged(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    at = "2026-05-06T10:00:00+08:00"
    rows = [request(1, at, model="mystery"), request(3, at, 400_000, account="other-account")]
    month(rows, write_contract(tmp_path), write_contract(tmp_path, *OTHER, name="other.yaml"))
    assert len(budgets("2026-05-20T00:00:00Z", exit_code=3)) == 2


def test_contracts_whose_local_month_differs_at_that_instant_show_their_own(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    """1 June has begun in Shanghai and not in New York; each shows what it used in its month."""
    new_york = write_contract(tmp_path, *OTHER, ("timezone: Asia/Shanghai", "timezone: America/New_York"), name="other.yaml")
    instants = ("2026-05-31T15:00:00Z", "2026-05-31T16:00:00Z")
    rows = [request(n, at, account=account) for n, at in enumerate(instants) for account in ("acme-bank", "other-account")]
    month(rows, write_contract(tmp_path), new_york)
    shanghai, new_york_now = budgets("2026-05-31T18:00:00Z", exit_code=3)
    assert (shanghai["contract"], shanghai["period"], shanghai["budget"]["used"]) == ("acme-bank-llm", "2026-06", 1)
    assert (new_york_now["contract"], new_york_now["period"], new_york_now["budget"]["used"]) == ("other", "2026-05", 2)


def test_a_contract_that_ended_in_the_running_month_is_shown_until_the_month_ends(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00")], write_contract(tmp_path, ("until: 2027-01-01", "until: 2026-05-15")))
    assert budgets("2026-05-31T15:59:59Z")[0]["budget"]["used"] == 1
    assert budgets("2026-05-31T16:00:00Z", exit_code=1) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [((), "no contract is in force this month"), (("--contract", "nobody"), "no version of contract nobody is in force this month")],
)
def test_without_a_contract_in_force_nothing_is_fine(
    options: tuple[str, ...], message: str, month: Callable[..., None], run_ledger: RunLedger
) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00")])
    at = "2027-02-01T00:00:00Z" if not options else "2026-05-20T00:00:00Z"
    result = run_ledger("budget", *options, now=at)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {message}\n  see: ledger contract list\n"


def test_requests_that_arrive_or_are_withdrawn_change_the_budget(
    month: Callable[..., None], budgets: Callable[..., list[dict[str, Any]]], run_ledger: RunLedger
) -> None:
    month([request(1, "2026-05-06T10:00:00+08:00")])
    assert budgets("2026-05-20T00:00:00Z")[0]["budget"]["used"] == 1
    assert run_ledger("void", "r000001", "--reason", "load test", now="2026-05-20T00:00:00Z").exit_code == 0
    (one,) = budgets("2026-05-20T00:00:00Z")
    assert (one["budget"]["used"], one["windows"]["judged"]) == (0, 0)
