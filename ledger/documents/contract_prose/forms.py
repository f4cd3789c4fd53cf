"""The forms of a contract in plain sentences: text for a terminal, Markdown, and one HTML page.

Names in a contract are hostile until they are escaped for the form: a sentence is escaped as a whole, whatever stands in it.
"""

import re
from collections.abc import Callable, Iterator
from unicodedata import east_asian_width

from ledger.documents.contract_prose.prose import Prose, Sentence
from ledger.documents.templates import render_page

_WIDTH = 100  # columns of a terminal that a line fills
_ESCAPED = re.compile(r"[\\`*_\[\]<>&|~$#]|://|(?<=www)\.|@")
_PIECE = re.compile(r"[!-~“”’]+|.")  # a word with its quotation marks; a character of a language without spaces
_NEVER_FIRST = "，。；：、）」？！"


def prose_text(prose: Prose) -> str:
    """For a terminal: lines of at most a hundred columns."""
    lines = [*wrapped(prose.title, ""), "", *wrapped(prose.preface, "")]
    for section in prose.sections:
        lines += ["", section.heading, ""]
        for sentence in section.sentences:
            lines += wrapped(f"{sentence.number:>3}. {_clause(sentence)}{sentence.text}", " " * 5)
            for illustration in sentence.illustrations:
                lines += wrapped(f"{' ' * 7}- {illustration}", " " * 9)
    return "\n".join(lines) + "\n"


def prose_markdown(prose: Prose) -> str:
    """CommonMark: headings, and a numbered list whose items hold their worked numbers."""
    lines = [f"# {markdown_of(prose.title)}", "", markdown_of(prose.preface)]
    for section in prose.sections:
        lines += ["", f"## {markdown_of(section.heading)}", ""]
        for sentence in section.sentences:
            lines.append(f"{sentence.number}. {markdown_of(_clause(sentence) + sentence.text)}")
            indent = " " * (len(str(sentence.number)) + 2)
            lines += [f"{indent}- {markdown_of(illustration)}" for illustration in sentence.illustrations]
    return "\n".join(lines) + "\n"


def prose_html(prose: Prose) -> str:
    """A page that needs nothing else and prints on A4."""
    return render_page("contract.html.j2", {"prose": prose})


FORMS: dict[str, Callable[[Prose], str]] = {"text": prose_text, "markdown": prose_markdown, "html": prose_html}


def _clause(sentence: Sentence) -> str:
    return f"[{sentence.clause}] " if sentence.clause else ""


def markdown_of(text: str) -> str:
    """The text with everything escaped that Markdown would take for more than text, addresses that it would link included."""
    return _ESCAPED.sub(lambda match: f"\\{match[0]}", text)


def wrapped(text: str, indent: str) -> Iterator[str]:
    """The text in lines, the later ones after an indent; spaces within a line stay as they are. Nothing is cut: a long name stays whole."""
    line, width = "", 0
    for piece in _PIECE.findall(text):
        piece_width = sum(2 if east_asian_width(character) in "WF" else 1 for character in piece)
        if width + piece_width > _WIDTH and piece not in _NEVER_FIRST and line.strip():
            yield line.rstrip()
            line, width = indent, len(indent)
            if piece == " ":
                continue
        line, width = line + piece, width + piece_width
    yield line
