"""The golden contracts: good and bad files, and the table of rules as edits of good files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ledger.contract.diagnostic import Diagnostic
from ledger.contract.model import Contract
from ledger.contract.reader import Places, read_contract
from ledger.contract.versions import check_versions

GOLDEN = Path(__file__).parents[1] / "golden" / "contracts"
QUIET = (GOLDEN / "good" / "quiet.yaml").read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of rules.yaml: its files, as (name, content), when broken and when good."""

    name: str
    code: str
    test: str | None
    bad: tuple[tuple[str, bytes], ...]
    good: tuple[tuple[str, bytes], ...]
    at: str
    found: str


def edited(text: str, edit: list[str]) -> str:
    """The text with each old part, which stands in it once, replaced by the new one."""
    for old, new in zip(edit[::2], edit[1::2], strict=True):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
        text = text.replace(old, new)
    return text


def cases() -> list[Case]:
    """All rows of rules.yaml."""
    rows: list[dict[str, Any]] = yaml.safe_load((GOLDEN / "rules.yaml").read_text("utf-8"))
    return [_case(row) for row in rows]


def _case(row: dict[str, Any]) -> Case:
    base = (GOLDEN / "good" / row.get("of", "quiet.yaml")).read_text("utf-8")
    first = (("first.yaml", edited(base, row["first"]).encode()),) if "first" in row else ()
    content = (GOLDEN / "bad" / row["file"]).read_bytes() if "file" in row else edited(base, row.get("change", [])).encode()
    return Case(
        name=row["case"],
        code=row["code"],
        test=row.get("test"),
        bad=(*first, ("contract.yaml", content)),
        good=(*first, ("contract.yaml", edited(base, row.get("near", [])).encode()))
        if "near" in row
        else (("contract.yaml", base.encode()),),
        at=row.get("at", ""),
        found=row.get("found", ""),
    )


def check(files: tuple[tuple[str, bytes], ...]) -> tuple[Diagnostic, ...]:
    """Everything that is wrong with the files, by themselves and together."""
    contracts: list[tuple[str, Contract]] = []
    places: dict[str, Places] = {}
    diagnostics: list[Diagnostic] = []
    for name, content in files:
        result = read_contract(content, name)
        diagnostics += result.diagnostics
        places[name] = result.places
        if result.contract:
            contracts.append((name, result.contract))
    return (*diagnostics, *check_versions(contracts, places))


def read(*edit: str, base: str = QUIET) -> Contract:
    """The contract of a golden file after an edit; it must be good."""
    result = read_contract(edited(base, list(edit)).encode(), "contract.yaml")
    assert result.contract is not None, [str(diagnostic) for diagnostic in result.diagnostics]
    return result.contract
