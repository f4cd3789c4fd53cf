"""Lines of a text file that DuckDB takes as they are: it loses lines of many megabytes, and what is behind a lone CR where others end with
CR LF, without a word, counts lines twice where some end with CR LF and some with LF, and fails at one that it cuts inside a character.

Takes a file and gives itself, or a copy in which each such line is one that says what is wrong with it. Source: specification, section 2,
"nothing is dropped in silence".
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LONGEST_LINE_BYTES = 2_000_000
RESERVED = "\x01\x02\x03"  # stands in no line that is sound
FAULT_MARK = f"{RESERVED}!"  # behind it the SHA-256 of the line, and the fault
SHA256_DIGITS = 64

_PIECE_BYTES = 1 << 20
_LINE_END = re.compile(rb"\r\n?|\n")


def sound_file(file: Path, copy: Path, *, kept_bytes: int = 0) -> Path:
    """The file if all of its lines are sound, else a copy, which ends them with LF. The first `kept_bytes` of a line that is not stand
    before its mark."""
    if _is_sound(file):
        return file
    with copy.open("wb") as written:
        for block, _ in _sound_blocks(file, kept_bytes):
            written.write(block.replace(b"\r\n", b"\n"))
    return copy


def _is_sound(file: Path) -> bool:
    """Whether all of its lines are, and end alike."""
    newlines, returns = 0, 0
    for block, changed in _sound_blocks(file, 0):
        newlines, returns = newlines + block.count(b"\n"), returns + block.count(b"\r\n")
        if changed:
            return False
    return returns in (0, newlines)


def _sound_blocks(path: Path, kept_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """The lines, some at once, and whether they were changed."""
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            block = rest + piece
            # The LF of a CR at the end may follow.
            end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
            if end:
                yield _sound(block[:end], kept_bytes)
            rest = block[end:]
            if len(rest) > LONGEST_LINE_BYTES + _PIECE_BYTES and not rest.endswith(b"\r"):
                marked, rest = _long_line(file, rest, kept_bytes)
                yield marked, True
    if rest:
        yield _sound(rest, kept_bytes)


def _long_line(file: BinaryIO, start: bytes, kept_bytes: int) -> tuple[bytes, bytes]:
    """The mark of the line that begins so and of which the file has the rest, and what the file has behind it, its end first."""
    digest, behind = hashlib.sha256(start), b""
    while piece := file.read(_PIECE_BYTES):
        found = _LINE_END.search(piece)
        digest.update(piece[: found.start()] if found else piece)
        if found:
            behind = piece[found.start() :]
            break
    return _marked(start[:kept_bytes], digest.hexdigest(), _TOO_LONG), behind


_TOO_LONG = "the line is longer than 2 MB"


def _fault(line: bytes) -> str | None:
    if len(line) > LONGEST_LINE_BYTES:
        return _TOO_LONG
    if RESERVED.encode() in line:
        return "the line holds control characters"
    return None if _is_utf8(line) else "the line is not UTF-8"


def _sound(block: bytes, kept_bytes: int) -> tuple[bytes, bool]:
    has_lone_returns = block.count(b"\r") != block.count(b"\r\n")
    if not has_lone_returns and len(block) <= LONGEST_LINE_BYTES and RESERVED.encode() not in block and _is_utf8(block):
        return block, False
    lines = _LINE_END.split(block)
    faults = [_fault(line) for line in lines]
    if not has_lone_returns and not any(faults):
        return block, False
    sound = (
        line if fault is None else _marked(line[:kept_bytes], hashlib.sha256(line).hexdigest(), fault)
        for line, fault in zip(lines, faults, strict=True)
    )  # fmt: skip
    return b"\n".join(sound), True


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked(kept: bytes, sha256: str, fault: str) -> bytes:
    return kept + f"{FAULT_MARK}{sha256}{fault}".encode()
