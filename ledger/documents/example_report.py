"""The result of a contract's examples for people and programs: what fails and why, and an example for each rule that none reaches.

Takes examples that ran and rules; gives lines of text, and values for JSON. Source: specification, section 10.
"""

import json
import re
from collections.abc import Iterator, Sequence

from ledger.documents.example_words import why
from ledger.documents.request_words import exact_text
from ledger.settlement.example import Difference, ExampleFound
from ledger.settlement.example_sketch import Sketch, Text
from ledger.settlement.stated_rule import StatedRule

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/+-]*[A-Za-z0-9._/+-])?")  # what YAML takes for itself without quotes
_WORDS = {"null", "Null", "NULL"}  # and what the reader does not


def failure_lines(place: str, found: ExampleFound, differences: Sequence[Difference]) -> Iterator[str]:
    """An example that fails, at `place` (file and line): what it says, and each expectation that does not hold."""
    clause = f" (clause {found.example.clause})" if found.example.clause else ""
    yield f"{place}: fails: {found.example.it}{clause}"
    for one in differences:
        yield f"    {_about(one)}expected {_named(one)} {exact_text(one.expected)}, found {exact_text(one.found)}"
        yield f"        {why(found, one)}"


def failure_json(found: ExampleFound, differences: Sequence[Difference]) -> list[dict[str, object]]:
    """The same for programs; events and windows count from 1."""
    return [
        {
            "expect": one.key,
            "event": None if one.place is None or one.key == "results" else one.place + 1,
            "window": None if one.place is None or one.key != "results" else one.place + 1,
            "expected": exact_text(one.expected),
            "found": exact_text(one.found),
            "why": why(found, one),
        }
        for one in differences
    ]


def coverage_line(rules: int, awaited: int, not_reached: int) -> str:
    """How many rules the examples reach, how many more those that fail, and whether some are reached by none."""
    more = f", and {awaited} more once those that fail are corrected" if awaited else ""
    return f"examples reach {rules - awaited - not_reached} of {rules} rules{more}" + ("; not reached:" if not_reached else "")


def sketch_lines(rule: StatedRule) -> Iterator[str]:
    """An example for the rule as a contract file writes it, to be copied under `examples:`."""
    yield f"  - it: {json.dumps(rule.name, ensure_ascii=False)}"
    if rule.clause:
        yield f"    clause: {json.dumps(rule.clause, ensure_ascii=False)}"
    for key, value in rule.sketch.items():
        if isinstance(value, list):
            yield f"    {key}:"
            yield from (f"      - {_flow(entry)}" for entry in value)
        else:
            yield f"    {key}: {_flow(value)}"


def sketch_json(rule: StatedRule) -> dict[str, object]:
    """The rule, and the example for it as values."""
    clause: Sketch = {} if rule.clause is None else {"clause": rule.clause}
    return {"rule": rule.name, "clause": rule.clause, "example": {"it": rule.name, **clause, **rule.sketch}}


def _about(difference: Difference) -> str:
    if difference.place is None:
        return ""
    return f"{'window' if difference.key == 'results' else 'event'} {difference.place + 1}: "


def _named(difference: Difference) -> str:
    return "result" if difference.key == "results" else difference.key


def _flow(value: Text) -> str:
    match value:
        case str():
            return value if _PLAIN.fullmatch(value) and value not in _WORDS else json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_flow(entry)}' for key, entry in value.items())}}}"
