"""A whole month classified again from its events, every cell of every contract, in PostgreSQL and from Parquet, against peer_duckdb.py.

usage: python benchmarks/recompute.py [ROWS ...] [--json FILE]   (10,000,000)
Ends with an error unless what is computed from Parquet agrees with peer_duckdb.py.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import psycopg
from agreement import compare, found_by_ledger, found_by_peer
from bench import MONTH, PEER_DUCKDB, Bench, Contender, Entry, Run, Subject, main, memory_of, seconds_of
from figures import Cell, Table

POSTGRESQL, PARQUET, PEER = "ledger, from PostgreSQL", "ledger, from Parquet", PEER_DUCKDB.name
FROM_POSTGRESQL = ("settle", MONTH, "--dry-run")  # with every kept cell of every contract marked stale
ALL_STALE = (
    "INSERT INTO stale (contract_id, spans) SELECT DISTINCT contract_id, tstzmultirange(tstzrange(NULL, NULL)) FROM version_in_force "
    "ON CONFLICT (contract_id) DO UPDATE SET spans = excluded.spans"  # what lies outside the settled month is marked still
)
FROM_PARQUET = ("settle", MONTH, "--dry-run", "--events")  # and the file


def measure(bench: Bench, sizes: Sequence[int]) -> Iterator[Table]:
    """The three in turn at each size."""
    contenders: dict[Entry, Contender] = {}
    for rows in sizes:
        url, events = bench.loaded(rows), bench.month(rows) / "events.parquet"
        contenders[rows, POSTGRESQL] = Contender(run=partial(_from_postgresql, bench, url))
        contenders[rows, PARQUET] = Contender(run=partial(bench.ledger, url, *FROM_PARQUET, events))
        contenders[rows, PEER] = Contender(run=partial(bench.peer, PEER_DUCKDB, rows))
    runs = bench.race(contenders)
    table: list[tuple[Cell, ...]] = []
    notes = [
        f"from PostgreSQL: ledger {' '.join(FROM_POSTGRESQL)}, when all that was kept is stale",
        f"from Parquet: ledger {' '.join(FROM_PARQUET)} FILE",
    ]
    for (rows, process), measured in runs.items():
        ratio = None if process == PEER else seconds_of(measured).ratio_to(seconds_of(runs[rows, PEER]))
        table.append((rows, process, seconds_of(measured), ratio, memory_of(measured)))
        if process == PARQUET:
            found = bench.ledger(bench.loaded(rows), *FROM_PARQUET, bench.month(rows) / "events.parquet", "--format", "json")
            notes.append(compare(rows, found_by_ledger(found.output), found_by_peer(runs[rows, PEER][0].output)))
    yield Table(
        title="recompute: a month of 20 contracts from its events, whole commands",
        columns=("events", "process", "seconds", "it / peer_duckdb.py", "memory MB"),
        rows=tuple(table),
        notes=tuple(notes),
    )


def _from_postgresql(bench: Bench, url: str) -> Run:
    """Settling when the cells of every day have to be computed again."""
    with psycopg.connect(url) as connection:
        connection.execute(ALL_STALE.encode())
    return bench.ledger(url, *FROM_POSTGRESQL)


SUBJECT = Subject(sizes=(10_000_000,), measure=measure)

if __name__ == "__main__":
    main(SUBJECT)
