"""The table of keys has every key of the contract language, and an example of each that can be written there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ledger.contract.reader import contract_texts
from ledger.contract.schema import contract_schema

PAGE = (Path(__file__).parents[2] / "docs" / "contracts" / "keys.md").read_text("utf-8")
ROWS = re.findall(r"^\| (`.+?`) \| (.+?) \| `(.+)` \|$", PAGE, re.MULTILINE)
SCHEMA = contract_schema()
PARTS = SCHEMA["$defs"]


def keys_of(part: dict[str, Any], key: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The keys that hold values, as the page calls them, with what may be written and whether it, or what it is in, may be left out."""
    if "$ref" in part:
        yield from keys_of({**PARTS[part["$ref"].rpartition("/")[2]], "description": part.get("description")}, key)
        return
    inner = part.get("items", {})
    kinds = part.get("oneOf", []) + inner.get("oneOf", [])
    if kinds or "$ref" in inner:
        for kind in kinds or [inner]:
            yield from keys_of(kind, key)
        return
    if not part.get("properties") and not isinstance(part.get("additionalProperties"), dict):
        yield key, part, False
        return
    for name, value in part.get("properties", {}).items():
        for below, written, is_optional in keys_of(value, f"{key}.{name}" if key else name):
            yield below, written, is_optional or name not in part.get("required", ())
    if isinstance(named := part.get("additionalProperties"), dict):
        yield from keys_of(named, f"{key}.NAME")


def in_milliseconds(key: str) -> str:
    """Of the three units of a time of an example the page shows one."""
    return re.sub(r"^(examples\.events\..+)_(?:us|s)$", r"\1_ms", key)


WRITTEN: dict[str, list[tuple[dict[str, Any], bool]]] = {}
for _key, _part, _is_optional in keys_of(SCHEMA):
    WRITTEN.setdefault(in_milliseconds(_key), []).append((_part, _is_optional))


def test_the_table_has_every_key_once() -> None:
    listed = [key for keys, _, _ in ROWS for key in re.findall(r"`([^`]+)`", keys)]
    assert sorted(listed) == sorted(WRITTEN)


@pytest.mark.parametrize(("keys", "says", "example"), ROWS, ids=[keys for keys, _, _ in ROWS])
def test_an_example_can_be_written_at_its_key(keys: str, says: str, example: str) -> None:
    texts = contract_texts(f"value: {example}".encode())
    assert isinstance(texts, dict)
    for key in re.findall(r"`([^`]+)`", keys):
        fits = [Draft202012Validator({**part, "$defs": PARTS}).is_valid(texts["value"]) for part, _ in WRITTEN[key]]
        assert any(fits), key
        assert all(is_optional for _, is_optional in WRITTEN[key]) is says.endswith("(optional)"), key
