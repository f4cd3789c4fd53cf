"""Reads a contract file: bytes to a `Contract` and everything that is wrong with it, in one run.

The source becomes a tree of marked texts, the model reads each text by the type that its key wants, the rules prove what must
hold, and lint says what is probably not meant. A rule is asked as soon as the sections that it looks at could be read.
Source: specification, section 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ledger.contract.diagnostic import Diagnostic, Finding, Path, Refusal, Severity
from ledger.contract.lint import lint
from ledger.contract.lint_texts import lint_texts
from ledger.contract.look_alike import SEPARATORS, as_meant, character_words, look_alikes, meant_by, retyped
from ledger.contract.model import Contract, Queues
from ledger.contract.recovery import read_parts
from ledger.contract.rules import check_sections
from ledger.contract.source import MAX_FINDINGS, Entries, Extent, Keys, Node, Refused, Text, printable, read_source, shown
from ledger.contract.suggestion import cure_of_comma, did_you_mean, listed, near_match
from ledger.contract.terms import Terms
from ledger.contract.texts import sections_of

NUMBERS = ("bad_duration", "bad_multiplier", "bad_number", "bad_percentage", "bad_percentile")  # codes of what has a decimal point


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of a contract stand in its file."""

    root: Node | None

    def of(self, path: Path, *, at_key: bool = False, offset: int = 0) -> Extent:
        """Where the part stands, or the nearest one around it that the file has; all 0 without a file.

        `offset` counts characters of a text; where the file writes it on several lines or with escapes, the text as a whole is meant.
        """
        if self.root is None:
            return 0, 0, 0, 0
        if at_key:
            around, _ = _walk(self.root, path[:-1])
            if isinstance(around, Keys) and path[-1] in around.pairs:
                key = around.pairs[str(path[-1])][0]
                return key.line, key.column, key.end_line, key.end_column
        node, (line, column, end_line, end_column) = _walk(self.root, path)
        moved = offset if isinstance(node, Text) and node.is_verbatim else 0
        return line, column + moved, end_line, end_column

    def text_of(self, path: Path) -> str:
        """The scalar that stands there, as the file writes it, for a message. The file has it."""
        assert self.root is not None, "a file was read"
        node, _ = _walk(self.root, path)
        assert isinstance(node, Text), f"a scalar stands at {path}"
        return printable(node.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """`contract` is None if any diagnostic is an error. Diagnostics are in the order of the file; `places` finds their kin later."""

    contract: Contract | None
    diagnostics: tuple[Diagnostic, ...]
    places: Places


def read_contract(content: bytes, file: str) -> ReadResult:
    """The contract that the bytes write, with its errors and warnings; `file` is only the name they are shown under."""
    parts = read_parts(content, file)
    root = parts.with_missing([field.alias or name for name, field in Contract.model_fields.items()])
    places = Places(root)
    if root is None:
        return ReadResult(contract=None, diagnostics=parts.diagnostics, places=places)
    contract, findings = _validated(root)
    found = [*parts.diagnostics, *(diagnostic_of(finding, file, places) for finding in findings)]
    if contract and not found:
        found += [diagnostic_of(finding, file, places) for finding in lint(contract, lint_texts(root))]
    found.sort(key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    sound = not any(diagnostic.severity is Severity.ERROR for diagnostic in found)
    return ReadResult(contract=contract if sound else None, diagnostics=tuple(found), places=places)


def contract_texts(content: bytes) -> object:
    """What the file of a contract that could be added says: keys, lists and the text of each scalar, without places. JSON can hold it."""
    root, diagnostics = read_source(content, "", is_stored=True)
    assert root is not None and not diagnostics, "the contract could be added"
    return _plain(root)


def diagnostic_of(finding: Finding, file: str, places: Places) -> Diagnostic:
    """The finding with the place where its part of the contract stands."""
    line, column, end_line, end_column = places.of(finding.path, at_key=finding.at_key, offset=finding.offset)
    return Diagnostic(
        severity=finding.severity,
        code=finding.code,
        file=file,
        line=line,
        column=column,
        found=finding.found,
        expected=finding.expected,
        cure=finding.cure,
        end_line=end_line,
        end_column=end_column,
    )


def _validated(root: Node) -> tuple[Contract | None, list[Finding]]:
    """The contract, if the model can read it, and what the model and the rules find."""
    value = _plain(root)
    try:
        contract = Contract.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        told = islice(error.errors(include_url=False, include_input=False), MAX_FINDINGS)
        findings = [finding for details in told for finding in _told(details, root)]
        return None, [*_without_misspelt(findings), *islice(check_sections(_readable_sections(value)), MAX_FINDINGS)]
    return contract, list(islice(check_sections(sections_of(contract)), MAX_FINDINGS))


def _without_misspelt(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings without those of a key that is missing only because it is misspelt."""
    cures = {(finding.path[:-1], finding.cure) for finding in findings if finding.code == "unknown_key"}
    for finding in findings:
        if finding.code != "missing_key" or (finding.path, f"did you mean {finding.expected.removeprefix('the key ')}?") not in cures:
            yield finding


def _plain(node: Node) -> object:
    """The tree as the plain values that the model reads; a refused place stays itself, which no type accepts."""
    match node:
        case Text(text=text):
            return text
        case Entries(items=items):
            return [_plain(item) for item in items]
        case Keys(pairs=pairs):
            return {key: _plain(value) for key, (_, value) in pairs.items()}
        case Refused():
            return node


def _readable_sections(value: object) -> Mapping[str, Any]:
    """The top-level sections that can be read although others cannot."""
    sections: dict[str, Any] = {}
    for name, field in Contract.model_fields.items():
        key = field.alias or name
        if isinstance(value, dict) and key in value:
            with suppress(ValidationError):
                sections[name] = _section(name).validate_python(value[key], by_alias=True, by_name=False)
        elif not field.is_required():
            sections[name] = field.default
    return sections


@cache
def _section(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(Contract.model_fields[name].rebuild_annotation())


def _walk(node: Node, path: Path) -> tuple[Node, Extent]:
    """The node at the path or the nearest around it, and where it is: a value's own place, a mapping's or list's key."""
    place = (1, 1, 0, 0) if isinstance(node, Keys) else _place(node)
    for part in path:
        match node:
            case Keys(pairs=pairs) if part in pairs:
                key, node = pairs[str(part)]
                place = _place(node) if isinstance(node, Text) else (key.line, key.column, key.end_line, key.end_column)
            case Entries(items=items) if isinstance(part, int) and part < len(items):
                node = items[part]
                place = _place(node)
            case _:
                break
    return node, place


def _place(node: Node) -> Extent:
    return node.content if isinstance(node, Text) else (node.line, node.column, 0, 0)


def _told(error: ErrorDetails, root: Node) -> Iterator[Finding]:
    """One error of the model in the words of a contract's reader; none for a place that has its diagnostic already."""
    location = error["loc"]
    path = _path(location)
    node, _ = _walk(root, path)
    refusal = error.get("ctx", {}).get("error")
    if isinstance(node, Refused) and error["type"] != "extra_forbidden":
        return
    match error["type"]:
        case "missing":
            yield _missing(path)
        case "extra_forbidden":
            around, _ = _walk(root, path[:-1])
            yield _unknown_key(path, _keys_at(location[:-1]), around)
        case "literal_error" | "enum":
            yield _choice(path, node, str(error["ctx"]["expected"]))
        case "union_tag_invalid" | "union_tag_not_found":
            yield from _exemption_kind(path, node)
        case "value_error" if isinstance(refusal, Refusal):
            yield _refused(path, node, refusal, at_key=location[-1] == "[key]")
        case _:
            yield _wrong_kind(path, node, error["type"])


def _path(location: tuple[str | int, ...]) -> Path:
    """The model's location in terms of the file: without the kind of an exemption, `by_name` of the queues and the mark of a key."""
    parts = list(location)
    if parts[:1] == ["exemptions"] and len(parts) > 2:
        del parts[2]
    if parts[:2] == ["queues", "by_name"]:
        del parts[1]
    return tuple(part for part in parts if part != "[key]")


def _refused(path: Path, node: Node, refusal: Refusal, *, at_key: bool) -> Finding:
    found = refusal.found or (f"`{printable(str(path[-1]))}`" if at_key else shown(node))
    cure, offset = refusal.cure, refusal.offset
    if isinstance(node, Text) and refusal.code in NUMBERS:
        cure = cure_of_comma(node.text, is_amount=path == ("minimum_commitment",)) or cure
    wrong = next(look_alikes(node.text), None) if isinstance(node, Text) and refusal.code != "bad_text" and not at_key else None
    if isinstance(node, Text) and wrong is not None:  # what is meant is plain to see, and what is wrong with it is not
        offset, character = wrong
        found, cure = f"{shown(node)} with {character_words(character)}", _retyped(node, offset, character)
    return Finding(
        code=refusal.code,
        path=(*path, refusal.key) if refusal.key else path,
        at_key=at_key,
        found=found,
        expected=refusal.expected,
        cure=cure,
        offset=offset,
    )


def _retyped(text: Text, offset: int, character: str) -> str:
    """What to do about a look-alike: a separator that ends a value parts nothing, and one within it is not part of a number or a name."""
    if meant_by(character) not in SEPARATORS:
        return retyped(character)
    if offset == len(text.text) - 1:
        return "remove it"
    return cure_of_comma(as_meant(text.text)) or retyped(character)


def _missing(path: Path) -> Finding:
    section = f" under `{path[-2]}`" if len(path) > 1 and isinstance(path[-2], str) else ""
    key = path[-1]
    shown_by = "; what `ledger contract new` writes has it" if len(path) == 1 else ""
    cure = f"add `{key}`{section}{shown_by}"
    return Finding(code="missing_key", path=path[:-1], found=f"no `{key}`{section}", expected=f"the key `{key}`", cure=cure)


def _unknown_key(path: Path, known: list[str], around: Node) -> Finding:
    key = str(path[-1])
    near = near_match(key, known)
    is_there = isinstance(around, Keys) and near in around.pairs
    homes = _sections_with(key) if len(path) <= 2 else ()
    if near is not None and not is_there:
        cure = f"did you mean `{near}`?"
    elif homes:
        move = "indent it, if it is part of" if len(path) == 1 else "move it to"
        cure = f"{move} {' or '.join(f'`{home}`' for home in homes)}, or remove it"
    else:
        cure = f"remove it: `{near}` is there already" if is_there else "remove it"
    found = f"the key `{printable(key)}`" + (f" under `{printable(str(path[-2]))}`" if len(path) > 1 and isinstance(path[-2], str) else "")
    return Finding(code="unknown_key", path=path, at_key=True, found=found, expected=f"one of {listed(known)}", cure=cure)


@cache
def _sections_with(key: str) -> tuple[str, ...]:
    """The sections at the top of a contract that have a key of this name directly below them."""
    return tuple(
        field.alias or name
        for name, field in Contract.model_fields.items()
        if isinstance(kind := _bare(field.annotation), type) and issubclass(kind, Terms) and key in _keys_of(kind) and kind is not Queues
    )


def _choice(path: Path, node: Node, expected: str) -> Finding:
    choices = expected.replace("'", "")
    if not isinstance(node, Text):
        return Finding(code="wrong_kind", path=path, found=shown(node), expected=choices, cure="write one value here")
    wrong = next(look_alikes(node.text), None)
    if wrong is not None:
        found = f"{shown(node)} with {character_words(wrong[1])}"
        return Finding(code="bad_choice", path=path, found=found, expected=choices, cure=retyped(wrong[1]), offset=wrong[0])
    cure = did_you_mean(node.text, choices.replace(" or ", ", ").split(", "), "write one of these words")
    return Finding(code="bad_choice", path=path, found=shown(node), expected=choices, cure=cure)


def _exemption_kind(path: Path, node: Node) -> Iterator[Finding]:
    assert isinstance(node, Keys)
    if "kind" not in node.pairs:
        yield _missing((*path, "kind"))
        return
    kind = node.pairs["kind"][1]
    if not isinstance(kind, Refused):
        yield _choice((*path, "kind"), kind, "circuit_breaker, async or cold_start")


def _wrong_kind(path: Path, node: Node, error_type: str) -> Finding:
    kinds = {"tuple_type": "a list", "list_type": "a list"}
    expected = kinds.get(error_type, "keys with values")
    cure = "write the entries in [ ] or one a line after `- `" if expected == "a list" else "write keys and their values, indented"
    return Finding(code="wrong_kind", path=path, found=shown(node), expected=expected, cure=cure)


def _keys_at(location: tuple[str | int, ...]) -> list[str]:
    """The keys that the model knows at a location."""
    kind: Any = Contract
    for part in location:
        kind = _inner(kind, part)
    return _keys_of(kind)


def _keys_of(kind: type[Terms]) -> list[str]:
    return [field.alias or name for name, field in kind.model_fields.items()]


def _inner(kind: Any, part: str | int) -> Any:
    """The type of one part of a type: of a field, an entry, a value, or the exemption of a kind."""
    if isinstance(kind, type) and issubclass(kind, Terms):
        field = next(field for name, field in kind.model_fields.items() if part in (field.alias, name))
        return _bare(field.annotation)
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return next(member for member in arguments if part in get_args(member.model_fields["kind"].annotation))
    return _bare(arguments[1] if issubclass(get_origin(kind), Mapping) else arguments[0])


def _bare(kind: Any) -> Any:
    """The type without its annotations and without None."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        members = [member for member in get_args(kind) if member is not NoneType]
        return _bare(members[0]) if len(members) == 1 else kind
    return kind
