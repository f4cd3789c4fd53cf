"""The file of a mapping (YAML, `schema: ledger/mapping/v1`) becomes a `Mapping`; those that ledger brings are read the same way.

The reading is strict: an unknown key, a duration or an instant without its unit and an expression outside the whitelist are refused, all
in one run, each with its place. Source: specification, section 2; `docs/operators-ingest.md`.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

import yaml

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.scalar import parse_duration
from ledger.errors import FileRefused, LedgerError
from ledger.ingest.expression import Compiled, ExpressionRefused, condition, constant, expression
from ledger.ingest.given import Asked, instant_us
from ledger.ingest.mapping import (
    COLUMNS,
    DELIMITERS,
    DURATION_POWERS,
    DURATIONS,
    EPOCH_POWERS,
    INTEGERS,
    REQUIRED,
    REQUIRED_OF_ENGINE,
    RFC3339,
    FileFormat,
    Mapping,
    Observations,
    Origin,
    Role,
    Source,
)
from ledger.ingest.unfolding import Unfolding

SCHEMA = "ledger/mapping/v1"
DEEPEST = 50  # levels of its YAML
MOST_SKIPS = 100
MOST_CHARACTERS = 200  # of its name, which each batch and each refused row has
LARGEST_BYTES = 1_000_000
BUILT_IN = Path(__file__).parent / "formats"
ASK = "ask"  # in place of a value that the command line has to give
LONGEST_NAME = 50  # characters of an expression that messages show; a longer one is called by its column
_ONE_NAME = re.compile(r"[@$\w-]{1,40}")
_SKIP_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_OFFSET = re.compile(r"[+-]([01][0-9]|2[0-3]):[0-5][0-9]")

_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where PyYAML has it: other words in a twentieth of the time

T = TypeVar("T")


class MappingRefused(FileRefused):
    """A mapping file cannot be used; `diagnostics` says where and why."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics), cure="docs/operators-ingest.md shows a mapping")


@cache
def built_in_mappings() -> dict[str, Mapping]:
    """The mappings that ledger brings, by name; read once. Their expressions are compiled when one is used."""
    mappings = (read_mapping(path, is_built_in=True) for path in sorted(BUILT_IN.glob("*.yaml")))
    return {mapping.name: mapping for mapping in mappings}


