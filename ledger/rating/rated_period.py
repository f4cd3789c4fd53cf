"""All that follows from the cells of contracts' periods: sums, judged windows, what is refunded, percentiles. Four queries for all of them.

Takes an engine, a relation of cells and the periods by contract, gives a `RatedPeriod` for each. Source: specification, sections 5 to 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from ledger.rating.cells import Engine, read_cells, read_percentiles, read_refunded, read_windows
from ledger.settlement.budget import refunded_windows
from ledger.settlement.cell import Cell
from ledger.settlement.period import Period
from ledger.settlement.settlement import Unrated, find_unrated
from ledger.settlement.statement import WindowCounts
from ledger.settlement.windows import BreachedWindow, Judgement, judge

NOT_JUDGED = Judgement(breaches=(), counts=WindowCounts(judged=0, breached=0, insufficient=0, overload=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPeriod:
    """A contract's period in numbers. If requests are `unrated` it cannot be settled, and nothing is judged."""

    period: Period
    cells: tuple[Cell, ...]
    unrated: tuple[Unrated, ...] = ()
    judgement: Judgement = NOT_JUDGED
    refunded: tuple[Cell, ...] = ()
    percentiles_us: Mapping[BreachedWindow, int | None]


def rate_periods(engine: Engine, cells: exp.Query, periods: Mapping[str, Period], now: datetime) -> dict[str, RatedPeriod]:
    """The periods by contract id, also those without a cell. `cells` holds those of the periods and no others."""
    sums = read_cells(engine, cells)
    unrated = {contract_id: tuple(find_unrated(period, sums.get(contract_id, ()))) for contract_id, period in periods.items()}
    judgements = judge_periods(engine, cells, {key: period for key, period in periods.items() if not unrated[key]}, now)
    breached = {key: (periods[key], judgement.breaches) for key, judgement in judgements.items()}
    refunded = read_refunded(
        engine, cells, {key: (period, refunded_windows(period, windows)) for key, (period, windows) in breached.items()}
    )
    percentiles_us = read_percentiles(engine, cells, breached)
    return {
        contract_id: RatedPeriod(
            period=period,
            cells=tuple(sums.get(contract_id, ())),
            unrated=unrated[contract_id],
            judgement=judgements.get(contract_id, NOT_JUDGED),
            refunded=tuple(refunded.get(contract_id, ())),
            percentiles_us=percentiles_us.get(contract_id, {}),
        )
        for contract_id, period in periods.items()
    }


def judge_periods(engine: Engine, cells: exp.Query, periods: Mapping[str, Period], now: datetime) -> dict[str, Judgement]:
    """The judgement of each period at `now`. Every model in the objective is one that the contract knows."""
    windows = read_windows(engine, cells)
    return {contract_id: judge(period, windows.get(contract_id, ()), now) for contract_id, period in periods.items()}
