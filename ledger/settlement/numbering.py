"""How numbers of issued documents are written: the formats of series, and what is wrong with one.

Takes a format such as `INV-{year}-{number:06}`, a year and a number, gives the text that is printed. Source: specification, section 8.
"""

import re
from enum import StrEnum

MOST_CHARACTERS = 36
MOST_DIGITS = 9  # of a number that a format fills up with zeros

_FIELD = re.compile(r"\{year\}|\{number(?::0([1-9]))?\}")
_LITERAL = re.compile(r"[A-Za-z0-9._/-]*")


class Series(StrEnum):
    """What is numbered by itself, from 1 in each year, for each provider."""

    INVOICE = "invoice"
    CREDIT_NOTE = "credit_note"


DEFAULT_FORMATS = {Series.INVOICE: "INV-{year}-{number:06}", Series.CREDIT_NOTE: "CN-{year}-{number:06}"}


def format_problem(number_format: str) -> str | None:
    """What is wrong with a format, in words that follow on its name; None if nothing is.

    >>> format_problem("{year}/{number}"), format_problem("{year}-{month}")
    (None, 'needs {number} or {number:06} once')
    """
    literal, fields = _FIELD.sub("", number_format), [match[0] for match in _FIELD.finditer(number_format)]
    years = fields.count("{year}")
    if years != 1:
        return "needs {year} once"
    if len(fields) != 2:
        return "needs {number} or {number:06} once"
    if not _LITERAL.fullmatch(literal):
        return "may have letters from A to Z, digits and . _ / - beside {year} and {number}, and no other character"
    if len(number_text(number_format, 9999, 10**MOST_DIGITS - 1)) > MOST_CHARACTERS:
        return f"makes numbers of more than {MOST_CHARACTERS} characters"
    return None


def number_text(number_format: str, year: int, number: int) -> str:
    """The number as it is printed, of a format without a problem. A number of more digits than the format fills up is written in full.

    >>> number_text("INV-{year}-{number:06}", 2026, 41)
    'INV-2026-000041'
    """
    return _FIELD.sub(lambda field: f"{year:04}" if field[0] == "{year}" else f"{number:0{field[1] or 1}}", number_format)


def beside_digits(text: str) -> str:
    """What a format, or a number written by one, has beside digits. If that of two formats differs, they write no number alike.

    >>> beside_digits("INV-{year}-{number:06}") == beside_digits("INV-2026-000041") == "INV--"
    True
    """
    return re.sub("[0-9]", "", _FIELD.sub("", text))
