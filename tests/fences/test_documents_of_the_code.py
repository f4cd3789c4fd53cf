"""What documentation says of the code is there."""

import re
from pathlib import Path

import pytest

from ledger.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "ledger").glob("*/__init__.py"))
PAGES = [
    *(ROOT / "README.md", ROOT / "docs" / "finance.md", ROOT / "docs" / "legal.md"),
    *sorted([*(ROOT / "docs").glob("operators*.md"), *(ROOT / "docs" / "contracts").glob("*.md")]),
]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_every_folder_says_what_it_owns_and_names_its_modules(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    assert all(word in text for word in ("Own", "Does not own", "Invariants", "Time"))
    if folder.name not in ("workflows", "cli"):  # whose modules are named after what a person does
        assert [module.name for module in sorted(folder.glob("[a-z]*.py")) if module.stem not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_exists(page: Path) -> None:
    named = re.findall(r"(?:^ {4}|`|\$\()ledger (?:--database \S+ )?([a-z][a-z-]*(?: [a-z]+)?)", page.read_text("utf-8"), flags=re.M)
    known = {words for command in COMMANDS for words in (command, command.split()[0])}
    assert named and [words for words in named if words not in known and words.split()[0] not in COMMANDS] == []
