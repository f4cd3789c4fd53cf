"""Reads on after a text that is no YAML: the part of the contract in which it stands is left out, and the others are read by themselves.

A part begins with a key at the start of a line. Source: specification, section 3 ("all errors are shown in one run").
"""

import re
from dataclasses import dataclass

from ledger.contract.diagnostic import Diagnostic
from ledger.contract.source import Keys, Node, Refused, Text, read_source

MOST_PARTS = 8  # left out of one file, and
MAX_BYTES = 32 * 1024  # of a file that is read so often: no contract is longer, and none takes long

_PART = re.compile("[A-Za-z_\"']")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadParts:
    """The tree of what could be read, None if nothing could, and what is wrong with the form of the file; `is_whole` unless parts of it
    are left out."""

    root: Node | None
    diagnostics: tuple[Diagnostic, ...]
    is_whole: bool

    def with_missing(self, names: list[str]) -> Node | None:
        """The tree; one without all parts has a refused place for each of these names that it lacks, of which nothing more is said."""
        if self.is_whole or not isinstance(self.root, Keys):
            return self.root
        key = Text(text="", line=0, column=0, end_line=0, end_column=0, is_quoted=False)
        missing: dict[str, tuple[Text, Node]] = {name: (key, Refused(line=0, column=0)) for name in names if name not in self.root.pairs}
        return Keys(pairs=self.root.pairs | missing, line=self.root.line, column=self.root.column)


def read_parts(content: bytes, file: str) -> ReadParts:
    """The tree of the file; where a part is no YAML, of the others."""
    root, found = read_source(content, file)
    told: list[Diagnostic] = []
    while root is None and found and found[-1].code == "bad_syntax" and len(told) < MOST_PARTS and len(content) <= MAX_BYTES:
        without = _without_part(content, found[-1].line)
        if without is None:
            break
        told.append(found[-1])
        content = without
        root, found = read_source(content, file)
    if told and root is None and found and found[-1].code == "empty_file":  # all that it holds was left out
        found = ()
    return ReadParts(root=root, diagnostics=(*told, *found), is_whole=not told)


def _without_part(content: bytes, line: int) -> bytes | None:
    """The file with empty lines in place of the part that holds the line, so that all others stay where they are; None if none does."""
    lines = re.split("(\r\n|\r|\n)", content.decode("utf-8"))  # each line and its end
    starts = [at for at in range(0, len(lines), 2) if _PART.match(lines[at])]
    start = max((at for at in starts if at <= 2 * (line - 1)), default=None)
    if start is None:
        return None
    end = min((at for at in starts if at > start), default=len(lines))
    lines[start:end] = [text if at % 2 else "" for at, text in enumerate(lines[start:end])]
    return "".join(lines).encode("utf-8")
