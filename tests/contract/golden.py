"""The golden contracts: good and bad files, and the table of rules as edits of good files.

`python -m tests.contract.golden` writes what follows from the table: the bad files, what is said of them, and the page of codes.
"""

import os
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from ledger.cli.main import cli
from ledger.contract.diagnostic import Diagnostic
from ledger.contract.model import Contract, Effective
from ledger.contract.reader import Places, read_contract
from ledger.contract.versions import check_versions

GOLDEN = Path(__file__).parents[1] / "golden" / "contracts"
QUIET = (GOLDEN / "good" / "quiet.yaml").read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of rules.yaml: its files, as (name, content), when broken and when good, and the file that edits made them of.

    `is_made` says that edits make the broken ones.
    """

    name: str
    code: str
    test: str | None
    bad: tuple[tuple[str, bytes], ...]
    good: tuple[tuple[str, bytes], ...]
    base: bytes
    is_made: bool
    at: str
    found: str

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the broken files below GOLDEN."""
        return tuple(f"bad/{self.name}.{name}" if name == "first.yaml" else f"bad/{self.name}.yaml" for name, _ in self.bad)


def edited(text: str, edit: list[str]) -> str:
    """The text with each old part, which stands in it once, replaced by the new one."""
    for old, new in zip(edit[::2], edit[1::2], strict=True):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
        text = text.replace(old, new)
    return text


@cache
def cases() -> list[Case]:
    """All rows of rules.yaml."""
    rows: list[dict[str, Any]] = yaml.safe_load((GOLDEN / "rules.yaml").read_text("utf-8"))
    return [_case(row) for row in rows]


def _case(row: dict[str, Any]) -> Case:
    base = (GOLDEN / "good" / row.get("of", "quiet.yaml")).read_text("utf-8")
    first = (("first.yaml", edited(base, row["first"]).encode()),) if "first" in row else ()
    by_hand = GOLDEN / "bad" / f"{row['case']}.yaml"
    content = by_hand.read_bytes() if "file" in row else edited(base, row.get("change", [])).encode()
    near = edited(base, row.get("near", [])).encode()
    return Case(
        name=row["case"],
        code=row["code"],
        test=row.get("test"),
        bad=(*first, ("contract.yaml", content)),
        good=(*(first if "near" in row else ()), ("contract.yaml", near)),
        base=base.encode(),
        is_made="test" not in row and "file" not in row,
        at=row.get("at", ""),
        found=row.get("found", ""),
    )


@cache
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


def version(number: int, start: str, until: str | None = None, replaces: int | None = None) -> Contract:
    """The quiet contract as the version of this number, in force from the one day until the other."""
    effective = Effective.model_construct(start=date.fromisoformat(start), until=date.fromisoformat(until) if until else None)
    return read().model_copy(update={"version": number, "effective": effective, "replaces": replaces})


def transcript(case: Case) -> str:
    """What `ledger contract check` says of the broken files of a case, after the command."""
    with chdir(GOLDEN):
        result = CliRunner().invoke(cli, ["contract", "check", *case.files])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return f"$ ledger contract check {' '.join(case.files)}\n{result.output}"


def transcripts() -> dict[str, str]:
    """By case, what bad.txt expects."""
    parts = (GOLDEN / "bad.txt").read_text("utf-8").split("$ ")
    return {case.name: f"$ {part}".rstrip("\n") + "\n" for case, part in zip(_with_files(), parts[1:], strict=True)}


def made_files() -> Iterator[tuple[Path, bytes]]:
    """The bad files that edits make."""
    for case in cases():
        if case.is_made:
            yield from ((GOLDEN / file, content) for file, (_, content) in zip(case.files, case.bad, strict=True))


def _with_files() -> list[Case]:
    return [case for case in cases() if case.test is None]


def _write() -> None:
    from .codes_page import PAGE, page

    made = dict(made_files())
    by_hand = {GOLDEN / case.files[0] for case in _with_files() if not case.is_made}
    for file in set((GOLDEN / "bad").iterdir()) - made.keys() - by_hand:
        os.remove(file)
    for file, content in made.items():
        file.write_bytes(content)
    (GOLDEN / "bad.txt").write_text("\n".join(transcript(case) for case in _with_files()), "utf-8")
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    _write()
