"""CSV that people open in a spreadsheet and save: cells that it would run as a formula, and back again; and what it separates cells by.

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


def delimiter_of(headings: str) -> str:
    """What separates the cells of a file that begins with this line: spreadsheets save commas, semicolons or tabs, by the language.

    >>> delimiter_of("node;at;percent"), delimiter_of("request_id")
    (';', ',')
    """
    return next((one for one in ",;\t" if one in headings), ",")
