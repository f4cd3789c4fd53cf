"""Texts from outside as cells of a CSV that people open in a spreadsheet, which runs what looks like a formula; and back again.

Source: OWASP, "CSV Injection".
"""

import re

# The wide ones too: in some languages a spreadsheet takes them for the others.
_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


def defused(text: str) -> str:
    """The text so that a spreadsheet shows it and does not run it: with an apostrophe in front. A number stays one.

    >>> defused("=HYPERLINK(0)"), defused("-12.34"), defused("'tis")
    ("'=HYPERLINK(0)", '-12.34', "''tis")
    """
    is_run = text.startswith((*_RUN, "'")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_run else text


def restored(cell: str) -> str:
    """The text that `defused` was given; a cell whose apostrophe a spreadsheet has taken away comes back as well.

    >>> restored("'=1"), restored("=1"), restored("''tis")
    ('=1', '=1', "'tis")
    """
    return cell.removeprefix("'")
