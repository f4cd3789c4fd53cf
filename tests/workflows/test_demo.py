"""`ledger demo`: from telemetry to two invoices, the same every time, and nothing else touched."""

import json
import re
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from ledger.cli.demo import program_name
from ledger.cli.main import COMMANDS, cli
from ledger.store.embedded import Server

ROOT = Path(__file__).parents[2]


@pytest.fixture
def embedded(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server of the tests, as the one that ledger keeps itself."""
    monkeypatch.setenv("LEDGER_HOME", str(server.home))
    return server


def test_the_demo_tells_two_totals_and_where_the_invoices_are_whatever_the_clock_says(embedded: Server, tmp_path: Path) -> None:
    output = tmp_path / "demo"
    databases = "SELECT datname FROM pg_database WHERE datname IN ('ledger', 'ledger_demo')"
    with psycopg.connect(embedded.owner_url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS ledger WITH (FORCE)")  # of another test
        connection.execute("CREATE DATABASE ledger_demo")  # as an earlier run left it
    result = CliRunner().invoke(cli, ["demo", "--output", str(output)], env={"LEDGER_NOW": "2026-05-10T00:00:00Z"}, prog_name="ledger")
    assert result.exit_code == 0, result.output
    assert "(75,744 requests, 2 duplicates, 3 set aside)" in result.stdout
    assert re.search(r"Acme Bank Co\. +55,741 requests +CNY\s7,832\.99 +9 of 300 hours missed: 3 forgiven, 6 refunded", result.stdout)
    assert re.search(r"Northwind Retail Ltd +19,999 requests +GBP\s240\.00 +1 of 31 days missed: 1 forgiven", result.stdout)
    assert "\n  and no contract covers the requests of trial-0417 (4); " in result.stdout  # 55,741 + 19,999 + 4
    for name in ("acme-bank-llm", "northwind-retail-llm"):
        invoice = output / "2026-05" / f"{name}.html"
        assert invoice.as_uri() in result.stdout
        assert "From a test database." in invoice.read_text("utf-8")

    acme, northwind = (json.loads((output / "2026-05" / f"{name}.json").read_bytes()) for name in ("acme-bank-llm", "northwind-retail-llm"))
    assert (acme["totals"]["total"], northwind["totals"]["total"]) == ("7832.99", "240.00")
    assert acme["unresolved"] == {"conflicts": 0, "quarantined": 3, "unassigned": 4, "unjoined": 0}
    assert set(acme["changed_afterwards"].values()) == {0}
    bands = {line["band"] for line in acme["lines"] if line["kind"] == "usage"}
    assert bands == {"fast", "standard", "slow", "async", "cold_start", "circuit_breaker", "cancelled", "missing_latency"}
    breaches = acme["windows"]["breaches"]
    assert any(breach.get("pooled") for breach in breaches)
    assert any(breach["p99_us"] is None for breach in breaches)
    with psycopg.connect(embedded.owner_url("postgres")) as connection:
        found = connection.execute(databases.encode()).fetchall()
    assert found == [("ledger_demo",)]


def test_the_next_commands_are_written_as_this_one_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("mine", "other tool"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ledger").write_text("")
        (tmp_path / folder / "ledger").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for called, path, expected in (
        ("mine/ledger", "mine", "ledger"), ("mine/ledger", "other tool", "mine/ledger"), ("mine/ledger", "", "mine/ledger"),
        ("other tool/ledger", "", "'other tool/ledger'"), ("ledger/__main__.py", "mine", "py/python -m ledger"),
    ):  # fmt: skip
        monkeypatch.setenv("PATH", str(tmp_path / path) if path else "")
        monkeypatch.setattr("sys.argv", [called])
        monkeypatch.setattr("sys.orig_argv", ["py/python", "-m", "ledger"])
        assert program_name() == expected


def test_a_folder_that_cannot_be_written_is_said_in_one_line(embedded: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli, ["demo", "--output", str(tmp_path / "file" / "below")], prog_name="ledger")
    assert result.exit_code == 4
    assert "cannot write into" in result.stderr and "--output" in result.stderr


def test_every_command_that_the_readme_and_the_demo_name_exists() -> None:
    text = (ROOT / "README.md").read_text("utf-8") + (ROOT / "ledger" / "cli" / "demo.py").read_text("utf-8")
    named = re.findall(
        r"(?:^ {4}|`|\")(?: {2})?(?:ledger|{program}) ((?:contract |database |interval |quarantine )?[a-z]+)", text, flags=re.M
    )
    assert len(named) > 8
    assert [name for name in named if name not in COMMANDS] == []
