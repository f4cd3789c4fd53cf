"""The page on what changed between contracts shows what the commands say, of the demo's month."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.contract.alternative import alternatives
from ledger.workflows.demo_month import write_demo_month
from tests.contract.golden import read

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts" / "diff.md").read_text("utf-8")


def write_versions(folder: Path) -> None:
    """The two files of which the page speaks."""
    first = second = (ROOT / "contracts" / "acme-bank.yaml").read_text("utf-8")
    changed = re.findall(r"`((?:version|effective|breaches|valued_at): [^`]+)`", PAGE)
    assert len(changed) == 4
    for new in changed:
        key = new.partition(":")[0]
        second, count = re.subn(rf"\b{key}: (\{{from: \S+|[a-z0-9_]+,?)(?=[ \n])", new, second, count=1)
        assert count == 1, new
    second = second.replace("2026-05-", "2026-07-")  # the dates of its examples
    (folder / "acme-v1.yaml").write_text(first)
    (folder / "acme-v2.yaml").write_text(second)


def test_the_texts_of_the_page_are_those_of_the_commands(
    run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_demo_month(tmp_path / "demo")
    write_versions(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_ledger("ingest", "demo/telemetry").exit_code == 0
    assert run_ledger("interval", "add", "demo/breaker-intervals-2026-05.csv").exit_code == 0
    said = []
    for command in re.findall(r"^    ledger (.+)$", PAGE, re.MULTILINE):
        result = run_ledger(*shlex.split(command))
        assert result.exit_code == 0, f"{command}: {result.output}"
        said.append(result.stdout)
    plain, chinese, _, _, replayed, checked = said
    assert replayed.startswith(f"{plain}\n")
    assert re.findall(r"```text\n(.+?)```", PAGE, re.DOTALL) == [plain, chinese, replayed.removeprefix(f"{plain}\n"), checked]


def test_the_warnings_that_the_page_lists_are_those_with_another_choice() -> None:
    listed = re.findall(r"`([a-z0-9_]+)` \(", PAGE.partition("whose other choice is one value")[2])
    edits = [
        *("valued_at: charged_rate", "valued_at: base_rate", "cap: 100%", "cap: none", "bill: produced", "bill: nothing"),
        *("rate_limited: {objective: late}", "rate_limited: {objective: exclude}", "percentile: 99", "percentile: 95"),
        *("> 20000", "> 16000", "default: first_token", "default: inference"),
    ]
    assert {one.finding.code for one in alternatives(read(*edits))} == set(listed) and len(listed) == 8
