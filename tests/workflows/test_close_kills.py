"""Kill -9, many at once, and no room for files while months are settled and closed: the same command again ends as if nothing had happened.

`make kill-test` is the long form, with more kills and more contracts.
"""

import os
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg

from ledger.store.embedded import Server
from tests.conftest import RunLedger, ledger_on
from tests.workflows.base_contract import request, write_contract, write_events
from tests.workflows.close_steps import AFTER_JUNE, STALE, broken, copied, environment, files_below, prepare_june, run, stands
from tests.workflows.kill_steps import CLOSE_STEPS, RECOMPUTE_STEPS, SETTLE_STEPS

SETTLE, CLOSE = ("settle", "2026-06", "--output"), ("close", "2026-06", "--yes", "--output")
STEPS = [(SETTLE, step) for step in SETTLE_STEPS] + [(CLOSE, step) for step in CLOSE_STEPS]
# In the long form also while what is stale is computed again.
ALL_STEPS = STEPS + [(command, step) for command in (SETTLE, CLOSE) for step in RECOMPUTE_STEPS]
SEED = int(os.environ.get("LEDGER_KILL_SEED", "20260503"))
KILLS = int(os.environ.get("LEDGER_KILLS", len(STEPS)))
CONTRACTS = int(os.environ.get("LEDGER_KILL_CONTRACTS", "12"))
PROCESSES = 8
# How often a step is passed with three contracts of three files each; others are passed once.
PASSES = dict.fromkeys([*SETTLE_STEPS[:1], *CLOSE_STEPS[:-1]], 3) | {"settle.before_file": 9}
MAY = [f"{contract} 2026-05" for contract in ("acme-bank-llm", "other", "rival")]
JUNE = [name.replace("05", "06") for name in MAY]
MOST_BYTES = 4_000  # more than the JSON of a settlement, and less than an invoice
FILES = "SELECT name, content FROM issued_file JOIN closing USING (tax_id, number_text) WHERE period = '2026-06'"
# Closes contracts one after another in one process, as many processes do at once.
CLOSE_EACH = """
import sys
from ledger.cli.main import cli
options = ["--yes", "--output", sys.argv[1], "--author", sys.argv[2]]
for contract_id in sys.argv[3:]:
    cli(["close", "2026-05", "--contract", contract_id, *options], standalone_mode=False)
"""


