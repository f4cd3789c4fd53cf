"""Kill -9 while files are loaded, rows are sent in again and months are settled: the same command again ends as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
from click.testing import Result

from tests.conftest import ledger_on
from tests.ingest.halves import gateway, written
from tests.ingest.sample_rows import MAPPINGS
from tests.workflows.base_contract import CONTRACT
from tests.workflows.kill_steps import INGEST_STEPS, KILLS_PER_STEP, RECOMPUTE_STEPS, SETTLE_STEPS

SEED = 20260501
KILLS_OF_A_LOAD = 7  # the next one reads again all that they stored, so that the time of a long row of kills grows by its square
CHUNKS = 2 * KILLS_OF_A_LOAD + 1  # more than all kills of a load can commit
CHUNK_ROWS = 20
FINISH_STEPS = ["fold.before_commit", "rank.before_commit"]
FRESHEN_STEPS = [*RECOMPUTE_STEPS, "rank.before_commit"]
REQUEUE_STEPS = ["requeue.before_store", "requeue.before_resolve", "requeue.before_commit", "requeue.after_commit"]
KILLS_PER_REQUEUE_STEP = 2
PIECE_ROWS = 10
WHOLE_ROWS, HALF_ROWS = 30, 140  # more than all kills of them can commit
LOADED = "SELECT account, request_id, revision, received_at, inference_us, input_tokens FROM event ORDER BY request_id"
REFUSED = "SELECT line, reason, row_sha256 FROM quarantine ORDER BY line"
KEPT = """SELECT day_start, tier, late, sum(requests), sum(tokens_input) FROM cell GROUP BY 1, 2, 3 UNION ALL
    SELECT quarter_start, NULL, NULL, sum(requests), NULL FROM traffic GROUP BY 1 ORDER BY 1, 2, 3"""
REQUEUED = (
    LOADED,
    KEPT,
    "SELECT contract_id, spans::text FROM stale ORDER BY 1",
    "SELECT source, line, resolution, resolution_reason, outcome, values_set FROM quarantine JOIN batch USING (batch_id) "
    "LEFT JOIN resubmission USING (quarantine_id) ORDER BY source, line, outcome",
    "SELECT record_id, repaired, refused_sha256, output_tokens FROM observation ORDER BY record_id",
    "SELECT request_id, of_request, revision, joined FROM formed_request ORDER BY request_id",
    "SELECT sum(rows_read), sum(rows_new), sum(rows_merged), sum(rows_refused) FROM batch",
)
STALE = "INSERT INTO stale (contract_id, spans) VALUES ('acme-bank-llm', '{[2026-05-03,2026-05-06)}')"


def write_month(folder: Path) -> Path:
    """Requests of May 2026 with late ones, cold starts, a duplicate in another chunk, a conflict and a refused row."""
    chance = random.Random(SEED)
    rows = [
        f"acme-bank,r{n:04},deepseek-v4,2026-05-{chance.randint(1, 28):02}T10:00:00+08:00,0,"
        f"{chance.choice([90, 150, 310, 500])}000,1000,50,"
        for n in range(CHUNKS * CHUNK_ROWS - 3)
    ]
    rows[::9] = [f"{row}true" for row in rows[::9]]
    rows += [rows[0], rows[1].replace(",1000,", ",7,"), "acme-bank,,deepseek-v4,2026-05-01T10:00:00+08:00,0,1,1,1,"]
    path = folder / "month.csv"
    header = "account,request_id,model,received_at,queue_us,inference_us,input_tokens,output_tokens,cold_start"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def write_refused(folder: Path) -> tuple[Path, Path]:
    """Requests without tokens, and rows of a gateway whose engine has told nothing, two of each call."""
    header = "account,request_id,model,received_at,queue_us,inference_us,input_tokens,output_tokens"
    rows = [f"acme-bank,r{n:04},deepseek-v4,2026-05-{1 + n % 28:02}T10:00:00+08:00,0,90000,1000," for n in range(WHOLE_ROWS)]
    whole = folder / "whole.csv"
    whole.write_text("\n".join([header, *rows]) + "\n")
    calls = [(n, n % (HALF_ROWS // 2)) for n in range(HALF_ROWS)]
    log = [gateway(f"g{n:04}", 50 * call, customer="acme-bank", call=f"c{call}") for n, call in calls]
    return whole, written(folder / "gateway.jsonl", log)


def run(url: str, *arguments: str | Path, fault: str = "", program: Sequence[str] = ("-m", "ledger")) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"LEDGER_DATABASE_URL": url, "LEDGER_CHUNK_ROWS": str(CHUNK_ROWS), "LEDGER_FAULT": fault}
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def content(url: str) -> tuple[list[tuple[object, ...]], ...]:
    with psycopg.connect(url) as connection:
        loaded, refused, kept = (connection.execute(query).fetchall() for query in (LOADED, REFUSED, KEPT))
        return loaded, refused, kept


def test_loading_killed_at_random_moments_is_ended_by_the_same_command(
    new_database: Callable[[], str], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    month, chance, hits = write_month(tmp_path), random.Random(SEED), Counter[str]()
    undisturbed = new_database()
    assert ledger_on(undisturbed)("contract", "add", CONTRACT).exit_code == 0
    assert run(undisturbed, "ingest", month).returncode == 0
    expected = content(undisturbed)
    assert [len(part) for part in expected[:2]] == [CHUNKS * CHUNK_ROWS - 3, 2] and len(expected[2]) > 28
    moments = INGEST_STEPS * KILLS_PER_STEP
    chance.shuffle(moments)
    for first in range(0, len(moments), KILLS_OF_A_LOAD):
        url = new_database()
        assert ledger_on(url)("contract", "add", CONTRACT).exit_code == 0
        for step in moments[first : first + KILLS_OF_A_LOAD]:
            killed = run(url, "ingest", month, fault=f"{step}:{chance.randint(1, 2)}")
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            hits[step] += 1
        ended = run(url, "ingest", month)
        assert ended.returncode == 0, ended.stderr
        assert content(url) == expected
    for step in FINISH_STEPS:
        url = new_database()
        assert ledger_on(url)("contract", "add", CONTRACT).exit_code == 0
        assert run(url, "ingest", month, fault=step).returncode == -signal.SIGKILL
        hits[step] += 1
        assert content(url) == expected
    record_property("kills", f"kills while loading, seed {SEED}: {dict(hits)}")


def test_sending_rows_in_again_killed_at_random_moments_is_ended_by_the_same_command(
    new_database: Callable[[], str], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    whole, halves = write_refused(tmp_path)
    mapping = ("--mapping", MAPPINGS / "gateway-half.yaml")
    requeue = ("quarantine", "requeue", "--refused-for", "usage_missing", *mapping, "--set", "input_tokens=7", "--set", "output_tokens=8")
    in_pieces = (
        "-c",
        f"from ledger.store import quarantine; quarantine.PIECE_ROWS = {PIECE_ROWS}; from ledger.cli.main import main; main()",
    )

    def send(url: str, fault: str = "") -> "subprocess.CompletedProcess[str]":
        return run(url, *requeue, "--reason", "from the engine's log", fault=fault, program=in_pieces)

    def stands(url: str) -> list[list[tuple[object, ...]]]:
        with psycopg.connect(url) as connection:
            return [connection.execute(query).fetchall() for query in REQUEUED]

    undisturbed, url = new_database(), new_database()
    for database in (undisturbed, url):
        for command in (("contract", "add", CONTRACT), ("ingest", whole), ("ingest", *mapping, halves)):
            assert ledger_on(database)(*command).exit_code == 0
    assert send(undisturbed).returncode == 0
    expected = stands(undisturbed)
    chance, hits = random.Random(SEED), Counter[str]()
    moments = REQUEUE_STEPS * KILLS_PER_REQUEUE_STEP
    chance.shuffle(moments)
    for step in moments:
        killed = send(url, fault=f"{step}:{chance.randint(1, 2)}")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        hits[step] += 1
    assert 0 < sum(row[2] == "requeued" for row in stands(url)[3]) - WHOLE_ROWS < HALF_ROWS, "the kills should reach into the halves"
    ended = send(url)
    assert ended.returncode == 0, ended.stderr
    assert stands(url) == expected
    assert [row[2] for row in expected[3]] == ["requeued"] * (WHOLE_ROWS + HALF_ROWS)
    assert ledger_on(url)("verify", "--cells").exit_code == 0
    record_property("kills", f"kills while rows are sent in again, seed {SEED}: {dict(hits)}")


def test_settling_killed_at_any_step_is_ended_by_the_same_command(
    run_ledger: Callable[..., Result], database_url: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert run_ledger("contract", "add", CONTRACT).exit_code == 0
    assert run_ledger("ingest", write_month(tmp_path)).exit_code == 0
    settle = ("settle", "2026-05", "--format", "json", "--output")
    expected = run(database_url, *settle, tmp_path / "undisturbed")
    hits = Counter[str]()
    for step in [*FRESHEN_STEPS, *SETTLE_STEPS]:
        if step in FRESHEN_STEPS:
            with psycopg.connect(database_url) as connection:
                connection.execute(STALE)
        for _ in range(KILLS_PER_STEP):
            killed = run(database_url, *settle, tmp_path / "killed", fault=step)
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            hits[step] += 1
        ended = run(database_url, *settle, tmp_path / "killed")
        assert (ended.returncode, ended.stdout) == (0, expected.stdout)
        written = {path.name: path.read_bytes() for path in (tmp_path / "killed" / "2026-05").iterdir()}
        assert written == {path.name: path.read_bytes() for path in (tmp_path / "undisturbed" / "2026-05").iterdir()}
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM settlement").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM stale").fetchone() == (0,)
    record_property("kills", f"kills while settling, in order: {dict(hits)}")
