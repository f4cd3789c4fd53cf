"""Time and memory of `ledger settle` for a generated month of 20 contracts, the whole command.

usage: python benchmarks/settle.py [ROWS]   (1,000,000; needs ../shared/bench/make_month.py)
"""

import sys
from statistics import median

from bench import bench_server, fresh_database, make_month, run_ledger

RUNS = 3


def main(rows: int) -> None:
    """Load one generated month and settle it several times."""
    with bench_server() as (server, folder):
        events = make_month(folder, rows)
        url = fresh_database(server)
        run_ledger(url, "contract", "add", *sorted(folder.glob("contract-*.yaml")))
        loaded = run_ledger(url, "ingest", events)
        settled = [run_ledger(url, "settle", "2026-05", "--output", folder / "out") for _ in range(RUNS)]
        seconds = sorted(run.seconds for run in settled)
        print(
            f"settle: {rows:,} events, 20 contracts in {median(seconds):.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f}, {RUNS} runs), "
            f"memory {max(run.memory_mb for run in settled):.0f} MB; loaded before in {loaded.seconds:.1f} s"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
