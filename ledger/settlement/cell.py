"""Cells: requests that every rule treats alike, counted and their tokens summed. All figures of a settlement are sums over cells.

Source: specification, sections 4 to 6; architecture, "The one idea".
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

# What requests of one cell have in common, what is counted and summed of them, and the columns of a relation of cells.
CELL_KEY = (
    *("contract_id", "version", "day_start", "window_start", "model", "queue", "forfeited", "outcome", "exemption", "tier"),
    *("in_objective", "late", "over"),
)
SUMS = ("requests", "requests_without_usage", "tokens_input", "tokens_cached_input", "tokens_output")
CELL_COLUMNS: tuple[str, ...] = (*CELL_KEY, *SUMS, "late_latencies_us")
# Of a relation of events that may be cold starts.
COLD_START_COLUMNS: tuple[str, ...] = ("contract_id", "version", "day_start", "account", "request_id", "revision")


class Outcome(StrEnum):
    """What became of a request, by its HTTP status, in order of precedence (specification, section 4, step 1)."""

    SUCCESS = "success"  # 200-299
    CANCELLED = "cancelled"  # 499
    RATE_LIMITED = "rate_limited"  # 429
    CLIENT_ERROR = "client_error"  # other 400-499
    SERVER_ERROR = "server_error"  # everything else

    @property
    def is_failure(self) -> bool:
        """Neither answered nor given up by the client."""
        return self not in (Outcome.SUCCESS, Outcome.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Requests of a span of time that are priced and counted alike, and their sums.

    `version` is that of the contract; `model` the served name. `exemption` is the index of the exemption in the contract's list, None for
    none; `tier` the index of the latency tier that prices the request, None if none does (not billed, exempt, no latency, or cancelled in
    time). `requests_without_usage` counts cancelled requests without token counts; null tokens are summed as 0.
    """

    version: int
    model: str
    queue: str
    forfeited: bool
    outcome: Outcome
    exemption: int | None
    tier: int | None
    in_objective: bool
    late: bool
    requests: int
    requests_without_usage: int
    tokens_input: int  # uncached
    tokens_cached_input: int
    tokens_output: int


class WindowCell(NamedTuple):
    """The requests in the objective of one window and one served name, `model`; of a month's window those of one local day.

    A tuple, since a month has tens of thousands of them, in the order in which they are read (`rating/cells`).

    `late_measured` are the late ones that have a latency: neither failed nor unmeasured.
    """

    window_start: datetime
    model: str
    requests: int
    late: int
    late_measured: int
    over: int
