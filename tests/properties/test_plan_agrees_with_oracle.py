"""The plan on DuckDB, without a server, settles every random month as the oracle does."""

from hypothesis import HealthCheck, given, settings

from tests.cases import differences
from tests.oracle.settle import settle
from tests.properties.generate import Month, months
from tests.properties.in_memory import settle_in_memory


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(month=months())
def test_the_plan_in_memory_and_the_oracle_settle_a_month_alike(month: Month) -> None:
    expected = settle(month.contract_texts, month.events, month.intervals, month.period)
    actual = settle_in_memory(month.contract_texts, month.events, month.intervals, month.period)
    assert differences(expected, actual) == []
