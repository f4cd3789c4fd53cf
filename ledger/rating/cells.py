"""The plan run by an engine: cells, and the percentiles of breached windows.

An engine is anything that runs a query of the plan and gives rows; the caller sees to it that all queries of a settlement see one
snapshot. Source: specification, sections 4 and 6.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from sqlglot import exp

from ledger.rating import sql
from ledger.rating.plan import SUMS, Plan
from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.windows import JudgedWindow


class Engine(Protocol):
    """Runs queries over events."""

    def rows(self, query: exp.Query) -> Iterable[Mapping[str, Any]]:
        """The rows of the query by column name; instants are aware and in UTC."""
        ...


def read_cells(engine: Engine, plan: Plan) -> list[Cell]:
    """The cells of the plan, in no order."""
    return [_cell(row) for row in engine.rows(plan.cells())]


def _cell(row: Mapping[str, Any]) -> Cell:
    return Cell(
        stretch=row["stretch"],
        window_start=row["window_start"],
        model=row["model"],
        queue=row["queue"],
        forfeited=row["forfeited"],
        outcome=Outcome(row["outcome"]),
        exemption=row["exemption"],
        tier=row["tier"],
        in_objective=row["in_objective"],
        late=row["late"],
        over=row["over"],
        **{name: int(row[name]) for name in SUMS},
    )


def read_percentiles(engine: Engine, plan: Plan, breached: Sequence[JudgedWindow]) -> dict[JudgedWindow, int | None]:
    """The percentile of each breached window in microseconds: the latency of the request at its rank, None if that one has none.

    Nearest rank: the request at `n - ceil(p n) + 1` from the slowest, requests that failed or have no latency being slower than any.
    In a breached window that request is a late one, so only late requests are read.
    """
    if not breached:
        return {}
    target = sql.rows(
        [("target", "int"), ("scope", "text"), ("window_start", "timestamptz"), ("place", "bigint")],
        [
            [sql.number(position), sql.text(window.scope), sql.text(start.isoformat()), sql.number(window.rank_from_slowest)]
            for position, window in enumerate(breached)
            for start in window.window_starts
        ],
    )
    placed = (
        exp.select(
            sql.column("target", "target"),
            sql.named(sql.column("place", "target"), "wanted"),
            sql.column("judged_latency_us", "request"),
            sql.named(
                exp.Window(
                    this=exp.RowNumber(),
                    partition_by=[sql.column("target", "target")],
                    order=exp.Order(
                        expressions=[exp.Ordered(this=sql.column("judged_latency_us", "request"), desc=True, nulls_first=True)]
                    ),
                ),
                "place",
            ),
        )
        .from_(plan.requests().subquery("request", copy=False), copy=False)
        .join(
            target.subquery("target", copy=False),
            on=sql.both(
                exp.EQ(this=sql.column("window_start", "request"), expression=sql.column("window_start", "target")),
                exp.EQ(this=plan.scope(sql.column("model", "request")), expression=sql.column("scope", "target")),
            ),
        )
        .where(sql.column("late", "request"))
    )
    at_rank = (
        exp.select(sql.column("target"), sql.column("judged_latency_us"))
        .from_(placed.subquery("placed", copy=False), copy=False)
        .where(exp.EQ(this=sql.column("place"), expression=sql.column("wanted")))
    )
    found = {breached[row["target"]]: row["judged_latency_us"] for row in engine.rows(at_rank)}
    assert len(found) == len(breached), "a breached window has a late request at its rank"
    return found
