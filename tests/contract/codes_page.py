"""docs/contracts/codes.md, made from codes.yaml and the cases of rules.yaml: every code with a bad and a good example and its message."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from .golden import GOLDEN, Case, cases, check

PAGE = Path(__file__).parents[2] / "docs" / "contracts" / "codes.md"
MOST_LINES = 10  # of an example that is a whole file
MOST_CHARACTERS = 130
INTRODUCTION = """\
# Codes of contract findings

`ledger contract check FILE...` shows everything that is wrong with contract files, each as one line
`file:line:column: error code: found …; expected …; what to do`, with the line of the file and a caret. A code never
changes its meaning and is never used again for another. An error stops the file from being used, a warning does not.

The codes stand in order of precedence: where two would fit one place, the first is told, and a file that fails in one
part of this page is told what later parts look for only as far as it could be read. Each comes with an example that is
refused, what is said about it, and one that is not. Of versions, `first.yaml` and `contract.yaml` are checked together.
"""


@cache
def parts() -> list[dict[str, Any]]:
    """The parts of codes.yaml."""
    loaded: list[dict[str, Any]] = yaml.safe_load((GOLDEN / "codes.yaml").read_text("utf-8"))
    return loaded


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for part in parts() for line in _part(part))])


def _part(part: dict[str, Any]) -> Iterator[str]:
    yield f"## {part['title']}\n"
    yield f"{part['about']}\n"
    by_name = {case.name: case for case in cases()}
    for row in part["codes"]:
        yield f"### `{row['code']}`\n"
        yield f"{row['means']}\n"
        yield from _shown(by_name[row["case"]]) if "case" in row else (_block(row["bad"], "text"), "Good:\n", _block(row["good"], "text"))


def _shown(case: Case) -> Iterator[str]:
    """The lines in which the bad and the good files differ, with their sections, and what is said of the bad ones."""
    finding = next(each for each in check(case.bad) if each.code == case.code and case.found in each.found)
    bad = _marked(case.bad, case.good, case.base)
    good = _marked(case.good, case.bad, case.base)
    if finding.line:
        bad[finding.file].add(finding.line - 1)
    for (name, content), (other, beside) in product(case.bad, case.good):
        if name == other:
            _share(_lines(content), bad[name], _lines(beside), good[name])
    yield _block("\n".join(_example(case.bad, bad)))
    yield f"> {finding.message}\n"
    yield "Good:\n"
    yield _block("\n".join(_example(case.good, good)))


Files = tuple[tuple[str, bytes], ...]


def _marked(files: Files, others: Files, base: bytes) -> dict[str, set[int]]:
    """Of each file the numbers of the lines that tell it from the other of its name and from what it was made of, and those of versions."""
    marked: dict[str, set[int]] = {}
    for name, content in files:
        lines = _lines(content)
        compared = [dict(others).get(name, content), *([] if len(content) < len(base) // 2 else [base])]
        marked[name] = {at for beside in compared for at in _different(lines, _lines(beside))}
        if len(files) > 1:
            marked[name] |= {at for at, line in enumerate(lines) if line.startswith(("version", "effective"))}
    return marked


def _share(bad: list[str], in_bad: set[int], good: list[str], in_good: set[int]) -> None:
    """What is shown of one is shown of the other too, if it has the line."""
    for start, beside, length in SequenceMatcher(None, bad, good, autojunk=False).get_matching_blocks():
        shared = {at for at in range(length) if start + at in in_bad or beside + at in in_good}
        in_bad |= {start + at for at in shared}
        in_good |= {beside + at for at in shared}


def _example(files: Files, marked: dict[str, set[int]]) -> Iterator[str]:
    for name, content in files:
        lines = _lines(content)
        if len(files) > 1:
            yield f"# {name}"
        shown = sorted({around for at in marked[name] for around in _with_sections(lines, at)})
        yield from (lines[at] if len(lines[at]) <= MOST_CHARACTERS else f"{lines[at][:MOST_CHARACTERS]} ..." for at in shown[:MOST_LINES])
        if len(shown) > MOST_LINES:
            yield "# ..."


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "backslashreplace")
    return "".join(c if c == "\n" or c.isprintable() else f"<U+{ord(c):04X}>" for c in text).rstrip("\n").split("\n")


def _different(lines: list[str], others: list[str]) -> set[int]:
    """The numbers of the lines that the others lack; where only the others have a line, those of its neighbours."""
    marked: set[int] = set()
    for kind, start, end, _, _ in SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if kind != "equal":
            marked |= set(range(start, end)) or {max(start - 1, 0), min(start, len(lines) - 1)}
    return marked


def _with_sections(lines: list[str], at: int) -> Iterator[int]:
    """The line and those of the sections around it."""
    yield at
    indent = len(lines[at]) - len(lines[at].lstrip())
    for above in range(at - 1, -1, -1):
        of_above = len(lines[above]) - len(lines[above].lstrip())
        if of_above < indent:
            indent = of_above
            yield above


def _block(text: str, language: str = "yaml") -> str:
    return f"```{language}\n{text}\n```\n"
