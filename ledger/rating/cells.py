"""Cells read: summed over a period, by window, of refunded windows; and the percentiles of breached windows.

The queries are plain SQL over `period_cell`, the cells of all periods that are settled: the columns of a cell (`CELL_COLUMNS`), and
any number of rows with the same key. The database sums, Python never sees a cell more than it needs. The caller sees to it that all
queries of a settlement see one snapshot. Source: specification, sections 4 to 7.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from ledger.settlement.cell import SUMS, Cell, Outcome, WindowCell
from ledger.settlement.period import Period
from ledger.settlement.windows import BreachedWindow

# What prices a cell, when windows do not matter: the fields of Cell.
_PRICED = "cell.version, cell.model, queue, forfeited, outcome, exemption, tier, in_objective, late"
_SUMMED = f"SELECT contract_id, {_PRICED}, {', '.join(f'sum({name})' for name in SUMS)}"
_BY_PRICE = f"GROUP BY contract_id, {_PRICED}"

CELLS = f"{_SUMMED} FROM period_cell AS cell {_BY_PRICE}"
CELLS_BY_DAY = f"{_SUMMED}, day_start FROM period_cell AS cell {_BY_PRICE}, day_start"

REFUNDED = f"""{_SUMMED}
FROM period_cell AS cell JOIN refunded_window USING (contract_id, window_start, model)
WHERE in_objective
{_BY_PRICE}"""

WINDOWS = """SELECT contract_id, window_start, model, CAST(sum(requests) AS bigint),
CAST(sum(CASE WHEN late THEN requests ELSE 0 END) AS bigint),
CAST(sum(coalesce(array_length(late_latencies_us, 1), 0)) AS bigint),
CAST(sum(CASE WHEN over THEN requests ELSE 0 END) AS bigint)
FROM period_cell
WHERE in_objective
GROUP BY contract_id, window_start, model"""

# The latency of the late request at the wanted place from the slowest, for each target.
PERCENTILES = """SELECT target, latency_us FROM (
    SELECT target, wanted, latency_us, row_number() OVER (PARTITION BY target ORDER BY latency_us DESC) AS place FROM (
        SELECT target, wanted, unnest(late_latencies_us) AS latency_us
        FROM period_cell JOIN breached_window USING (contract_id, window_start, model)
        WHERE late
    ) AS late_request
) AS placed
WHERE place = wanted"""

_PLACE = [("contract_id", "text"), ("window_start", "timestamptz"), ("model", "text")]


class Cells(Protocol):
    """Answers queries over the relation `period_cell` in one snapshot."""

    def rows(self, query: str) -> Iterable[tuple[Any, ...]]:
        """The rows of the query."""
        ...

    def instant(self, value: Any) -> datetime:
        """The instant, aware and in UTC, of a value in a row."""
        ...

    def keep_rows(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Make a temporary table of these rows; columns are (name, type)."""
        ...


def read_cells(cells: Cells) -> dict[str, list[Cell]]:
    """The cells of each contract, summed over all windows."""
    return _priced(cells.rows(CELLS))


def read_cells_by_day(cells: Cells) -> dict[tuple[str, datetime], list[Cell]]:
    """The same of each contract and local day, by its start."""
    found: defaultdict[tuple[str, datetime], list[Cell]] = defaultdict(list)
    for contract_id, *values, day_start in cells.rows(CELLS_BY_DAY):
        found[contract_id, cells.instant(day_start)].append(_cell(values))
    return found


def read_windows(cells: Cells) -> dict[str, list[WindowCell]]:
    """The requests in the objective of each contract, by window and served name."""
    found: defaultdict[str, list[WindowCell]] = defaultdict(list)
    for contract_id, window_start, *others in cells.rows(WINDOWS):
        found[contract_id].append(WindowCell(cells.instant(window_start), *others))
    return found


def read_refunded(cells: Cells, refunded: Mapping[str, tuple[Period, Sequence[BreachedWindow]]]) -> dict[str, list[Cell]]:
    """The cells of the refunded windows of each contract, summed over them."""
    places = [
        (contract_id, start, served)
        for contract_id, (period, windows) in refunded.items()
        for window in windows
        for start in window.window_starts
        for served in period.pieces[window.stretch].served_in(window.scope)
    ]
    if not places:
        return {}
    cells.keep_rows("refunded_window", _PLACE, places)
    return _priced(cells.rows(REFUNDED))


def read_percentiles(
    cells: Cells, breached: Mapping[str, tuple[Period, Sequence[BreachedWindow]]]
) -> dict[str, dict[BreachedWindow, int | None]]:
    """The percentile of each contract's breached windows in microseconds: the latency of the request at its place, None if that one has
    none."""
    found: dict[str, dict[BreachedWindow, int | None]] = {contract_id: {} for contract_id in breached}
    wanted = [(contract_id, period, window) for contract_id, (period, windows) in breached.items() for window in windows]
    places = []
    for target, (contract_id, period, window) in enumerate(wanted):
        if window.place_from_slowest < 1:
            found[contract_id][window] = None
            continue
        places += [
            (contract_id, start, served, target, window.place_from_slowest)
            for start in window.window_starts
            for served in period.pieces[window.stretch].served_in(window.scope)
        ]
    if not places:
        return found
    cells.keep_rows("breached_window", [*_PLACE, ("target", "bigint"), ("wanted", "bigint")], places)
    for target, latency_us in cells.rows(PERCENTILES):
        contract_id, _, window = wanted[target]
        found[contract_id][window] = latency_us
    assert sum(map(len, found.values())) == len(wanted), "a breached window has a late request at its rank"
    return found


def _priced(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Cell]]:
    """Rows of _SUMMED, by contract."""
    found: defaultdict[str, list[Cell]] = defaultdict(list)
    for contract_id, *values in rows:
        found[contract_id].append(_cell(values))
    return found


def _cell(values: Sequence[Any]) -> Cell:
    fields: dict[str, Any] = dict(zip(Cell.__slots__, values, strict=True))
    sums = {name: int(fields[name]) for name in SUMS}
    return Cell(**(fields | sums | {"outcome": Outcome(fields["outcome"])}))
