"""What a run saw of the database: recorded with it, so that what it computed can be computed again.

Source: specification, section 8, "Reproducible".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ledger.store.connection import Connection, fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Batches and voids as multiranges of their ids, in PostgreSQL's words; the ids of intervals, None: of all."""

    batches: str
    voids: str
    intervals: tuple[str, ...] | None


EVERYTHING = Seen(batches="{(,)}", voids="{(,)}", intervals=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run saw, when it settled, and the content hash of each version of its contracts, by contract and version."""

    seen: Seen
    settled_at: datetime
    contracts: Mapping[str, Mapping[str, str]]
    timezone_data: str


def run_of(connection: Connection, run_id: int) -> Run:
    """The run, which saw known voids."""
    [(batches, voids, intervals, settled_at, contracts, timezone_data)] = fetch(
        connection,
        "SELECT batches::text, voids::text, intervals, settled_at, contracts, timezone_data FROM run WHERE run_id = %(run_id)s",
        {"run_id": run_id},
    )
    seen = Seen(batches=batches, voids=voids, intervals=tuple(intervals))
    return Run(seen=seen, settled_at=settled_at, contracts=contracts, timezone_data=timezone_data)


def was_seen(connection: Connection, seen: Seen, batch_id: int) -> bool:
    """Whether the batch was among those that were seen."""
    [(is_among,)] = fetch(
        connection, "SELECT %(batches)s::int8multirange @> %(batch_id)s::bigint", {"batches": seen.batches, "batch_id": batch_id}
    )
    return bool(is_among)
