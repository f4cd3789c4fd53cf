"""`ledger ingest` with and without registered contracts, whose cells it keeps up to date, against a plain COPY of the same rows.

usage: python benchmarks/ingest.py [ROWS ...] [--json FILE]   (1,000,000)
The COPY goes into a table with the same columns, constraints and indexes. Every load starts in a database of its own.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import psycopg
from bench import CONTRACTS, TABLES, Bench, Contender, Entry, Run, Subject, main, memory_of, seconds_of
from figures import Cell, Table

COPY = "COPY"
PIECE_BYTES = 1 << 18


def measure(bench: Bench, sizes: Sequence[int]) -> Iterator[Table]:
    """Each load at each size in turn, COPY among them."""
    contenders: dict[Entry, Contender] = {}
    pairs: dict[Entry, Entry] = {}  # a load with upkeep: the same without
    for rows in sizes:
        parquet = bench.month(rows) / "events.parquet"
        csv, stored = parquet.with_suffix(".csv"), parquet.with_name("stored.csv")
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as apart:  # DuckDB makes a process large: see Bench.run
            apart.submit(_write_csv, parquet, csv).result()
        _store(bench, parquet, stored, rows)
        for name, source in (("Parquet", parquet), ("CSV", csv)):
            with_upkeep, without = (rows, f"{name}, with upkeep of cells"), (rows, f"{name}, without")
            contenders[with_upkeep] = Contender(run=partial(_ingest, bench, CONTRACTS, source, rows))
            contenders[without] = Contender(run=partial(_ingest, bench, TABLES, source, rows))
            pairs[with_upkeep] = without
        contenders[rows, COPY] = Contender(run=partial(_copy, bench, stored))
    runs = bench.race(contenders)
    table: list[tuple[Cell, ...]] = []
    for entry, measured in runs.items():
        seconds, copied = seconds_of(measured), seconds_of(runs[entry[0], COPY])
        to_copy = None if entry[1] == COPY else seconds.ratio_to(copied)
        to_without = seconds.ratio_to(seconds_of(runs[pairs[entry]])) if entry in pairs else None
        table.append((*entry, seconds, to_copy, to_without, None if entry[1] == COPY else memory_of(measured)))
    yield Table(
        title="ingest: an empty database, whole commands; COPY without the start of a process",
        columns=("events", "load", "seconds", "it / COPY", "with / without upkeep", "memory MB"),
        rows=tuple(table),
        notes=("with upkeep: 20 contracts were registered before; without: none",),
    )


def _ingest(bench: Bench, template: str, source: Path, rows: int) -> Run:
    with bench.database(template) as url:
        return bench.ingest(url, source, rows)


def _copy(bench: Bench, stored: Path) -> Run:
    """COPY into a table like `event`, with its constraints and indexes."""
    with bench.database(TABLES) as url, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE copied (LIKE event INCLUDING ALL)")
        connection.commit()
        started = perf_counter()
        with stored.open("rb") as file, connection.cursor().copy("COPY copied FROM STDIN (FORMAT csv)") as copy:
            while piece := file.read(PIECE_BYTES):
                copy.write(piece)
        connection.commit()
        return Run(seconds=perf_counter() - started)


def _store(bench: Bench, parquet: Path, stored: Path, rows: int) -> None:
    """Writes the rows as ledger stores them, for COPY."""
    with bench.database(TABLES) as url:
        bench.ingest(url, parquet, rows)
        with (
            psycopg.connect(url) as connection,
            stored.open("wb") as file,
            connection.cursor().copy("COPY event TO STDOUT (FORMAT csv)") as copy,
        ):
            for piece in copy:
                file.write(piece)


def _write_csv(parquet: Path, csv: Path) -> None:
    import duckdb

    instant = "strftime(make_timestamp(epoch_us(received_at)), '%Y-%m-%dT%H:%M:%S.%fZ')"
    duckdb.read_parquet(str(parquet)).project(f"* REPLACE ({instant} AS received_at)").write_csv(str(csv))


SUBJECT = Subject(sizes=(1_000_000,), measure=measure)

if __name__ == "__main__":
    main(SUBJECT)
