"""The page on examples of a contract does what it says: its examples hold, its commands run, and what it shows is what is printed."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ledger.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts" / "examples.md").read_text("utf-8")
TERMS, _, EXAMPLES = (ROOT / "contracts" / "acme-bank.yaml").read_text("utf-8").partition("\nexamples:\n")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["contract", "test", *map(str, arguments)])


def test_its_examples_hold(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "contract.yaml").write_text(f"{TERMS}\nexamples:\n{''.join(blocks)}")
    result = run(tmp_path / "contract.yaml")
    assert result.exit_code == 0 and result.output.endswith("1 file, 5 examples: 5 hold, 0 fail, 0 skipped\n"), result.output


def test_its_commands_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^    ledger contract test (.+)$", PAGE, re.MULTILINE)
    assert len(commands) == 2 and [run(*shlex.split(command)).exit_code for command in commands] == [0, 0]


def test_what_it_shows_is_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failing, missing = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    first = EXAMPLES.index("band: [standard], multiplier: [1.0], charge")
    Path("contract.yaml").write_text(f"{TERMS}\nexamples:\n{EXAMPLES[:first]}{EXAMPLES[first:].replace('[standard]', '[fast]', 1)}")
    line = next(number for number, text in enumerate(Path("contract.yaml").read_text().split("\n"), start=1) if "it: exactly 100" in text)
    assert failing.replace(":100:", f":{line}:") in run("contract.yaml").output
    kept = re.sub(r"  - it: the first two cold starts.*?(?=\n  - it:)", "", EXAMPLES, flags=re.DOTALL)
    Path("contract.yaml").write_text(f"{TERMS}\nexamples:\n{kept}")
    assert run("contract.yaml").output.startswith(missing)
