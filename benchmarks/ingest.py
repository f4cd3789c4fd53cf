"""Time of `ledger ingest` against a plain COPY of the same rows into the same table with the same indexes, in one run.

usage: python benchmarks/ingest.py [ROWS]   (1,000,000; needs ../shared/bench/make_month.py)
Prints the median ratio with its run's seconds, the spread, and the largest memory of the ingesting process.
"""

import sys
import time
from pathlib import Path

import duckdb
import psycopg
from bench import bench_server, fresh_database, make_month, run_ledger

RUNS = 3
MOST_RATIO = 1.5
MOST_MEMORY_MB = 300


def main(rows: int) -> None:
    """Load one generated month from each format, each time beside a COPY, and print the median ratio."""
    with bench_server() as (server, folder):
        parquet, csv, stored = make_month(folder, rows), folder / "events.csv", folder / "stored.csv"
        instant = "strftime(make_timestamp(epoch_us(received_at)), '%Y-%m-%dT%H:%M:%S.%fZ')"
        duckdb.read_parquet(str(parquet)).project(f"* REPLACE ({instant} AS received_at)").write_csv(str(csv))
        warm = fresh_database(server)
        run_ledger(warm, "ingest", parquet)
        _export(warm, stored)
        _copy(warm, stored)
        for name, source in (("Parquet", parquet), ("CSV", csv)):
            runs = []
            for _ in range(RUNS):
                url = fresh_database(server)
                loaded, copied = run_ledger(url, "ingest", source), _copy(url, stored)
                runs.append((loaded.seconds / copied, loaded.seconds, copied, loaded.memory_mb))
            ratio, seconds, copied, _ = sorted(runs)[RUNS // 2]
            print(
                f"{name}: {rows:,} rows in {seconds:.1f} s, COPY {copied:.1f} s, ratio {ratio:.2f} "
                f"({min(runs)[0]:.2f} to {max(runs)[0]:.2f}, {RUNS} runs; at most {MOST_RATIO}), "
                f"memory {max(run[3] for run in runs):.0f} MB (at most {MOST_MEMORY_MB})"
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
