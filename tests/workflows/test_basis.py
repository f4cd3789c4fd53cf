"""The days of a month, as they are recorded when a document of it is issued."""

import json

import pytest

from ledger.settlement.period import contract_period
from ledger.workflows.basis import as_recorded, basis_of
from tests.contract.golden import read


@pytest.mark.parametrize(
    ("month", "zone", "first"),
    [("2026-05", "Asia/Shanghai", "2026-04-30"), ("1970-01", "Asia/Shanghai", "1969-12-31"), ("2999-12", "America/New_York", "2999-12-01")],
)
def test_what_is_recorded_of_a_month_is_read_back_as_it_was(month: str, zone: str, first: str) -> None:
    contract = read("from: 2026-01-01, until: 2027-01-01", "from: 1970-01-01", "Asia/Shanghai", zone)
    period = contract_period([contract], month)
    assert period is not None and f"{period.start:%Y-%m-%d}" == first
    assert as_recorded(period, json.loads(json.dumps(basis_of([period])))) == period
