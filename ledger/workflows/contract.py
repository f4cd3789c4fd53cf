"""What legal does with contract files. `check`: files in, every error and warning out, without a database.

Source: specification, sections 3 and 9.
"""

import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.model import Contract
from ledger.contract.reader import Places, ReadResult, diagnostic_of, read_contract
from ledger.contract.source import MAX_BYTES
from ledger.contract.versions import check_versions
from ledger.workflows.example_days import check_example_days
from ledger.workflows.governing_document import check_document


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file as given, its bytes, what they mean (None if that is not known) and where, and the diagnostics in order of place."""

    file: str
    content: bytes
    contract: Contract | None
    places: Places
    diagnostics: tuple[Diagnostic, ...]

    @property
    def lines(self) -> list[str]:
        """The lines of the file, to quote them under a diagnostic."""
        return re.split("\r\n|\r|\n", self.content.decode("utf-8", "replace"))

    def count(self, severity: Severity) -> int:
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics)


def check_contracts(paths: Sequence[Path]) -> tuple[CheckedFile, ...]:
    """Every finding in each file, and between them; a file given twice is read once. Versions that were added before are not asked."""
    read: dict[str, tuple[bytes, ReadResult | None]] = {}
    diagnostics: dict[str, list[Diagnostic]] = {}
    for path in dict.fromkeys(paths):
        file = str(path)
        content = _content(path)
        if isinstance(content, str):
            read[file], diagnostics[file] = (b"", None), [_unreadable(file, content)]
            continue
        result = read_contract(content, file)
        read[file], diagnostics[file] = (content, result), list(result.diagnostics)
        if result.contract:
            findings = [*check_example_days(result.contract, result.places), *check_document(path, result.contract)]
            diagnostics[file] += [diagnostic_of(finding, file, result.places) for finding in findings]
    contracts = [(file, result.contract) for file, (_, result) in read.items() if result and result.contract]
    for diagnostic in check_versions(contracts, {file: result.places for file, (_, result) in read.items() if result}, complete=False):
        diagnostics[diagnostic.file].append(diagnostic)
    return tuple(
        CheckedFile(
            file=file,
            content=content,
            contract=result.contract if result else None,
            places=result.places if result else Places(None),
            diagnostics=tuple(sorted(diagnostics[file], key=lambda each: (each.line, each.column))),
        )
        for file, (content, result) in read.items()
    )


_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe, which need not end",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _content(path: Path) -> bytes | str:
    """The bytes of a file, one more than a contract may have at most; or why there are none. Only a plain file is sure to end."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind != stat.S_IFREG:
            return _OTHER_KINDS.get(kind, "something other than a file")
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        return (error.strerror or "an error of the file system").lower()


def _unreadable(file: str, why: str) -> Diagnostic:
    return Diagnostic(
        severity=Severity.ERROR,
        code="unreadable_file",
        file=file,
        line=0,
        column=0,
        found=why,
        expected="a contract file that can be read",
        cure="check the name, that it is a file, and that you may read it",
    )
