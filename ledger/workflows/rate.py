"""Rates the periods of contracts from the cells that are kept in the database.

Takes periods, gives what follows from their cells. Source: specification, sections 4 to 7.
"""

from collections.abc import Sequence
from datetime import datetime

from ledger.rating.kept_cells import KeptCells
from ledger.rating.rated_period import JudgedPeriod, RatedPeriod, judge_periods, rate_periods
from ledger.settlement.period import Period
from ledger.store.connection import Connection

UNRATED_CURE = "add it to the contract (models: served_as, or queues:) in a new version, or void the requests"


def rate_stored(connection: Connection, periods: Sequence[Period], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract, in a snapshot in which nothing of them is stale."""
    return rate_periods(_kept(connection, periods), by_contract(periods), now) if periods else {}


def judge_stored(connection: Connection, periods: Sequence[Period], now: datetime) -> dict[str, JudgedPeriod]:
    """The periods by contract, judged at `now` and no more, in such a snapshot."""
    return judge_periods(_kept(connection, periods), by_contract(periods), now) if periods else {}


def by_contract(periods: Sequence[Period]) -> dict[str, Period]:
    """The periods by the id of their contract."""
    return {terms.last.id: terms for terms in periods}


def _kept(connection: Connection, periods: Sequence[Period]) -> KeptCells:
    return KeptCells(connection, {terms.last.id: (terms.start, terms.end) for terms in periods})
