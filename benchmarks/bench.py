"""What every benchmark needs: a generated month, a server of its own, a process whose time and memory are measured."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

from ledger.store.database import connect
from ledger.store.embedded import Server, running_server, stop_server
from ledger.store.migration import upgrade

ROOT = Path(__file__).parents[1]
MAKE_MONTH = ROOT.parent / "shared" / "bench" / "make_month.py"


@dataclass(frozen=True)
class Measured:
    """A command's time and the largest memory of its process."""

    seconds: float
    memory_mb: float


@contextmanager
def bench_server() -> Iterator[tuple[Server, Path]]:
    """An embedded server and a folder, both gone at the end. The folder is open, so that root's server can run as nobody."""
    with tempfile.TemporaryDirectory(prefix="ledger-bench-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        home = folder / "home"
        try:
            yield running_server(home), folder
        finally:
            stop_server(home)


def make_month(folder: Path, rows: int) -> Path:
    """`events.parquet` of that many rows over May 2026, and the contracts of its 20 accounts beside it."""
    if not MAKE_MONTH.is_file():
        sys.exit(f"the generator is missing: {MAKE_MONTH}")
    subprocess.run([sys.executable, str(MAKE_MONTH), str(folder), str(rows)], check=True, stdout=subprocess.DEVNULL)
    return folder / "events.parquet"


def fresh_database(server: Server) -> str:
    """The URL of a new database with the current schema."""
    name = f"bench_{uuid4().hex}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    engine = connect(server.url(name))
    upgrade(engine, is_test=True)
    engine.dispose()
    return server.url(name)


def run_ledger(url: str, *arguments: str | Path) -> Measured:
    """Runs the whole command in a process of its own; stops the benchmark if it fails."""
    command: Sequence[str] = [sys.executable, "-m", "ledger", *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(command, env=os.environ | {"LEDGER_DATABASE_URL": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        sys.exit(f"{' '.join(command)} failed: {status}")
    return Measured(seconds=seconds, memory_mb=usage.ru_maxrss / 1024)
