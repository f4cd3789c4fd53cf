"""The source of a contract file: bytes to a tree of marked texts, and a diagnostic for everything that strict YAML does not allow.

Every scalar stays the text that stands in the file. Anchors, aliases, tags, a second document, duplicate and non-text keys, empty
values, other encodings, control characters, files too large or too deep are errors; syntax errors are told in our own words.
Source: specification, section 3, first paragraph.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import yaml

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.scalar import TURNING

MAX_BYTES = 128 * 1024
MAX_VALUES = 10_000
MAX_DEPTH = 20
MAX_FINDINGS = 200  # a file that is wrong throughout is not a contract; showing more would help nobody
NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A scalar. `content_column` is where its first character stands, after an opening quote."""

    text: str
    line: int
    column: int
    content_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A list."""

    items: Sequence["Node"]
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A mapping: by key, the key as it stands in the file and its value."""

    pairs: dict[str, tuple[Text, "Node"]]
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A place that has its diagnostic already; nothing more is said about it."""

    line: int
    column: int


Node = Text | Entries | Keys | Refused


class _Stop(Exception):
    """Nothing after this point can be read."""


@dataclass(slots=True)
class _Source:
    """The file being read, its diagnostics so far and where the last YAML event began, how many values there were."""

    file: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    last: tuple[int, int] = (1, 1)
    values: int = 0

    def refuse(self, code: str, mark: tuple[int, int], found: str, expected: str, cure: str) -> None:
        line, column = mark
        if len(self.diagnostics) >= MAX_FINDINGS:
            raise _Stop
        self.diagnostics.append(
            Diagnostic(
                severity=Severity.ERROR, code=code, file=self.file, line=line, column=column, found=found, expected=expected, cure=cure
            )
        )

    def read(self, content: bytes) -> Node | None:
        text = self._decoded(content)
        try:
            return self._document(self._events(text))
        except yaml.MarkedYAMLError as error:
            self._refuse_syntax(error)
        except (yaml.YAMLError, ValueError, OverflowError):  # PyYAML lets a few of Python's own errors through, as for "\UFFFFFFFF"
            self.refuse("bad_syntax", self.last, "an escape or a directive after this place", "a plain text", "write the text itself")
        return None

    def _events(self, text: str) -> Iterator[yaml.Event]:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            self.last = _mark(event)
            yield event

    def _decoded(self, content: bytes) -> str:
        if len(content) > MAX_BYTES:
            found = f"{len(content)} bytes"
            self.refuse("too_large", (0, 0), found, f"a contract of at most {MAX_BYTES} bytes", "check that this is the contract file")
            raise _Stop
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.refuse("bad_encoding", (1, 1), "a text in UTF-16", "a text in UTF-8", "save the file as UTF-8")
            raise _Stop
        if content.startswith(b"\xef\xbb\xbf"):
            cure = "save the file as UTF-8 without a byte order mark"
            self.refuse("byte_order_mark", (1, 1), "a byte order mark", "the first key", cure)
            content = content[3:]
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            before = content[: error.start].decode("utf-8")
            found = f"the byte 0x{content[error.start]:02x}, which is not UTF-8"
            self.refuse("bad_encoding", _end_of(before), found, "a text in UTF-8", "save the file as UTF-8")
            raise _Stop from None
        strange = _STRANGE.search(text)
        if strange:
            found = f"the character U+{ord(strange[0]):04X}"
            self.refuse("bad_character", _end_of(text[: strange.start()]), found, "text that can be seen", "remove it")
            raise _Stop
        return text

    def _document(self, events: Iterator[yaml.Event]) -> Node | None:
        next(events)
        start = next(events)
        if isinstance(start, yaml.StreamEndEvent):
            self.refuse("empty_file", (0, 0), "no text", "a contract", "write the contract, or start from a ready-made one")
            return None
        assert isinstance(start, yaml.DocumentStartEvent)
        if start.tags or start.version not in (None, (1, 2)):
            self.refuse("tag", _mark(start), "a directive", "the first key", "remove the lines that begin with %")
        root = self._node(events, next(events), depth=1)
        next(events)
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            self.refuse("several_documents", _mark(after), "a second document", "one contract in a file", "make it a file of its own")
        return root

    def _node(self, events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> Node:
        line, column = _mark(event)
        if isinstance(event, yaml.AliasEvent):
            self.refuse("alias", (line, column), f"the alias *{event.anchor}", "a value", "write the value out")
            return Refused(line=line, column=column)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor is not None:
            self.refuse("anchor", (line, column), f"the anchor &{event.anchor}", "a value", "remove it: write each value where it applies")
        if event.tag is not None:
            cure = "remove the word that begins with !: the key says which type is meant"
            self.refuse("tag", (line, column), "a tag", "a plain value", cure)
        if depth > MAX_DEPTH:
            self.refuse("too_deep", (line, column), f"more than {MAX_DEPTH} levels", "a contract", "close the brackets before this place")
            raise _Stop
        self.values += 1
        if self.values > MAX_VALUES:
            found = f"more than {MAX_VALUES} keys and values"
            self.refuse("too_large", (line, column), found, "a contract", "check that this is the contract file")
            raise _Stop
        if isinstance(event, yaml.ScalarEvent):
            return self._text(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self._node(events, event, depth + 1))
            return Entries(items=items, line=line, column=column)
        pairs: dict[str, tuple[Text, Node]] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self._pair(events, event, depth, pairs)
        return Keys(pairs=pairs, line=line, column=column)

    def _text(self, event: yaml.ScalarEvent) -> Text | Refused:
        line, column = _mark(event)
        if event.style is None and event.value in NULLS:
            found = f"`{event.value}`" if event.value else "nothing"
            self.refuse("empty_value", (line, column), found, "a value", "write the value, or leave the key out if it is optional")
            return Refused(line=line, column=column)
        return Text(text=event.value, line=line, column=column, content_column=column + (event.style in ("'", '"')))

    def _pair(self, events: Iterator[yaml.Event], event: yaml.Event, depth: int, pairs: dict[str, tuple[Text, Node]]) -> None:
        before = len(self.diagnostics)
        key = self._node(events, event, depth + 1)
        value = self._node(events, next(events), depth + 1)
        if not isinstance(key, Text):
            if len(self.diagnostics) == before:
                self.refuse("wrong_kind", (key.line, key.column), shown(key), "a key of one word", "write the key as a word")
        elif key.text in pairs:
            first = pairs[key.text][0]
            found = f"the key {shown(key)} again, first in line {first.line}"
            self.refuse("duplicate_key", (key.line, key.column), found, "each key once", f"remove line {first.line} or line {key.line}")
        else:
            pairs[key.text] = key, value

    def _refuse_syntax(self, error: yaml.MarkedYAMLError) -> None:
        problem = f"{error.context or ''} {error.problem or ''}"
        found, cure = next((words for pattern, words in _SYNTAX if pattern in problem), _OTHER_SYNTAX)
        opening = "scalar" in (error.context or "") or "flow" in (error.context or "")
        mark = (error.context_mark if opening else None) or error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        self.refuse("bad_syntax", place, found, "a key and a value, or a list entry", cure)


# What the YAML library calls it, and what we tell: found, cure.
_SYNTAX: tuple[tuple[str, tuple[str, str]], ...] = (
    ("'\\t'", ("a tab", "indent with spaces")),
    ("quoted scalar found unexpected end", ("a quotation mark that is never closed", "close it")),
    ("quoted scalar found unexpected document", ("a quotation mark that is never closed", "close it")),
    ("unknown escape character", ("a backslash that YAML does not know", "use single quotes, or write the backslash twice")),
    ("escape sequence", ("a backslash that YAML does not know", "use single quotes, or write the backslash twice")),
    ("expected ',' or ']'", ("a `[` that is not closed, or a missing comma", "close it with `]` and put commas between the entries")),
    ("expected ',' or '}'", ("a `{` that is not closed, or a missing comma", "close it with `}` and put commas between the entries")),
    ("mapping values are not allowed", ("a second `: ` or another indentation", "put the value in quotes, or align the line")),
    ("could not find expected ':'", ("a line without `: `", "write `key: value`; put a text of several words in quotes")),
    ("block collection", ("a line that is not a list entry", "align it with its neighbours")),
    ("block mapping", ("a line that does not fit the indentation above it", "align it with its neighbours")),
    ("tag", ("a tag that is not declared", "remove the word that begins with !")),
    ("cannot start any token", ("a character that cannot begin a value", "put the value in quotes")),
)
_OTHER_SYNTAX = ("text that is not YAML", "compare the line with a ready-made contract")

_STRANGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff" + "".join(sorted(TURNING)) + "]")


def read_source(content: bytes, file: str) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    """The tree of the file, or None where none can be built, and what is wrong with its form."""
    source = _Source(file)
    root = None
    with suppress(_Stop):
        root = source.read(content)
    return root, tuple(source.diagnostics)


def shown(node: Node) -> str:
    """What stands at a place, for a message."""
    match node:
        case Text(text=text):
            return f"`{printable(text)}`"
        case Entries():
            return "a list"
        case Keys():
            return "keys with values"
        case Refused():
            return "nothing"


def printable(text: str, *, limit: int = 60) -> str:
    """The text for a message: short and without characters that a terminal would act on."""
    short = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(c if c.isprintable() and c not in TURNING else "?" for c in short)


def _mark(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    return event.start_mark.line + 1, event.start_mark.column + 1


def _end_of(text: str) -> tuple[int, int]:
    """Line and column of what follows the text."""
    lines = re.split("\r\n|\r|\n", text)
    return len(lines), len(lines[-1]) + 1
