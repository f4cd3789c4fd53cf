"""Requests classified one by one sum to the cells of all: a plan that keeps them apart is the plan that settles."""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from ledger.contract.reader import read_contract
from ledger.rating.classified import classify_requests
from ledger.rating.duckdb import Microseconds, all_of
from ledger.rating.plan import REQUEST_COLUMNS
from ledger.settlement.cell import CELL_COLUMNS, CELL_KEY, SUMS
from ledger.settlement.period import contract_period
from ledger.workflows.plans import plans_of_periods
from tests.properties.generate import Month, months
from tests.properties.in_memory import load, recorded


def summed(rows: list[tuple[Any, ...]]) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """The sums by key and name, without those that are 0, and how often each late latency stands under a key."""
    sums: Counter[tuple[Any, ...]] = Counter()
    latencies: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        values = dict(zip(CELL_COLUMNS, row, strict=False))
        key = tuple(values[name] for name in CELL_KEY)
        sums.update({(*key, name): int(values[name]) for name in SUMS if values[name]})
        latencies.update((*key, latency_us) for latency_us in values["late_latencies_us"] or ())
    return sums, latencies


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(month=months())
def test_cells_of_single_requests_sum_to_the_cells_of_all(month: Month) -> None:
    contracts = [read_contract(text.encode(), "contract.yaml").contract for text in month.contract_texts]
    period = contract_period([contract for contract in contracts if contract is not None], month.period)
    assert period is not None
    intervals = [recorded(number, row) for number, row in enumerate(month.intervals)]
    with tempfile.TemporaryDirectory() as folder:
        connection = load(month.events, Path(folder))
        plans = plans_of_periods([period], intervals, all_of("event"))
        apart = [replace(plan, by_request=True) for plan in plans]
        together = [row for plan in plans for row in connection.execute(plan.cells().sql(Microseconds)).fetchall()]
        single = [row for plan in apart for row in connection.execute(plan.cells().sql(Microseconds)).fetchall()]
        requests = classify_requests(connection, apart)
    assert summed(single) == summed(together)
    assert all(len(row) == len(CELL_COLUMNS) + len(REQUEST_COLUMNS) for row in single)
    assert len(requests) == len(single) == sum(summed(together)[0][key] for key in summed(together)[0] if key[-1] == "requests")
