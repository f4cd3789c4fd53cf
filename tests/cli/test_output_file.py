"""Every command that writes a file: what stands there stays, unless forced, and what is read stays even then."""

from pathlib import Path

import pytest

from tests.conftest import RunLedger, ledger_on

GOLDEN = Path(__file__).parents[1] / "golden"
ledger = ledger_on("postgresql://nobody@127.0.0.1:1/no-database")
TAKEN = "error: {} is there already\n  name another file, or add --force to replace it\n"
READ = "error: {} is a file that this command reads\n  name another file\n"


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize(
    ("command", "file"),
    [(("contract", "explain"), "contracts/good/quiet.yaml"), (("interval", "detect"), "prometheus/memory.json")],
)
def test_no_file_is_written_on_itself_even_by_another_name(
    command: tuple[str, str], file: str, force: tuple[str, ...], tmp_path: Path
) -> None:
    content = (GOLDEN / file).read_bytes()
    read, link = tmp_path / "read", tmp_path / "link"
    read.write_bytes(content)
    link.symlink_to(read)
    for output in (read, link):
        result = ledger(*command, read, "--output", output, *force)
        assert (result.exit_code, result.stderr) == (2, READ.format(output)) and read.read_bytes() == content


@pytest.mark.parametrize("command", [("contract", "explain"), ("interval", "detect"), ("quarantine", "export")])
def test_a_file_that_is_there_is_replaced_only_if_forced(command: tuple[str, str], tmp_path: Path, run_ledger: RunLedger) -> None:
    inputs = {"explain": ["contracts/good/quiet.yaml"], "detect": ["prometheus/memory.json"], "export": []}[command[1]]
    arguments = [*command, *(GOLDEN / file for file in inputs), "--output", tmp_path / "mine"]
    (tmp_path / "mine").write_text("mine")
    refused = run_ledger(*arguments)
    assert (refused.exit_code, refused.stderr) == (2, TAKEN.format(tmp_path / "mine")) and (tmp_path / "mine").read_text() == "mine"
    assert run_ledger(*arguments, "--force").exit_code == 0 and (tmp_path / "mine").read_text() != "mine"
