"""What every benchmark needs: one server on two cores, months that are made and loaded once, measured processes, rounds.

Takes numbers of events, gives tables of figures. Everything that it makes is in one temporary folder, which is gone at the end
however that comes. The anchors of ../shared/bench run unchanged, as processes of their own. README.md says what is measured.
"""

import argparse
import importlib.util
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO
from uuid import uuid4

import psycopg
from figures import Figure, Table, print_table, write_json
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ledger.store.embedded import Server, running_server, stop_server
from ledger.store.home import APPLICATION

ROUNDS = 5
CORES = 2
MONTH = "2026-05"
MONTH_SETTLES_AT = "2026-06-15T00:00:00Z"
SHARED = Path(__file__).parents[2] / "shared" / "bench"
MAKE_MONTH, PEER_DUCKDB, PEER_PANDAS = (SHARED / f"{name}.py" for name in ("make_month", "peer_duckdb", "peer_pandas"))
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SERVER_GB = 12  # the write-ahead log before a checkpoint, temporary files, the server's own databases
EVENT_BYTES = 600  # in the database, its indexes and files, at most
TABLES, CONTRACTS = "bench_tables", "bench_contracts"  # databases that the others are copied from: without and with contracts


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process from start to end: its time, the largest memory that it had (0 if there was no process), what it printed."""

    seconds: float
    memory_mb: float = 0
    output: str = ""


Entry = tuple[int, str]  # the number of events, the process that is measured on them


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Something to measure in every round. If its first run takes longer than `patience_seconds`, that one stays the only one."""

    run: Callable[[], Run]
    patience_seconds: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A benchmark: the numbers of events it takes if none are given, and what it makes of them; with files of its own of that many bytes
    an event."""

    sizes: tuple[int, ...]
    measure: Callable[["Bench", Sequence[int]], Iterator[Table]]
    file_bytes: int = 0


class Bench:
    """The server and what has been made for one run. Months and loaded databases are made when first asked for, and shared."""

    def __init__(self, server: Server, folder: Path, cores: frozenset[int], rounds: int) -> None:
        self.server, self.folder, self.cores, self.rounds = server, folder, cores, rounds
        self._loaded: dict[int, str] = {}
        self._make_templates()

    def month(self, rows: int) -> Path:
        """A folder with `events.parquet`, that many rows over May 2026, and the contracts of its 20 accounts."""
        folder = self.folder / f"month-{rows}"
        if not folder.exists():
            say(f"making a month of {rows:,} events")
            self.run([sys.executable, MAKE_MONTH, folder, rows])
        return folder

    def loaded(self, rows: int) -> str:
        """The URL of a database with 20 contracts and that month, as it is when autovacuum has been there."""
        if rows not in self._loaded:
            events, url = self.month(rows) / "events.parquet", self._new_database(CONTRACTS)
            run = self.ingest(url, events, rows)
            with psycopg.connect(self.owner_url(url), autocommit=True) as connection:  # now, and not in the middle of a measurement
                connection.execute("VACUUM (ANALYZE)")
                connection.execute("CHECKPOINT")
            say(f"loaded {rows:,} events in {run.seconds:.1f} s")
            self._loaded[rows] = url
        return self._loaded[rows]

    def owner_url(self, url: str) -> str:
        """The URL of the same database for the owner of its tables, who may clean up and measure what the application may not."""
        return self.server.owner_url(_name(url))

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """The URL of a new database like the template, with nothing else left to write; gone afterwards."""
        url = self._new_database(template)
        try:
            self._execute("CHECKPOINT")
            yield url
        finally:
            self._execute(f"DROP DATABASE {_name(url)} WITH (FORCE)")

    def ledger(self, url: str, *arguments: str | Path, now: str = MONTH_SETTLES_AT, codes: Sequence[int] = (0,)) -> Run:
        """The whole `ledger` command on that database; any other exit code ends the benchmark."""
        return self.run([sys.executable, "-m", "ledger", *arguments], {"LEDGER_DATABASE_URL": url, "LEDGER_NOW": now}, codes)

    def ingest(self, url: str, source: Path, rows: int, *, table: str = "event") -> Run:
        """`ledger ingest` of the file; ends the benchmark unless all its rows are in the database's table."""
        run = self.ledger(url, "ingest", source)
        with psycopg.connect(url) as connection:
            (count,) = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone() or (None,)
        if count != rows:
            sys.exit(f"error: {count} of {rows} rows of {source} are in the database")
        return run

    def peer(self, script: Path, rows: int) -> Run:
        """The whole process of an anchor over the month's Parquet file."""
        return self.run([sys.executable, script, self.month(rows) / "events.parquet"])

    def run(self, command: Sequence[object], environment: dict[str, str] | None = None, codes: Sequence[int] = (0,)) -> Run:
        """The process from start to end, on the same cores.

        Linux counts the largest memory of a process from that of the one that started it, so this one has to stay the smaller.
        """
        words = [str(word) for word in command]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LEDGER_")}
        with _text_file() as output, _text_file() as errors:
            started = time.perf_counter()
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=inherited | (environment or {}), cwd=self.folder
            )
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                process.wait()
                raise
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            if process.returncode not in codes:
                sys.exit(f"error: {' '.join(words)} ended with {process.returncode}\n{errors.read()[-2000:]}")
            return Run(seconds=seconds, memory_mb=usage.ru_maxrss / 1024, output=output.read())

    def race(self, contenders: Mapping[Entry, Contender]) -> dict[Entry, tuple[Run, ...]]:
        """The runs of each, in rounds of one run each, so that noise hits all alike."""
        runs: dict[Entry, tuple[Run, ...]] = {}
        for number in range(1, self.rounds + 1):
            self.require_conditions()
            for entry, contender in contenders.items():
                before = runs.get(entry, ())
                if not before or before[0].seconds <= contender.patience_seconds:
                    run = contender.run()
                    if 0 < run.memory_mb <= _own_memory_mb():
                        sys.exit(f"error: the benchmark's own memory hides that of {entry[1]}")
                    runs[entry] = (*before, run)
                    say(f"round {number} of {self.rounds}, {entry[0]:,} events, {entry[1]}: {run.seconds:.2f} s, {run.memory_mb:.0f} MB")
        return runs

    def require_conditions(self) -> None:
        """Ends the benchmark unless the server is durable, and each of its processes is on our cores and no others."""
        with psycopg.connect(self.server.owner_url("postgres")) as connection:
            found = {name: (connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0] for name in DURABLE}
            postmaster = connection.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer").fetchall()
            sessions = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
            cores = [os.sched_getaffinity(pid) for (pid,) in (*postmaster, *sessions) if Path(f"/proc/{pid}").exists()]
        if found != DURABLE:
            sys.exit(f"error: the server is not durable: {found}")
        if any(its != self.cores for its in cores):
            sys.exit(f"error: the server's processes are on cores {sorted(map(sorted, cores))}, not on {sorted(self.cores)}")

    def conditions(self) -> Table:
        """Where and with what the figures were measured."""
        with psycopg.connect(self.server.owner_url("postgres")) as connection:
            settings = ("server_version", "shared_buffers", "work_mem", *DURABLE)
            found = {name: (connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0] for name in settings}
        memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
        rows = {
            "cores": f"{CORES} for server and clients together, of {os.cpu_count()}",
            "memory": f"{memory_gb:.0f} GB",
            "server": "PostgreSQL " + ", ".join(f"{name} {value}" if name != "server_version" else value for name, value in found.items()),
            "libraries": ", ".join(f"{name} {version(name)}" for name in ("duckdb", "pandas", "pyarrow")),
            "figures": f"median of {self.rounds} (least to most), one run of each in turn; a ratio is taken round by round",
        }
        return Table(title="conditions", columns=("what", "how"), rows=tuple(rows.items()))

    def _make_templates(self) -> None:
        self._execute(f"CREATE DATABASE {TABLES}")
        self.ledger(self.server.owner_url(TABLES), "database", "upgrade", "--test", "--application", APPLICATION)
        self._execute(f"CREATE DATABASE {CONTRACTS} TEMPLATE {TABLES}")
        self.ledger(self.server.url(CONTRACTS), "contract", "add", *sorted(self.month(1000).glob("contract-*.yaml")))

    def _new_database(self, template: str) -> str:
        name = f"bench_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.url(name)

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server.owner_url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


