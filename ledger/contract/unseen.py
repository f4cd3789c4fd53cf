"""Characters that nobody sees, or that a terminal would act on: a text in, where the first stands and what it is out.

Source: specification, section 3, first paragraph.
"""

import re
import unicodedata

from ledger.contract.scalar import TURNING

# What word processors and web pages put where a line may or may not break; nobody sees it, and no name equals one that holds it.
_HIDDEN = frozenset("\u00ad\u200b\u2060")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff" + "".join(sorted(TURNING)) + "]")
_STRANGE = re.compile(f"{_CONTROL.pattern[:-1]}{''.join(sorted(_HIDDEN))}]")


def find_unseen(text: str, *, is_stored: bool) -> int | None:
    """Where the first of them stands; a file that `is_stored` may hold those that hyphenate."""
    found = (_CONTROL if is_stored else _STRANGE).search(text)
    return found.start() if found else None


def unseen_words(character: str) -> str:
    """What it is, and its number."""
    words = "a zero byte" if character == "\0" else "a control character"
    if character in TURNING:
        words = "an invisible character that turns the direction of writing"
    elif character in _HIDDEN:
        words = f"an invisible character, the {unicodedata.name(character).lower()}"
    return f"{words} (U+{ord(character):04X})"
