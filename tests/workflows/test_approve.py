"""Approvals of contract versions: who may give which, that they stay, and that a month is settled for good only with all of them."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result

from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, REQUIRED, SECOND, request, write_contract, write_events

APPROVALS = "SELECT role, author, reason, approved_at::text AS at FROM approval ORDER BY approved_at, role"

Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def contract(run_ledger: RunLedger, tmp_path: Path) -> Path:
    """A contract that needs two approvals, stored, and a request under it in May 2026."""
    path = write_contract(tmp_path, REQUIRED)
    assert run_ledger("contract", "add", path).exit_code == 0
    assert run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-06T10:00:00+08:00")])).exit_code == 0
    return path


@pytest.fixture
def approve(run_ledger: RunLedger) -> Callable[..., Result]:
    """`contract approve acme-bank-llm 1` with more options."""

    def run(*options: str, version: int = 1, **environment: str) -> Result:
        return run_ledger("contract", "approve", "acme-bank-llm", str(version), *options, **environment)

    return run


def test_a_role_approves_once_and_it_is_kept_by_whom_when_and_why(contract: Path, approve: Callable[..., Result], query: Query) -> None:
    first = approve("--role", "legal", "--author", "Li Na", "--reason", "as signed", now="2026-05-02T08:00:00Z")
    assert first.exit_code == 0 and first.stdout.startswith("approved acme-bank-llm version 1 (sha256 ")
    database, *rest = first.stderr.splitlines()
    assert re.fullmatch("database: test_[0-9a-f]+ at .+", database)
    assert rest == [
        "acme-bank-llm version 1 needs approval before it is settled: finance",
        "  ledger contract approve acme-bank-llm 1 --role finance",
    ]
    again = approve("--role", "legal", "--author", "somebody else", now="2026-05-03T08:00:00Z")
    assert again.exit_code == 0 and "already approved for legal by Li Na at 2026-05-02T08:00:00Z, nothing changed" in again.stdout
    assert query(APPROVALS) == [{"role": "legal", "author": "Li Na", "reason": "as signed", "at": "2026-05-02 08:00:00+00"}]
    last = json.loads(approve("--role", "finance", "--author", "Bo", "--format", "json", now="2026-05-04T08:00:00Z").stdout)
    assert last == {
        "contract": "acme-bank-llm", "version": 1, "sha256": sha256(contract.read_bytes()).hexdigest(), "role": "finance", "author": "Bo",
        "reason": None, "approved_at": "2026-05-04T08:00:00Z", "new": True, "missing": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("acme-bank-llm", "1", "--role", "finanse"), "the approval of finanse\n  did you mean finance?"),
        (("acme-bank-llm", "1", "--role", "board"), "the approval of board\n  it needs: legal, finance"),
        (("other", "1", "--role", "legal"), "does not need the approval of legal\n  nor any other"),
        (("acme-bnk-llm", "1", "--role", "legal"), "there is no contract acme-bnk-llm\n  did you mean acme-bank-llm?"),
        (("acme", "1", "--role", "legal"), "there is no contract acme\n  did you mean acme-bank-llm?"),
        (("nobody", "1", "--role", "legal"), "there is no contract nobody\n  see: ledger contract list"),
        (("acme-bank-llm", "7", "--role", "legal"), "acme-bank-llm has no version 7\n  it has version 1 alone"),
        (("acme-bank-llm", "1", "--role", "legal", "--sha256", "0" * 64), "is not what was read: its file has the SHA-256 "),
    ],
)
def test_what_cannot_be_approved_is_refused_with_its_cure(
    contract: Path, run_ledger: RunLedger, query: Query, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    run_ledger("contract", "add", write_contract(tmp_path, *OTHER, name="other.yaml"))
    result = run_ledger("contract", "approve", *arguments)
    assert result.exit_code == 1 and said in result.stderr
    assert query(APPROVALS) == []


@pytest.mark.parametrize("wrong", [("--sha256", "031e7bd1cd0b"), ("--reason", " "), ("--author", "")])
def test_an_approval_that_says_nothing_is_wrong_usage(contract: Path, approve: Callable[..., Result], wrong: tuple[str, str]) -> None:
    assert approve("--role", "legal", *wrong).exit_code == 2


def test_who_approves_is_told_of_examples_that_do_not_hold_and_of_one_person_in_several_roles(
    run_ledger: RunLedger, approve: Callable[..., Result], tmp_path: Path
) -> None:
    example = "examples:\n  - {it: nothing is free, events: [{e2e_ms: 1, input_tokens: 1, output_tokens: 1}], expect: {charge: 0}}\n"
    path = write_contract(tmp_path, REQUIRED)
    path.write_text(path.read_text() + example)
    assert run_ledger("contract", "add", path, "--examples-may-fail").exit_code == 0
    first = approve("--role", "legal", "--author", "Li Na")
    assert "warning: 1 of 1 example does not hold in what is stored of acme-bank-llm version 1; see: " in first.stderr
    assert first.exit_code == 0 and "note: " not in first.stderr
    second = approve("--role", "finance", "--author", "Li Na")
    assert second.exit_code == 0 and "note: Li Na has approved it for legal too: one person in several roles\n" in second.stderr


def test_who_has_read_the_file_says_so_by_its_hash(contract: Path, approve: Callable[..., Result]) -> None:
    assert approve("--role", "legal", "--sha256", sha256(contract.read_bytes()).hexdigest().upper()).exit_code == 0


def test_adding_a_version_says_which_approvals_it_needs_until_they_are_given(
    run_ledger: RunLedger, approve: Callable[..., Result], tmp_path: Path
) -> None:
    path = write_contract(tmp_path, REQUIRED)
    first = run_ledger("contract", "add", path, write_contract(tmp_path, *OTHER, name="other.yaml"))
    assert "acme-bank-llm version 1 needs approval before it is settled: legal, finance\n" in first.stderr
    assert "  ledger contract approve acme-bank-llm 1 --role finance\n" in first.stderr and "other version 1" not in first.stderr
    approve("--role", "finance")
    assert "needs approval before it is settled: legal\n" in run_ledger("contract", "add", path).stderr
    approve("--role", "legal")
    assert "needs approval" not in run_ledger("contract", "add", path).stderr


def settled(run_ledger: RunLedger, tmp_path: Path, *options: str, month: str = "2026-05") -> tuple[int, list[str], str]:
    """The exit code of a settlement, the contracts that it has objects of, and what it says besides."""
    result = run_ledger("settle", month, "--format", "json", "--output", tmp_path / "out", *options)
    return result.exit_code, [one["contract"] for one in json.loads(result.stdout)], result.stderr


def test_a_version_in_force_that_lacks_an_approval_stops_its_contract_and_no_other(
    contract: Path, run_ledger: RunLedger, approve: Callable[..., Result], query: Query, tmp_path: Path
) -> None:
    second = write_contract(tmp_path, *SECOND, name="second.yaml")
    run_ledger("contract", "add", second, write_contract(tmp_path, *OTHER, name="other.yaml"))
    approve("--role", "legal")
    code, objects, said = settled(run_ledger, tmp_path)
    assert (code, objects) == (1, ["other"])
    assert (
        "error: acme-bank-llm is not settled: what is in force in 2026-05 lacks approval: "
        "version 1 that of finance, version 2 that of legal\n"
        "  ledger contract approve acme-bank-llm 1 --role finance\n"
        "  ledger contract approve acme-bank-llm 2 --role legal\n"
    ) in said
    assert query("SELECT contract_id FROM settlement") == [{"contract_id": "other"}]
    approve("--role", "legal", version=2)
    assert settled(run_ledger, tmp_path, month="2026-06")[:2] == (0, ["acme-bank-llm", "other"])  # version 1 is in force in May alone
    assert settled(run_ledger, tmp_path)[:2] == (1, ["other"])
    approve("--role", "finance")
    assert settled(run_ledger, tmp_path)[:2] == (0, ["acme-bank-llm", "other"])


def test_what_cannot_be_issued_goes_on_with_a_warning(
    contract: Path, run_ledger: RunLedger, approve: Callable[..., Result], tmp_path: Path
) -> None:
    approve("--role", "legal")
    lacks = "acme-bank-llm cannot be settled finally yet: what is in force in 2026-05 lacks approval: version 1 that of finance"
    for option in ("--dry-run", "--provisional"):
        code, objects, said = settled(run_ledger, tmp_path, option)
        assert (code, objects) == (0, ["acme-bank-llm"]) and f"warning: {lacks}\n" in said
    approve("--role", "finance")
    assert "approval" not in settled(run_ledger, tmp_path, "--provisional")[2]


def test_a_month_that_is_not_over_and_not_approved_is_told_both(contract: Path, run_ledger: RunLedger) -> None:
    early = run_ledger("settle", "2026-05", "--format", "json", now="2026-05-20T00:00:00Z")
    assert early.exit_code == 1 and json.loads(early.stdout) == []
    assert "grace until 2026-06-01T16:00:00Z" in early.stderr and "lacks approval: version 1 that of legal and finance" in early.stderr


def test_an_alert_does_not_wait_for_approvals(contract: Path, run_ledger: RunLedger) -> None:
    budget = run_ledger("budget", "--format", "json", now="2026-05-20T00:00:00Z")
    assert (budget.exit_code, budget.stderr) == (0, "")
    assert [one["contract"] for one in json.loads(budget.stdout)] == ["acme-bank-llm"]


def test_settling_many_contracts_asks_for_their_approvals_at_once(
    contract: Path, run_ledger: RunLedger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(cursor: psycopg.Cursor[Any], query: Any, *arguments: Any, **options: Any) -> psycopg.Cursor[Any]:
        asked.append(str(query))
        return execute(cursor, query, *arguments, **options)

    def statements() -> int:
        settled(run_ledger, tmp_path, "--dry-run")  # what is stale is computed first
        asked.clear()
        settled(run_ledger, tmp_path, "--dry-run")
        assert sum("FROM approval" in query for query in asked) == 1
        return len(asked)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    alone = statements()
    for number in range(5):
        other = (("id: acme-bank-llm", f"id: other-{number}"), ("    - acme-bank\n", f"    - account-{number}\n"))
        assert run_ledger("contract", "add", write_contract(tmp_path, REQUIRED, *other, name="other.yaml")).exit_code == 0
    assert statements() == alone
