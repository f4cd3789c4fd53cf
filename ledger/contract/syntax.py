"""What the YAML library says of a text that is no YAML, in our own words: its problem in, what was found and what to do out.

A space that is missing is told where it is missing, which the library does not know: it reads on to the next line.
Source: specification, section 3, first paragraph.
"""

import re
from dataclasses import dataclass

# A key at the start of a line or an entry, and its value without a space between them (`- qwen:7b` is a name, `//` part of an address);
# an entry of a list with a key, without a space after the `-`.
_KEY = re.compile(r"(?P<before> *)(?P<name>[A-Za-z_][A-Za-z0-9_-]*):(?P<rest>[^ :/].*)")
_ENTRY = re.compile(r"(?P<before> *)-(?P<rest>(?:[A-Za-z_]+:|\{).*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unspaced:
    """What is written without a space that it needs: where it begins in its line, from 0, the name of its key, and the cure."""

    written: str
    column: int
    name: str
    cure: str


# What the YAML library calls it, and what we tell: found, cure.
_SYNTAX: tuple[tuple[str, tuple[str, str]], ...] = (
    ("'\\t'", ("a tab", "indent with spaces")),
    ("quoted scalar found unexpected end", ("a quotation mark that is never closed", "close it")),
    ("quoted scalar found unexpected document", ("a quotation mark that is never closed", "close it")),
    ("unknown escape character", ("a backslash that YAML does not know", "use single quotes, or write the backslash twice")),
    ("escape sequence", ("a backslash that YAML does not know", "use single quotes, or write the backslash twice")),
    ("expected ',' or ']'", ("a `[` that is not closed, or a missing comma", "close it with `]` and put commas between the entries")),
    ("expected ',' or '}'", ("a `{{` that is not closed, or a missing comma", "close it with `}}` and put commas between the entries")),
    ("mapping values are not allowed", ("a second `: ` in one line", "put the value in quotes")),
    (
        "sequence entries are not allowed",
        ("`- ` where no list entry can stand", "begin the list on a line of its own, or put the text in quotes"),
    ),
    ("mapping keys are not allowed", ("a question mark where no key can stand", "put the text in quotes")),
    ("could not find expected ':'", ("a line without `: `", "write `key: value`; put a text of several words in quotes")),
    ("'<scalar>'", ("text after a value that has ended", "put the whole value in quotes, or align the line")),
    ("block collection", ("a line that is not a list entry", "align it with its neighbours")),
    ("block mapping", ("a line that does not fit the indentation above it", "align it with its neighbours")),
    ("'<stream end>'", ("the end of the file within brackets", "close the bracket")),
    ("node content", ("a sign of YAML where a value belongs", "put the value in quotes, or remove it")),
    ("block scalar", ("a block of text that begins in no way that YAML knows", "write `|` or `>` alone on the line of the key")),
    ("'<document start>'", ("text after the {what} has ended", "remove it, or align it with the lines above")),
    ("incompatible", ("a directive of another YAML than 1.2", "remove the line that begins with %")),
    ("directive", ("a line that begins with %", "remove it")),
    ("alias", ("`*` without a name", "remove it, or put the value in quotes")),
    ("anchor", ("`&` without a name", "remove it, or put the value in quotes")),
    ("tag", ("a tag that is not declared", "remove the word that begins with !")),
    ("cannot start any token", ("a character that cannot begin a value", "put the value in quotes")),
)
_LONGEST_REST = 40  # characters of a value that a cure repeats
_OTHER_SYNTAX = ("text that is not YAML", "compare the line with a ready-made {what}")


def syntax_words(problem: str, what: str) -> tuple[str, str]:
    """What was found, and the cure; `what` is what the file is to be."""
    found, cure = next((words for pattern, words in _SYNTAX if pattern in problem), _OTHER_SYNTAX)
    return found.format(what=what), cure.format(what=what)


def unspaced_key(text: str) -> Unspaced | None:
    """A key that is written together with its value, as `rate:6%`; None for anything else."""
    match = _KEY.fullmatch(text)
    if not match or ": " in match["rest"]:
        return None
    name, rest = match["name"], match["rest"]
    cure = f"write `{name}: {rest}`" if len(rest) <= _LONGEST_REST else f"write a space after `{name}:`"
    return Unspaced(written=f"{name}:{rest}", column=len(match["before"]), name=name, cure=cure)


def unspaced_line(line: str) -> Unspaced | None:
    """The same of a line of a file, or the entry of a list that it begins, as `-it: what`.

    >>> unspaced_line("  name:Acme  # who buys").cure, unspaced_line("  -it: so much").cure, unspaced_line("  name: a:b")
    ('write `name: Acme`', 'write `- it: so much`', None)
    """
    text = line.partition(" #")[0].rstrip()
    entry = _ENTRY.fullmatch(text)
    if not entry:
        return unspaced_key(text)
    rest = entry["rest"]
    cure = f"write `- {rest}`" if len(rest) <= _LONGEST_REST else "write a space after `-`"
    return Unspaced(written=f"-{rest}", column=len(entry["before"]), name="", cure=cure)
