"""What a message suggests: the known name nearest to a misspelt one, known names in a list, and a value as a contract writes it.

Takes the text that stands in the file; gives words for a cure, or None if nothing is sure."""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 40  # characters of a misspelt name that are compared
MOST_NAMES = 200  # known names that it is compared with, so that no file takes long
MOST_LISTED = 30

COMMA = re.compile(r"([0-9]{1,15}),([0-9]{1,12})(?:%|x|us|ms|s|m|h|d)?")

# By unit, the words that agreements have for it, without the s of several.
_UNIT_WORDS = {
    "us": ("microsecond", "微秒"),
    "ms": ("millisecond", "msec", "毫秒"),
    "s": ("second", "sec", "秒", "秒钟"),
    "m": ("minute", "min", "分", "分钟"),
    "h": ("hour", "hr", "小时", "时"),
    "d": ("day", "天", "日"),
}


def near_match(word: str, known: Iterable[str]) -> str | None:
    """The known name that comes nearest, whatever the case of its letters; None if none is near.

    >>> near_match("targte", ["percentile", "target"]), near_match("CNY", ["target"])
    ('target', None)
    """
    by_lower = {name.lower(): name for name in islice(known, MOST_NAMES)}
    near = get_close_matches(word[:LONGEST_NAME].lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The cure for a name that is not known: the nearest one that is, or else something else."""
    near = near_match(word, known)
    return f"did you mean `{near}`?" if near else otherwise


def listed(names: Sequence[str]) -> str:
    """The names after commas; of many, the first and how many more there are.

    >>> listed(["standard", "vip"])
    'standard, vip'
    """
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def cure_of_comma(text: str, *, is_amount: bool = False) -> str | None:
    """What to write instead of a number with a comma, which may have a unit; None if it is no such number. An amount that can be paid
    has no three digits after the point.

    >>> cure_of_comma("3,50"), cure_of_comma("1,000")
    ('write a decimal point: `3.50`', 'write `1000`, or `1.000` if the comma is to be a decimal point')
    """
    match = COMMA.fullmatch(text)
    if not match:
        return None
    pointed = text.replace(",", ".")
    if len(match[2]) == 3 and is_amount:
        return f"write `{text.replace(',', '')}`"
    if len(match[2]) == 3:
        return f"write `{text.replace(',', '')}`, or `{pointed}` if the comma is to be a decimal point"
    return f"write a decimal point: `{pointed}`"


def duration_meant(text: str) -> str | None:
    """A duration whose unit is a word or a capital, or stands after a space, as a contract writes it.

    >>> duration_meant("30 days"), duration_meant("1 h"), duration_meant("365天"), duration_meant("1M")
    ('30d', '1h', '365d', None)
    """
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) *([^0-9. ]+)", text)
    if not match or match[2] == "M":  # which may be months
        return None
    word = match[2].lower()
    unit = next((unit for unit, words in _UNIT_WORDS.items() if word == unit or word.removesuffix("s") in words), None)
    return f"{match[1]}{unit}" if unit else None


def day_meant(text: str) -> str | None:
    """A day that is written year first in another way, as a contract writes it.

    >>> day_meant("2026/7/1"), day_meant("2026年7月1日"), day_meant("2026-2-30"), day_meant("1/7/2026")
    ('2026-07-01', '2026-07-01', None, None)
    """
    match = re.fullmatch(r"([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})日?", text)
    try:
        return date(*map(int, match.groups())).isoformat() if match else None
    except ValueError:
        return None
