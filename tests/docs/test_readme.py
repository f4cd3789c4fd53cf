"""The commands of the README do what it says, in its order, and its links lead somewhere."""

import re
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.workflows.demo_month import write_demo_month

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("ledger/**/README.md")])


def test_the_walk_through_runs_as_written(run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "contracts").symlink_to(ROOT / "contracts")
    write_demo_month(tmp_path / "ledger-demo")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    ledger (.+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {command.split()[0] for command in commands} >= {"contract", "ingest", "interval", "quarantine", "settle"}
    for command in commands:
        result = run_ledger(*shlex.split(command))
        assert result.exit_code == 0, f"{command}: {result.stderr}"
    assert list((tmp_path / "settlements" / "2026-05").glob("*.html"))
    told = (ROOT / "docs" / "finance.md").read_text().partition("    ledger explain acme-s2616-000\n\n")[2].partition("\n\n")[0]
    explained = run_ledger("explain", "acme-s2616-000").stdout
    assert textwrap.dedent(told) == explained[explained.index("under acme-bank-llm") :].rstrip("\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_of_a_page_is_dead(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []
