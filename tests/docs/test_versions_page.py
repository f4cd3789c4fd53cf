"""The commands of the page on versions and approvals do what it says, in its order, and its table is true."""

import re
import shlex
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import Result

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts" / "versions.md").read_text()
REQUIRED = re.findall(r"^require_approvals: .*\n", PAGE, re.MULTILINE)[0]


def write_versions(folder: Path) -> None:
    """The two versions of which the page speaks."""
    first = (ROOT / "contracts" / "acme-bank.yaml").read_text().replace("version: 1\n", f"version: 1\n{REQUIRED}", 1)
    [number, replaces, effective] = re.findall(r"`(version: 2|replaces: 1|effective: [^`]+)`", PAGE)
    second = re.sub(r"^effective: .*$", effective, first.replace("version: 1\n", f"{number}\n{replaces}\n", 1), flags=re.MULTILINE)
    for month, later in (("2026-06-01T", "2026-07-01T"), ("2026-05-31T", "2026-06-30T"), ("2026-05", "2026-06")):
        second = second.replace(month, later)  # its examples lie on its own days
    (folder / "acme-v1.yaml").write_text(first)
    (folder / "acme-v2.yaml").write_text(second)


def test_the_page_runs_as_written(run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_versions(tmp_path)
    hashed = sha256(Path("acme-v1.yaml").read_bytes()).hexdigest()
    said = {}
    for command in re.findall(r"^    ledger (.+)$", PAGE, re.MULTILINE):
        words, _, file = command.replace("$(sha256sum acme-v1.yaml | cut -d' ' -f1)", hashed).partition(" > ")
        result = run_ledger(*shlex.split(words))
        assert result.exit_code == 0, f"{command}: {result.output}"
        said[command] = result
        if file:
            Path(file).write_bytes(result.stdout_bytes)
    assert Path("read.yaml").read_bytes() == Path("acme-v1.yaml").read_bytes()
    assert "needs approval before it is settled: legal, finance" in said["contract add acme-v1.yaml"].stderr
    assert [result.stdout.startswith("already approved") for command, result in said.items() if "approve " in command] == [
        False,
        False,
        True,
    ]
    assert [line for line in said["contract list --unapproved"].stdout.splitlines() if " version " in line and "from" not in line] == [
        f"acme-bank-llm version 2  Acme Bank Co.  sha256 {sha256(Path('acme-v2.yaml').read_bytes()).hexdigest()[:12]}"
    ]
    told = said["contract history acme-bank-llm"].stdout
    assert re.findall(r"version \d (?:added|approved for \w+)", told) == [
        "version 1 added", "version 1 approved for legal", "version 1 approved for finance", "version 2 added",
    ]  # fmt: skip
    for month, code in (("2026-05", 0), ("2026-06", 1)):  # version 2 is in force from June on
        assert run_ledger("settle", month, now="2026-08-01T00:00:00Z").exit_code == code
    assert run_ledger("settle", "2026-06", "--dry-run", now="2026-08-01T00:00:00Z").exit_code == 0
