"""The JSON Schema for editors: it takes every good contract, and marks what is wrong in one place."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft7Validator, Draft202012Validator

from ledger.cli.main import cli
from ledger.contract.diagnostic import Severity

from .golden import GOLDEN, QUIET, Case, cases, check, edited

ROOT = Path(__file__).parents[2]
GOOD = sorted([*(GOLDEN / "good").glob("*.yaml"), *(ROOT / "contracts").glob("*.yaml")])


class AsEditorsRead(yaml.SafeLoader):
    """YAML 1.2, core schema: what is a number, true or null to an editor."""


AsEditorsRead.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", "[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
):
    AsEditorsRead.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))
AsEditorsRead.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


@cache
def schema() -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["contract", "schema"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def marks(text: str, loader: type[Any] = AsEditorsRead) -> list[str]:
    """What an editor marks in a file."""
    return [error.json_path for error in Draft202012Validator(schema()).iter_errors(yaml.load(text, Loader=loader))]


@pytest.mark.parametrize("validator", [Draft7Validator, Draft202012Validator])
def test_it_is_a_schema_of_the_draft_it_names_and_of_the_one_that_older_editors_know(validator: Any) -> None:
    validator.check_schema(schema())
    assert schema()["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
@pytest.mark.parametrize("loader", [AsEditorsRead, yaml.BaseLoader], ids=["as editors read", "as texts"])
def test_an_editor_marks_nothing_in_a_good_contract(file: Path, loader: type[Any]) -> None:
    assert marks(file.read_text("utf-8"), loader) == []


# Codes that one place alone decides; of the others a schema knows nothing.
STRUCTURAL = {
    *("unknown_key", "missing_key", "empty_value", "wrong_kind", "empty_list", "repeated_entry"),
    *("bad_choice", "bad_comparison", "bad_count", "bad_currency", "bad_day", "bad_duration", "bad_factor", "bad_instant", "bad_latency"),
    *("bad_multiplier", "bad_name", "bad_number", "bad_percentage", "bad_percentile", "bad_sha256", "bad_text", "bad_timezone"),
    *("bad_version", "bad_yes_no", "reserved_queue"),
}
# Cases of these codes that it cannot see: what a number was written like, and what a text comes to.
UNSEEN = {
    *("rate-with-13-digits", "rate-with-exponent", "duration-finer-than-a-microsecond", "day-that-does-not-exist"),
    *("edges-the-wrong-way", "duration-in-two-units", "short-hash"),
}
# What is not YAML to an editor either, or is not to be compared with it.
UNREADABLE = {"bad_encoding", "bad_character", "bad_syntax", "tag", "several_documents", "too_deep", "anchor", "alias"}
ALONE = [
    case for case in cases() if case.test is None and len(case.bad) == 1 and case.code not in UNREADABLE and case.name != "list-as-key"
]


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_an_editor_marks_a_bad_contract_if_one_place_decides(case: Case) -> None:
    is_marked = marks(case.bad[0][1].decode("utf-8-sig")) != []
    assert is_marked == ((case.code in STRUCTURAL and case.name not in UNSEEN) or case.code == "empty_file")


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_an_editor_marks_nothing_that_is_not_an_error(case: Case) -> None:
    assert not [each for each in check(case.good) if each.severity is Severity.ERROR]
    assert marks(case.good[0][1].decode()) == []


PLACES = {
    "a count": ["min_requests: 100", "min_requests: {}"],
    "a percentile": ["percentile: 99\n", "percentile: {}\n"],
    "a rate": ["input: 2.00, ca", "input: {}, ca"],
    "a version": ["version: 3", "version: {}"],
    "a multiplier": ["max_multiplier: 1.0", "max_multiplier: {}"],
    "a time of an example": ["queue_ms: 10", "queue_ms: {}"],
    "a charge": ["charge: 0.006", "charge: {}"],
    "an amount": ["minimum_commitment: none", "minimum_commitment: {}"],
    "a text": ["tax_id: 91310000TEST000002", "tax_id: {}"],
    "a name": ["accounts: [acme-bank]", "accounts: [{}]"],
}
NUMBERS = ["010", "08", "1e3", ".5", "5.", "1_000", "0x10", "0o17", "+1", "-1", "00.5", "1.50", "1:30", ".inf", "0", "100", "9" * 20]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("loader", [AsEditorsRead, yaml.BaseLoader], ids=["as editors read", "as texts"])
def test_an_editor_marks_no_number_that_is_taken_however_it_is_written(place: list[str], loader: type[Any]) -> None:
    taken = []
    for number in NUMBERS:
        text = edited(QUIET, [place[0], place[1].format(number)])
        if not [each for each in check((("contract.yaml", text.encode()),)) if each.severity is Severity.ERROR]:
            taken.append(number)
            assert marks(text, loader) == [], number
    assert taken and ("1e3" in taken) is (place in (PLACES["a text"], PLACES["a name"]))  # a number has neither exponent nor sign


def test_what_is_marked_is_the_place_at_fault() -> None:
    text = (GOLDEN / "good" / "quiet.yaml").read_text("utf-8")
    wrong = {"target: 300ms": "target: 300", "tokens: 2x": "tokens: 2", "window: 1h": "window: 5h", "rate: 6%": "rate: 0.06"}
    for old, new in wrong.items():
        text = text.replace(old, new)
    assert sorted(marks(text)) == ["$.money.tax.rate", "$.objective.target", "$.objective.window", "$.refund.tokens"]


def properties(part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield from part.get("properties", {}).items()
        for below in part.values():
            yield from properties(below)


def test_every_key_is_explained() -> None:
    found = list(properties(schema()))
    assert len(found) > 100
    parts = [(name, [each, each.get("items", {}), each.get("additionalProperties", {})]) for name, each in found]
    sparse = [name for name, each in parts if not any({"description", "$ref"} & part.keys() for part in each) and "enum" not in each[1]]
    assert sparse == []
    assert [name for name, part in schema()["$defs"].items() if "description" not in part] == []


def test_the_page_on_editors_shows_settings_that_can_be_read() -> None:
    page = (ROOT / "docs" / "contracts" / "editor.md").read_text("utf-8")
    blocks = re.findall(r"^ *```json\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    settings, tasks = map(json.loads, blocks)
    assert list(settings["yaml.schemas"].values()) == ["contracts/*.yaml"]
    pattern = tasks["tasks"][0]["problemMatcher"]["pattern"]
    shown = (GOLDEN / "bad.txt").read_text("utf-8").splitlines()[1]
    found = re.fullmatch(pattern["regexp"], shown)
    assert found is not None
    assert [found[pattern[name]] for name in ("file", "line", "column", "severity", "code")] == [
        *("bad/key-that-does-not-exist.yaml", "30", "3", "error", "unknown_key"),
    ]
    fields = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    finding = json.loads(CliRunner().invoke(cli, ["contract", "check", "--format", "json", str(GOLDEN / "none.yaml")]).stdout)[0]
    assert fields == list(finding)
