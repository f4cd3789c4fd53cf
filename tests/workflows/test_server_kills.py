"""Kill -9 of the embedded server at every named step of loading and settling: the same command again ends as if nothing had happened."""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import Result

from ledger import fault_point
from ledger.store.embedded import Server, find_server, running_server, stop_server
from tests.conftest import RunLedger
from tests.workflows.base_contract import CONTRACT
from tests.workflows.kill_steps import INGEST_STEPS, KILLS_PER_STEP, SETTLE_STEPS

SEED = 20260502
CHUNK_ROWS = 10
HEADER = "account,request_id,model,received_at,queue_us,inference_us,input_tokens,output_tokens"
COUNTED = "SELECT count(*), count(DISTINCT request_id), sum(input_tokens) FROM event WHERE node IS NULL AND request_id LIKE %s"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The home of a server of its own."""
    made = Path(tempfile.mkdtemp(prefix="ledger-home-", dir="/tmp")) / "home"
    made.parent.chmod(0o755)
    yield made
    stop_server(made)
    shutil.rmtree(made.parent)


@pytest.fixture
def ledger(home: Path, run_ledger: RunLedger, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command on the embedded server of that home."""
    monkeypatch.setenv("LEDGER_HOME", str(home))
    monkeypatch.setenv("LEDGER_CHUNK_ROWS", str(CHUNK_ROWS))
    return lambda *arguments: run_ledger(*arguments, database=None)


def interrupted(ledger: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch, fault: str, *arguments: object) -> Result:
    """The command, under which the server is killed at the step."""
    victim = postmaster(running_server(home))
    monkeypatch.setattr(fault_point, "_passes", {})
    with monkeypatch.context() as during:
        during.setenv("LEDGER_FAULT", fault)
        during.setenv("LEDGER_FAULT_VICTIM", str(victim))
        result = ledger(*arguments)
    assert fault_point._passes[fault.partition(":")[0]] >= int(fault.partition(":")[2]), "the step was not reached"
    deadline = time.monotonic() + 10
    while find_server(home) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert find_server(home) is None
    return result


def postmaster(server: Server) -> int:
    return int((server.home / "postgres" / "postmaster.pid").read_text().split("\n")[0])


def write_month(folder: Path, name: str) -> Path:
    rows = [f"acme-bank,{name}-{n},deepseek-v4,2026-05-{1 + n % 28:02}T10:00:00+08:00,0,{90 + n * 9}000,1000,50" for n in range(38)]
    path = folder / f"{name}.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def test_loading_goes_on_after_the_server_was_killed_at_any_step(
    home: Path,
    ledger: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    chance, hits = random.Random(SEED), Counter[str]()
    for step in INGEST_STEPS:
        for number in range(KILLS_PER_STEP):
            name = f"{step}-{number}"
            file = write_month(tmp_path, name)
            killed = interrupted(ledger, home, monkeypatch, f"{step}:{chance.randint(1, 3)}", "ingest", file)
            assert killed.exit_code in (0, 4), killed.stderr  # a session may finish before it notices that its server has gone
            hits[step] += 1
            assert ledger("ingest", file).exit_code == 0
            with psycopg.connect(running_server(home).url("ledger")) as connection:
                assert connection.execute(COUNTED, [f"{name}-%"]).fetchone() == (38, 38, 38_000)
    record_property("kills", f"kills of the server while loading, seed {SEED}: {dict(hits)}")


def test_settling_is_the_same_after_the_server_was_killed_at_any_step(
    home: Path,
    ledger: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    assert ledger("contract", "add", CONTRACT).exit_code == 0
    assert ledger("ingest", write_month(tmp_path, "settled")).exit_code == 0
    hits = Counter[str]()
    settle = ("settle", "2026-05", "--format", "json", "--output")
    expected, written = ledger(*settle, tmp_path / "undisturbed"), contents(tmp_path / "undisturbed")
    assert expected.exit_code == 0 and written
    for step in SETTLE_STEPS:
        for number in range(KILLS_PER_STEP):
            output = tmp_path / f"{step}-{number}"
            killed = interrupted(ledger, home, monkeypatch, f"{step}:1", *settle, output)
            # A session may finish what it is doing before it notices that its server has gone.
            assert killed.exit_code in (0, 4), killed.stderr
            hits[step] += 1
            again = ledger(*settle, output)
            assert (again.exit_code, again.stdout) == (0, expected.stdout)
            assert contents(output) == written
            with psycopg.connect(running_server(home).url("ledger")) as connection:
                assert connection.execute("SELECT count(*) FROM settlement").fetchone() == (1,)
    record_property("kills", f"kills of the server while settling, seed {SEED}: {dict(hits)}")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
