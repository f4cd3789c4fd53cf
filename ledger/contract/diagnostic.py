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
    """One finding. `line` and `column` count from 1; 0 means the file as a whole. `code` is permanent and documented."""

    severity: Severity
    code: str
    file: str
    line: int
    column: int
    found: str
    expected: str
    cure: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.severity} {self.code}: found {self.found}; expected {self.expected}; {self.cure}"
