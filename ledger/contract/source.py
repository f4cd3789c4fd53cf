"""The source of a contract or another file that people write: bytes to a tree of marked texts, and what strict YAML does not allow.

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
from ledger.contract.look_alike import OPENING, QUOTES, SEPARATORS, as_meant, character_words, look_alikes, meant_by, mistyped_sign, retyped
from ledger.contract.other_file import other_file
from ledger.contract.scalar import TURNING
from ledger.contract.suggestion import cure_of_comma
from ledger.contract.syntax import Unspaced, syntax_words, unspaced_key, unspaced_line
from ledger.contract.unseen import find_unseen, unseen_words

CONTRACT = "contract"
MAX_BYTES = 128 * 1024
MAX_VALUES = 10_000
MAX_DEPTH = 20
MAX_FINDINGS = 200  # a file that is wrong throughout is not a contract; showing more would help nobody
NULLS = ("", "~", "null", "Null", "NULL")
Extent = tuple[int, int, int, int]  # line and column of the first character, line and column after the last; these are 0 if not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A scalar, from its first character to the place after its last, quotes included. `comment` is what follows a text without quotes on
    its line from a # on."""

    text: str
    line: int
    column: int
    end_line: int
    end_column: int
    is_quoted: bool
    comment: str = ""

    @property
    def content(self) -> Extent:
        """Where the text itself stands, without its quotes."""
        return self.line, self.column + self.is_quoted, self.end_line, self.end_column - self.is_quoted

    @property
    def is_verbatim(self) -> bool:
        """Whether the file writes the text as it is: on one line and without escapes, so that its places are places of the file."""
        line, column, end_line, end_column = self.content
        return line == end_line and end_column - column == len(self.text)


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
    """The file being read and what it is to be, its lines, its diagnostics so far, the last YAML event, and how many values there were. If
    it `is_stored`, a character that nobody would write today means what it meant when the file was added."""

    file: str
    what: str
    is_stored: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)
    last: yaml.Event | None = None
    values: int = 0
    lines: Sequence[str] = ()

    def refuse(self, code: str, place: tuple[int, int] | Extent, found: str, expected: str, cure: str) -> None:
        if len(self.diagnostics) >= MAX_FINDINGS:
            raise _Stop
        line, column, end_line, end_column = place if len(place) == 4 else (*place, 0, 0)
        self.diagnostics.append(
            Diagnostic(
                severity=Severity.ERROR,
                code=code,
                file=self.file,
                line=line,
                column=column,
                found=found,
                expected=expected,
                cure=cure,
                end_line=end_line,
                end_column=end_column,
            )
        )

    def read(self, content: bytes) -> Node | None:
        text = self._decoded(content)
        self.lines = _LINE_END.split(text)
        try:
            return self._document(self._events(text), text)
        except yaml.MarkedYAMLError as error:
            self._refuse_syntax(error)
        except (yaml.YAMLError, ValueError, OverflowError):  # PyYAML lets a few of Python's own errors through, as for "\UFFFFFFFF"
            place = _mark(self.last) if self.last else (1, 1)
            self.refuse("bad_syntax", place, "an escape or a directive after this place", "a plain text", "write the text itself")
        return None

    def _events(self, text: str) -> Iterator[yaml.Event]:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            self.last = event
            yield event

    def _decoded(self, content: bytes) -> str:
        if len(content) > MAX_BYTES:
            found, expected = f"a file of more than {MAX_BYTES // 1024} KB", f"a {self.what} of at most {MAX_BYTES // 1024} KB"
            self.refuse("too_large", (0, 0), found, expected, f"check that this is the {self.what} file")
            raise _Stop
        if other := other_file(content):
            cure = f"save the {self.what} as plain text in UTF-8, from an editor for text"
            self.refuse("bad_encoding", (0, 0), other, "a text in UTF-8", cure)
            raise _Stop
        if content.startswith(b"\xef\xbb\xbf"):
            cure = "save the file as UTF-8 without a byte order mark"
            self.refuse("byte_order_mark", (1, 1), "an invisible mark at the start (byte order mark)", "the first key", cure)
            content = content[3:]
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            before = content[: error.start].decode("utf-8")
            found = f"the byte 0x{content[error.start]:02x}, which no text in UTF-8 has here"
            cure = "save the file as UTF-8: it is in another encoding, such as Latin-1 or GBK, or damaged"
            self.refuse("bad_encoding", _end_of(before), found, "a text in UTF-8", cure)
            raise _Stop from None
        unseen = find_unseen(text, is_stored=self.is_stored)
        if unseen is not None:
            line, column = _end_of(text[:unseen])
            place = (line, column, line, column + 1)
            self.refuse("bad_character", place, unseen_words(text[unseen]), "text that can be seen", "remove the character")
            raise _Stop
        return text

    def _document(self, events: Iterator[yaml.Event], text: str) -> Node | None:
        next(events)
        start = next(events)
        if isinstance(start, yaml.StreamEndEvent):
            cure = "write it, or begin with: ledger contract new" if self.what == CONTRACT else "write it"
            self.refuse("empty_file", (0, 0), "nothing but comments or empty lines", f"a {self.what}", cure)
            return None
        assert isinstance(start, yaml.DocumentStartEvent)
        assert start.start_mark is not None and start.end_mark is not None
        head = text[start.start_mark.index : start.end_mark.index].splitlines()
        if any(line.startswith("%") and not re.fullmatch(r"%YAML 1\.2 *(#.*)?", line) for line in head):
            found = "a line that begins with %, an instruction to the program that reads the file"
            self.refuse("tag", _mark(start), found, "the first key", "remove the lines that begin with %")
        root = self._node(events, next(events), depth=1, in_brackets=False)
        next(events)
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            found, cure = "a second document, which `---` begins", "put it into a file of its own, or remove the line `---`"
            self.refuse("several_documents", _mark(after), found, f"one {self.what} in a file", cure)
        return root

    def _node(self, events: Iterator[yaml.Event], event: yaml.Event, depth: int, *, in_brackets: bool, is_key: bool = False) -> Node:
        line, column = _mark(event)
        if isinstance(event, yaml.AliasEvent):
            found = f"the alias *{event.anchor}, which stands for a value elsewhere"
            self.refuse("alias", _extent(event), found, "the value itself", "write the value here; a text that begins with * needs quotes")
            return Refused(line=line, column=column)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor is not None:
            cure = "remove it and write each value where it applies; a text that begins with & needs quotes"
            self.refuse("anchor", (line, column), f"the anchor &{event.anchor}, a name for a value", "the value itself", cure)
        if event.tag is not None:
            cure = "remove the word that begins with !; a text that begins with ! needs quotes"
            self.refuse("tag", (line, column), "a tag, which says how to read a value", "the value alone", cure)
        if depth > MAX_DEPTH:
            found, cure = f"more than {MAX_DEPTH} levels of brackets or indentation", "close the brackets that are open before this place"
            self.refuse("too_deep", (line, column), found, f"a {self.what}, which needs few levels", cure)
            raise _Stop
        self.values += 1
        if self.values > MAX_VALUES:
            found, expected = f"more than {MAX_VALUES:,} keys and values", f"a {self.what} of at most {MAX_VALUES:,} keys and values"
            self.refuse("too_large", (line, column), found, expected, f"check that this is the {self.what} file")
            raise _Stop
        if isinstance(event, yaml.ScalarEvent):
            text = self._text(event)
            return text if is_key or not isinstance(text, Text) else self._typed_right(text, in_brackets=in_brackets)
        in_brackets = bool(event.flow_style)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self._node(events, event, depth + 1, in_brackets=in_brackets))
            return Entries(items=items, line=line, column=column)
        pairs: dict[str, tuple[Text, Node]] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self._pair(events, event, depth, pairs, in_brackets=in_brackets)
        return Keys(pairs=pairs, line=line, column=column)

    def _text(self, event: yaml.ScalarEvent) -> Text | Refused:
        place = line, column, end_line, end_column = _extent(event)
        rest = "" if event.style else self._rest(event)
        comment = rest if rest.startswith("#") else ""
        if event.style is None and event.value in NULLS:
            found = f"`{event.value}`" if event.value else "nothing"
            cure = "write the value, or leave the key out if it is optional" + ("; the text itself needs quotes" if event.value else "")
            if comment:
                cure = f"write the value; {comment.partition(' ')[0]} begins a comment: a text that begins with # needs quotes"
            self.refuse("empty_value", place, found, "a value", cure)
            return Refused(line=line, column=column)
        if not self.is_stored and (unseen := find_unseen(event.value, is_stored=False)) is not None:  # the file itself holds none
            found = f"an escape for {unseen_words(event.value[unseen])}"
            self.refuse("bad_character", place, found, "text that can be seen", "remove the escape")
            return Refused(line=line, column=column)
        is_quoted = event.style in ("'", '"')
        return Text(
            text=event.value, line=line, column=column, end_line=end_line, end_column=end_column, is_quoted=is_quoted, comment=comment
        )

    def _rest(self, event: yaml.Event) -> str:
        """What follows on the line, without the spaces before it."""
        _, _, line, column = _extent(event)
        return self.lines[line - 1][column - 1 :].strip() if line <= len(self.lines) else ""

    def _typed_right(self, text: Text, *, in_brackets: bool) -> Text | Refused:
        """The text, unless it holds what looks like the quotes around it or, in brackets, like the end of an entry or a key."""
        if self.is_stored or text.is_quoted or not text.is_verbatim:
            return text
        for at, character in look_alikes(text.text):
            if (at == 0 and meant_by(character) in OPENING) or (in_brackets and meant_by(character) in SEPARATORS):
                self._refuse_look_alike(text.line, text.column + at, character)
                return Refused(line=text.line, column=text.column)
        return text

    def _pair(
        self, events: Iterator[yaml.Event], event: yaml.Event, depth: int, pairs: dict[str, tuple[Text, Node]], *, in_brackets: bool
    ) -> None:
        before = len(self.diagnostics)
        key = self._node(events, event, depth + 1, in_brackets=in_brackets, is_key=True)
        value = self._node(events, next(events), depth + 1, in_brackets=in_brackets)
        unspaced = unspaced_key(key.text) if isinstance(key, Text) and not key.is_quoted and self.diagnostics[before:] else None
        if isinstance(key, Text) and unspaced is not None:
            del self.diagnostics[before:]  # that it has no value is only what follows
            self._refuse_unspaced((key.line, key.column, key.end_line, key.end_column), unspaced)
            pairs.setdefault(unspaced.name, (key, Refused(line=key.line, column=key.column)))
            return
        whole = _broken_by_comma(pairs, key) if isinstance(key, Text) and self.diagnostics[before:] else ""
        if isinstance(key, Text) and (cure := cure_of_comma(whole)):
            del self.diagnostics[before:]  # that it has no value is only what follows
            name, (of, text) = next(reversed(pairs.items()))
            place = (text.line, text.column, key.end_line, key.end_column)
            self.refuse("bad_number", place, f"`{whole}`: a comma separates entries here", "a decimal number such as 2.00", cure)
            pairs[name] = of, Refused(line=text.line, column=text.column)
            return
        wrong = next(look_alikes(key.text), None) if isinstance(key, Text) and key.is_verbatim and not key.is_quoted else None
        if isinstance(key, Text) and wrong is not None and not self.is_stored:
            del self.diagnostics[before:]  # that it has no value is only what follows
            at, character = wrong
            self._refuse_look_alike(key.line, key.column + at, character)
            meant = as_meant(key.text).partition(":")[0].strip(" \"'")
            pairs.setdefault(meant, (key, Refused(line=key.line, column=key.column)))
        elif not isinstance(key, Text):
            if len(self.diagnostics) == before:
                self.refuse("wrong_kind", (key.line, key.column), shown(key), "a key of one word", "write the key as a word")
        elif key.text in pairs:
            first = pairs[key.text][0]
            found = f"the key {shown(key)} again, first in line {first.line}"
            cure = f"remove line {first.line} or line {key.line}" if key.line != first.line else "remove one of the two"
            place = (key.line, key.column, key.end_line, key.end_column)
            self.refuse("duplicate_key", place, found, "each key once", cure)
        else:
            pairs[key.text] = key, value

    def _refuse_look_alike(self, line: int, column: int, character: str) -> None:
        if self.diagnostics and (self.diagnostics[-1].line, self.diagnostics[-1].column) == (line, column):
            return  # told already, as a part of what cannot be read as a whole
        meant, expected, cure = meant_by(character), "a key and a value", retyped(character)
        if meant in QUOTES or meant == ",":
            expected = "a text in straight quotes" if meant in QUOTES else "entries with `,` between them"
            cure = f"{cure}; a text that is to hold it needs straight quotes around it"
        self.refuse("bad_syntax", (line, column, line, column + 1), character_words(character), expected, cure)

    def _refuse_unspaced(self, place: tuple[int, int] | Extent, wrong: Unspaced) -> None:
        self.refuse("bad_syntax", place, f"`{printable(wrong.written)}` without a space", "a key and a value, or a list entry", wrong.cure)

    def _refuse_syntax(self, error: yaml.MarkedYAMLError) -> None:
        problem = f"{error.context or ''} {error.problem or ''}"
        if isinstance(self.last, yaml.ScalarEvent) and self.last.style in ("'", '"') and "'<scalar>'" in problem:
            line, column, end_line, end_column = _extent(self.last)
            if line < end_line:  # a quotation mark that was forgotten is told where it was, and not where the next one is
                found = f"a text in quotes that goes on to line {end_line}"
                cure = "close the quotation mark where the text ends"
                self.refuse("bad_syntax", (line, column, end_line, end_column), found, "a text in quotes on one line", cure)
                return
        mark = error.problem_mark
        begun = error.context_mark if "could not find expected ':'" in problem else None
        near = [told.line for told in (begun, mark, error.context_mark) if told is not None]
        for line in [*near, *(number - 1 for number in near if number)]:
            if line < len(self.lines) and (wrong := mistyped_sign(self.lines[line])):
                self._refuse_look_alike(line + 1, wrong[0] + 1, wrong[1])
                return
        for number in [*near, *(self._line_before(number) for number in near)]:
            if number < len(self.lines) and (unspaced := unspaced_line(self.lines[number])):
                self._refuse_unspaced((number + 1, unspaced.column + 1), unspaced)
                return
        if mark is not None and "mapping values are not allowed" in problem and ":" not in (before := self.lines[mark.line][: mark.column]):
            place = (mark.line + 1, len(before) - len(before.lstrip()) + 1)
            found, cure = "a line that is indented other than the lines above it", "align it with the keys that it belongs to"
            self.refuse("bad_syntax", place, found, "a key and a value, or a list entry", cure)
            return
        found, cure = syntax_words(problem, self.what)
        opening = begun is not None or "scalar" in (error.context or "") or "flow" in (error.context or "")
        mark = (error.context_mark if opening else None) or error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        self.refuse("bad_syntax", place, found, "a key and a value, or a list entry", cure)

    def _line_before(self, number: int) -> int:
        """The last line before it that says something; without one, the first."""
        return next((at for at in range(min(number, len(self.lines)) - 1, 0, -1) if self.lines[at].strip(" ")[:1] not in ("", "#")), 0)


