"""`ledger settle` after loading, the whole command, against what an engineer and an analyst would run instead on the same rows.

usage: python benchmarks/settle.py [ROWS ...] [--json FILE]   (1,000,000 10,000,000 30,000,000)
Ends with an error unless ledger finds the breaches and bands that peer_duckdb.py finds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from agreement import compare, found_by_ledger, found_by_peer
from bench import MONTH, PEER_DUCKDB, PEER_PANDAS, Bench, Contender, Entry, Run, Subject, main, memory_of, seconds_of
from figures import Cell, Figure, Table

LEDGER = "ledger settle"
DRY_RUN = ("settle", MONTH, "--dry-run", "--format", "json")
PANDAS_PATIENCE_SECONDS = 60
PANDAS_EVENT_BYTES = 500  # 4.3 GB were seen at 10,000,000 events


def measure(bench: Bench, sizes: Sequence[int]) -> Iterator[Table]:
    """Every process at every size in turn; then what the sizes cost against each other."""
    contenders: dict[Entry, Contender] = {}
    notes = [f"memory: the client's process; {PEER_PANDAS.name} runs once where it takes over {PANDAS_PATIENCE_SECONDS} s"]
    for rows in sizes:
        settle = partial(bench.ledger, bench.loaded(rows), "settle", MONTH, "--output", bench.folder / f"settled-{rows}")
        contenders[rows, LEDGER] = Contender(run=settle)
        contenders[rows, PEER_DUCKDB.name] = Contender(run=partial(bench.peer, PEER_DUCKDB, rows))
        pandas = partial(bench.peer, PEER_PANDAS, rows)
        if rows * PANDAS_EVENT_BYTES <= (free_bytes := _free_bytes()):
            contenders[rows, PEER_PANDAS.name] = Contender(run=pandas, patience_seconds=PANDAS_PATIENCE_SECONDS)
        else:
            notes.append(f"{PEER_PANDAS.name} does not fit in the {free_bytes / 1e9:.0f} GB of free memory at {rows:,} events")
    runs = bench.race(contenders)
    for rows in sizes:
        ledger, peer = bench.ledger(bench.loaded(rows), *DRY_RUN), runs[rows, PEER_DUCKDB.name][0]
        notes.append(compare(rows, found_by_ledger(ledger.output), found_by_peer(peer.output)))
    yield Table(
        title="settle: a month of 20 contracts, whole commands",
        columns=("events", "process", "seconds", "ledger / it", "memory MB", "its own seconds", "its lines", "its breaches"),
        rows=tuple(_row(runs, entry) for entry in runs),
        notes=tuple(notes),
    )
    if len(sizes) > 1:
        yield Table(
            title=f"settle: the slowest of {', '.join(f'{rows:,}' for rows in sizes)} events against the fastest",
            columns=("process", "slowest / fastest"),
            rows=tuple((process, _spread(runs, process)) for process in (LEDGER, PEER_DUCKDB.name)),
        )


def _row(runs: Mapping[Entry, Sequence[Run]], entry: Entry) -> tuple[Cell, ...]:
    rows, process = entry
    its = seconds_of(runs[entry])
    if process == LEDGER:
        return (rows, process, its, None, memory_of(runs[entry]), None, None, None)
    found = [found_by_peer(run.output) for run in runs[entry]]
    ratio = seconds_of(runs[rows, LEDGER]).ratio_to(its)
    own = Figure(tuple(one.seconds for one in found))
    return (rows, process, its, ratio, memory_of(runs[entry]), own, found[0].lines, found[0].breaches)


def _spread(runs: Mapping[Entry, Sequence[Run]], process: str) -> Figure:
    """Of each round, the slowest size's time by the fastest's."""
    rounds = zip(*(seconds_of(of_size).values for (_, name), of_size in runs.items() if name == process), strict=True)
    return Figure(tuple(max(seconds) / min(seconds) for seconds in rounds))


def _free_bytes() -> int:
    """The memory that a process may take without another one's being taken away."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), flags=re.M)
    assert found is not None
    return int(found[1]) * 1024


SUBJECT = Subject(sizes=(1_000_000, 10_000_000, 30_000_000), measure=measure)

if __name__ == "__main__":
    main(SUBJECT)
