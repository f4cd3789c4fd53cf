"""A month settled through the command: what is refused, what stops one contract, and that the same data gives the same bytes."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from sqlalchemy import func, select

from ledger.store.database import Database
from ledger.store.schema import run, settlement
from tests.conftest import RunLedger
from tests.workflows.base_contract import BASE, HEADER, request, write_contract, write_events

CASES = Path(__file__).parents[1] / "golden" / "cases"


def statements(result: Result) -> list[dict[str, object]]:
    loaded: list[dict[str, object]] = json.loads(result.stdout)
    return loaded


@pytest.fixture
def settle(run_ledger: RunLedger, tmp_path: Path) -> Callable[..., Result]:
    def run_settle(period: str, *options: str, **environment: str) -> Result:
        return run_ledger("settle", period, "--format", "json", "--output", tmp_path / "out", *options, **environment)

    return run_settle


@pytest.fixture
def loaded(run_ledger: RunLedger, tmp_path: Path) -> None:
    """One contract and three requests of May 2026."""
    assert run_ledger("contract", "add", write_contract(tmp_path)).exit_code == 0
    rows = [request(n, f"2026-05-0{n + 1}T10:00:00+08:00", latency_us=100_000 * (n + 1)) for n in range(3)]
    assert run_ledger("ingest", write_events(tmp_path, rows)).exit_code == 0


def count(database: Database, table: object = settlement) -> int:
    with database.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0  # type: ignore[arg-type]


def test_a_month_that_is_not_over_is_refused_until_its_grace_has_passed(
    loaded: None, settle: Callable[..., Result], database: Database
) -> None:
    # May ends in Shanghai on 31 May at 16:00 UTC; the grace is 24 hours.
    early = settle("2026-05", now="2026-06-01T15:59:59Z")
    assert early.exit_code == 1
    assert statements(early) == []
    assert "acme-bank-llm is not settled" in early.stderr and "2026-06-01T16:00:00Z" in early.stderr and "--provisional" in early.stderr
    assert count(database) == 0
    assert settle("2026-05", now="2026-06-01T16:00:00Z").exit_code == 0


@pytest.mark.parametrize("month", ["2026-5", "2026-13", "1969-12", "3000-01", "9999-12"])
def test_what_is_no_month_of_a_contract_is_wrong_usage(loaded: None, settle: Callable[..., Result], month: str) -> None:
    result = settle(month)
    assert result.exit_code == 2 and f"{month!r} is not a month" in result.stderr


def test_a_provisional_settlement_says_so(loaded: None, settle: Callable[..., Result], tmp_path: Path) -> None:
    result = settle("2026-05", "--provisional", now="2026-05-20T00:00:00Z")
    assert result.exit_code == 0
    assert [statement["state"] for statement in statements(result)] == ["provisional"]
    assert "PROVISIONAL" in (tmp_path / "out" / "2026-05" / "acme-bank-llm.html").read_text().upper()


def test_while_the_month_runs_only_windows_that_have_ended_are_judged(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    run_ledger("contract", "add", write_contract(tmp_path))
    run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-06T10:00:00+08:00", latency_us=310_000)]))
    during, after = (settle("2026-05", "--provisional", now=f"2026-05-06T{at}+08:00") for at in ("10:59:59", "11:00:00"))
    judged = [(statements(result)[0]["windows"]["judged"], statements(result)[0]["budget"]["used"]) for result in (during, after)]  # type: ignore[index]
    assert judged == [(0, 0), (1, 1)]


def test_settling_again_replaces_the_draft_by_the_same_bytes(
    loaded: None, settle: Callable[..., Result], database: Database, tmp_path: Path
) -> None:
    first = settle("2026-05")
    files = {path: path.read_bytes() for path in (tmp_path / "out" / "2026-05").iterdir()}
    second = settle("2026-05")
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout
    assert files == {path: path.read_bytes() for path in (tmp_path / "out" / "2026-05").iterdir()}
    assert sorted(path.suffix for path in files) == [".csv", ".html", ".json"]
    assert count(database) == 1 and count(database, run) == 2


def test_a_dry_run_keeps_nothing(loaded: None, settle: Callable[..., Result], database: Database, tmp_path: Path) -> None:
    dry = settle("2026-05", "--dry-run")
    assert dry.exit_code == 0 and "nothing kept" in dry.stderr
    assert not (tmp_path / "out").exists() and count(database) == 0 and count(database, run) == 0
    assert dry.stdout == settle("2026-05").stdout


def test_a_model_that_no_contract_claims_stops_its_contract_and_no_other(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    other = write_contract(tmp_path, ("id: acme-bank-llm", "id: other"), ("    - acme-bank\n", "    - other-account\n"), name="other.yaml")
    run_ledger("contract", "add", write_contract(tmp_path), other)
    at = "2026-05-06T10:00:00+08:00"
    rows = [request(1, at, model="mystery"), request(2, at, model="mystery", status=404), request(3, at)]
    rows.append(request(4, at, account="other-account"))
    run_ledger("ingest", write_events(tmp_path, rows))
    result = settle("2026-05")
    assert result.exit_code == 1
    assert [statement["contract"] for statement in statements(result)] == ["other"]
    assert "'mystery' with 2 requests" in result.stderr
    assert result.stderr.split("such as ")[1].splitlines()[1:5] == [
        "  add the model to the contract (models: served_as) in a new version",
        "  or correct the requests: ledger correct REQUEST_ID --set model=NAME --reason WHY",
        "  or withdraw them: ledger void REQUEST_ID --reason WHY",
        "  or all of them: ledger void --account ACCOUNT --from INSTANT --until INSTANT --reason WHY --model mystery",
    ]
    run_ledger("correct", "r000001", "--set", "model=deepseek-v4", "--reason", "an alias")
    span = ("--from", "2026-05-01T00:00:00+08:00", "--until", "2026-06-01T00:00:00+08:00")
    run_ledger("void", "--account", "acme-bank", *span, "--reason", "a test", "--model", "mystery", "--yes")
    assert settle("2026-05").exit_code == 0


def test_a_model_that_does_not_exist_answered_404_is_only_counted(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    run_ledger("contract", "add", write_contract(tmp_path))
    run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-06T10:00:00+08:00", model="mystery", status=404)]))
    result = settle("2026-05")
    assert result.exit_code == 0
    assert statements(result)[0]["events"]["outcomes"]["client_error"] == 1  # type: ignore[index]


def test_a_queue_that_the_contract_does_not_declare_stops_it(run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path) -> None:
    run_ledger("contract", "add", write_contract(tmp_path))
    path = tmp_path / "queued.csv"
    path.write_text(f"{HEADER},queue\n{request(1, '2026-05-06T10:00:00+08:00')},express\n")
    run_ledger("ingest", path)
    result = settle("2026-05")
    assert result.exit_code == 1 and "queue 'express' with 1 request, such as r000001\n" in result.stderr


def test_events_of_no_contract_are_counted_and_settled_once_there_is_one(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    run_ledger("contract", "add", write_contract(tmp_path))
    at = "2026-05-06T10:00:00+08:00"
    run_ledger("ingest", write_events(tmp_path, [request(1, at), request(2, at, account="newcomer")]))
    first = settle("2026-05")
    assert "no contract covers the requests of newcomer (1)" in first.stderr
    before = statements(first)
    assert before[0]["unresolved"]["unassigned"] == 1  # type: ignore[index]
    newcomer = write_contract(
        tmp_path, ("id: acme-bank-llm", "id: newcomer"), ("    - acme-bank\n", "    - newcomer\n"), name="newcomer.yaml"
    )
    run_ledger("contract", "add", newcomer)
    after = statements(settle("2026-05"))
    assert [statement["events"]["total"] for statement in after] == [1, 1]  # type: ignore[index]
    assert after[0]["unresolved"]["unassigned"] == 0  # type: ignore[index]
    assert before[0]["lines"] == after[0]["lines"]


def test_a_void_after_the_month_is_a_change_of_the_contract_that_had_the_account_then(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    """The account moves from one contract to another in the middle of the month."""
    until = next(line for line in BASE.splitlines() if line.strip().startswith("until:"))
    start = next(line for line in BASE.splitlines() if line.strip().startswith("from:"))
    before = write_contract(tmp_path, (until, "  until: 2026-05-15"))
    after = write_contract(tmp_path, ("id: acme-bank-llm", "id: successor"), (start, "  from: 2026-05-15"), name="after.yaml")
    assert run_ledger("contract", "add", before, after).exit_code == 0
    run_ledger("ingest", write_events(tmp_path, [request(n, f"2026-05-{day}T10:00:00+08:00") for n, day in ((1, "14"), (2, "15"))]))
    run_ledger("void", "r000001", "--reason", "test call", now="2026-06-02T00:00:00Z")
    changed = {statement["contract"]: statement["changed_afterwards"]["voids"] for statement in statements(settle("2026-05"))}  # type: ignore[index]
    assert changed == {"acme-bank-llm": 1, "successor": 0}


def test_breakers_that_are_open_for_long_are_warned_of_unless_that_is_accepted(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    codes = yaml.safe_load((CASES.parent / "contracts" / "codes.yaml").read_text())
    (shown,) = [row for part in codes for row in part["codes"] if row["code"] == "breaker_share"]
    run_ledger("contract", "add", write_contract(tmp_path))
    warnings = []
    for example in (shown["good"], shown["bad"]):
        intervals = tmp_path / "intervals.csv"
        intervals.write_text(example)
        assert run_ledger("interval", "add", intervals).exit_code == 0
        warnings.append([line for line in settle("2026-05").stderr.splitlines() if "breaker_share" in line])
    found = "acme-bank-llm: breaker_share: an open circuit breaker for 6.5% of the period; expected at most 5%;"
    assert warnings[0] == [] and [line.startswith(f"warning: {found}") for line in warnings[1]] == [True], warnings
    accepting = ("version: 1", "version: 2\nreplaces: 1\naccept: [{code: breaker_share, reason: maintenance}]")
    run_ledger("contract", "add", write_contract(tmp_path, accepting))
    assert "breaker_share" not in settle("2026-05").stderr


def test_each_month_has_its_own_budget(run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path) -> None:
    run_ledger("contract", "add", write_contract(tmp_path, ("breaches: 3", "breaches: 1")))
    days = ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"]
    run_ledger("ingest", write_events(tmp_path, [request(n, f"{day}T12:00:00+08:00", latency_us=310_000) for n, day in enumerate(days)]))
    for month in ("2026-01", "2026-02"):
        windows = statements(settle(month))[0]["windows"]
        assert [breach["result"] for breach in windows["breaches"]] == ["forgiven", "refunded"]  # type: ignore[index]


def test_minimum_cap_and_tax_are_those_of_the_last_version_of_the_month(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path
) -> None:
    def terms(minimum: str, cap: str, tax: str) -> list[tuple[str, str]]:
        changed = {
            "minimum_commitment: none": f"minimum_commitment: {minimum}",
            "cap: none": f"cap: {cap}",
            "    rate: 6%": f"    rate: {tax}",
        }
        return list(changed.items())

    second = ("version: 1\n", "version: 2\nreplaces: 1\n"), ("from: 2026-01-01", "from: 2026-05-16")
    paths = [
        write_contract(tmp_path, *terms("50", "50%", "6%"), name="first.yaml"),
        write_contract(tmp_path, *second, *terms("100", "10%", "13%"), name="second.yaml"),
    ]
    assert run_ledger("contract", "add", *paths).exit_code == 0
    rows = [request(day, f"2026-05-{day:02}T10:00:00Z", latency_us=900_000) for day in (2, 3, 20)]
    run_ledger("ingest", write_events(tmp_path, rows))
    [settled] = json.loads(settle("2026-05").stdout)
    assert settled["version"] == 2
    found = {name: settled["totals"][name] for name in ("charges", "true_up", "credits", "tax")}
    assert found == {"charges": "1.80", "true_up": "98.20", "credits": "-0.18", "tax": "12.98"}  # 13% of 99.82


@pytest.mark.parametrize(
    ("rate", "requests", "tokens", "amount"),
    [
        ("0.15", 100, 10_000, "0.15"),  # many small requests: one rounding, not one each
        ("0.15", 1, 3, "0.00"),  # too little for a cent is shown, not hidden
        ("2.00", 1_000, 2_000, "4.00"),  # 1,000 requests of 0.004
    ],
)
def test_a_line_is_rounded_once(
    run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path, rate: str, requests: int, tokens: int, amount: str
) -> None:
    rates = next(line for line in BASE.splitlines() if line.strip().startswith("output:"))
    run_ledger("contract", "add", write_contract(tmp_path, (rates, f"      output: {rate}")))
    rows = [f"acme-bank,r{n:06},deepseek-v4,2026-05-06T10:00:00+08:00,0,150000,0,{tokens},200" for n in range(requests)]
    run_ledger("ingest", write_events(tmp_path, rows))
    (line,) = statements(settle("2026-05"))[0]["lines"]  # type: ignore[misc]
    assert (line["quantity"], line["rate"], line["amount"]) == (requests * tokens, rate, amount)


def test_the_percentile_is_the_nearest_rank(run_ledger: RunLedger, settle: Callable[..., Result], tmp_path: Path) -> None:
    run_ledger("contract", "add", write_contract(tmp_path, ("target: 300ms", "target: 105ms")))
    rows = [request(n, "2026-05-06T10:00:00+08:00", latency_us=1_000_000 if n == 0 else 100_000) for n in range(100)]
    run_ledger("ingest", write_events(tmp_path, rows))
    windows = statements(settle("2026-05"))[0]["windows"]
    assert (windows["judged"], windows["breached"]) == (1, 0)  # type: ignore[index]


def test_order_split_and_repetition_of_files_change_no_byte(
    run_ledger: RunLedger, server: object, tmp_path: Path, settle: Callable[..., Result]
) -> None:
    """Files with duplicates, a conflict and a void: loaded as they are, twice, shuffled, and split in ten."""
    chance = random.Random(20260501)
    rows = [
        request(
            n,
            f"2026-05-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:00:00+08:00",
            latency_us=chance.choice([90, 150, 310, 500]) * 1000,
        )
        for n in range(300)
    ]
    conflict = rows[7].replace(",1000000,", ",5,")
    run_ledger("contract", "add", write_contract(tmp_path))

    whole = write_events(tmp_path, [*rows, rows[3], conflict, rows[5]])
    run_ledger("ingest", whole)
    assert run_ledger("void", "r000011", "--account", "acme-bank", "--reason", "test call").exit_code == 0
    expected = settle("2026-05").stdout
    assert json.loads(expected)[0]["unresolved"]["conflicts"] == 1

    run_ledger("ingest", whole)
    assert settle("2026-05").stdout == expected

    shuffled = rows[:]
    chance.shuffle(shuffled)
    for part in range(10):
        run_ledger("ingest", write_events(tmp_path, [*shuffled[part::10], conflict], name=f"part-{part}.csv"))
    assert settle("2026-05").stdout == expected


def test_two_settles_at_once_both_end_well(loaded: None, database_url: str, database: Database, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ledger", "settle", "2026-05", "--format", "json", "--output", str(tmp_path / "both")]
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1] and json.loads(outputs[0])
    assert count(database) == 1 and count(database, run) == 2
