"""Text files in which each line is a record by itself: one pass finds where their lines stand, and then any span is read without the rest.

Takes a file and gives `LineFile`, or None if its lines have to be looked at together: some are blank, very long or no text, or a quoted
cell may span them. Source: specification, section 2.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ledger.errors import LedgerError

BLOCK_BYTES = 1 << 18  # of lines that are found together
LONGEST_LINE_BYTES = 1_000_000  # of lines that can be read so
SHORT_MEAN_BYTES = 1_000  # of lines that fit into little memory together with what is made of them
LONGEST_MEAN_BYTES = 4_000  # of the lines of a block: DuckDB holds 2,048 at once, several times

_BLANK = re.compile(rb"\n(?:[\t\v\f\r ]*\n|[\t\v\f\r ]+\Z)")
_BLANK_FIRST = re.compile(rb"[\t\v\f\r ]*(?:\n|\Z)")
_MAY_BE_BLANK = re.compile(rb"\n[\t\n\v\f\r ]")
_ALL_DIGITS_0 = bytes.maketrans(b".123456789E", b"0" * 10 + b"e")
_INEXACT_DIGITS = 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Lines of a file in one of their own, `before` which the file has as many. `may_be_inexact` unless it was looked for numbers that a
    JSON reader would write anew, and has none."""

    path: Path
    before: int
    may_be_inexact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFile:
    """`first_line` is without its end and a byte order mark; `has_returns` if lines end with CR LF; `is_numbered` if each line begins with
    the number of another file's line, from which it comes."""

    path: Path
    lines: int
    first_line: str
    has_returns: bool
    mean_bytes: int  # of the lines of a block, where they are longest
    is_numbered: bool = False
    # Of blocks of whole lines: the place of the first byte, and how many lines stand before; the file's ends are behind the last.
    starts: "array[int]" = field(repr=False)
    before: "array[int]" = field(repr=False)

    def whole(self) -> Piece:
        """All of it, in which nothing was looked for."""
        return Piece(path=self.path, before=0, may_be_inexact=True)

    def cut(self, first: int, last: int, into: Path, *, find_inexact: bool = False) -> Piece:
        """Write the lines from `first` (from 0) up to `last`, and neighbours of theirs, into a file.

        Raises LedgerError if they are not there any more.
        """
        begin = bisect_right(self.before, first) - 1
        end = min(bisect_right(self.before, max(last - 1, first)), len(self.starts) - 1)
        with self.path.open("rb") as source, into.open("wb") as file:
            source.seek(self.starts[begin])
            left, inexact, behind = self.starts[end] - self.starts[begin], not find_inexact, b""
            while left > 0 and (block := source.read(min(left, BLOCK_BYTES))):
                left -= file.write(block)
                if not inexact:
                    inexact = may_be_inexact(behind + block)
                    behind = block[1 - _INEXACT_DIGITS :]
        if left > 0:
            raise LedgerError(f"{self.path.resolve()}: the file was cut off while it was loaded", cure="load it again when it is whole")
        return Piece(path=into, before=self.before[begin], may_be_inexact=inexact)


def line_file(path: Path, *, is_numbered: bool = False) -> LineFile | None:
    """The file's lines, if each is a record by itself; numbered ones are JSON."""
    starts, before, returns, mean_bytes = array("q", [0]), array("q", [0]), 0, 0
    first_line: bytes | None = None
    for block in _blocks(path):
        if first_line is None:
            first_line = block.partition(b"\n")[0].removeprefix(_BYTE_ORDER_MARK).removesuffix(b"\r")
        quotes_join = not is_numbered and b'"' in block and not first_line.lstrip().startswith(b"{")
        if len(block) > LONGEST_LINE_BYTES or not _is_plain(block) or (quotes_join and _has_open_quote(block)):
            return None
        if b"\r" in block:
            returns += block.count(b"\r\n")
            if block.count(b"\r") != block.count(b"\r\n"):
                return None
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        mean_bytes = max(mean_bytes, -(-len(block) // lines))
        if mean_bytes > LONGEST_MEAN_BYTES:
            return None
        starts.append(starts[-1] + len(block))
        before.append(before[-1] + lines)
    if first_line is None or returns not in (0, before[-1]):
        return None
    return LineFile(
        path=path, lines=before[-1], first_line=first_line.decode(), has_returns=returns > 0, mean_bytes=mean_bytes,
        is_numbered=is_numbered, starts=starts, before=before,
    )  # fmt: skip


def may_be_inexact(text: bytes) -> bool:
    """Whether the text may have a number that a JSON reader would write anew: 16 digits or more together, with points between them or
    none, or an exponent. In a text they do no harm, and are taken for one."""
    digits = text.translate(_ALL_DIGITS_0)
    return b"0" * _INEXACT_DIGITS in digits or b"0e" in digits


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces that end with a line; one that is longer than a line may be is the last."""
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(BLOCK_BYTES):
            whole, newline, behind = piece.rpartition(b"\n")
            if newline:
                yield b"".join((rest, whole, newline))
                rest = behind
            else:
                rest += piece
                if len(rest) > LONGEST_LINE_BYTES:
                    break
    if rest:
        yield rest


def _is_plain(block: bytes) -> bool:
    """Whether each line is a text, and none of them is blank or has characters that end one for others."""
    if b"\0" in block or b"\x01" in block or _BLANK_FIRST.match(block):
        return False
    if _MAY_BE_BLANK.search(block) and _BLANK.search(block):
        return False
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_open_quote(block: bytes) -> bool:
    return any(line.count(b'"') % 2 for line in block.split(b"\n"))
