"""The plan run by PostgreSQL: cells and percentiles of the events that one transaction sees.

Source: specification, sections 4 and 6; the caller gives one snapshot (REPEATABLE READ).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlglot import exp

from ledger.rating import sql
from ledger.rating.plan import SUMS, Plan
from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.windows import JudgedWindow

EVENT_COLUMNS = (
    *("account", "request_id", "revision", "model", "received_at", "queue", "status", "cold_start", "async_header", "node"),
    *("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us"),
    *("input_tokens", "cached_input_tokens", "output_tokens"),
)


def current_events() -> exp.Select:
    """The events that stand: those whose revision was not withdrawn."""
    same = [exp.EQ(this=sql.column(name, "v"), expression=sql.column(name, "e")) for name in ("account", "request_id", "revision")]
    withdrawn = exp.select(sql.number(1)).from_(exp.to_table("void", alias="v")).where(*same)
    return (
        exp.select(*(sql.column(name, "e") for name in EVENT_COLUMNS))
        .from_(exp.to_table("event", alias="e"))
        .where(exp.Not(this=exp.Exists(this=withdrawn)))
    )


def read_cells(connection: Connection, plan: Plan) -> list[Cell]:
    """The cells of the plan, in no order."""
    return [_cell(row) for row in _run(connection, plan.cells())]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(
        stretch=row["stretch"],
        window_start=row["window_start"],
        model=row["model"],
        queue=row["queue"],
        forfeited=row["forfeited"],
        outcome=Outcome(row["outcome"]),
        exemption=row["exemption"],
        tier=row["tier"],
        has_latency=row["latency_class"] is not None,
        over_target=row["over_target"],
        in_objective=row["in_objective"],
        late=row["late"],
        over=row["over"],
        **{name: int(row[name]) for name in SUMS},
    )


def read_percentiles(connection: Connection, plan: Plan, breached: Sequence[JudgedWindow]) -> dict[JudgedWindow, int | None]:
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
            exp.alias_(sql.column("place", "target"), "wanted", quoted=True),
            sql.column("judged_latency_us", "request"),
            exp.alias_(
                exp.Window(
                    this=exp.RowNumber(),
                    partition_by=[sql.column("target", "target")],
                    order=exp.Order(
                        expressions=[exp.Ordered(this=sql.column("judged_latency_us", "request"), desc=True, nulls_first=True)]
                    ),
                ),
                "place",
                quoted=True,
            ),
        )
        .from_(plan.requests().subquery("request"))
        .join(
            target.subquery("target"),
            on=sql.both(
                exp.EQ(this=sql.column("window_start", "request"), expression=sql.column("window_start", "target")),
                exp.EQ(this=plan.scope(sql.column("model", "request")), expression=sql.column("scope", "target")),
            ),
        )
        .where(sql.column("late", "request"))
    )
    at_rank = (
        exp.select(sql.column("target"), sql.column("judged_latency_us"))
        .from_(placed.subquery("placed"))
        .where(exp.EQ(this=sql.column("place"), expression=sql.column("wanted")))
    )
    found = {breached[row["target"]]: row["judged_latency_us"] for row in _run(connection, at_rank)}
    assert len(found) == len(breached), "a breached window has a late request at its rank"
    return found


def _run(connection: Connection, query: exp.Query) -> Iterator[dict[str, Any]]:
    """Rows by column name. Without parameters no driver looks for placeholders in the constants."""
    statement = query.sql("postgres")
    result = connection.execution_options(no_parameters=True).exec_driver_sql(statement)
    return (dict(row) for row in result.mappings())
