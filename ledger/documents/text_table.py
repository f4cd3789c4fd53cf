"""Text in columns for a terminal: each column as wide as its widest cell, so that nothing is ever cut or wrapped; colours on request.

Takes cells of one line each, gives lines of spans. Rich's tables do the same and more, but measure and wrap every cell several times:
they took longer than the settlement that they showed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

_GAP = " " * 3


class Style(StrEnum):
    """How a terminal shows a span: the parameter of its escape sequence."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line."""

    text: str
    style: Style = Style.PLAIN


Line = Sequence[Span]


class Table:
    """Rows under headings; a heading that starts with > is of numbers and set to the right."""

    def __init__(self, *headings: str) -> None:
        self._to_right = [heading.startswith(">") for heading in headings]
        self._rows = [[Span(heading.removeprefix(">"), Style.DIM) for heading in headings]]

    def add_row(self, *cells: str | Span, style: Style = Style.PLAIN) -> None:
        """Adds a row with a cell for each heading; `style` is for those that have none of their own."""
        assert len(cells) == len(self._to_right)
        self._rows.append([cell if isinstance(cell, Span) else Span(cell, style) for cell in cells])

    def lines(self, indent: str = "  ") -> Iterator[Line]:
        """The headings and rows, each after the indent."""
        from rich.cells import cell_len  # imported for a table; whoever writes plain lines does not wait for it

        widths = [max(cell_len(cell.text) for cell in column) for column in zip(*self._rows, strict=True)]
        for row in self._rows:
            line = [Span(indent)]
            for cell, width, to_right in zip(row, widths, self._to_right, strict=True):
                blank = " " * (width - cell_len(cell.text))
                line += (Span(f"{blank}{cell.text}" if to_right else f"{cell.text}{blank}", cell.style), Span(_GAP))
            yield line[:-1]


def write_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Writes the lines, in colour if the stream is a terminal and nobody asked for none (NO_COLOR)."""
    stream.writelines(written(lines, is_coloured=stream.isatty() and not os.environ.get("NO_COLOR")))


def written(lines: Iterable[Line], *, is_coloured: bool) -> Iterator[str]:
    """The lines as text with their line ends, without blanks at the end unless they are coloured."""
    for line in lines:
        if is_coloured:
            yield "".join(f"\x1b[{span.style}m{span.text}\x1b[0m" if span.style and span.text else span.text for span in line) + "\n"
        else:
            yield "".join(span.text for span in line).rstrip() + "\n"
