"""JSON objects that are not one to a line: printed over several lines, or in the list of an answer such as `{"data": [...], "meta": ...}`.

The objects of the list `data` or `observations` are the records; an object under `data` is one; an object with neither is a record
itself. A trace that comes before its observations is added to each of them, as `trace`: Langfuse keeps the user there. Memory holds one
record, and what stands around the list, of at most LARGEST_BYTES. Source: the answers of web APIs; Langfuse's export.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ledger.ingest.unfolding import Broken
from ledger.ingest.unfolding.long_texts import without_long_texts

LARGEST_BYTES = 64_000_000
LONG_RECORD_BYTES = 1_000_000  # beyond which texts that no column could hold are left out, since a line is at most 2 MB

_LISTS = frozenset({b"data", b"observations"})
_ENVELOPE = frozenset({"data", "meta", "status", "object", "success", "error"})  # what may stand beside an object under `data`
_START = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{(?:[ \t]*\r?\n|\s*(?:"status"\s*:\s*"success"\s*,\s*)?"(?:data|observations|trace)"\s*:\s*(?:\{|\[\s*[{\]]))'
)
_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_TEXT = re.compile(rb'["\\]')


def fits(start: bytes) -> bool:
    """Whether an object begins on a line of its own, or with a list or object under one of the known names."""
    return _START.match(start) is not None


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The records, each with the line on which it begins. Raises Broken if the content ends inside one, or one is too large."""
    scanner = _Scanner()
    for piece in pieces:
        yield from scanner.feed(piece)
    yield from scanner.end()


@dataclass(slots=True)
class _Scanner:
    """Follows brackets and texts. `outer` is the object around the list without its records, `unit` the record that is being read."""

    depth: int = 0
    in_text: bool = False
    escaped: bool = False
    line: int = 1
    outer: bytearray = field(default_factory=bytearray)
    unit: bytearray = field(default_factory=bytearray)
    unit_line: int = 1
    text: bytearray = field(default_factory=bytearray)  # the last one directly inside the outer object: a key, where a list begins
    in_list: bool = False
    listed: bool = False  # the outer object had a list
    context: bytes = b""  # what is added to each record

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        position = 0
        while position < len(piece):
            if self.escaped:
                self._keep(piece[position : position + 1])
                self.escaped, position = False, position + 1
                continue
            found = (_IN_TEXT if self.in_text else _STRUCTURE).search(piece, position)
            if found is None:
                self._keep(piece[position:])
                break
            self._keep(piece[position : found.start()])
            position = found.end()
            yield from self._step(found[0])

    def end(self) -> Iterator[tuple[int, bytes]]:
        if self.depth or self.in_text:
            raise Broken("the JSON ends in the middle of an object")
        yield from self._stray()

    def _step(self, character: bytes) -> Iterator[tuple[int, bytes]]:
        if self.in_text:
            self._keep(character)
            self.escaped, self.in_text = character == b"\\", character == b"\\"
        elif character == b'"':
            if self.depth == 1:
                self.text.clear()
            self._keep(character)
            self.in_text = True
        elif character in b"{[":
            yield from self._open(character)
        else:
            yield from self._close(character)

    def _open(self, character: bytes) -> Iterator[tuple[int, bytes]]:
        if self._between:
            yield from self._stray()
            self.unit_line = self.line
        if self.depth == 1 and character == b"[" and bytes(self.text).strip(b'"') in _LISTS:
            self._keep(character)
            self.in_list = self.listed = True
            self.context = self.context or self._context()
            self.unit_line = self.line
        else:
            self._keep(character)
        self.depth += 1

    def _close(self, character: bytes) -> Iterator[tuple[int, bytes]]:
        if self.depth == 2 and self.in_list:
            yield from self._stray()
            self.in_list = False
        self._keep(character)
        self.depth = max(self.depth - 1, 0)
        if self.depth == 2 and self.in_list:
            yield self.unit_line, _on_one_line(_with(bytes(self.unit), self.context))
            self.unit.clear()
        elif self.depth == 0:
            yield from self._whole()

    def _whole(self) -> Iterator[tuple[int, bytes]]:
        """The outer object has ended: it is a record itself, or holds one, if it had no list."""
        content, late = bytes(self.outer), self.listed and not self.context and b'"trace"' in self.outer
        if not self.listed:
            yield self.unit_line, _on_one_line(_inner(content))
        elif late and "trace" in _read(content):
            raise Broken("the trace stands behind its observations, which are read already")
        self.outer.clear()
        self.text.clear()
        self.listed, self.context = False, b""

    def _stray(self) -> Iterator[tuple[int, bytes]]:
        """What stands where a record is expected, and is none."""
        around = bytes(self.unit if self.depth else self.outer)
        found = around.strip(b" \t\r\n,\xef\xbb\xbf")
        if found:
            yield self.line - around[around.index(found) :].count(b"\n"), _on_one_line(found)
        (self.unit if self.depth else self.outer).clear()

    @property
    def _between(self) -> bool:
        """Whether a record may begin here."""
        return self.depth == 0 or (self.depth == 2 and self.in_list)

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        kept = self.unit if self.in_list and self.depth >= 2 else self.outer
        if len(kept) + len(part) > LARGEST_BYTES:
            raise Broken(f"one JSON object of more than {LARGEST_BYTES // 1_000_000} MB that is no list of records")
        kept += part
        if self.depth == 1 and self.in_text and not self.in_list:
            self.text += part
        self.line += part.count(b"\n")

    def _context(self) -> bytes:
        trace = _read(bytes(self.outer) + b"]}").get("trace")
        if not isinstance(trace, dict):
            return b""
        return json.dumps({"trace": {key: value for key, value in trace.items() if isinstance(value, str | None)}}).encode()[1:-1]


def _read(content: bytes) -> dict[str, object]:
    """The object; empty if it is none."""
    try:
        found = json.loads(content.decode("utf-8-sig", errors="replace"), parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _inner(content: bytes) -> bytes:
    """The object under `data`, if the answer has nothing else; else the object."""
    found = _read(content) if b'"data"' in content else {}
    inner = found.get("data")
    return json.dumps(inner).encode() if isinstance(inner, dict) and set(found) <= _ENVELOPE else content


def _with(record: bytes, context: bytes) -> bytes:
    if not context or not record.startswith(b"{"):
        return record
    return b"{" + context + (b"" if record[1:-1].isspace() or record == b"{}" else b",") + record[1:]


def _on_one_line(record: bytes) -> bytes:
    """The record without line ends, which JSON has only between its parts."""
    if len(record) > LONG_RECORD_BYTES:
        found = _read(record)
        record = json.dumps(without_long_texts(found)).encode() if found else record
    return record.replace(b"\r", b" ").replace(b"\n", b" ")
