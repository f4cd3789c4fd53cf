"""The lawyer's page does what it says: its commands run in its order, its mistakes give its messages, its cures cure them."""

import re
import shlex
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import Result

PAGE, _, AMENDMENT = (Path(__file__).parents[2] / "docs" / "legal.md").read_text("utf-8").partition("## Later: an amendment\n")
COMMANDS = re.findall(r"^    ledger (.+)$", PAGE, re.MULTILINE)
MONEY = re.findall(r"```yaml\n(.+)\n```", PAGE.partition("**Set the money.**")[2].partition("\n## ")[0])
NEW = next(command for command in COMMANDS if command.startswith("contract new"))
MISTAKES = re.findall(r"```yaml\n(.+)\n```\n\n```text\n(.+)\n```\n\n```yaml\n(.+)\n```", PAGE)
# What the amendment does, in its order: a command, a value that is written, a text that is replaced, a message of the last command.
STEPS = re.compile(
    r"^    ledger (?P<command>.+)$|```yaml\n(?P<lines>(?s:.+?))\n```|```text\n(?P<said>(?s:.+?))\n```"
    r"|Replace all `(?P<old>.+?)` by `(?P<new>.+?)`",
    re.MULTILINE,
)

RunLedger = Callable[..., Result]


def fill_in(file: Path) -> None:
    """Step 2 of the page: no value of the template is left, and the money is set."""
    file.write_text(file.read_text("utf-8").replace("EXAMPLE", "Acme"), "utf-8")
    for lines in MONEY:
        write_lines(file, lines)


def write_lines(file: Path, lines: str) -> None:
    """Writes the lines in place of the one that begins most like the first of them."""
    first, before = lines.split("\n")[0], file.read_text("utf-8").split("\n")
    shared = [len(list(takewhile(bool, map(str.__eq__, first, line)))) for line in before]
    at = shared.index(max(shared))
    before[at] = lines
    file.write_text("\n".join(before), "utf-8")


def test_the_page_runs_as_written(run_ledger: RunLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in COMMANDS:
        result = run_ledger(*shlex.split(command))
        assert result.exit_code == 0, f"{command}: {result.output}"
        said[command] = result
        if command == NEW:
            fill_in(Path("acme-chat.yaml"))
    assert "no errors, no warnings" in said["contract check acme-chat.yaml"].stdout
    assert "acme-chat version 1" in said["contract list --unapproved"].stdout
    assert said["contract show acme-chat 1"].stdout_bytes == Path("acme-chat.yaml").read_bytes()
    assert run_ledger("contract", "list", "--unapproved").stdout == ""
    assert run_ledger("settle", "2026-07", now="2026-08-03T00:00:00Z").exit_code == 0
    amend(run_ledger, Path("acme-chat.yaml"), Path("acme-chat-v2.yaml"))
    in_force = [line for line in run_ledger("contract", "list").stdout.splitlines() if line.startswith("  in force")]
    assert in_force == ["  in force from 2026-07-01 until 2026-10-01", "  in force from 2026-10-01 until 2027-07-01"]
    assert run_ledger("settle", "2026-10", now="2026-11-03T00:00:00Z").exit_code == 0


def amend(run_ledger: RunLedger, first: Path, second: Path) -> None:
    """The amendment: a command ends well unless the page goes on with a message, which it shows, also after what the page writes first."""
    second.write_bytes(first.read_bytes())
    last, messages = "", 0
    steps = list(STEPS.finditer(AMENDMENT))
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if command := step["command"]:
            result, last = run_ledger(*shlex.split(command)), command
            assert result.exit_code == bool(following and following["said"]), f"{command}: {result.output}"
        elif lines := step["lines"]:
            write_lines(second, lines)
        elif step["said"]:
            messages += 1
            assert step["said"] in run_ledger(*shlex.split(last)).stdout
        else:
            second.write_text(second.read_text("utf-8").replace(step["old"], step["new"]), "utf-8")
    assert messages == 3


def test_a_mistake_that_was_added_is_corrected_by_a_version_for_all_its_days(
    run_ledger: RunLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = Path("acme-chat.yaml"), Path("acme-chat-v2.yaml")
    assert run_ledger(*shlex.split(NEW)).exit_code == 0
    fill_in(first)
    assert run_ledger("contract", "add", first).exit_code == 0
    second.write_bytes(first.read_bytes())
    write_lines(second, "version: 2\nreplaces: 1")
    write_lines(second, "  due: 60d")
    assert run_ledger("contract", "add", second).exit_code == 0
    for role in ("legal", "finance"):
        assert run_ledger("contract", "approve", "acme-chat", "2", "--role", role).exit_code == 0
    assert "in force never" in run_ledger("contract", "list").stdout
    assert run_ledger("contract", "list", "--unapproved").stdout == ""  # version 1 was never approved
    assert run_ledger("settle", "2026-07", now="2026-08-03T00:00:00Z").exit_code == 0


@pytest.mark.parametrize(("wrong", "message", "right"), MISTAKES, ids=[message.split(": ")[1] for _, message, _ in MISTAKES])
def test_a_mistake_gives_its_message_and_its_cure_cures_it(
    wrong: str, message: str, right: str, run_ledger: RunLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_ledger(*shlex.split(NEW)).exit_code == 0
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


def test_the_money_and_five_mistakes_are_shown() -> None:
    assert (len(MONEY), len(MISTAKES)) == (3, 5)
