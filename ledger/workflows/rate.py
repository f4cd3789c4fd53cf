"""Rates the periods of contracts from the cells that are kept in the database.

Takes periods, gives what follows from their cells. Source: specification, sections 4 to 7.
"""

import shlex
from collections.abc import Sequence
from datetime import datetime

from ledger.rating.kept_cells import kept_cells
from ledger.rating.postgres_cells import PostgresCells
from ledger.rating.rated_period import JudgedPeriod, RatedPeriod, judge_periods, rate_periods
from ledger.settlement.period import Period
from ledger.settlement.statement import Unrated
from ledger.store.connection import Connection
from ledger.store.settlements import sample_requests

_ADD = {"model": "the model to the contract (models: served_as)", "queue": "the queue to the contract (queues:)"}


def added_words(unrated: Sequence[Unrated]) -> str:
    """What to add to a contract that does not know this: all there is to do where a month is replayed and nothing is stored."""
    return f"add {' and '.join(_ADD[what] for what in sorted({one.what for one in unrated}))}"


def unrated_cure(unrated: Sequence[Unrated]) -> str:
    """What to do about what a contract does not know, one way a line."""
    kinds = sorted({one.what for one in unrated})
    lines = [f"{added_words(unrated)} in a new version"]
    lines += [f"or correct the requests: ledger correct REQUEST_ID --set {what}=NAME --reason WHY" for what in kinds]
    lines.append("or withdraw them: ledger void REQUEST_ID --reason WHY")
    # Not by the model alone: another contract may know it.
    all_of = "ledger void --account ACCOUNT --from INSTANT --until INSTANT --reason WHY --model"
    lines += [f"or all of them: {all_of} {shlex.quote(one.name)}" for one in unrated if one.what == "model"]
    return "\n  ".join(lines)


def rate_stored(connection: Connection, periods: Sequence[Period], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract, in a snapshot in which nothing of them is stale."""
    return rate_periods(_kept(connection, periods), by_contract(periods), now) if periods else {}


def judge_stored(connection: Connection, periods: Sequence[Period], now: datetime) -> dict[str, JudgedPeriod]:
    """The periods by contract, judged at `now` and no more, in such a snapshot."""
    return judge_periods(_kept(connection, periods), by_contract(periods), now) if periods else {}


def by_contract(periods: Sequence[Period]) -> dict[str, Period]:
    """The periods by the id of their contract."""
    return {terms.last.id: terms for terms in periods}


def _kept(connection: Connection, periods: Sequence[Period]) -> PostgresCells:
    return kept_cells(connection, {terms.last.id: (terms.start, terms.end) for terms in periods})


def unrated_words(connection: Connection | None, terms: Period, unrated: Sequence[Unrated]) -> str:
    """What was used that the contract does not know; with a connection, and requests of the database that used it."""
    named = []
    for one in unrated:
        samples = [] if connection is None else sample_requests(connection, terms, one.what, one.name)
        count = f"{one.requests:,} request{'' if one.requests == 1 else 's'}"
        named.append(f"{one.what} {one.name!r} with {count}{', such as ' if samples else ''}{', '.join(samples)}")
    return f"the contract does not know what was used in {terms.name}: {'; '.join(named)}"
