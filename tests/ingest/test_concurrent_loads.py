"""Eight processes load overlapping files at once: what stands is what one process makes of them."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import ledger_on
from tests.ingest.halves import engine, gateway, written
from tests.ingest.sample_rows import MAPPINGS, row, write_rows

SEED = 20260502
PROCESSES = 8
STANDS = [
    "SELECT account, request_id, received_at, queue_us, e2e_us, input_tokens, output_tokens FROM event e WHERE NOT EXISTS ("
    "SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (e.account, e.request_id, e.revision)) ORDER BY 1, 2",
    "SELECT row_sha256, reason FROM quarantine WHERE resolution IS NULL ORDER BY 1",
    "SELECT account, request_id, record_id FROM observation ORDER BY 1, 2, 3",
    "SELECT account, request_id, of_request, merged FROM engine_request ORDER BY 1, 2",
    "SELECT quarter_start, sum(requests) FROM traffic GROUP BY 1 ORDER BY 1",
]


def test_eight_processes_make_the_same_as_one(new_database: Callable[[], str], tmp_path: Path) -> None:
    chance = random.Random(SEED)
    rows = [row(request_id=f"r{n}", tokens=n) for n in range(300)] + [row(request_id="", tokens=n) for n in range(5)]
    log = [gateway(f"g{n}", n) for n in range(90)]
    spans = [engine(f"s{n}", f"g{n // 2}", n // 2, trace=f"t{n // 2}", out=n) for n in range(200)]
    kinds: list[tuple[list[str], list[str]]] = [
        ([], [str(write_rows(tmp_path / f"rows-{n}.csv", chance.sample(rows, 150))) for n in range(PROCESSES)]),
        (_mapping("gateway"), [str(written(tmp_path / f"log-{n}.jsonl", chance.sample(log, 45))) for n in range(PROCESSES)]),
        (_mapping("engine"), [str(written(tmp_path / f"spans-{n}.jsonl", chance.sample(spans, 100))) for n in range(PROCESSES)]),
    ]
    together, alone = new_database(), new_database()
    commands = [[*options, file] for options, files in kinds for file in files]
    chance.shuffle(commands)
    for first in range(0, len(commands), PROCESSES):
        _end_well([_start(together, command) for command in commands[first : first + PROCESSES]])
    for options, files in kinds:
        assert ledger_on(alone)("ingest", *options, *files).exit_code == 0
    expected = _content(alone)
    assert all(expected)
    assert _content(together) == expected


def _mapping(role: str) -> list[str]:
    return ["--mapping", str(MAPPINGS / f"{role}-half.yaml")]


def _end_well(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()


def _start(url: str, command: list[str]) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"LEDGER_DATABASE_URL": url, "LEDGER_CHUNK_ROWS": "31"}
    return subprocess.Popen(
        [sys.executable, "-m", "ledger", "ingest", *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _content(url: str) -> list[list[Any]]:
    with psycopg.connect(url) as connection:
        return [connection.execute(statement.encode()).fetchall() for statement in STANDS]
