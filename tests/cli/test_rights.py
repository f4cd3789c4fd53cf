"""A right that the database's owner has not given is named, and giving it is the cure."""

import re
from pathlib import Path
from uuid import uuid4

import psycopg

from ledger.cli.rights import missing_right_cure
from ledger.store.embedded import Server
from tests.conftest import RunLedger
from tests.ingest.sample_rows import row, write_rows


def test_a_missing_right_names_the_grant_that_gives_it(tmp_path: Path, run_ledger: RunLedger, database_url: str, server: Server) -> None:
    role = f"app_{uuid4().hex}"
    url = database_url.replace(f"ledger:{server.password}", f"{role}:p")
    file = write_rows(tmp_path / "one.csv", [row("acme", "a"), row("acme", "b", -1)])
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'".encode())
        try:
            granted: list[str] = []
            requeue, void = ["quarantine", "requeue", "--account", "acme", "--set", "input_tokens=1"], ["void", "a", "--reason", "test"]
            for command in (["ingest", file], requeue, void, ["status"]):
                while (done := run_ledger(*command, database=url)).exit_code:
                    match = re.search(r"let the owner of the tables run: (GRANT .*)", done.stderr)
                    assert done.exit_code == 4 and match and match[1] not in granted, done.stderr
                    granted.append(match[1])
                    owner.execute(match[1].encode())
        finally:
            owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
    assert f'GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE event TO "{role}"' in granted
    assert len(granted) > 5


def test_what_only_an_owner_may_do_and_what_is_not_understood_have_a_cure_too() -> None:
    assert "as the owner" in missing_right_cure("must be owner of table event", None)
    assert missing_right_cure("keine Berechtigung", "postgresql+psycopg://a%22b@h/d").endswith('ALL TABLES IN SCHEMA public TO "a""b"')
