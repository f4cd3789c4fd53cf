"""How ledger itself settles a random month: through its commands, in this process, each month in a fresh database."""

import csv
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from click.testing import CliRunner

from ledger.cli.main import cli
from ledger.store.embedded import Server

NOW = "2026-12-01T00:00:00Z"  # after the grace of every month
TEMPLATE = "template_ledger"  # made by the fixture `server`


class Refused(Exception):
    """A command of ledger did not do what it was asked."""


def settle_product(
    server: Server, contract_texts: list[str], events: list[dict[str, str]], intervals: list[dict[str, str]], period: str
) -> dict[str, Any]:
    """The settlement as `ledger settle --format json` gives it, of a database that holds these contracts, events and intervals alone.

    Raises Refused, with what the command says, when one of them does not end well.
    """
    with fresh_database(server) as url, tempfile.TemporaryDirectory() as folder:
        files = []
        for number, text in enumerate(contract_texts, start=1):
            files.append(Path(folder) / f"contract-v{number}.yaml")
            files[-1].write_text(text, encoding="utf-8")
        run(url, "contract", "add", *map(str, files))
        if intervals:
            run(url, "interval", "add", write_csv(Path(folder) / "intervals.csv", intervals))
        run(url, "ingest", write_csv(Path(folder) / "events.csv", events))
        [settlement] = json.loads(run(url, "settle", period, "--format", "json", "--dry-run"))
        assert isinstance(settlement, dict)
        return settlement


@contextmanager
def fresh_database(server: Server) -> Iterator[str]:
    name = f"month_{uuid4().hex}"
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY wal_log".encode())
        yield server.url(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def run(url: str, *arguments: str) -> str:
    environment = {"LEDGER_DATABASE_URL": url, "LEDGER_NOW": NOW}
    result = CliRunner().invoke(cli, arguments, env=environment, prog_name="ledger")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code != 0:
        raise Refused(f"ledger {' '.join(arguments[:2])}: {result.stderr}")
    return result.stdout


def write_csv(file: Path, rows: list[dict[str, str]]) -> str:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(file)
