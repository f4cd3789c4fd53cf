"""All that follows from the cells of contracts' periods: sums, judged windows, what is refunded, percentiles. Four queries for all of them.

Takes the cells of the periods and the periods by contract, gives a `RatedPeriod` for each. Source: specification, sections 5 to 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ledger.rating.cells import Cells, read_cells, read_percentiles, read_refunded, read_windows
from ledger.settlement.budget import refunded_windows
from ledger.settlement.cell import Cell
from ledger.settlement.period import Period
from ledger.settlement.settlement import find_unrated
from ledger.settlement.statement import Unrated
from ledger.settlement.windows import NOT_JUDGED, BreachedWindow, Judgement, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPeriod:
    """A contract's period: its sums, and its windows judged. If requests are `unrated`, nothing is judged."""

    period: Period
    cells: tuple[Cell, ...]
    unrated: tuple[Unrated, ...]
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPeriod:
    """A judged period with all that its settlement needs."""

    judged: JudgedPeriod
    refunded: tuple[Cell, ...]
    percentiles_us: Mapping[BreachedWindow, int | None]


def judge_periods(cells: Cells, periods: Mapping[str, Period], now: datetime) -> dict[str, JudgedPeriod]:
    """The periods by contract id, also those without a cell, judged at `now`. `cells` holds those of the periods and no others."""
    sums, windows = read_cells(cells), read_windows(cells)
    judged = {}
    for contract_id, period in periods.items():
        summed = tuple(sums.get(contract_id, ()))
        unrated = tuple(find_unrated(period, summed))
        judgement = NOT_JUDGED if unrated else judge(period, windows.get(contract_id, ()), now)
        judged[contract_id] = JudgedPeriod(period=period, cells=summed, unrated=unrated, judgement=judgement)
    return judged


def rate_periods(cells: Cells, periods: Mapping[str, Period], now: datetime) -> dict[str, RatedPeriod]:
    """The same, with the cells of refunded windows and the percentiles of breached ones."""
    judged = judge_periods(cells, periods, now)
    breached = {contract_id: (one.period, one.judgement.breaches) for contract_id, one in judged.items()}
    refunded = read_refunded(cells, {key: (period, refunded_windows(period, windows)) for key, (period, windows) in breached.items()})
    percentiles_us = read_percentiles(cells, breached)
    return {
        contract_id: RatedPeriod(
            judged=one, refunded=tuple(refunded.get(contract_id, ())), percentiles_us=percentiles_us.get(contract_id, {})
        )
        for contract_id, one in judged.items()
    }
