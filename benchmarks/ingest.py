"""Time of `ledger ingest` against a plain COPY of the same rows into the same table with the same indexes, in one run.

usage: python benchmarks/ingest.py [ROWS]   (1,000,000; needs ../shared/bench/make_month.py)
Prints the seconds of each, the ratio, and the largest memory of the ingesting process.
"""

import sys
import time
from pathlib import Path

import duckdb
import psycopg
from bench import bench_server, fresh_database, make_month, run_ledger

MOST_RATIO = 1.5
MOST_MEMORY_MB = 300


def main(rows: int) -> None:
    """Load one generated month three ways and print how long each took."""
    with bench_server() as (server, folder):
        parquet, csv, stored = make_month(folder, rows), folder / "events.csv", folder / "stored.csv"
        instant = "strftime(make_timestamp(epoch_us(received_at)), '%Y-%m-%dT%H:%M:%S.%fZ')"
        duckdb.read_parquet(str(parquet)).project(f"* REPLACE ({instant} AS received_at)").write_csv(str(csv))
        for name, source in (("first (warms up)", parquet), ("Parquet", parquet), ("CSV", csv)):
            url = fresh_database(server)
            loaded = run_ledger(url, "ingest", source)
            if not stored.exists():
                _export(url, stored)
            copied = _copy(url, stored)
            print(
                f"{name}: {rows:,} rows in {loaded.seconds:.1f} s, COPY {copied:.1f} s, ratio {loaded.seconds / copied:.2f} "
                f"(at most {MOST_RATIO}), memory {loaded.memory_mb:.0f} MB (at most {MOST_MEMORY_MB})"
            )


def _export(url: str, stored: Path) -> None:
    with (
        psycopg.connect(url) as connection,
        stored.open("wb") as file,
        connection.cursor().copy("COPY event TO STDOUT (FORMAT csv)") as copy,
    ):
        for piece in copy:
            file.write(piece)


def _copy(url: str, stored: Path) -> float:
    """Seconds of COPY into a table like `event`, with its constraints and indexes."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE copied (LIKE event INCLUDING ALL)")
        connection.commit()
        started = time.perf_counter()
        with stored.open("rb") as file, connection.cursor().copy("COPY copied FROM STDIN (FORMAT csv)") as copy:
            while piece := file.read(1 << 18):
                copy.write(piece)
        connection.commit()
        return time.perf_counter() - started


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
