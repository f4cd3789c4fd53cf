"""What a load needs on disk goes when it ends, and when the next one begins if it was killed."""

import signal
from pathlib import Path

import pytest

from ledger.ingest.reading.scratch_folder import scratch_folder
from tests.conftest import RunLedgerProcess
from tests.ingest.sample_rows import row, write_rows


def test_the_next_load_removes_what_a_killed_one_left(tmp_path: Path, run_ledger_process: RunLedgerProcess) -> None:
    file, left = write_rows(tmp_path / "rows.csv", [row()]), tmp_path / "left"
    left.mkdir()
    killed = run_ledger_process("ingest", file, env={"TMPDIR": str(left), "LEDGER_FAULT": "ingest.before_commit"})
    assert killed.returncode == -signal.SIGKILL and len(list(left.glob("ledger-ingest-*"))) == 1
    assert run_ledger_process("ingest", file, env={"TMPDIR": str(left)}).returncode == 0
    assert list(left.glob("ledger-ingest-*")) == []


def test_the_folder_of_one_that_lives_stays_and_so_does_one_that_is_of_something_else(
    tmp_path: Path, run_ledger_process: RunLedgerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "ledger-ingest-other").mkdir()
    with scratch_folder("ledger-ingest-") as folder:
        (folder / "records").write_text("mine")
        file = write_rows(tmp_path / "rows.csv", [row()])
        assert run_ledger_process("ingest", file, env={"TMPDIR": str(tmp_path)}).returncode == 0
        assert (folder / "records").read_text() == "mine"
    assert [found.name for found in tmp_path.glob("ledger-ingest-*")] == ["ledger-ingest-other"]
