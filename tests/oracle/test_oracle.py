"""The oracle agrees with every case that was computed elsewhere."""

import pytest

from tests.cases import NAMES, CaseMissing, differences, read_case
from tests.oracle.settle import settle


@pytest.mark.parametrize("name", NAMES)
def test_oracle_agrees_with_the_case(name: str) -> None:
    try:
        case = read_case(name)
    except CaseMissing as missing:
        pytest.skip(str(missing))
    assert differences(case.expected, settle(case.contract_texts, case.events, case.intervals, case.period)) == []
