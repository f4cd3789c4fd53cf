"""A month replayed: what `settle` gives of a stored contract, what another would have cost, what is refused, and nothing written."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ledger.contract.reader import read_contract
from ledger.documents.settlement_json import statement_to_json
from ledger.store.database import Database
from ledger.store.schema import metadata
from ledger.workflows.replay import Candidate, replay_month
from tests.conftest import RunLedger
from tests.workflows.base_contract import request, write_contract, write_events

CASES = Path(__file__).parents[1] / "golden" / "cases"
MONTH = "2026-05"
QUIET = Path(__file__).parents[1] / "golden" / "contracts" / "good" / "quiet.yaml"  # no warning


@pytest.fixture
def loaded(run_ledger: RunLedger, tmp_path: Path) -> Path:
    """The base contract, stored, and four requests of May 2026 at 100, 200, 300 and 350 ms."""
    contract = write_contract(tmp_path)
    assert run_ledger("contract", "add", contract).exit_code == 0
    rows = [request(n, f"2026-05-0{n}T10:00:00+08:00", latency_us=ms * 1000) for n, ms in enumerate((100, 200, 300, 350), start=1)]
    assert run_ledger("ingest", write_events(tmp_path, rows)).exit_code == 0
    return contract


@pytest.mark.parametrize(
    "case", ["cold-starts", "pools-and-shared-cold-start", "outcomes-and-breaker", "variants-and-queues", "cap-reached"]
)
def test_a_stored_contract_is_replayed_to_what_settle_gives(run_ledger: RunLedger, database: Database, case: str) -> None:
    folder = CASES / case
    assert run_ledger("contract", "add", folder / "contract.yaml").exit_code == 0
    if (folder / "intervals.csv").exists():
        assert run_ledger("interval", "add", folder / "intervals.csv").exit_code == 0
    run_ledger("ingest", folder / "events.csv")
    contract = read_contract((folder / "contract.yaml").read_bytes(), "contract.yaml").contract
    assert contract is not None
    other = contract.model_copy(update={"refund": contract.refund.model_copy(update={"valued_at": "base_rate"})})
    [settled] = json.loads(run_ledger("settle", MONTH, "--dry-run", "--format", "json").stdout)
    candidates = [Candidate(name="a", contract=other), Candidate(name="b", contract=contract)]
    replayed = statement_to_json(replay_month(database, MONTH, candidates)[1])
    for key in ("events", "lines", "windows", "budget", "totals"):
        assert replayed[key] == settled[key], key


def test_a_version_that_lacks_an_approval_stands_for_the_one_that_it_replaces_in_a_settlement_and_a_replay_alike(
    run_ledger: RunLedger, database: Database, loaded: Path, tmp_path: Path
) -> None:
    numbered = ("version: 1\n", "version: 2\nreplaces: 1\nrequire_approvals: [legal]\n")
    second = write_contract(tmp_path, numbered, ("output: 8.00", "output: 80.00"), name="second.yaml")
    assert run_ledger("contract", "add", second).exit_code == 0
    refused = run_ledger("settle", MONTH, "--format", "json")
    assert (refused.exit_code, json.loads(refused.stdout)) == (1, []) and "version 2 that of legal" in refused.stderr
    contracts = [read_contract(path.read_bytes(), path.name).contract for path in (loaded, second)]
    candidates = [Candidate(name=name, contract=one) for name, one in zip("ab", contracts, strict=True) if one is not None]
    first, replayed = map(statement_to_json, replay_month(database, MONTH, candidates))
    [settled] = json.loads(run_ledger("settle", MONTH, "--dry-run", "--format", "json").stdout)
    assert settled["version"] == 2 and replayed["totals"] == settled["totals"] != first["totals"]


def test_a_contract_that_was_never_added_is_told_in_money(run_ledger: RunLedger, loaded: Path, tmp_path: Path) -> None:
    other = write_contract(tmp_path, ("multiplier: 30%", "multiplier: 50%"), name="other.yaml")
    result = run_ledger("contract", "diff", loaded, other, "--replay", MONTH, "--format", "json")
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.stdout)["replay"]
    slow = [line for line in told["difference"]["lines"] if line["kind"] == "usage"]
    assert [(line["band"], line["token"], line["quantity"]) for line in slow] == [
        ("slow", "input", {"before": 1_000_000, "after": 1_000_000})
    ]
    [amount] = [line["amount"] for line in slow]
    assert amount == {"before": "0.60", "after": "1.00", "difference": "0.40"}
    assert told["difference"]["totals"]["charges"] == "0.40"
    assert (told["old"]["state"], told["new"]["events"]["total"]) == ("replayed", 4)
    text = run_ledger("contract", "diff", loaded, other, "--replay", MONTH).stdout
    assert "What the requests of 2026-05 would have cost, in CNY" in text and "+0.40" in text


def test_a_window_with_another_result_is_named(run_ledger: RunLedger, loaded: Path, tmp_path: Path) -> None:
    other = write_contract(tmp_path, ("breaches: 3", "breaches: 0"), name="other.yaml")
    told = json.loads(run_ledger("contract", "diff", loaded, other, "--replay", MONTH, "--format", "json").stdout)["replay"]
    assert told["difference"]["windows"] == [
        {
            "start": "2026-05-04T02:00:00Z",
            "end": "2026-05-04T03:00:00Z",
            "scope": "deepseek-v4",
            "pooled": False,
            "before": "forgiven",
            "after": "refunded",
        }
    ]
    text = run_ledger("contract", "diff", loaded, other, "--replay", MONTH, "--language", "zh").stdout
    assert "2026-05-04 10:00–11:00   deepseek-v4   宽免     返还" in text


def test_nothing_is_written(run_ledger: RunLedger, loaded: Path, database: Database) -> None:
    def contents() -> dict[str, list[Any]]:
        with database.engine.connect() as connection:
            return {name: list(connection.execute(select(table))) for name, table in metadata.tables.items()}

    before = contents()
    assert run_ledger("contract", "diff", loaded, loaded, "--replay", MONTH).exit_code == 0
    assert contents() == before and len(before["event"]) == 4


def test_a_contract_is_taken_as_if_in_force_for_the_whole_month_and_the_output_says_so(
    run_ledger: RunLedger, loaded: Path, tmp_path: Path
) -> None:
    later = write_contract(tmp_path, ("from: 2026-01-01", "from: 2026-06-01"), name="later.yaml")
    result = run_ledger("contract", "diff", loaded, later, "--replay", MONTH)
    assert f"! {later} applies from 2026-06-01" in result.stdout and "as if it applied in all of 2026-05" in result.stdout
    assert "Lines that differ\n  Lines that are equal: " in result.stdout and "Windows with another result" not in result.stdout


@pytest.mark.parametrize(
    ("change", "month", "said"),
    [
        ((), "2026-07", "there are no requests of acme-bank in 2026-07"),
        (("currency: CNY", "currency: USD"), MONTH, "their amounts cannot be compared"),
        (("    - acme-bank\n", "    - other\n"), MONTH, "they have no account in common"),
        (
            ("    - deepseek-v4\n", "    - another\n"),
            MONTH,
            "the contract does not know what was used in 2026-05: model 'deepseek-v4' with 4",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_replayed_is_refused_with_the_reason(
    run_ledger: RunLedger, loaded: Path, tmp_path: Path, change: tuple[str, str], month: str, said: str
) -> None:
    other = write_contract(tmp_path, *([change] if change else []), name="other.yaml")
    result = run_ledger("contract", "diff", loaded, other, "--replay", month)
    assert (result.exit_code, result.stdout) == (1, "") and said in result.stderr


def test_a_warning_is_followed_by_what_the_month_would_have_cost_either_way(run_ledger: RunLedger, loaded: Path, tmp_path: Path) -> None:
    strict = write_contract(tmp_path, ("breaches: 3", "breaches: 0"), name="strict.yaml")  # one late request is given back twice
    said = run_ledger("contract", "check", strict, "--replay", MONTH)
    assert said.exit_code == 0
    [paragraph] = [one for one in said.stdout.split("\n\n") if "base_rate_refund" in one]
    assert paragraph.split("\n")[3:] == [
        "    2026-05 as written  total 2.76 CNY, charges 6.61, refunds -4.01, late requests 1, breaches 1 (0 forgiven, 1 refunded)",
        "    with charged_rate   total 5.73 CNY, charges 6.61, refunds -1.20, late requests 1, breaches 1 (0 forgiven, 1 refunded)",
        "    difference          +2.97 CNY",
    ]
    found = json.loads(run_ledger("contract", "check", strict, "--replay", MONTH, "--format", "json").stdout)
    [replay] = [one["replay"] for one in found if one["code"] == "base_rate_refund"]
    assert (replay["value"], replay["written"]["totals"]["credits"], replay["otherwise"]["totals"]["credits"]) == (
        "charged_rate", "-4.01", "-1.20",
    )  # fmt: skip


def test_without_the_option_a_check_asks_no_database(run_ledger: RunLedger, tmp_path: Path) -> None:
    contract, nowhere = write_contract(tmp_path), "postgresql://nobody@127.0.0.1:1/no-database"
    assert run_ledger("contract", "check", contract, database=nowhere).exit_code == 0
    assert run_ledger("contract", "check", contract, "--replay", MONTH, database=nowhere).exit_code == 4


def test_a_check_shows_its_findings_also_if_the_month_cannot_be_replayed(run_ledger: RunLedger, tmp_path: Path) -> None:
    contract = write_contract(tmp_path)
    said = run_ledger("contract", "check", contract, "--replay", MONTH)
    assert said.exit_code == 1 and said.stdout == run_ledger("contract", "check", contract).stdout
    assert said.stderr.startswith(f"error: {contract}: there are no requests of acme-bank in 2026-05")


def test_a_month_without_requests_is_told_with_the_months_that_have_some_also_if_no_warning_has_another_choice(
    run_ledger: RunLedger, loaded: Path, tmp_path: Path
) -> None:
    quiet = tmp_path / "quiet.yaml"
    quiet.write_text(QUIET.read_text())
    assert "no warning" in run_ledger("contract", "check", quiet, "--replay", MONTH).stderr
    said = run_ledger("contract", "check", quiet, "--replay", "2026-07")
    assert said.exit_code == 1 and said.stderr == (
        f"error: {quiet}: there are no requests of acme-bank in 2026-07, so there is nothing to replay\n"
        "  there are requests of it in 2026-05 (months of UTC)\n"
    )


def test_a_replay_that_meets_an_unknown_model_advises_to_change_the_file_and_nothing_stored(
    run_ledger: RunLedger, loaded: Path, tmp_path: Path
) -> None:
    other = write_contract(tmp_path, ("    - deepseek-v4\n", "    - another\n"), name="other.yaml")
    said = run_ledger("contract", "diff", loaded, other, "--replay", MONTH)
    assert said.stderr.splitlines()[1:] == ["  add the model to the contract (models: served_as)"]


def test_each_contract_is_replayed_for_its_own_accounts_and_the_output_says_which(
    run_ledger: RunLedger, loaded: Path, tmp_path: Path
) -> None:
    more = write_events(tmp_path, [request(9, "2026-05-09T10:00:00+08:00", account="acme-branch")], name="more.csv")
    assert run_ledger("ingest", more).exit_code == 0
    wider = write_contract(tmp_path, ("    - acme-bank\n", "    - acme-bank\n    - acme-branch\n"), name="wider.yaml")
    told = json.loads(run_ledger("contract", "diff", loaded, wider, "--replay", MONTH, "--format", "json").stdout)["replay"]
    assert (told["old"]["events"]["total"], told["new"]["events"]["total"]) == (4, 5)
    assert told["notes"] == [f"only {wider} covers the requests of acme-branch"]


def test_a_month_without_requests_of_several_accounts_speaks_of_all_of_them(run_ledger: RunLedger, loaded: Path, tmp_path: Path) -> None:
    wider = write_contract(tmp_path, ("    - acme-bank\n", "    - acme-bank\n    - acme-branch\n"), name="wider.yaml")
    said = run_ledger("contract", "check", wider, "--replay", "2026-07")
    assert said.exit_code == 1 and said.stderr == (
        f"error: {wider}: there are no requests of acme-bank, acme-branch in 2026-07, so there is nothing to replay\n"
        "  there are requests of them in 2026-05 (months of UTC)\n"
    )
