"""Cells read from an engine: summed over a period, by window, of refunded windows; and the percentiles of breached windows.

A relation of cells has the columns CELL_COLUMNS, and any number of rows with the same key: an engine sums, Python never sees a cell more
than it needs. The cells of all contracts that are settled are read together. The caller sees to it that all queries of a settlement see
one snapshot. Source: specification, sections 4 to 7.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlglot import exp

from ledger.rating import sql
from ledger.rating.plan import SUMS
from ledger.settlement.cell import Cell, Outcome, WindowCell
from ledger.settlement.period import Period
from ledger.settlement.windows import BreachedWindow

# What a cell has in common when windows do not matter.
_PRICED_KEY = ("version", "model", "queue", "forfeited", "outcome", "exemption", "tier", "in_objective", "late")
_PLACE = [("contract_id", "text"), ("window_start", "timestamptz"), ("model", "text")]


class Engine(Protocol):
    """Runs queries over events and cells."""

    def rows(self, query: exp.Query) -> Iterable[tuple[Any, ...]]:
        """The rows of the query."""
        ...

    def instant(self, value: Any) -> datetime:
        """The instant, aware and in UTC, of a value in a row."""
        ...

    def keep(self, name: str, query: exp.Query) -> None:
        """Make a temporary table of the query's rows."""
        ...

    def keep_rows(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Make a temporary table of these rows; columns are (name, type)."""
        ...


def read_cells(engine: Engine, cells: exp.Query) -> dict[str, list[Cell]]:
    """The cells of each contract, summed over all windows."""
    return _priced_cells(engine, exp.select().from_(cells.subquery("cell")))


def read_windows(engine: Engine, cells: exp.Query) -> dict[str, list[WindowCell]]:
    """The requests in the objective of each contract, by window and served name."""
    key = [sql.column(name) for name in ("contract_id", "window_start", "model")]
    requests = sql.column("requests")
    of_late = exp.Sum(this=sql.choose([(sql.column("late"), requests)], sql.number(0)))
    of_over = exp.Sum(this=sql.choose([(sql.column("over"), requests)], sql.number(0)))
    measured = exp.Sum(this=sql.known_or(exp.ArraySize(this=sql.column("late_latencies_us")), sql.number(0)))
    query = (
        exp.select(*key, exp.Sum(this=requests), of_late, measured, of_over)
        .from_(cells.subquery("cell"))
        .where(sql.column("in_objective"))
        .group_by(*(one.copy() for one in key))
    )
    found: defaultdict[str, list[WindowCell]] = defaultdict(list)
    for contract_id, window_start, model, number, late, late_measured, over in engine.rows(query):
        found[contract_id].append(
            WindowCell(
                window_start=engine.instant(window_start),
                model=model,
                requests=int(number),
                late=int(late),
                late_measured=int(late_measured),
                over=int(over),
            )
        )
    return found


def read_refunded(
    engine: Engine, cells: exp.Query, refunded: Mapping[str, tuple[Period, Sequence[BreachedWindow]]]
) -> dict[str, list[Cell]]:
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
    engine.keep_rows("refunded_window", _PLACE, places)
    return _priced_cells(engine, _joined(exp.select(), cells, "refunded_window").where(sql.column("in_objective", "cell")))


def read_percentiles(
    engine: Engine, cells: exp.Query, breached: Mapping[str, tuple[Period, Sequence[BreachedWindow]]]
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
    engine.keep_rows("breached_window", [*_PLACE, ("target", "bigint"), ("wanted", "bigint")], places)
    latency = exp.func("unnest", sql.column("late_latencies_us", "cell"))
    late = _joined(
        exp.select(*(sql.column(name, "place") for name in ("target", "wanted")), sql.named(latency, "latency_us")),
        cells,
        "breached_window",
    )
    by_latency = exp.Order(expressions=[exp.Ordered(this=sql.column("latency_us"), desc=True)])
    place = exp.Window(this=exp.RowNumber(), partition_by=[sql.column("target")], order=by_latency)
    placed = exp.select(exp.Star(), sql.named(place, "place")).from_(late.where(sql.column("late", "cell")).subquery("late"))
    at_place = (
        exp.select(sql.column("target"), sql.column("latency_us"))
        .from_(placed.subquery("placed"))
        .where(exp.EQ(this=sql.column("place"), expression=sql.column("wanted")))
    )
    for target, latency_us in engine.rows(at_place):
        contract_id, _, window = wanted[target]
        found[contract_id][window] = latency_us
    assert sum(map(len, found.values())) == len(wanted), "a breached window has a late request at its rank"
    return found


def _joined(query: exp.Select, cells: exp.Query, places: str) -> exp.Select:
    """The query from the cells that lie in the places."""
    same = [exp.EQ(this=sql.column(name, "cell"), expression=sql.column(name, "place")) for name, _ in _PLACE]
    return query.from_(cells.subquery("cell")).join(exp.to_table(places).as_("place"), on=sql.both(*same))


def _priced_cells(engine: Engine, source: exp.Select) -> dict[str, list[Cell]]:
    """The cells of the source, summed by contract and by what prices them."""
    key = [sql.column(name, "cell") for name in ("contract_id", *_PRICED_KEY)]
    query = source.select(*key, *(exp.Sum(this=sql.column(name, "cell")) for name in SUMS)).group_by(*(one.copy() for one in key))
    found: defaultdict[str, list[Cell]] = defaultdict(list)
    for contract_id, *values in engine.rows(query):
        priced: dict[str, Any] = dict(zip(_PRICED_KEY, values, strict=False))
        sums: dict[str, Any] = {name: int(value) for name, value in zip(SUMS, values[len(_PRICED_KEY) :], strict=True)}
        found[contract_id].append(Cell(**(priced | sums | {"outcome": Outcome(priced["outcome"])})))
    return found
