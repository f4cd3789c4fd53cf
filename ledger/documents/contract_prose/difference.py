"""What changed between two contracts in one language: both contracts' facts and the changes in, a `ToldDifference` and its forms out.

Sentences are plain text, each from the contract that says it. Text and Markdown are escaped as all prose is (`forms`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ledger.contract.difference import FOR_READERS, Change
from ledger.contract.fact import Fact, Facts
from ledger.documents.contract_prose.figures import quoted
from ledger.documents.contract_prose.forms import markdown_of, wrapped
from ledger.documents.contract_prose.prose import DifferenceWords, Language
from ledger.printable import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSide:
    """What one of the contracts says, with its clause (empty for none)."""

    clause: str
    text: str

    @property
    def line(self) -> str:
        """The sentence behind its clause."""
        return f"[{self.clause}] {self.text}" if self.clause else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldChange:
    """A change and its sentences, at least one; numbers go on through the document."""

    number: int
    change: Change
    heading: str
    before: ToldSide | None
    after: ToldSide | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldDifference:
    """The document: changes of meaning in order, and a line for each of what only a reader of the file sees."""

    language: str
    title: str
    words: DifferenceWords
    changes: tuple[ToldChange, ...]
    notes: tuple[str, ...]

    @property
    def headed(self) -> list[tuple[str, list[ToldChange]]]:
        """The changes under their headings."""
        return [(heading, list(group)) for heading, group in groupby(self.changes, lambda told: told.heading)]


def told_difference(before: Sequence[Fact], after: Sequence[Fact], changes: Sequence[Change], language: Language) -> ToldDifference:
    """The changes between the two contracts in a language."""
    old, new = Facts(before), Facts(after)

    def side(fact: Fact | None, facts: Facts) -> ToldSide | None:
        return None if fact is None else ToldSide(clause=printable(fact.clause or ""), text=language.sentences[fact.code](fact, facts))

    told = [
        ToldChange(
            number=number,
            change=change,
            heading=language.headings[change.fact.section],
            before=side(change.before, old),
            after=side(change.after, new),
        )
        for number, change in enumerate((one for one in changes if one.fact.code not in FOR_READERS), 1)
    ]
    words = language.difference
    return ToldDifference(
        language=language.tag, title=words.title(old, new), words=words, changes=tuple(told), notes=tuple(_notes(changes, words))
    )


def _notes(changes: Sequence[Change], words: DifferenceWords) -> list[str]:
    of_readers = [one for one in changes if one.fact.code in FOR_READERS]
    return [words.notes[one.fact.code](words.kinds[one.kind], quoted(one.fact.subject[0])) for one in of_readers]


def difference_text(told: ToldDifference) -> str:
    """For a terminal: lines of at most a hundred columns."""
    words = told.words
    lines = [*wrapped(told.title, "")]
    if not told.changes:
        lines += ["", words.none]
    for heading, group in told.headed:
        lines += ["", heading, ""]
        for one in group:
            start = f"{one.number:>3}. {words.kinds[one.change.kind]}"
            sides = _labelled_sides(one, words)
            if len(sides) == 1:
                lines += wrapped(f"{start}{words.colon}{sides[0][1].line}", " " * 5)
            else:
                lines.append(start)
                for label, side in sides:
                    lines += wrapped(f"{' ' * 7}{label}{side.line}", " " * 9)
    if told.notes:
        lines.append("")
    for note in told.notes:
        lines += wrapped(note, "  ")
    return "\n".join(lines) + "\n"


def difference_markdown(told: ToldDifference) -> str:
    """CommonMark: headings, and a numbered list whose items hold what was said before and what is after."""
    words = told.words
    lines = [f"# {markdown_of(told.title)}"]
    if not told.changes:
        lines += ["", markdown_of(words.none)]
    for heading, group in told.headed:
        lines += ["", f"## {markdown_of(heading)}", ""]
        for one in group:
            start = f"{one.number}. {words.kinds[one.change.kind]}"
            sides = _labelled_sides(one, words)
            if len(sides) == 1:
                lines.append(f"{start}{words.colon}{markdown_of(sides[0][1].line)}")
            else:
                indent = " " * (len(str(one.number)) + 2)
                lines += [start, *(f"{indent}- {label}{markdown_of(side.line)}" for label, side in sides)]
    if told.notes:
        lines += ["", *(f"- {markdown_of(note)}" for note in told.notes)]
    return "\n".join(lines) + "\n"


def _labelled_sides(told: ToldChange, words: DifferenceWords) -> list[tuple[str, ToldSide]]:
    """What is said before and after, each with its label; one of them if the fact was added or removed."""
    return [(label, side) for label, side in ((words.before, told.before), (words.after, told.after)) if side]


def difference_json(told: ToldDifference) -> dict[str, object]:
    """For programs: each change with the code and subject of its fact, its section of the file, and both sentences (null for none)."""
    return {
        "title": told.title,
        "changes": [
            {
                "kind": one.change.kind,
                "code": one.change.fact.code.value,
                "subject": list(one.change.fact.subject),
                "section": one.change.fact.section,
                "before": _side_json(one.before),
                "after": _side_json(one.after),
            }
            for one in told.changes
        ],
        "notes": list(told.notes),
    }


def _side_json(side: ToldSide | None) -> dict[str, object] | None:
    return None if side is None else {"clause": side.clause or None, "text": side.text}


FORMS: dict[str, Callable[[ToldDifference], str]] = {"text": difference_text, "markdown": difference_markdown}
