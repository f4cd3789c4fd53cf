"""Time of `ledger ingest` against a plain COPY of the same rows into the same table with the same indexes, in one run.

usage: python benchmarks/ingest.py [ROWS]   (1,000,000; needs ../shared/bench/make_month.py)
Prints the seconds of each, the ratio, and the largest memory of the ingesting process.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import duckdb
import psycopg

ROOT = Path(__file__).parents[1]
MAKE_MONTH = ROOT.parent / "shared" / "bench" / "make_month.py"
MOST_RATIO = 1.5
MOST_MEMORY_MB = 300


def main(rows: int) -> None:
    """Load one generated month three ways and print how long each took."""
    if not MAKE_MONTH.is_file():
        sys.exit(f"the generator is missing: {MAKE_MONTH}")
    from ledger.store.database import connect
    from ledger.store.embedded import running_server, stop_server
    from ledger.store.migration import upgrade

    with tempfile.TemporaryDirectory(prefix="ledger-bench-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        home = Path(folder, "home")
        server = running_server(home)
        try:
            subprocess.run([sys.executable, str(MAKE_MONTH), folder, str(rows)], check=True, stdout=subprocess.DEVNULL)
            parquet, csv = Path(folder, "events.parquet"), Path(folder, "events.csv")
            instant = "strftime(make_timestamp(epoch_us(received_at)), '%Y-%m-%dT%H:%M:%S.%fZ')"
            month = duckdb.read_parquet(str(parquet))
            month.project(f"* REPLACE ({instant} AS received_at)").write_csv(str(csv))
            stored = Path(folder, "stored.csv")
            for name, source in (("first (warms up)", parquet), ("Parquet", parquet), ("CSV", csv)):
                url = _database(server.url("postgres"), server.url)
                engine = connect(url)
                upgrade(engine, is_test=True)
                engine.dispose()
                seconds, memory_mb = _ingest(url, source)
                if not stored.exists():
                    _export(url, stored)
                copied = _copy(url, stored)
                print(
                    f"{name}: {rows:,} rows in {seconds:.1f} s, COPY {copied:.1f} s, ratio {seconds / copied:.2f} "
                    f"(at most {MOST_RATIO}), memory {memory_mb:.0f} MB (at most {MOST_MEMORY_MB})"
                )
        finally:
            stop_server(home)


def _database(admin_url: str, url_of: "object") -> str:
    name = f"bench_{uuid4().hex}"
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    assert callable(url_of)
    return str(url_of(name))


def _ingest(url: str, source: Path) -> tuple[float, float]:
    """Seconds and the process's largest memory in MB."""
    environment = os.environ | {"LEDGER_DATABASE_URL": url}
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "ledger", "ingest", str(source)], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        sys.exit(f"ingest failed: {status}")
    return seconds, usage.ru_maxrss / 1024


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
