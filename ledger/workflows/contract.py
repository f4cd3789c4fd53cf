"""What legal does with contract files. `check`: files in, every error and warning out, without a database.

Source: specification, sections 3 and 9.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.model import Contract
from ledger.contract.reader import Places, ReadResult, read_contract
from ledger.contract.source import MAX_BYTES
from ledger.contract.versions import check_versions


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
        try:
            with path.open("rb") as opened:
                content = opened.read(MAX_BYTES + 1)
        except OSError as error:
            read[file], diagnostics[file] = (b"", None), [_unreadable(file, error)]
            continue
        result = read_contract(content, file)
        read[file], diagnostics[file] = (content, result), list(result.diagnostics)
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


def _unreadable(file: str, error: OSError) -> Diagnostic:
    return Diagnostic(
        severity=Severity.ERROR,
        code="unreadable_file",
        file=file,
        line=0,
        column=0,
        found=(error.strerror or "an error of the file system").lower(),
        expected="a contract file that can be read",
        cure="check the name and who may read the file",
    )
