"""A diagnostic is a value that says what is wrong with a user's file: where, what was found, what was expected, what to do.

Source: specification, section 3 ("Every error gives file, line, column, code ...").
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error stops the file from being used; a warning is lint that `accept` can silence."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. `line` and `column` count from 1; 0 means the file as a whole. `code` is permanent and documented.

    `end_line` and `end_column` are where what was found has ended (the column is the one after it); 0 where that is not known.
    """

    severity: Severity
    code: str
    file: str
    line: int
    column: int
    found: str
    expected: str
    cure: str
    end_line: int = 0
    end_column: int = 0

    @property
    def place(self) -> str:
        """The file with line and column, as editors and compilers write it."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @property
    def message(self) -> str:
        """What was found, what was expected and what to do."""
        return f"found {self.found}; expected {self.expected}; {self.cure}"

    def __str__(self) -> str:
        return f"{self.place}: {self.severity} {self.code}: {self.message}"


Path = tuple[str | int, ...]  # the keys and places in lists that lead to a part of the contract, as the file writes them


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A diagnostic that has no place yet: `path` names the part of the contract, `offset` the character within
    its text; `at_key` means the key itself and not its value."""

    severity: Severity = Severity.ERROR
    code: str
    path: Path
    found: str
    expected: str
    cure: str
    offset: int = 0
    at_key: bool = False


def warning(code: str, path: Path, found: str, expected: str, cure: str) -> Finding:
    """A finding of lint about the value at a path."""
    return Finding(severity=Severity.WARNING, code=code, path=path, found=found, expected=expected, cure=cure)


class Refusal(ValueError):
    """Why a text cannot be read, raised by the parser of one scalar; the reader adds the place and makes it a diagnostic.

    `found` is empty when it is the whole scalar. `offset` counts characters from the start of the scalar, for a mistake inside it;
    `key` names the one at fault when the refusal is about a mapping.
    """

    def __init__(self, code: str, expected: str, cure: str, *, found: str = "", offset: int = 0, key: str = "") -> None:
        super().__init__(f"found {found}; expected {expected}; {cure}" if found else f"expected {expected}; {cure}")
        self.code = code
        self.expected = expected
        self.cure = cure
        self.found = found
        self.offset = offset
        self.key = key
