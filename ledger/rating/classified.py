"""Single requests classified: what the plan makes of each, instead of sums of them. For few events, such as those of a contract's examples.

Takes plans that tell requests apart (`by_request`), gives a `ClassifiedRequest` for each. Source: specification, section 4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from ledger.contract.model import Contract, Latency
from ledger.instant import instant_of
from ledger.rating.duckdb import Microseconds
from ledger.rating.plan import REQUEST_COLUMNS, Plan
from ledger.settlement.cell import CELL_COLUMNS, Cell, Outcome, WindowCell


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedRequest:
    """One request: its cell, whose sums are its own, and what a cell of many does not keep. `latency_us` None: it has none."""

    contract_id: str
    account: str
    request_id: str
    received_at: datetime
    window_start: datetime
    latency_us: int | None
    over: bool
    cell: Cell


def classify_requests(connection: duckdb.DuckDBPyConnection, plans: Sequence[Plan]) -> dict[str, ClassifiedRequest]:
    """The requests of the plans' sources by request id, which is unique among them; one statement for each plan."""
    found = {}
    for plan in plans:
        assert plan.by_request
        for row in connection.execute(plan.cells().sql(Microseconds, copy=False)).fetchall():
            request = classified_request(row, instant_of)
            found[request.request_id] = request
    return found


def classified_request(row: Sequence[Any], instant: Callable[[Any], datetime]) -> ClassifiedRequest:
    """The request of a row of a plan that tells requests apart; `instant` makes the engine's instants."""
    values = dict(zip((*CELL_COLUMNS, *REQUEST_COLUMNS), row, strict=True))
    return ClassifiedRequest(
        contract_id=values["contract_id"],
        account=values["account"],
        request_id=values["request_id"],
        received_at=instant(values["received_at"]),
        window_start=instant(values["window_start"]),
        latency_us=values["latency_us"],
        over=values["over"],
        cell=Cell(**({name: values[name] for name in Cell.__slots__} | {"outcome": Outcome(values["outcome"])})),
    )


def with_told_latencies(contract: Contract) -> Contract:
    """The contract for requests of which only a latency is told, as their e2e: whatever it takes from elsewhere, and no exemptions."""
    return contract.model_copy(update={"latency": Latency(default="end_to_end"), "exemptions": ()})


def window_cell_of(request: ClassifiedRequest, requests: int) -> WindowCell:
    """The cell of so many requests that are all like this one, of which there is one. A cell is a sum, so that of `requests` equal ones is
    `requests` times that of one."""
    assert request.cell.in_objective and request.cell.requests == 1
    return WindowCell(
        window_start=request.window_start,
        model=request.cell.model,
        requests=requests,
        late=requests if request.cell.late else 0,
        late_measured=requests if request.cell.late and request.latency_us is not None else 0,
        over=requests if request.over else 0,
    )
