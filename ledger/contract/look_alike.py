"""Characters that a word processor or another keyboard writes where a contract needs one of ASCII: a character in, what is meant out.

Full-width forms and ligatures are what Unicode calls compatible with ASCII; the others, such as dashes and curly quotes, are listed.
Within a text that people read they are letters like others; whoever asks says where they are not. Source: specification, section 3.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

_MEANT = {
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys("‐‒–—―−", "-"),
    **{"、": ",", "。": ".", "×": "*", "÷": "/", "≤": "<=", "≥": ">=", "≠": "!="},
}
SEPARATORS = (",", ";", ":")  # what looks like one of these and stands in brackets was meant to end an entry or a key
QUOTES = ('"', "'")
OPENING = ("[", "{", *QUOTES)
_QUOTED = re.compile("\"[^\"]*\"|'[^']*'")


@cache
def meant_by(character: str) -> str:
    """What the character looks like, in ASCII; empty for ASCII itself and for what looks like nothing in it.

    >>> meant_by("："), meant_by("３"), meant_by("ﬁ"), meant_by("−"), meant_by("推"), meant_by(":")
    (':', '3', 'fi', '-', '', '')
    """
    if character.isascii():
        return ""
    compatible = unicodedata.normalize("NFKC", character)
    return _MEANT.get(character) or (compatible if compatible.isascii() else "")


def look_alikes(text: str) -> Iterator[tuple[int, str]]:
    """Where each such character stands in the text, and the character."""
    return ((at, character) for at, character in enumerate(text) if meant_by(character))


def as_meant(text: str) -> str:
    """The text with every such character written in ASCII."""
    return "".join(meant_by(character) or character for character in text)


def character_words(character: str) -> str:
    """The character by its name in Unicode, and itself or, if it cannot be seen, its number.

    >>> character_words("："), character_words("\\u00a0")
    ('the full-width colon `：`', 'the no-break space (U+00A0)')
    """
    name = unicodedata.name(character, "character").lower().replace("fullwidth", "full-width")
    seen = f"`{character}`" if character.isprintable() else f"(U+{ord(character):04X})"
    return f"the {name} {seen}"


def retyped(character: str) -> str:
    """What to do about it: the keys to press."""
    meant = meant_by(character)
    if meant == " ":
        return "write a plain space in its place"
    return f"write `{meant}`{' and a space' if meant in (':', ',') else ''} in its place"


def mistyped_sign(line: str) -> tuple[int, str] | None:
    """The first character of a line that YAML cannot read which looks like a sign of YAML where one belongs, and its place; or None."""
    for at, character in look_alikes(line):
        before, meant = _QUOTED.sub("", line[:at]), meant_by(character)
        in_brackets = "[" in before or "{" in before
        if before.count('"') % 2 or "#" in before:
            continue
        if (
            (meant == " " and (not before.strip() or before.endswith((":", "-"))))
            or (meant == ":" and (in_brackets or ":" not in before))
            or (meant in OPENING and before.rstrip().endswith((":", "-", ",", "[", "{")))
            or (meant in (",", ";", "]", "}") and in_brackets)
        ):
            return at, character
    return None