def seconds_of(runs: Sequence[Run]) -> Figure:
    """The time of each run."""
    return Figure(tuple(run.seconds for run in runs))


def memory_of(runs: Sequence[Run]) -> Figure:
    """The largest memory of each run, in MB."""
    return Figure(tuple(run.memory_mb for run in runs))


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main(*subjects: Subject) -> None:
    """Measures the subjects in one run on the same server and rows, and prints each table when it is there."""
    parser = argparse.ArgumentParser(description="Benchmarks of ledger; benchmarks/README.md says what each measures.")
    parser.add_argument("rows", nargs="*", type=row_count, metavar="ROWS", help="numbers of events, in place of each benchmark's own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there too")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"how often each is measured ({ROUNDS})")
    arguments = parser.parse_args()
    sizes = {subject: tuple(sorted(set(arguments.rows))) or subject.sizes for subject in subjects}
    tables = []
    try:
        shared_bytes = EVENT_BYTES * sum({rows for asked in sizes.values() for rows in asked})
        with _open_bench(
            shared_bytes + sum(subject.file_bytes * sum(asked) for subject, asked in sizes.items()), arguments.rounds
        ) as bench:
            tables.append(bench.conditions())
            print_table(tables[-1])
            for subject, asked in sizes.items():
                for table in subject.measure(bench, asked):
                    tables.append(table)
                    print_table(table)
                    if arguments.json:
                        write_json(arguments.json.absolute(), tables)
    except KeyboardInterrupt:
        sys.exit("interrupted; what was made for the run is removed")


