"""Books that are about to be closed, copies of them to be disturbed, and what has to hold of whatever is issued.

Everything runs by a fixed clock, so that disturbed and undisturbed books can be compared to the byte.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from ledger.store.embedded import Server
from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, request, write_contract, write_events

AFTER_MAY, AFTER_JUNE = "2026-06-03T00:00:00Z", "2026-07-03T00:00:00Z"
RIVAL = (("id: acme-bank-llm", "id: rival"), ("    - acme-bank\n", "    - rival\n"), ("91110000TEST000001", "91110000TEST000009"))
STALE = "INSERT INTO stale (contract_id, spans) VALUES ('acme-bank-llm', '{[2026-06-03,2026-06-08)}')"
STANDS = (
    "SELECT contract_id, period, previous_period, tax_id, number_text, digest, basis::text, contract_hashes::text, carried_out_minor "
    "FROM closing ORDER BY 1, 2",
    "SELECT tax_id, number_text, series, year, number, position, total_minor, issued_at, issued_on, author, content, sealed "
    "FROM issued_document ORDER BY 1, position",
    "SELECT invoice_line::text FROM invoice_line ORDER BY contract_id, period, position",
    "SELECT journal_posting::text FROM journal_posting ORDER BY tax_id, number_text, position",
    "SELECT tax_id, number_text, name, content, sha256 FROM issued_file ORDER BY 1, 2, 3",
    "SELECT contract_id, period, state, digest, document FROM settlement ORDER BY 1, 2",
    "SELECT contract_id, spans::text FROM stale",
)


def prepare_june(ledger: RunLedger, folder: Path) -> None:
    """Three contracts, one of another provider. May is closed, one contract by a credit note; June, which is settled, adjusts it by late
    requests and sets the credit off."""
    contracts = [write_contract(folder, ("breaches: 3", "breaches: 0"), name="acme.yaml")]
    contracts += [write_contract(folder, *changes, name=f"{changes[0][1]}.yaml".replace("id: ", "")) for changes in (OTHER, RIVAL)]
    accounts = ("acme-bank", "other-account", "rival")
    may = [request(n, "2026-05-06T10:00:00+08:00", account=account) for n, account in enumerate(accounts)]
    may.append(request(9, "2026-05-07T10:00:00+08:00", latency_us=310_000))
    later = [request(10 + n, "2026-06-06T10:00:00+08:00", account=account) for n, account in enumerate(accounts)]
    later += [request(20 + n, "2026-05-08T10:00:00+08:00", account=account) for n, account in enumerate(accounts[1:])]
    for now, command in (
        (AFTER_MAY, ("contract", "add", *contracts)),
        (AFTER_MAY, ("ingest", write_events(folder, may, name="may.csv"))),
        (AFTER_MAY, ("settle", "2026-05", "--output", folder / "may")),
        (AFTER_MAY, ("close", "2026-05", "--yes", "--output", folder / "may")),
        (AFTER_JUNE, ("ingest", write_events(folder, later, name="later.csv"))),
        (AFTER_JUNE, ("settle", "2026-06", "--output", folder / "june")),
    ):
        done = ledger(*command, now=now)
        assert done.exit_code == 0, done.stderr


@contextmanager
def copied(server: Server, url: str) -> Iterator[str]:
    """The URL of a copy of the database, which nobody is connected to; it is dropped at the end."""
    original, name = psycopg.conninfo.conninfo_to_dict(url)["dbname"], f"test_{uuid4().hex}"
    with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {original} STRATEGY wal_log".encode())
        try:
            yield server.url(name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def environment(url: str, fault: str = "") -> dict[str, str]:
    """That of a process of its own on the database, which dies at the step `fault`."""
    return os.environ | {"LEDGER_DATABASE_URL": url, "LEDGER_NOW": AFTER_JUNE, "LEDGER_FAULT": fault}


def run(url: str, *arguments: str | Path, fault: str = "") -> "subprocess.CompletedProcess[str]":
    """The command in such a process."""
    command = [sys.executable, "-m", "ledger", *map(str, arguments)]
    return subprocess.run(command, env=environment(url, fault), capture_output=True, text=True, timeout=120, check=False)


def stands(url: str) -> list[list[tuple[Any, ...]]]:
    """All that is issued, and drafted."""
    with psycopg.connect(url) as connection:
        return [connection.execute(query.encode()).fetchall() for query in STANDS]


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def broken(url: str, closed: Sequence[str]) -> list[str]:
    """What is wrong with the books if the month of these contracts, `CONTRACT MONTH` each, and no other is closed: in words."""
    with psycopg.connect(url) as connection:
        periods = connection.execute("SELECT contract_id || ' ' || period FROM closing ORDER BY 1").fetchall()
        documents = connection.execute(
            "SELECT tax_id, series, year, number, position, seal, previous_seal, sealed FROM issued_document ORDER BY tax_id, position"
        ).fetchall()
        unbalanced = connection.execute(
            "SELECT number_text FROM journal_posting GROUP BY tax_id, 1 HAVING sum(amount_minor) <> 0"
        ).fetchall()
    wrong = [] if [name for (name,) in periods] == sorted(closed) else [f"closed are {periods}"]
    wrong += [f"{number_text} does not balance" for (number_text,) in unbalanced]
    wrong += [] if len(documents) == len(closed) else [f"{len(documents)} documents of {len(closed)} months"]
    numbers: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    heads: dict[str, tuple[int, str | None]] = {}
    for tax_id, series, year, number, position, seal, previous_seal, sealed in documents:
        numbers[tax_id, series, year].append(number)
        if (position - 1, previous_seal) != heads.get(tax_id, (0, None)) or sha256(sealed).hexdigest() != seal:
            wrong.append(f"the chain of {tax_id} is broken at {position}")
        heads[tax_id] = position, seal
    return wrong + [f"numbers of {key} are {found}" for key, found in numbers.items() if sorted(found) != list(range(1, len(found) + 1))]
