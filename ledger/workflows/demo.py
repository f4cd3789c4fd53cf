"""The demo: a made-up month from telemetry files to invoices, in a test database of its own, which every run makes anew.

Takes a folder for what it writes. Uses the same workflows as a real month; the clock stands still at a day in June 2026, so that every run
gives the same result. Source: specification, section 9.
"""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from ledger.bundle import bundled_folder
from ledger.errors import LedgerError
from ledger.ingest.loader import Summary
from ledger.store.database import Database, connect, open_database
from ledger.store.embedded import running_server
from ledger.store.home import APPLICATION, home_folder
from ledger.store.intervals import Interval, add_interval
from ledger.store.migration import upgrade
from ledger.workflows.demo_month import PERIOD, DemoMonth, write_demo_month
from ledger.workflows.ingest import IngestOptions, ingest
from ledger.workflows.register import register_contracts
from ledger.workflows.settle import Settled, settle_period
from ledger.workflows.upkeep import mark_intervals

DEMO_DATABASE = "ledger_demo"
CONTRACTS = ("acme-bank.yaml", "northwind-retail.yaml")
AUTHOR = "ledger demo"
SETTLED_AT = datetime(2026, 6, 3, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the demo did, and where its files are."""

    month: DemoMonth
    contracts: tuple[Path, ...]
    loaded: Summary
    settled: Settled


def run_demo(output: Path, on_step: Callable[[str], None]) -> Demo:
    """Writes telemetry and invoices into the folder, which is made if needed. `on_step` is told what begins."""
    on_step("writing a month of made-up telemetry")
    try:
        month = write_demo_month(output)
    except OSError as error:
        message = f"the demo cannot write into {error.filename or output}: {error.strerror}"
        raise LedgerError(message, cure="give another folder with --output", exit_code=4) from error
    on_step(f"making the test database {DEMO_DATABASE}")
    with _fresh_database() as database:
        contracts = tuple(bundled_folder("contracts") / name for name in CONTRACTS)
        on_step("adding two contracts")
        registered = register_contracts(database, contracts, author=AUTHOR)
        assert not registered.failed, "the ready-made contracts are valid"
        on_step(f"loading {month.requests:,} lines of telemetry")
        loaded = _load(database, month.telemetry)
        _record_intervals(database, month.intervals)
        on_step(f"settling {PERIOD}")
        settled = settle_period(database, PERIOD, author=AUTHOR, output=output)
    return Demo(month=month, contracts=contracts, loaded=loaded, settled=settled)


@contextmanager
def _fresh_database() -> Iterator[Database]:
    """The demo's database on the embedded server, empty, with its clock at SETTLED_AT. Two demos at once take turns."""
    server = running_server(home_folder())
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext('ledger.demo'))")
        connection.execute(f"DROP DATABASE IF EXISTS {DEMO_DATABASE} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {DEMO_DATABASE}".encode())
        engine = connect(server.owner_url(DEMO_DATABASE))
        try:
            upgrade(engine, is_test=True, applications=[APPLICATION])
        finally:
            engine.dispose()
        with open_database(server.url(DEMO_DATABASE)) as database:
            yield replace(database, fixed_now=SETTLED_AT)


def _load(database: Database, files: tuple[Path, ...]) -> Summary:
    total = Summary()
    for report in ingest(database, [str(file) for file in files], IngestOptions(), author=AUTHOR):
        assert report.error is None, "the demo's own files can be read"
        total.add(report.summary)
    return total


def _record_intervals(database: Database, file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as lines, database.engine.begin() as connection:
        added = []
        for number, row in enumerate(csv.DictReader(lines), 1):
            ends_at = datetime.fromisoformat(row["end"])
            recorded = Interval(
                interval_id=f"demo-{number}",
                kind=row["kind"],
                node=row["node"] or None,
                model=None,
                starts_at=datetime.fromisoformat(row["start"]),
                ends_at=ends_at,
            )
            # Recorded as it ended: what is added after the month would be shown as a change.
            add_interval(connection, recorded, author=AUTHOR, added_at=ends_at)
            added.append(recorded)
        mark_intervals(connection, added)
