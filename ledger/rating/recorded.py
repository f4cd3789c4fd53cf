"""What a plan is told beside the terms of contracts: recorded intervals, and which account belongs to which version on which days.

Source: specification, sections 3 and 4.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A recorded span [start, end) of an open circuit breaker; node None means every node."""

    node: str | None
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """A recorded load of a model on a node, [start, end); its id is the id of the cold start it causes."""

    interval_id: str
    node: str
    model: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Local days [start, end) on which an account belongs to a contract, in this version."""

    account: str
    contract_id: str
    version: int
    start: datetime
    end: datetime
