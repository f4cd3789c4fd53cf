"""What a message suggests: the known name that comes near a misspelt one, and known names in a list that can be read."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 40  # characters of a misspelt name that are compared
MOST_NAMES = 200  # known names that it is compared with, so that no file takes long
MOST_LISTED = 30


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