def read_mapping(path: Path, *, is_built_in: bool = False) -> Mapping:
    """The mapping in the file. Raises MappingRefused with every finding, LedgerError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}", cure="name a mapping file that can be read") from error
    reader = _Reader(file=str(path), is_built_in=is_built_in, findings=[])
    if len(content) > LARGEST_BYTES:
        reader.refuse(None, "too-large", "more than 1 MB", "a mapping file")
        raise MappingRefused(reader.findings)
    mapping = reader.mapping(content)
    if mapping is None or reader.findings:
        raise MappingRefused(reader.findings)
    return mapping


@dataclass(slots=True)
class _Reader:
    """Walks the YAML nodes and collects what is wrong with them."""

    file: str
    is_built_in: bool
    findings: list[Diagnostic]
    asks: set[Asked] = field(default_factory=set)

    def refuse(self, node: yaml.Node | None, code: str, found: str, expected: str, cure: str = "correct the mapping") -> None:
        line, column = (node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else (0, 0)
        self.findings.append(
            Diagnostic(
                severity=Severity.ERROR, code=f"mapping-{code}", file=self.file, line=line, column=column,
                found=found, expected=expected, cure=cure,
            )
        )  # fmt: skip

    def mapping(self, content: bytes) -> Mapping | None:
        root = self._root(content)
        if root is None:
            return None
        refused = isinstance(root, yaml.MappingNode) and any(key.value == "refuse" for key, _ in root.value)
        keys = self._keys(
            root,
            required=("schema", "name", "identify", "refuse") if refused else ("schema", "name", "identify", "columns"),
            allowed=("description", "reader") if refused else ("description", "reader", "optional", "role", "record", "join", "skip"),
        )
        if keys is None:
            return None
        if self._text(keys["schema"]) != SCHEMA:
            self.refuse(keys["schema"], "schema", self._text(keys["schema"]) or "something else", SCHEMA)
        reader = self._keys(keys["reader"], allowed=("format", "delimiter", "embedded", "unfold")) if "reader" in keys else None
        reader = reader or {}
        file_format = self._one_of(reader["format"], tuple(FileFormat)) if "format" in reader else None
        unfolding = self._one_of(reader["unfold"], tuple(Unfolding)) if "unfold" in reader else None
        observations = self._observations(keys)
        columns, origin = self._columns(keys["columns"], observations) if not refused else ({}, None)
        name = self._text(keys["name"]) or ""
        if len(name) > MOST_CHARACTERS:
            self.refuse(keys["name"], "value", f"a name of {len(name):,} characters", f"at most {MOST_CHARACTERS}")
        return Mapping(
            name=name,
            description=(self._text(keys["description"]) or "") if "description" in keys else "",
            file_format=FileFormat(file_format) if file_format else None,
            delimiter=self._one_of(reader["delimiter"], DELIMITERS) if "delimiter" in reader else None,
            identify=self._names(keys["identify"]),
            optional=frozenset(self._names(keys["optional"]) if "optional" in keys else ()),
            columns=columns,
            sha256=hashlib.sha256(content).hexdigest(),
            origin=origin,
            asks=frozenset(self.asks),
            observations=observations,
            skip=self._skip(keys["skip"]) if "skip" in keys else {},
            refusal=self._text(keys["refuse"]) if refused else None,
            embedded=frozenset(self._names(reader["embedded"]) if "embedded" in reader else ()),
            unfolding=Unfolding(unfolding) if unfolding else None,
        )

    def _observations(self, keys: dict[str, yaml.Node]) -> Observations | None:
        role = self._one_of(keys["role"], tuple(Role)) if "role" in keys else None
        lone = next((keys[key] for key in ("record", "join") if key in keys), None)
        if role is None:
            if lone is not None and "role" not in keys:
                self.refuse(lone, "role", "no role", "role: gateway | engine, where records are halves of requests")
            return None
        if "record" not in keys:
            self.refuse(keys["role"], "missing-key", "no record", "record: the field with the record's own id")
            return None
        join = self._keys(keys["join"], allowed=("trace", "header")) if "join" in keys else {}
        record, shared = self._compiled(keys["record"]), {name: self._compiled(node) for name, node in (join or {}).items()}
        if record is None:
            return None
        return Observations(role=Role(role), record=record, trace=shared.get("trace"), header=shared.get("header"))

    def _skip(self, node: yaml.Node) -> dict[str, Compiled]:
        names = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        if len(names) > MOST_SKIPS:
            self.refuse(node, "value", f"{len(names):,} names", f"at most {MOST_SKIPS}")
            return {}
        for name in names:
            if not _SKIP_NAME.fullmatch(name):
                self.refuse(node, "value", name, "a name in small letters, such as health_check")
        found = {name: self._compiled(value, condition) for name, value in (self._keys(node, allowed=tuple(names)) or {}).items()}
        return {name: compiled for name, compiled in found.items() if compiled}

    def _root(self, content: bytes) -> yaml.MappingNode | None:
        try:
            events, depth = [], 0
            loader = _FAST_LOADER if self.is_built_in else yaml.SafeLoader
            for event in yaml.parse(content, Loader=loader):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > DEEPEST:  # the time that the rest takes grows with its square
                    self.refuse(None, "yaml", f"more than {DEEPEST} levels", "keys and their values")
                    return None
                events.append(event)
            aliased = [event for event in events if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None)]
            root = None if aliased else yaml.compose(content, Loader=loader)
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
            self.refuse(None, "yaml", str(error).replace("\n", " "), "one YAML document")
            return None
        if aliased:
            self.refuse(None, "alias", "an anchor or an alias", "plain YAML")
        elif not isinstance(root, yaml.MappingNode):
            self.refuse(root, "yaml", "something else", "keys and their values")
        else:
            return root
        return None

    def _keys(self, node: yaml.Node, *, required: tuple[str, ...] = (), allowed: tuple[str, ...]) -> dict[str, yaml.Node] | None:
        """The values by key, or None after a finding."""
        before = len(self.findings)
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, "value", "a single value", f"the keys {', '.join(required + allowed)}")
            return None
        keys: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self._text(key_node) or ""
            if key in keys:
                self.refuse(key_node, "duplicate-key", f"{key} twice", "each key once")
            elif key not in required + allowed:
                self.refuse(key_node, "unknown-key", key, f"one of {', '.join(required + allowed)}")
            keys[key] = value
        for key in required:
            if key not in keys:
                self.refuse(node, "missing-key", f"no {key}", key)
        return keys if len(self.findings) == before else None

    def _text(self, node: yaml.Node) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.value and node.tag.startswith("tag:yaml.org,2002:"):
            text = str(node.value)
            if "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text):
                return text
        self.refuse(node, "value", "no text", "one text")
        return None

    def _names(self, node: yaml.Node) -> tuple[str, ...]:
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(node, "value", "something else", "a list of names")
            return ()
        return tuple(self._text(item) or "" for item in node.value)

    def _one_of(self, node: yaml.Node, choices: Iterable[str]) -> str | None:
        text = self._text(node)
        if text is not None and text not in tuple(choices):
            self.refuse(node, "value", text, f"one of {', '.join(repr(str(choice)) for choice in choices)}")
            return None
        return text

    def _columns(self, node: yaml.Node, observations: Observations | None) -> tuple[dict[str, tuple[Source, ...]], Origin | None]:
        columns: dict[str, tuple[Source, ...]] = {}
        origin = None
        required = REQUIRED_OF_ENGINE if observations and observations.role is Role.ENGINE else REQUIRED
        for name, value in (self._keys(node, required=required, allowed=tuple(c for c in COLUMNS if c not in required)) or {}).items():
            pairs = value.value if isinstance(value, yaml.MappingNode) else []
            constants = {key.value: key_value.value for key, key_value in pairs if isinstance(key, yaml.ScalarNode)}
            if name == "received_at" and "start" in constants:
                origin = self._origin(value)
                columns[name] = ()
            elif name in (Asked.ACCOUNT, Asked.MODEL) and constants == {"constant": ASK}:
                self.asks.add(Asked(name))
                columns[name] = ()
            elif isinstance(value, yaml.SequenceNode):
                columns[name] = tuple(source for item in value.value if (source := self._source(name, item)))
            else:
                source = self._source(name, value)
                columns[name] = (source,) if source else ()
        return columns, origin

    def _origin(self, node: yaml.Node) -> Origin | None:
        keys = self._keys(node, required=("start",), allowed=("step", "value", "unit"))
        if keys is None:
            return None
        if not {"step", "value"} & set(keys):
            expected = "step: the time from one record to the next, or value: the time since the start"
            self.refuse(node, "missing-key", "no step and no value", expected)
            return None
        known: dict[Asked, int | None] = {Asked.START: None, Asked.STEP: None}
        for asked in known:
            if asked in keys and self._text(keys[asked]) == ASK:
                self.asks.add(asked)
            elif asked in keys:
                known[asked] = self._parsed(keys[asked], instant_us if asked is Asked.START else parse_duration)
        # Read like a duration, since it is one: the time since the start.
        pairs = [pair for pair in node.value if pair[0].value in ("value", "unit")]
        since = yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
        after = self._source("e2e_us", since) if "value" in keys else None
        return Origin(start_us=known[Asked.START], step_us=known[Asked.STEP], after=after)

    def _parsed(self, node: yaml.Node, parse: Callable[[object], T]) -> T | None:
        text = self._text(node)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.refuse(node, "value", text, str(error))
            return None

    def _source(self, column: str, node: yaml.Node) -> Source | None:
        units: tuple[str, ...] = ()
        if column in DURATIONS:
            units = tuple(DURATION_POWERS)
        elif column == "received_at":
            units = (RFC3339, *EPOCH_POWERS)
        if isinstance(node, yaml.ScalarNode):
            if units:
                self.refuse(node, "unit", node.value, "{value: ..., unit: " + " | ".join(units) + "}", "say which unit the source has")
                return None
            compiled = self._compiled(node)
            return Source(name=node.value, value=compiled) if compiled else None
        keys = self._keys(node, allowed=("value", "constant", *(("unit",) if units else ()), *self._extras(column)))
        if keys is None:
            return None
        if ("value" in keys) == ("constant" in keys):
            self.refuse(node, "value", "both or neither of value and constant", "one of them")
            return None
        if units and "unit" not in keys:
            self.refuse(node, "unit", "no unit", f"unit: {' | '.join(units)}", "say which unit the source has")
            return None
        value = keys.get("value", keys.get("constant"))
        assert value is not None
        compiled = self._compiled(value) if "value" in keys else constant(self._text(value) or "")
        unit = self._one_of(keys["unit"], units) if "unit" in keys else ""
        offset = self._text(keys["offset"]) if "offset" in keys else ""
        if offset and (unit != RFC3339 or not _OFFSET.fullmatch(offset)):
            self.refuse(keys["offset"], "offset", offset, "a fixed offset such as +08:00, for unit rfc3339")
        cast = self._one_of(keys["cast"], ("integer_from_decimal",)) if "cast" in keys else None
        if compiled is None or unit is None:
            return None
        name = str(value.value) if len(value.value) <= LONGEST_NAME else column.removesuffix("_us")
        return Source(name=name, value=compiled, unit=unit, offset=offset or "", integer_from_decimal=cast is not None)

    @staticmethod
    def _extras(column: str) -> tuple[str, ...]:
        if column == "received_at":
            return ("offset",)
        return ("cast",) if column in INTEGERS or column in DURATIONS else ()

    def _compiled(self, node: yaml.Node, parse: Callable[[str], Compiled] = expression) -> Compiled | None:
        text = self._text(node)
        if text is None:
            return None
        compiled = parse(text)
        try:
            if not self.is_built_in:
                compiled.check()
            return compiled
        except ExpressionRefused as error:
            field = text if _ONE_NAME.fullmatch(text) else "when"
            cure = f"correct it; a field with such a name as {field} stands in double quotes, in YAML in both: '\"{field}\"'"
            self.refuse(node, "expression", str(error), "fields, texts, numbers, + - * ||, comparisons, case, if, coalesce, nullif, lower, "
                        "replace, split_part, regexp_extract, sum_of, elapsed_us, instant_us, row_number(), file_stem()", cure)  # fmt: skip
            return None