@contextmanager
def _open_bench(needed_bytes: int, rounds: int) -> Iterator[Bench]:
    cores = _pin()
    _require_anchors()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="ledger-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # so that a server started by root, which runs as another user, can enter
        _require_space(folder, needed_bytes)
        home = folder / "home"
        try:
            bench = Bench(running_server(home), folder, cores, rounds)
            bench.require_conditions()
            yield bench
        finally:
            for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signal_number, signal.SIG_IGN)  # a second Ctrl-C must not leave a server running
            stop_server(home)


def _pin() -> frozenset[int]:
    """Binds this process, and so all that it starts, to two cores."""
    if not hasattr(os, "sched_setaffinity"):
        sys.exit("error: the benchmarks bind processes to cores, which needs Linux")
    available = sorted(os.sched_getaffinity(0))
    if len(available) < CORES:
        sys.exit(f"error: the benchmarks need {CORES} cores, this process may use {len(available)}")
    os.sched_setaffinity(0, available[:CORES])
    return frozenset(available[:CORES])


def _require_anchors() -> None:
    for script in (MAKE_MONTH, PEER_DUCKDB, PEER_PANDAS):
        if not script.is_file():
            sys.exit(f"error: the anchor is missing: {script}")
    missing = [name for name in ("pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"error: not installed for {PEER_PANDAS.name}: {', '.join(missing)}\n  run: make bench, or pip install -e '.[bench]'")


def _require_space(folder: Path, needed_bytes: int) -> None:
    needed_gb, free_gb = SERVER_GB + needed_bytes / 1e9, shutil.disk_usage(folder).free / 1e9
    if free_gb < needed_gb:
        sys.exit(
            f"error: the events need up to {needed_gb:.0f} GB in {folder.parent}, {free_gb:.0f} GB are free\n"
            "  make room, give fewer rows (make bench ROWS=1000000), or set TMPDIR to a folder of another disk"
        )


def row_count(text: str) -> int:
    """A number of events on the command line."""
    rows = int(text)
    if rows < 1000:
        raise argparse.ArgumentTypeError("a month has at least 1000 events")
    return rows


def _own_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _text_file() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")


def _name(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])
