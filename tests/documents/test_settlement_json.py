"""The JSON of a statement has the shape, order and numbers of specification section 9."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from ledger.documents.settlement_json import canonical_bytes, statement_to_json
from tests.documents.statements import build_statement, read_case

NOT_IN_CASES = ("state", "unresolved", "changed_afterwards")
IN_ORDER = [
    *("contract", "version", "period", "start", "end", "timezone", "currency", "state", "events", "lines"),
    *("unresolved", "changed_afterwards", "windows", "budget", "totals"),
]


def test_every_case_comes_back_as_it_was(cases: Path) -> None:
    compared = 0
    for folder in sorted(path for path in cases.iterdir() if path.is_dir()):
        expected, contracts = read_case(folder)
        shown = statement_to_json(build_statement(expected, contracts))
        assert list(shown) == IN_ORDER
        without = {key: value for key, value in shown.items() if key not in NOT_IN_CASES}
        assert json.dumps(without) == json.dumps(expected), folder.name
        compared += 1
    assert compared >= 46


def test_amounts_carry_the_digits_of_their_currency(cases: Path) -> None:
    for case, amount in (("money-jpy", 0), ("money-usd", 2), ("money-kwd", 3)):
        shown = statement_to_json(build_statement(*read_case(cases / case)))
        amounts = [line["amount"] for line in shown["lines"]] + list(shown["totals"].values())
        assert {len(text.partition(".")[2]) for text in amounts} == {amount}


def test_a_rate_is_shown_as_written_and_a_multiplier_without_zeros_or_exponent(cases: Path) -> None:
    statement = build_statement(*read_case(cases / "edges"))
    line = replace(statement.lines[0], rate=Decimal("0.00000010"), multiplier=Decimal("6.00"))
    shown = statement_to_json(replace(statement, lines=(line,)))["lines"][0]
    assert (shown["rate"], shown["multiplier"]) == ("0.00000010", "6")


def test_canonical_bytes_depend_on_the_content_and_not_on_the_order_of_keys() -> None:
    assert canonical_bytes({"b": [1, "ä"], "a": None}) == '{"a":null,"b":[1,"ä"]}'.encode()
    assert canonical_bytes({"a": None, "b": [1, "ä"]}) == canonical_bytes({"b": [1, "ä"], "a": None})


def test_canonical_bytes_refuse_a_float() -> None:
    with pytest.raises(TypeError, match=r"0\.1"):
        canonical_bytes({"lines": [{"amount": 0.1}]})
