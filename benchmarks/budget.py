"""`ledger budget` in the last second of a loaded month, the whole command: how much of the error budget each contract has used.

usage: python benchmarks/budget.py [ROWS ...] [--json FILE]   (10,000,000)
"""

from collections.abc import Iterator, Sequence
from functools import partial

from bench import Bench, Contender, Subject, main, memory_of, seconds_of
from figures import Table

PROCESS = "ledger budget"
LAST_SECOND = "2026-05-31T15:59:59Z"  # of May in the contracts' time zone
ALERT = 3  # the exit code when an alert is due


def measure(bench: Bench, sizes: Sequence[int]) -> Iterator[Table]:
    """The command at each size in turn."""
    budget = {rows: partial(bench.ledger, bench.loaded(rows), "budget", now=LAST_SECOND, codes=(0, ALERT)) for rows in sizes}
    runs = bench.race({(rows, PROCESS): Contender(run=run) for rows, run in budget.items()})
    yield Table(
        title="budget: 20 contracts, the whole command",
        columns=("events", "process", "seconds", "memory MB"),
        rows=tuple((*entry, seconds_of(measured), memory_of(measured)) for entry, measured in runs.items()),
    )


SUBJECT = Subject(sizes=(10_000_000,), measure=measure)

if __name__ == "__main__":
    main(SUBJECT)
