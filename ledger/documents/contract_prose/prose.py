"""A contract as numbered sentences under headings: facts and illustrations in, a `Prose` in one language out.

Sentences are plain text. A form (`forms`) makes them safe for where they are shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.documents.contract_prose.illustration import Illustration, Illustrations
from ledger.printable import printable

Say = Callable[[Fact, Facts], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How one language says a contract. `headings` are by section of the file; neighbours with the same heading stand under one."""

    tag: str
    title: Callable[[Facts], str]
    preface: str
    headings: Mapping[str, str]
    sentences: Mapping[FactCode, Say]
    illustrations: Mapping[type[Illustration], Callable[[Any, Fact, Facts], str]]
    difference: "DifferenceWords"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceWords:
    """How a language says what changed. `kinds` are by `Change.kind`; `colon` parts one from its only sentence; `before` and `after`
    introduce a sentence; `notes` say, by the code of a fact that only a reader of the file sees, that one of this name changed in such a
    way."""

    title: Callable[[Facts, Facts], str]
    none: str
    kinds: Mapping[str, str]
    colon: str
    before: str
    after: str
    notes: Mapping[FactCode, Callable[[str, str], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A numbered sentence; numbers go on through the document. `illustrations` are sentences too."""

    number: int
    clause: str
    text: str
    illustrations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Sentences under a heading, at least one."""

    heading: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """The document. `language` is a tag as HTML wants it."""

    language: str
    title: str
    preface: str
    sections: tuple[Section, ...]


def contract_prose(facts: Sequence[Fact], illustrations: Illustrations, language: Language) -> Prose:
    """The contract of these facts in a language, in the order of the facts."""
    known = Facts(facts)
    sentences = [
        Sentence(
            number=number,
            clause=printable(fact.clause or ""),
            text=language.sentences[fact.code](fact, known),
            illustrations=tuple(
                dict.fromkeys(language.illustrations[type(one)](one, fact, known) for one in illustrations.get(fact.identity, ()))
            ),
        )
        for number, fact in enumerate(facts, 1)
    ]
    headed = groupby(zip(facts, sentences, strict=True), lambda pair: language.headings[pair[0].section])
    sections = tuple(Section(heading=heading, sentences=tuple(one for _, one in pairs)) for heading, pairs in headed)
    return Prose(language=language.tag, title=language.title(known), preface=language.preface, sections=sections)