def test_settle_and_close_killed_at_any_step_are_ended_by_the_same_command(
    server: Server, database_url: str, run_ledger: RunLedger, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    prepare_june(run_ledger, tmp_path)
    expected = {}
    for command in (SETTLE, CLOSE):
        with copied(server, database_url) as url:
            assert ledger_on(url)(*command, tmp_path / command[0], now=AFTER_JUNE).exit_code == 0
            expected[command] = stands(url), files_below(tmp_path / command[0])
    assert [row[4].replace("2026-00000", "") for row in expected[CLOSE][0][0]] == ["CN-1", "INV-2", "INV-1", "INV-3", "INV-1", "INV-2"]
    assert len(expected[CLOSE][1]) == 9

    chance, hits = random.Random(SEED), Counter[str]()
    moments = (ALL_STEPS * (KILLS // len(ALL_STEPS) + 1))[:KILLS]
    chance.shuffle(moments)
    for number, (command, step) in enumerate(moments):
        folder, fault = tmp_path / f"killed-{number}", f"{step}:{chance.randint(1, PASSES.get(step, 1))}"
        with copied(server, database_url) as url:
            if step in RECOMPUTE_STEPS:
                with psycopg.connect(url) as connection:
                    connection.execute(STALE)
            killed = run(url, *command, folder, fault=fault)
            assert killed.returncode == -signal.SIGKILL, (command[0], fault, killed.stderr)
            hits[f"{command[0]}: {step}"] += 1
            ended = ledger_on(url)(*command, folder, now=AFTER_JUNE)
            assert ended.exit_code == 0, (command[0], fault, ended.stderr)
            assert (stands(url), files_below(folder)) == expected[command], (command[0], fault)
            assert broken(url, MAY + (JUNE if command == CLOSE else [])) == [], (command[0], fault)
    assert len(hits) == len({*moments})
    record_property("kills", f"kills while settling and closing, seed {SEED}: {sum(hits.values())}, {dict(sorted(hits.items()))}")


def test_many_contracts_closed_by_eight_processes_of_which_one_is_killed_have_each_number_once(
    database_url: str, run_ledger: RunLedger, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    names = [f"customer-{number:02}" for number in range(CONTRACTS)]
    contracts = [
        write_contract(tmp_path, ("id: acme-bank-llm", f"id: {name}"), ("    - acme-bank\n", f"    - {name}\n"), name=f"{name}.yaml")
        for name in names
    ]
    rows = [request(number, "2026-05-06T10:00:00+08:00", account=name) for number, name in enumerate(names)]
    output = tmp_path / "out"
    for command in (("contract", "add", *contracts), ("ingest", write_events(tmp_path, rows)), ("settle", "2026-05", "--output", output)):
        assert run_ledger(*command, now=AFTER_JUNE).exit_code == 0

    # Each process closes half of the contracts in an order of its own; the one to be killed has its first to itself, so that it gets there.
    chance, processes = random.Random(SEED), []
    for number in range(PROCESSES):
        half = names[1 + number % 2 :: 2]
        order = chance.sample(half, len(half))
        command, fault = (order, "") if number else ([names[0], *order], "close.after_keep")
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", CLOSE_EACH, str(output), f"process-{number}", *command],
                env=environment(database_url, fault),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [-signal.SIGKILL] + [0] * (PROCESSES - 1), errors
    assert broken(database_url, [f"{name} 2026-05" for name in names[1:]]) == []

    ended = run_ledger("close", "2026-05", "--yes", "--output", output, now=AFTER_JUNE)
    assert ended.exit_code == 0 and f"closed 2026-05: {names[0]} INV-2026-{CONTRACTS:06}" in ended.stdout
    assert broken(database_url, [f"{name} 2026-05" for name in names]) == []
    assert sorted(files_below(output)) == [f"2026-05/{name}.{kind}" for name in names for kind in ("csv", "html", "json")]
    with psycopg.connect(database_url) as connection:
        authors = connection.execute("SELECT DISTINCT author FROM issued_document").fetchall()
    assert len(authors) > 3, f"nothing was done at once: {authors}"
    record_property("kills", f"{CONTRACTS} contracts closed by {PROCESSES} processes, one killed, seed {SEED}")


def test_what_is_closed_is_kept_when_there_is_no_room_for_its_files(
    run_ledger: RunLedger, database_url: str, rows_of: Callable[[str], list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    prepare_june(run_ledger, tmp_path)

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))

    command = [sys.executable, "-B", "-m", "ledger", *CLOSE, str(tmp_path / "out")]
    full = subprocess.run(command, env=environment(database_url), preexec_fn=little_room, capture_output=True, text=True, check=False)
    assert full.returncode == 4 and full.stdout.count("closed 2026-06: ") == 3
    assert "error: what is closed is kept, but " in full.stderr and "could not be written: File too large" in full.stderr
    assert "make room or give another folder with --output, and run the command again" in full.stderr
    assert "Traceback" not in full.stderr
    assert broken(database_url, MAY + JUNE) == []
    assert [path for path in files_below(tmp_path / "out") if "unfinished" in path] == []
    before = stands(database_url)
    again = run_ledger(*CLOSE, tmp_path / "out", now=AFTER_JUNE)
    assert again.exit_code == 0 and again.stdout.count("closed before 2026-06: ") == 3
    assert stands(database_url) == before
    assert files_below(tmp_path / "out" / "2026-06") == dict(rows_of(FILES))


def test_a_file_where_the_folder_of_the_month_should_be_is_named_and_nothing_is_lost(
    run_ledger: RunLedger, database_url: str, tmp_path: Path
) -> None:
    prepare_june(run_ledger, tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "2026-06").write_text("in the way")
    refused = run_ledger(*CLOSE, tmp_path / "out", now=AFTER_JUNE)
    assert refused.exit_code == 4 and "what is closed is kept, but" in refused.stderr
    assert broken(database_url, MAY + JUNE) == []
    assert run_ledger(*CLOSE, tmp_path / "elsewhere", now=AFTER_JUNE).exit_code == 0
    assert len(files_below(tmp_path / "elsewhere")) == 9
