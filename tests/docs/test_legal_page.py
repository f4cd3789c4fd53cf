"""The lawyer's page does what it says: its commands run in its order, its mistakes give its messages, its cures cure them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

PAGE = (Path(__file__).parents[2] / "docs" / "legal.md").read_text("utf-8")
COMMANDS = re.findall(r"^    ledger (.+)$", PAGE, re.MULTILINE)
MISTAKES = re.findall(r"```yaml\n(.+)\n```\n\n```text\n(.+)\n```\n\n```yaml\n(.+)\n```", PAGE)

RunLedger = Callable[..., Result]


def fill_in(file: Path) -> None:
    """Step 2 of the page: no value of the template is left."""
    file.write_text(file.read_text("utf-8").replace("EXAMPLE", "Acme"), "utf-8")


def test_the_page_runs_as_written(run_ledger: RunLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in COMMANDS:
        result = run_ledger(*shlex.split(command))
        assert result.exit_code == 0, f"{command}: {result.output}"
        said[command] = result
        if command == COMMANDS[0]:
            fill_in(Path("acme-chat.yaml"))
    assert "no errors, no warnings" in said["contract check acme-chat.yaml"].stdout
    assert "acme-chat version 1" in said["contract list --unapproved"].stdout
    assert said["contract show acme-chat"].stdout_bytes == Path("acme-chat.yaml").read_bytes()
    assert run_ledger("contract", "list", "--unapproved").stdout == ""
    assert run_ledger("settle", "2026-07", now="2026-08-03T00:00:00Z").exit_code == 0


@pytest.mark.parametrize(("wrong", "message", "right"), MISTAKES, ids=[message.split(": ")[1] for _, message, _ in MISTAKES])
def test_a_mistake_gives_its_message_and_its_cure_cures_it(
    wrong: str, message: str, right: str, run_ledger: RunLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_ledger(*shlex.split(COMMANDS[0])).exit_code == 0
    file = Path("acme-chat.yaml")
    fill_in(file)
    line = int(message.split(":")[1]) - 1
    for text, expected in ((wrong, message), (right, "1 file: no errors, no warnings")):
        lines = file.read_text("utf-8").split("\n")
        assert lines[line].startswith(wrong[: len(wrong) - len(wrong.lstrip())])
        lines[line] = text
        file.write_text("\n".join(lines), "utf-8")
        shown = run_ledger("contract", "check", file).stdout
        assert shown.startswith(expected), shown


def test_five_mistakes_are_shown() -> None:
    assert len(MISTAKES) == 5
