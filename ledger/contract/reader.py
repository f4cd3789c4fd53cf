"""Reads a contract file: bytes to a `Contract` and everything that is wrong with it, in one run.

The source becomes a tree of marked texts, the model reads each text by the type that its key wants, the rules prove what must
hold, and lint says what is probably not meant. A rule is asked as soon as the sections that it looks at could be read.
Source: specification, section 3.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ledger.contract.diagnostic import Diagnostic, Finding, Path, Refusal, Severity
from ledger.contract.lint import lint
from ledger.contract.model import Contract, Terms
from ledger.contract.rules import check_sections
from ledger.contract.source import MAX_FINDINGS, Entries, Keys, Node, Refused, Text, printable, read_source, shown
from ledger.contract.texts import sections_of


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of a contract stand in its file."""

    root: Node | None

    def of(self, path: Path, *, at_key: bool = False) -> tuple[int, int]:
        """Line and column of the part, or of the nearest one around it that the file has; 0, 0 without a file."""
        if self.root is None:
            return 0, 0
        if at_key:
            around, _, _ = _walk(self.root, path[:-1])
            if isinstance(around, Keys) and path[-1] in around.pairs:
                key = around.pairs[str(path[-1])][0]
                return key.line, key.column
        _, line, column = _walk(self.root, path)
        return line, column


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """`contract` is None if any diagnostic is an error. Diagnostics are in the order of the file; `places` finds their kin later."""

    contract: Contract | None
    diagnostics: tuple[Diagnostic, ...]
    places: Places


def read_contract(content: bytes, file: str) -> ReadResult:
    """The contract that the bytes write, with its errors and warnings; `file` is only the name they are shown under."""
    root, diagnostics = read_source(content, file)
    places = Places(root)
    if root is None:
        return ReadResult(contract=None, diagnostics=diagnostics, places=places)
    contract, findings = _validated(root)
    found = [*diagnostics, *(diagnostic_of(finding, file, places) for finding in findings)]
    if contract and not found:
        found += [diagnostic_of(finding, file, places) for finding in lint(contract)]
    found.sort(key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    sound = not any(diagnostic.severity is Severity.ERROR for diagnostic in found)
    return ReadResult(contract=contract if sound else None, diagnostics=tuple(found), places=places)


def contract_texts(content: bytes) -> object:
    """What the file of a sound contract says: keys, lists and the text of each scalar, without their places. JSON can hold it."""
    root, diagnostics = read_source(content, "")
    assert root is not None and not diagnostics, "the contract is sound"
    return _plain(root)


def diagnostic_of(finding: Finding, file: str, places: Places) -> Diagnostic:
    """The finding with the place where its part of the contract stands."""
    line, column = places.of(finding.path, at_key=finding.at_key)
    return Diagnostic(
        severity=finding.severity,
        code=finding.code,
        file=file,
        line=line,
        column=column + finding.offset,
        found=finding.found,
        expected=finding.expected,
        cure=finding.cure,
    )


def _validated(root: Node) -> tuple[Contract | None, list[Finding]]:
    """The contract, if the model can read it, and what the model and the rules find."""
    value = _plain(root)
    try:
        contract = Contract.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        told = islice(error.errors(include_url=False, include_input=False), MAX_FINDINGS)
        findings = [finding for details in told for finding in _told(details, root)]
        return None, [*findings, *check_sections(_readable_sections(value))]
    return contract, list(check_sections(sections_of(contract)))


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


def _walk(node: Node, path: Path) -> tuple[Node, int, int]:
    """The node at the path or the nearest around it, and where it is: a value's own place, a mapping's or list's key."""
    line, column = (1, 1) if isinstance(node, Keys) else (node.line, node.column)
    for part in path:
        match node:
            case Keys(pairs=pairs) if part in pairs:
                key, node = pairs[str(part)]
                line, column = (node.line, node.content_column) if isinstance(node, Text) else (key.line, key.column)
            case Entries(items=items) if isinstance(part, int) and part < len(items):
                node = items[part]
                line, column = node.line, node.content_column if isinstance(node, Text) else node.column
            case _:
                break
    return node, line, column


def _told(error: ErrorDetails, root: Node) -> Iterator[Finding]:
    """One error of the model in the words of a contract's reader; none for a place that has its diagnostic already."""
    location = error["loc"]
    path = _path(location)
    node, _, _ = _walk(root, path)
    refusal = error.get("ctx", {}).get("error")
    if isinstance(node, Refused):
        return
    match error["type"]:
        case "missing":
            yield _missing(path)
        case "extra_forbidden":
            yield _unknown_key(path, _keys_at(location[:-1]))
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
    return Finding(
        code=refusal.code,
        path=(*path, refusal.key) if refusal.key else path,
        at_key=at_key,
        found=found,
        expected=refusal.expected,
        cure=refusal.cure,
        offset=refusal.offset,
    )


def _missing(path: Path) -> Finding:
    section = f" under `{path[-2]}`" if len(path) > 1 and isinstance(path[-2], str) else ""
    key = path[-1]
    return Finding(
        code="missing_key", path=path[:-1], found=f"no `{key}`{section}", expected=f"the key `{key}`", cure=f"add `{key}`{section}"
    )


def _unknown_key(path: Path, known: list[str]) -> Finding:
    key = str(path[-1])
    near = get_close_matches(key[:40], known, n=1)
    cure = f"did you mean `{near[0]}`?" if near else "remove it"
    found = f"the key `{printable(key)}`"
    return Finding(code="unknown_key", path=path, at_key=True, found=found, expected=f"one of {', '.join(known)}", cure=cure)


def _choice(path: Path, node: Node, expected: str) -> Finding:
    choices = expected.replace("'", "")
    if not isinstance(node, Text):
        return Finding(code="wrong_kind", path=path, found=shown(node), expected=choices, cure="write one value here")
    near = get_close_matches(node.text[:40], choices.replace(" or ", ", ").split(", "), n=1)
    cure = f"did you mean `{near[0]}`?" if near else "write one of these words"
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
