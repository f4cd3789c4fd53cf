"""Ledger settles every random month as the oracle does: files in, JSON out."""

from hypothesis import HealthCheck, event, given, settings

from ledger.store.embedded import Server
from tests.cases import differences
from tests.oracle.settle import settle
from tests.properties.features import features_of
from tests.properties.generate import Month, months
from tests.properties.product import settle_product


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(month=months())
def test_ledger_and_the_oracle_settle_a_month_alike(server: Server, month: Month) -> None:
    expected = settle(month.contract_texts, month.events, month.intervals, month.period)
    for feature in features_of(month, expected):
        event(feature)
    actual = settle_product(server, month.contract_texts, month.events, month.intervals, month.period)
    assert differences(expected, actual) == []
