"""What legal does with contract files. `check`: files in, every error and warning out, without a database.

Source: specification, sections 3 and 9.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.model import Contract
from ledger.contract.reader import Places, read_contract
from ledger.contract.source import MAX_BYTES
from ledger.contract.versions import check_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file as given, its diagnostics in order, and its lines to quote them from."""

    file: str
    diagnostics: tuple[Diagnostic, ...]
    lines: tuple[str, ...]

    def count(self, severity: Severity) -> int:
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics)


def check_contracts(paths: Sequence[Path]) -> tuple[CheckedFile, ...]:
    """Every finding in each file, and between them; a file given twice is read once. Versions that were added before are not asked."""
    contracts: list[tuple[str, Contract]] = []
    places: dict[str, Places] = {}
    diagnostics: dict[str, list[Diagnostic]] = {}
    lines: dict[str, tuple[str, ...]] = {}
    for path in dict.fromkeys(paths):
        file = str(path)
        try:
            with path.open("rb") as opened:
                content = opened.read(MAX_BYTES + 1)
        except OSError as error:
            diagnostics[file], lines[file] = [_unreadable(file, error)], ()
            continue
        result = read_contract(content, file)
        diagnostics[file] = list(result.diagnostics)
        lines[file] = tuple(re.split("\r\n|\r|\n", content.decode("utf-8", "replace")))
        places[file] = result.places
        if result.contract is not None:
            contracts.append((file, result.contract))
    for diagnostic in check_versions(contracts, places, complete=False):
        diagnostics[diagnostic.file].append(diagnostic)
    return tuple(
        CheckedFile(file=file, diagnostics=tuple(sorted(found, key=lambda each: (each.line, each.column))), lines=lines[file])
        for file, found in diagnostics.items()
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
