"""A contract's period: days that do not exist."""

from ledger.settlement.period import contract_period
from tests.contract.test_schedule import version


def test_a_version_whose_only_day_the_clocks_skipped_is_never_in_force() -> None:
    # Apia went from 29 to 31 December 2011.
    skipped = version(1, "2011-12-30", "2011-12-31")
    apia = skipped.model_copy(update={"calendar": skipped.calendar.model_copy(update={"timezone": "Pacific/Apia"})})
    assert contract_period((apia,), "2011-12") is None
