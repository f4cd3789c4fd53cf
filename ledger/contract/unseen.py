"""Characters that nobody sees, or that a terminal would act on: a text in, where the first stands and what it is out.

Source: specification, section 3, first paragraph.
"""

import re
import unicodedata

from ledger.contract.scalar import TURNING

# What word processors and web pages put where a line may or may not break, fillers, and signs for other programs: nobody sees them, and no
# name equals one that holds them. What joins or varies letters of other scripts is a part of them, and beside ASCII it is nothing.
_HIDDEN = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u2800\u3164\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
    "|(?<=[\x00-\x7f])(?:[\u200c\u200d](?=[\x00-\x7f])|[\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff" + "".join(sorted(TURNING)) + "]")
_STRANGE = re.compile(f"{_CONTROL.pattern}|{_HIDDEN}")


def find_unseen(text: str, *, is_stored: bool) -> int | None:
    """Where the first of them stands; a file that `is_stored` may hold those that nobody sees."""
    found = (_CONTROL if is_stored else _STRANGE).search(text)
    return found.start() if found else None


def unseen_words(character: str) -> str:
    """What it is, and its number."""
    words = "a zero byte" if character == "\0" else "a control character"
    if character in TURNING:
        words = "an invisible character that turns the direction of writing"
    elif not _CONTROL.match(character):
        words = f"an invisible character, the {unicodedata.name(character, 'one without a name').lower()}"
    return f"{words} (U+{ord(character):04X})"
