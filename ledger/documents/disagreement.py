"""Where two accounts of one document disagree, place by place: what is kept of it, and what it should be.

Takes settlements as JSON (documents of settlement_json), journals and single values; gives `Disagreement`s, none where they agree.
Source: specification, section 8, "Reproducible".
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from textwrap import shorten
from typing import Any

Json = Mapping[str, Any]

_NAMED = ("kind", "model", "variant", "queue", "band", "token")  # what a line is called by
_LINE_KEY = (*_NAMED, "version", "forfeited", "rate", "multiplier")
_BREACH_KEY = ("start", "end", "scope", "pooled")
_LONGEST = 80  # characters of a value


class Source(StrEnum):
    """What says what a value should be."""

    EVENTS = "events"
    SEAL = "seal"
    CHAIN = "chain"


_WORDS = {Source.EVENTS: "posted {}, events give {}", Source.SEAL: "kept {}, sealed {}", Source.CHAIN: "found {}, expected {}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """What is kept at a place, and what should be there, as the source says."""

    place: str
    kept: str
    given: str
    source: Source

    @property
    def words(self) -> str:
        """In a line: `line 3 (usage deepseek-v4 standard fast input): posted 25.70, events give 25.40`."""
        return f"{self.place}: {_WORDS[self.source].format(self.kept, self.given)}"


def compare(place: str, kept: object, given: object, source: Source) -> Iterator[Disagreement]:
    """Two values; of objects each key that they have, of arrays each item by its position from 1."""
    if isinstance(kept, Mapping) and isinstance(given, Mapping):
        for key in [*kept, *(key for key in given if key not in kept)]:
            yield from compare(f"{place} {key}".strip(), kept.get(key), given.get(key), source)
    elif _are_lists(kept, given) and isinstance(kept, Sequence) and isinstance(given, Sequence):
        for position, (one, other) in enumerate(zip_longest(kept, given), start=1):
            yield from compare(f"{place} {position}", one, other, source)
    elif kept != given:
        yield Disagreement(place=place, kept=_text(kept), given=_text(given), source=source)


def compare_settlements(kept: Json, given: Json, source: Source, *, but: Sequence[str] = ()) -> Iterator[Disagreement]:
    """Two settlements, their lines and breaches by what they are about; `but` are keys that are not compared."""
    yield from compare_lines(kept["lines"], given["lines"], source)
    windows, others = kept["windows"], given["windows"]
    yield from compare("windows", _without(windows, "breaches"), _without(others, "breaches"), source)
    yield from _compare_keyed(windows["breaches"], others["breaches"], _breach_key, _breach_words, source)
    yield from compare("", _without(kept, "lines", "windows", *but), _without(given, "lines", "windows", *but), source)


def compare_lines(kept: Sequence[Json], given: Sequence[Json], source: Source) -> Iterator[Disagreement]:
    """Lines by what they are of: with other amounts, with other tokens or causes, and lines that only one of them has."""
    yield from _compare_keyed(kept, given, _line_key, _line_words, source)


def is_settlement(document: object) -> bool:
    """Whether the document has the shape of a settlement, as far as it matters to comparing it with another."""
    if not isinstance(document, Mapping) or not isinstance(windows := document.get("windows"), Mapping):
        return False
    listed = (document.get("lines"), windows.get("breaches"))
    return all(isinstance(items, list) and all(isinstance(one, Mapping) for one in items) for items in listed)


def read_json(text: str | bytes) -> object:
    """What the text says; None if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _without(document: Json, *keys: str) -> Json:
    return {key: value for key, value in document.items() if key not in keys}


def _compare_keyed(
    kept: Iterable[Json], given: Iterable[Json], key_of: Callable[[Json], object], words_of: Callable[[Json], str], source: Source
) -> Iterator[Disagreement]:
    wanted: defaultdict[object, list[Json]] = defaultdict(list)
    for one in given:
        wanted[key_of(one)].append(one)
    for position, one in enumerate(kept, start=1):
        place = words_of(one).replace(" ", f" {position} ", 1)
        same = wanted[key_of(one)]
        yield from _compare_one(place, one, same.pop(0) if same else None, source)
    for others in wanted.values():
        for one in others:
            yield from _compare_one(words_of(one), None, one, source)


def _compare_one(place: str, kept: Json | None, given: Json | None, source: Source) -> Iterator[Disagreement]:
    if kept is None or given is None:
        yield Disagreement(place=place, kept=_said(kept), given=_said(given), source=source)
        return
    for field in sorted({*kept, *given}, key=lambda name: (name != "amount", name)):
        if kept.get(field) != given.get(field):
            where = place if field in ("amount", "result") else f"{place}, {field.replace('_', ' ')}"
            yield Disagreement(place=where, kept=_text(kept.get(field)), given=_text(given.get(field)), source=source)


def _said(item: Json | None) -> str:
    """What a line or a breach comes to."""
    return _text(None if item is None else item.get("amount", item.get("result")))


def _line_key(line: Json) -> object:
    of = line.get("of") or {}
    return (*(str(line.get(name)) for name in _LINE_KEY), of.get("period"), of.get("kind"))


def _line_words(line: Json) -> str:
    of = line.get("of") or {}
    names = [line.get("kind"), *(["of", of.get("period"), of.get("kind")] if of else []), *(line.get(name) for name in _NAMED[1:])]
    return f"line ({' '.join(str(name) for name in names if name is not None)})"


def _breach_key(breach: Json) -> object:
    return tuple(str(breach.get(name)) for name in _BREACH_KEY)


def _breach_words(breach: Json) -> str:
    return f"breach ({breach.get('scope')} from {breach.get('start')} to {breach.get('end')})"


def _are_lists(*values: object) -> bool:
    return all(isinstance(value, Sequence) and not isinstance(value, str | bytes) for value in values)


def _text(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return shorten(value, _LONGEST, placeholder=" ...")
    return shorten(json.dumps(value, ensure_ascii=False, default=str), _LONGEST, placeholder=" ...")
