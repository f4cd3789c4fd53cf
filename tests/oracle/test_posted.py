"""The oracle closes months as the cases of months expect."""

import json
from pathlib import Path

import pytest

from tests.oracle.posted import close_months
from tests.oracle.steps import read_steps


@pytest.mark.parametrize("name", ["balance-carried", "late-and-void"])
def test_the_oracle_closes_the_months_of_the_case(name: str, shared: Path) -> None:
    folder = shared / "cases-months" / name
    closes = close_months(read_steps(folder))
    assert [closing.settlement for [closing] in closes] == json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert not any(closing.withheld for [closing] in closes)
