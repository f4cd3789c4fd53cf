"""Whatever stands in a contract file, `ledger contract check` answers, soon and in its own words."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .golden import GOLDEN
from .mutation import changed, faults


@settings(max_examples=100, deadline=None, derandomize=True)
@given(random=st.randoms(use_true_random=False), is_beside_another=st.booleans())
def test_any_change_of_a_contract_is_answered(tmp_path_factory: pytest.TempPathFactory, random: Random, is_beside_another: bool) -> None:
    beside: Path | None = GOLDEN / "good" / "quiet.yaml" if is_beside_another else None
    assert faults(changed(random), tmp_path_factory.getbasetemp(), beside) == []