_LINE_END = re.compile("\r\n|\r|\n")


def read_source(content: bytes, file: str, what: str = CONTRACT, *, is_stored: bool = False) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    """The tree of the file, or None where none can be built, and what is wrong with its form; `what` is what the file is to be. If it
    `is_stored`, what could be added once still means what it meant, though it looks like something else and would be refused today."""
    source = _Source(file, what, is_stored)
    root = None
    with suppress(_Stop):
        root = source.read(content)
    return root, tuple(source.diagnostics)


def shown(node: Node) -> str:
    """What stands at a place, for a message."""
    match node:
        case Text(text=text):
            return f"`{printable(text)}`" if text else "an empty text"
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


def _broken_by_comma(pairs: dict[str, tuple[Text, Node]], key: Text) -> str:
    """What a comma broke into the last value and this key; empty if other than one comma stands between them."""
    _, before = next(reversed(pairs.values()), (None, None))
    if not isinstance(before, Text) or before.is_quoted or key.is_quoted:
        return ""
    is_next = (before.end_line, before.end_column + 1) == (key.line, key.column)
    return f"{before.text},{key.text}" if is_next else ""


def _extent(event: yaml.Event) -> Extent:
    assert event.end_mark is not None
    return (*_mark(event), event.end_mark.line + 1, event.end_mark.column + 1)


def _mark(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    return event.start_mark.line + 1, event.start_mark.column + 1


def _end_of(text: str) -> tuple[int, int]:
    """Line and column of what follows the text."""
    lines = _LINE_END.split(text)
    return len(lines), len(lines[-1]) + 1
