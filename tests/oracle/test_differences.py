"""Two settlements are compared key by key, both ways, and numbers in strings as numbers."""

from typing import Any

import pytest

from tests.cases import differences

SETTLEMENT: dict[str, Any] = {
    "contract": "acme",
    "events": {"total": 1},
    "lines": [{"kind": "usage", "variant": None, "forfeited": False, "quantity": 10, "multiplier": "2", "amount": "0.00"}],
}
LINE = SETTLEMENT["lines"][0]


def test_a_settlement_agrees_with_itself() -> None:
    assert differences(SETTLEMENT, SETTLEMENT) == []


def test_numbers_in_strings_compare_as_numbers() -> None:
    assert differences({"amount": "-2.50"}, {"amount": "-2.5"}) == []
    assert differences({"amount": "2.50"}, {"amount": "2.51"}) == ['amount: expected "2.50", found "2.51"']


def test_what_a_case_leaves_open_is_not_compared() -> None:
    besides = {"state": "draft", "unresolved": {"conflicts": 3}, "changed_afterwards": {"voids": 1}}
    assert differences(SETTLEMENT, SETTLEMENT | besides) == []
    assert differences({"totals": {}}, {"totals": {"state": "draft"}}) == ['totals.state: not expected, found "draft"']


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        ({"contract": "acme", "lines": SETTLEMENT["lines"]}, "events: missing"),
        (SETTLEMENT | {"note": 1}, "note: not expected, found 1"),
        (SETTLEMENT | {"contract": "other"}, 'contract: expected "acme", found "other"'),
        (SETTLEMENT | {"events": {"total": 2}}, "events.total: expected 1, found 2"),
        (SETTLEMENT | {"events": {"total": True}}, "events.total: expected 1, found true"),
        (SETTLEMENT | {"events": None}, 'events: expected {"total": 1}, found null'),
        (SETTLEMENT | {"lines": []}, "lines: expected 1 entries, found 0"),
        (SETTLEMENT | {"lines": [LINE, LINE]}, "lines: expected 1 entries, found 2"),
        (SETTLEMENT | {"lines": [LINE | {"amount": 0}]}, 'lines[0].amount: expected "0.00", found 0'),
        (SETTLEMENT | {"lines": [LINE | {"forfeited": 0}]}, "lines[0].forfeited: expected false, found 0"),
        (SETTLEMENT | {"lines": [LINE | {"quantity": "10"}]}, 'lines[0].quantity: expected 10, found "10"'),
        (SETTLEMENT | {"lines": [LINE | {"variant": ""}]}, 'lines[0].variant: expected null, found ""'),
        ([SETTLEMENT], "the whole: expected"),
    ],
)
def test_each_difference_names_its_path_and_both_values(actual: Any, difference: str) -> None:
    [line] = differences(SETTLEMENT, actual)
    assert line.startswith(difference)
