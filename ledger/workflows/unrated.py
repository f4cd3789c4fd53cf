"""What stops the coming settlements: models and queues that contracts do not know, found as a settlement finds them, by month.

Takes a connection and the stored versions; reads the kept cells that have such a name, and no events. Source: specification, section 4.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TypeAlias

from ledger.contract.model import Contract
from ledger.rating.kept_cells import cells_of_unknown_names
from ledger.settlement.calendar import zone
from ledger.settlement.cell import Cell
from ledger.settlement.period import contract_period
from ledger.settlement.settlement import find_unrated
from ledger.store.cells import Spans
from ledger.store.connection import Connection

_CellsOfDays: TypeAlias = dict[tuple[str, datetime], list[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnratedInMonth:
    """A name that stops the settlement of a contract's local month: `what` is model or queue, `requests` are all of that name in it."""

    contract: str
    period: str
    what: str
    name: str
    requests: int


def unrated_in_months(connection: Connection, versions: Sequence[Contract], stale: Spans) -> list[UnratedInMonth]:
    """By contract, month and name; `versions` are all that are stored, in order. Days that are stale are left out: they are computed again
    before they are settled, perhaps by a version that knows the name."""
    fresh = _without(cells_of_unknown_names(connection, versions), versions, stale)
    unrated = []
    for contract_id, group in groupby(versions, key=lambda one: one.id):
        of_contract = list(group)
        by_month: defaultdict[str, list[Cell]] = defaultdict(list)
        for (owner, day_start), cells in fresh.items():
            if owner == contract_id:
                by_month[f"{day_start.astimezone(zone(of_contract[0].calendar.timezone)):%Y-%m}"] += cells
        for month, cells in sorted(by_month.items()):
            period = contract_period(of_contract, month)
            assert period is not None, "cells that are not stale are of days on which a version is in force"
            unrated += [
                UnratedInMonth(contract=contract_id, period=month, what=one.what, name=one.name, requests=one.requests)
                for one in find_unrated(period, cells)
            ]
    return unrated


def _without(cells: _CellsOfDays, versions: Sequence[Contract], stale: Spans) -> _CellsOfDays:
    """The cells of the days that are not stale."""
    if not cells or not stale:
        return cells
    from ledger.workflows.plans import whole_days  # with what plans need

    days = whole_days(stale, {(one.id, one.version): one for one in versions})
    return {
        (contract_id, day_start): of_day
        for (contract_id, day_start), of_day in cells.items()
        if not any(start <= day_start < end for start, end in days.get(contract_id, ()))
    }
