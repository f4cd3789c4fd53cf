"""`ledger contract new`: what it writes, prints and refuses."""

from pathlib import Path
from shlex import quote

import pytest

from tests.cli.watched_command import run_watched
from tests.conftest import ledger_on

ROOT = Path(__file__).parents[2]
ledger = ledger_on("postgresql://nobody@127.0.0.1:1/no-database")


def test_a_contract_goes_to_standard_output_and_what_to_do_next_to_standard_error() -> None:
    result = ledger("contract", "new", "--kind", "retrieval", "--language", "zh", "--id", "acme-kb")
    assert result.exit_code == 0 and result.stdout.startswith("# 知识库检索服务合同") and "\nid: acme-kb\n" in result.stdout
    assert "ledger contract explain FILE --language zh\n" in result.stderr
    assert "payment.details (line 55)" in " ".join(result.stderr.split())


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    file = tmp_path / "acme's.yaml"
    assert ledger("contract", "new", "--kind", "batch", "--output", file).exit_code == 0
    file.write_text("mine")
    refused = ledger("contract", "new", "--kind", "batch", "--output", file)
    assert (refused.exit_code, file.read_text()) == (2, "mine")
    assert refused.stderr == f"error: {file} is there already\n  name another file, or add --force to replace it\n"
    forced = ledger("contract", "new", "--kind", "batch", "--output", file, "--force")
    assert forced.exit_code == 0 and file.read_bytes() == (ROOT / "contracts" / "templates" / "batch.en.yaml").read_bytes()
    assert f"ledger contract check {quote(str(file))}\n" in forced.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Missing option '--kind'. Choose from:\n\treal-time,\n\tretrieval,\n\tbatch"),
        (["--kind", "chat"], "'chat' is not one of 'real-time', 'retrieval', 'batch'"),
        (["--kind", "batch", "--currency", "RMB"], "Invalid value for '--currency': 'RMB': expected a currency"),
        (["--kind", "batch", "--account", "ok", "--account", "a\x1b[2J"], "Invalid value for '--account': 'a\\x1b[2J': expected one line"),
        (["--kind", "batch", "--until", "2025-01-01"], "--until: found until 2025-01-01, from 2026-01-01"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused_by_the_name_of_its_option(options: list[str], said: str, tmp_path: Path) -> None:
    result = ledger("contract", "new", *options, "--output", tmp_path / "acme.yaml")
    assert result.exit_code == 2 and said in result.stderr and list(tmp_path.iterdir()) == []


def test_a_new_contract_needs_no_database(tmp_path: Path) -> None:
    arguments = ["contract", "new", "--kind", "batch", "--from", "2026-07-01", "--output", str(tmp_path / "acme.yaml")]
    result = run_watched(arguments, {"sqlalchemy", "psycopg", "duckdb", "sqlglot"})
    assert result.returncode == 0 and result.stderr.endswith("[]\n")
