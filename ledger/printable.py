"""Text from outside, made harmless to show: names and messages that telemetry, contracts and command lines bring along."""

import unicodedata

_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, direction marks and other formats, surrogates, line and paragraph separators


def printable(text: str) -> str:
    """The text with characters that act instead of showing written as escapes; line breaks are among them.

    >>> printable("caf\\u00e9 \\u202e\\x1b[2J")
    'café \\\\u202e\\\\u001b[2J'
    """
    if text.isascii() and text.isprintable():  # nearly every name, and there are thousands
        return text
    return "".join(c if unicodedata.category(c) not in _ACTING else f"\\u{ord(c):04x}" for c in text)


def brief(text: str, longest: int = 60) -> str:
    """The same, short enough for a message.

    >>> brief("a" * 100, longest=5)
    'aaaaa…'
    """
    return printable(text if len(text) <= longest else f"{text[:longest]}…")
