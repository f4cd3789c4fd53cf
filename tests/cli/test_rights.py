"""A right that the database's owner has not given is missed in one line, and what is told to the owner gives all of them."""

import shlex
from pathlib import Path

import psycopg
import pytest

from ledger.cli.rights import missing_right_cure
from tests.conftest import RunLedger
from tests.ingest.sample_rows import row, write_rows
from tests.store.new_role import new_role, url_of


def test_a_missing_right_names_what_the_owner_runs_once_for_all(tmp_path: Path, run_ledger: RunLedger, owner_url: str) -> None:
    file = write_rows(tmp_path / "one.csv", [row("acme", "a"), row("acme", "b", -1)])
    with psycopg.connect(owner_url, autocommit=True) as owner, new_role(owner) as role:
        url = url_of(role, owner_url)
        refused = run_ledger("ingest", file, database=url)
        cure = f"ledger database upgrade --application {role}"
        assert (refused.exit_code, refused.stderr) == (
            4,
            "error: the database refused: permission denied for table alembic_version\n"
            f"  let the owner of the tables run, with a URL of its own: {cure}\n",
        )
        assert run_ledger(*shlex.split(cure)[1:], database=owner_url).exit_code == 0
        requeue, void = ["quarantine", "requeue", "--account", "acme", "--set", "input_tokens=1"], ["void", "a", "--reason", "test"]
        for command in (["ingest", file], requeue, void, ["status"]):
            assert run_ledger(*command, database=url).exit_code == 0


def test_the_role_is_that_of_the_url_or_of_whoever_asks_and_ledgers_own_server_needs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_right_cure("postgresql+psycopg://a%22b@h/d").endswith("""--application 'a"b'""")
    monkeypatch.setenv("PGUSER", "me")
    assert missing_right_cure("postgresql://h/d").endswith("--application me")
    assert missing_right_cure(None) == "run: ledger database upgrade"
