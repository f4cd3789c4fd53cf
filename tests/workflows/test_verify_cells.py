"""`ledger verify --cells`: what is kept is what the events give, and whatever is altered behind ledger's back is named."""

import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import text

from ledger.store.database import Database
from ledger.workflows.verify_cells import VerifiedCells, kept_against_events

RunLedger = Callable[..., Result]

BASE = (Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml").read_text()
HEADER = "account,request_id,model,received_at,queue_us,inference_us,input_tokens,output_tokens,cold_start"
ACME, OTHER = "acme-bank-llm", "other"
SIXTH_OF_MAY = "contract_id = 'acme-bank-llm' AND day_start = '2026-05-05T16:00:00Z'"
# By contract and local day. The first one of the other contract is the 5th in Shanghai.
DAYS = {(ACME, "2026-05-05"), (ACME, "2026-05-06"), (ACME, "2026-06-01"), (OTHER, "2026-05-06")}


@pytest.fixture
def kept(run_ledger: RunLedger, owner_database: Database, tmp_path: Path) -> Callable[..., None]:
    """Two contracts in two zones and their requests, which are in cells; gives what executes SQL behind ledger's back."""
    (tmp_path / "acme.yaml").write_text(BASE)
    changes = {"id: acme-bank-llm": "id: other", "    - acme-bank\n": "    - other-account\n", "Asia/Shanghai": "America/New_York"}
    other = BASE
    for old, new in changes.items():
        assert old in other
        other = other.replace(old, new)
    (tmp_path / "other.yaml").write_text(other)
    assert run_ledger("contract", "add", tmp_path / "acme.yaml", tmp_path / "other.yaml").exit_code == 0
    rows = [
        "acme-bank,r1,deepseek-v4,2026-05-05T23:00:00+08:00,0,310000,1000,500,",
        "acme-bank,r2,deepseek-v4,2026-05-06T10:00:00+08:00,0,310000,1000,500,",
        "acme-bank,r3,deepseek-v4,2026-05-06T10:00:01+08:00,0,320000,1000,500,",
        "acme-bank,r4,deepseek-v4,2026-05-06T10:00:02+08:00,0,150000,1000,500,load-1",
        "acme-bank,r5,deepseek-v4,2026-06-01T10:00:00+08:00,0,150000,1000,500,",
        "other-account,r1,deepseek-v4,2026-05-06T10:00:00-04:00,0,310000,1000,500,",
        "nobody,r1,deepseek-v4,2026-05-06T10:00:00-04:00,0,310000,1000,500,",
    ]
    (tmp_path / "events.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    assert run_ledger("ingest", tmp_path / "events.csv").exit_code == 0

    def alter(statement: str, *, rows: int = 1) -> None:
        with owner_database.engine.begin() as connection:
            assert connection.execute(text(statement)).rowcount == rows

    return alter


@pytest.fixture
def altered(owner_database: Database) -> Callable[[str], VerifiedCells]:
    """What is found after a statement that is then taken back."""

    def verify_altered(statement: str) -> VerifiedCells:
        with owner_database.engine.connect() as connection, connection.begin() as transaction:
            assert connection.execute(text(statement)).rowcount == 1, statement
            found = kept_against_events(connection)
            transaction.rollback()
        return found

    return verify_altered


@pytest.fixture
def verify(run_ledger: RunLedger) -> Callable[..., dict[str, Any]]:
    """The JSON of the command; the exit code has to be 5 exactly if something differs."""

    def run(*arguments: str) -> dict[str, Any]:
        result = run_ledger("verify", "--cells", "--format", "json", *arguments)
        found: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (5 if found["differing"] or found["accounts"] else 0), result.stderr
        return found

    return run


def test_what_loads_keep_agrees(kept: Callable[..., None], verify: Callable[..., dict[str, Any]], run_ledger: RunLedger) -> None:
    assert verify() == {"agree": len(DAYS), "stale": 0, "differing": [], "accounts": []}
    result = run_ledger("verify", "--cells")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "4 days of contracts agree with their requests\n"


def test_a_month_is_that_of_the_contracts_zones_and_no_day_beside_it(
    kept: Callable[..., None], verify: Callable[..., dict[str, Any]]
) -> None:
    assert [verify(month)["agree"] for month in ("2026-04", "2026-05", "2026-06", "2026-07")] == [0, 3, 1, 0]
    kept("UPDATE cell SET requests = requests + 1 WHERE day_start >= '2026-05-31'")
    assert [len(verify(month)["differing"]) for month in ("2026-05", "2026-06")] == [0, 1]


def test_an_altered_cell_is_named_by_contract_and_day(kept: Callable[..., None], altered: Callable[[str], VerifiedCells]) -> None:
    for statement in (
        "UPDATE cell SET tokens_output = tokens_output + 1 WHERE {}",
        "UPDATE cell SET tokens_input = 0 WHERE {}",
        "UPDATE cell SET late = false WHERE {}",
        "UPDATE cell SET tier = 0 WHERE {}",
        "UPDATE cell SET late_latencies_us = '{{310000,320001}}' WHERE {}",
        "UPDATE cell SET late_latencies_us = NULL WHERE {}",
        "UPDATE cell SET model = 'deepseek-ai/DeepSeek-V4' WHERE {}",
        "UPDATE cell SET version = 2 WHERE {}",
        "UPDATE cell SET window_start = window_start + interval '1 hour' WHERE {}",
        "DELETE FROM cell WHERE {}",
        "INSERT INTO cell SELECT * FROM cell WHERE {}",
    ):
        found = altered(statement.format(SIXTH_OF_MAY))
        assert found == VerifiedCells(agree=len(DAYS) - 1, stale=0, differing=((ACME, date(2026, 5, 6)),), accounts=()), statement


def test_an_alteration_is_shown_and_stops_a_script(kept: Callable[..., None], run_ledger: RunLedger) -> None:
    kept("DELETE FROM cell WHERE contract_id = 'other'")
    result = run_ledger("verify", "--cells")
    assert result.exit_code == 5
    assert result.stdout == "3 days of contracts agree with their requests\ndiffers: other on 2026-05-06\n"
    assert result.stderr == "error: what is kept is not what the requests give\n  settle nothing until it is known why, and report it\n"


def test_cells_in_pieces_agree_as_long_as_their_sum_does(kept: Callable[..., None], verify: Callable[..., dict[str, Any]]) -> None:
    """Deltas are a bag: what counts is the sum, and all late latencies in any order."""
    kept(
        "INSERT INTO cell SELECT contract_id, version, day_start, window_start, model, queue, forfeited, outcome, exemption, tier, "
        "in_objective, late, over, 1, 0, 1000, 0, 500, '{320000}' FROM cell "
        "WHERE contract_id = 'acme-bank-llm' AND day_start = '2026-05-05T16:00:00Z'"
    )
    kept(
        "UPDATE cell SET requests = 1, tokens_input = 1000, tokens_output = 500, late_latencies_us = '{310000}' "
        "WHERE contract_id = 'acme-bank-llm' AND day_start = '2026-05-05T16:00:00Z' AND requests = 2"
    )
    assert verify()["differing"] == []


def test_an_altered_cold_start_is_named_by_contract_and_day(kept: Callable[..., None], altered: Callable[[str], VerifiedCells]) -> None:
    for statement in (
        "DELETE FROM cold_start_event",
        "UPDATE cold_start_event SET request_id = 'r3'",
        "UPDATE cold_start_event SET revision = 2",
        "INSERT INTO cold_start_event SELECT * FROM cold_start_event",
    ):
        assert altered(statement).differing == ((ACME, date(2026, 5, 6)),), statement


def test_a_ranked_cold_start_has_to_be_right_and_one_that_is_not_ranked_waits(
    kept: Callable[..., None], altered: Callable[[str], VerifiedCells]
) -> None:
    for statement in (
        "UPDATE delayed_cell SET exemption = NULL",
        "UPDATE delayed_cell SET tokens_output = tokens_output + 1",
        "UPDATE delayed_cell SET tier = 2",
    ):
        found = altered(statement)
        assert found == VerifiedCells(agree=len(DAYS) - 1, stale=0, differing=((ACME, date(2026, 5, 6)),), accounts=()), statement
    for statement in ("DELETE FROM delayed_cell", "INSERT INTO delayed_cell SELECT * FROM delayed_cell"):
        assert altered(statement) == VerifiedCells(agree=len(DAYS) - 1, stale=1, differing=(), accounts=()), statement


def test_altered_traffic_is_named_by_account(
    kept: Callable[..., None], altered: Callable[[str], VerifiedCells], run_ledger: RunLedger
) -> None:
    for statement in (
        "UPDATE traffic SET requests = requests + 1 WHERE account = 'nobody'",
        "DELETE FROM traffic WHERE account = 'nobody'",
        "INSERT INTO traffic SELECT * FROM traffic WHERE account = 'nobody'",
        "INSERT INTO traffic VALUES ('nobody', '2011-01-01T00:00:00Z', 1)",
        "INSERT INTO traffic VALUES ('nobody', '0001-01-01T00:00:00Z', 1)",
    ):
        assert altered(statement) == VerifiedCells(agree=len(DAYS), stale=0, differing=(), accounts=("nobody",)), statement
    kept(statement)
    result = run_ledger("verify", "--cells")
    assert result.exit_code == 5 and "differs: the number of requests of account nobody\n" in result.stdout


def test_what_is_kept_of_days_that_have_no_request_differs_too(kept: Callable[..., None], verify: Callable[..., dict[str, Any]]) -> None:
    kept("UPDATE cell SET day_start = '2011-01-01T05:00:00Z', window_start = '2011-01-01T05:00:00Z' WHERE contract_id = 'other'")
    assert [one["day"] for one in verify()["differing"]] == ["2011-01-01", "2026-05-06"]
    kept("DELETE FROM cell WHERE day_start < '2012-01-01'")
    assert [one["day"] for one in verify()["differing"]] == ["2026-05-06"]


def test_a_cold_start_that_was_ranked_from_nothing_is_seen(kept: Callable[..., None], verify: Callable[..., dict[str, Any]]) -> None:
    kept(
        "INSERT INTO delayed_cell SELECT contract_id, version, '2030-01-01T16:00:00Z', '2030-01-01T16:00:00Z', model, queue, forfeited, "
        "outcome, exemption, tier, in_objective, late, over, 1, 0, 1, 0, 1, NULL FROM delayed_cell"
    )
    assert (verify()["agree"], verify()["stale"]) == (len(DAYS), 1)


def test_stale_days_are_counted_and_not_compared(
    kept: Callable[..., None], verify: Callable[..., dict[str, Any]], run_ledger: RunLedger, database: Database
) -> None:
    kept("UPDATE cell SET requests = 0 WHERE contract_id = 'acme-bank-llm' AND day_start = '2026-05-05T16:00:00Z'")
    kept("INSERT INTO stale VALUES ('acme-bank-llm', '{[2026-05-06T15:00:00Z, 2026-05-06T15:15:00Z)}')")
    assert verify() == {"agree": len(DAYS) - 1, "stale": 1, "differing": [], "accounts": []}
    shown = run_ledger("verify", "--cells")
    assert "1 day was changed since and not compared; what was changed is computed again before it is used\n" in shown.stdout
    # Settling computes it again, from the requests.
    assert run_ledger("settle", "2026-05", "--dry-run").exit_code == 0
    assert verify() == {"agree": len(DAYS), "stale": 0, "differing": [], "accounts": []}


@pytest.mark.parametrize(
    ("mark", "stale"),
    [
        ("INSERT INTO stale VALUES ('acme-bank-llm', '{(,)}')", 3),
        ("INSERT INTO stale VALUES ('acme-bank-llm', '{(,2026-05-06T12:00:00Z)}')", 2),
        ("INSERT INTO stale VALUES ('acme-bank-llm', '{[2026-05-06T12:00:00Z,)}')", 2),
    ],
)
def test_a_mark_may_have_no_end_on_either_side(
    kept: Callable[..., None], verify: Callable[..., dict[str, Any]], run_ledger: RunLedger, mark: str, stale: int
) -> None:
    kept(mark)
    assert verify() == {"agree": len(DAYS) - stale, "stale": stale, "differing": [], "accounts": []}
    assert run_ledger("settle", "2026-05", "--dry-run").exit_code == 0
    assert verify("2026-05") == {"agree": 3, "stale": 0, "differing": [], "accounts": []}


def test_changes_that_people_make_leave_nothing_that_differs(
    kept: Callable[..., None], verify: Callable[..., dict[str, Any]], run_ledger: RunLedger
) -> None:
    assert run_ledger("void", "r2", "--reason", "load test").exit_code == 0
    assert run_ledger("correct", "r3", "--set", "output_tokens=1", "--reason", "meter fault").exit_code == 0
    assert verify()["differing"] == []
    assert run_ledger("settle", "2026-05", "--dry-run").exit_code == 0
    assert verify() == {"agree": len(DAYS), "stale": 0, "differing": [], "accounts": []}


def test_an_empty_database_agrees(verify: Callable[..., dict[str, Any]]) -> None:
    assert verify() == verify("2026-05") == {"agree": 0, "stale": 0, "differing": [], "accounts": []}


def test_a_long_list_is_cut_for_people_and_whole_for_programs(
    kept: Callable[..., None], verify: Callable[..., dict[str, Any]], run_ledger: RunLedger
) -> None:
    kept("INSERT INTO traffic SELECT 'account-' || n, '2026-05-06T00:00:00Z', 1 FROM generate_series(10, 39) AS n", rows=30)
    assert len(verify()["accounts"]) == 30
    shown = run_ledger("verify", "--cells").stdout.splitlines()
    assert len([line for line in shown if line.startswith("differs: ")]) == 20 and shown[-1] == "and 10 more: --format json lists them"


@pytest.mark.parametrize("exemptions", ["[]", "\n  - {kind: cold_start, limit: 2, per: day, max_duration: 60s, multiplier: 1.0}"])
def test_a_contract_without_other_exemptions_is_kept_and_verified_like_any(run_ledger: RunLedger, tmp_path: Path, exemptions: str) -> None:
    text = re.sub(r"^exemptions:.*?^(?=[a-z])", f"exemptions: {exemptions}\n", BASE, flags=re.M | re.S)
    assert f"exemptions: {exemptions}" in text
    (tmp_path / "contract.yaml").write_text(text)
    (tmp_path / "events.csv").write_text(f"{HEADER}\nacme-bank,r1,deepseek-v4,2026-05-06T10:00:00+08:00,0,310000,1000,500,load-1\n")
    assert run_ledger("ingest", tmp_path / "events.csv").exit_code == 0
    assert run_ledger("contract", "add", tmp_path / "contract.yaml").exit_code == 0  # what it covers is stale
    assert run_ledger("settle", "2026-05", "--dry-run").exit_code == 0
    result = run_ledger("verify", "--cells")
    assert (result.exit_code, result.stdout.split(" ", 1)[0]) == (0, "1"), result.output


def test_without_cells_there_is_nothing_to_compare(run_ledger: RunLedger) -> None:
    for month, of in (((), ""), (("2026-05",), " of 2026-05")):
        verified = run_ledger("verify", "--cells", *month)
        said = f"nothing to compare: no cells are kept{of}; requests that a contract covers have some\n"
        assert (verified.exit_code, verified.stdout) == (0, said)
