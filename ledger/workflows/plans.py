"""Plans from what is stored: the contracts that cover accounts on some days, compiled to classify events with the recorded intervals.

Whoever computes cells of stored contracts gets them here: loads, recomputing, verifying, archives. Source: architecture, "The one idea".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlglot import exp

from ledger.contract.model import Contract
from ledger.instant import MICROSECOND
from ledger.rating.plan import Plan
from ledger.rating.plans import plans_of
from ledger.rating.recorded import Breaker, Coverage, ModelLoad
from ledger.settlement.calendar import Days, days_touched
from ledger.settlement.period import Period
from ledger.store.cells import Covered, Spans, traffic_of
from ledger.store.connection import Connection
from ledger.store.contracts import stored_versions
from ledger.store.intervals import Interval, stored_intervals


def contracts_of(connection: Connection, contract_ids: Collection[str]) -> dict[tuple[str, int], Contract]:
    """All versions of these contracts, by contract and version."""
    return {(one.contract.id, one.contract.version): one.contract for one in stored_versions(connection, contract_ids)}


def whole_days(spans: Spans, contracts: dict[tuple[str, int], Contract]) -> Spans:
    """The local days that the spans touch, each once."""
    zones = {contract.id: contract.calendar.timezone for contract in contracts.values()}
    days: Spans = {}
    for contract_id, pieces in spans.items():
        united = days.setdefault(contract_id, [])
        for start, end in pieces:
            touched = days_touched(zones[contract_id], start, max(end, start + MICROSECOND))  # somebody may have marked one instant
            first, last = touched.starts[0], touched.end
            if united and first <= united[-1][1]:
                united[-1] = (united[-1][0], last)
            else:
                united.append((first, last))
    return days


def stored_plans(
    connection: Connection,
    covered: Iterable[Covered],
    days: Spans,
    contracts: dict[tuple[str, int], Contract],
    events: exp.Query,
    *,
    with_traffic: bool = False,
) -> list[Plan]:
    """The plans of what accounts the contracts cover on these days, over these events. If those are all events, not just a few that are
    listed, plans are told which traffic there is besides theirs."""
    clipped = [
        Coverage(account=one.account, contract_id=one.contract_id, version=one.version, start=max(one.start, start), end=last)
        for one in covered
        for start, end in days.get(one.contract_id, ())
        for last in [end if one.end is None else min(one.end, end)]
        if max(one.start, start) < last
    ]
    if not clipped:
        return []
    first, last = min(one.start for one in clipped), max(one.end for one in clipped)
    traffic = traffic_of(connection, first, last) if with_traffic else None
    return plans_of(contracts, clipped, *breakers_and_loads(stored_intervals(connection)), events, traffic)


def plans_of_periods(
    periods: Sequence[Period],
    intervals: Sequence[Interval],
    source: exp.Query,
    traffic: Mapping[str, int] | None = None,
    days: Days | None = None,
) -> list[Plan]:
    """The plans of all that is in force in the periods, over the standing events that `source` gives; the others as for `plans_of`."""
    contracts = {(piece.contract.id, piece.contract.version): piece.contract for terms in periods for piece in terms.pieces}
    coverage = [
        Coverage(
            account=account,
            contract_id=piece.contract.id,
            version=piece.contract.version,
            start=piece.days.starts[0],
            end=piece.days.end,
        )
        for terms in periods
        for piece in terms.pieces
        for account in piece.contract.parties.customer.accounts
    ]
    return plans_of(contracts, coverage, *breakers_and_loads(intervals), source, traffic, days=days)


def breakers_and_loads(intervals: Sequence[Interval]) -> tuple[list[Breaker], list[ModelLoad]]:
    """Recorded intervals as the plan takes them."""
    breakers = [Breaker(node=i.node, start=i.starts_at, end=i.ends_at) for i in intervals if i.kind == "circuit_breaker"]
    loads = [
        ModelLoad(interval_id=i.interval_id, node=i.node, model=i.model, start=i.starts_at, end=i.ends_at)
        for i in intervals
        if i.kind == "model_load" and i.node is not None and i.model is not None
    ]
    return breakers, loads
