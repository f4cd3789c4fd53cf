"""The commands of the page on repair do what it says, in its order."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.ingest.halves import gateway, written
from tests.ingest.sample_rows import MAPPINGS, row, write_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operators-repair.md"


def test_the_page_on_repair_runs_as_written(run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = (MAPPINGS / "gateway-half.yaml").read_text()
    Path("gateway-half.yaml").write_text(own)
    for name, unit in (("gateway", "epoch_ms"), ("wrong", "epoch_s")):
        whole = "".join(line for line in own.splitlines(True) if not line.startswith(("role", "record", "join")))
        Path(f"{name}.yaml").write_text(whole.replace("unit: rfc3339", f"unit: {unit}"))
    without_tokens = [row("acme-bank", "req-16").removesuffix("5"), row("acme-bank", "req-19").removesuffix("5")]
    in_the_hour = row("acme-bank", "req-15").replace("T10", "T02")
    write_rows(Path("may.csv"), [*without_tokens, in_the_hour, row("acme-bank", "req-17"), row("acme-bank", "req-18")])
    write_rows(Path("load-test.csv"), [row("acme-bank", "t1", -1), row("acme-bank", "t2")])
    write_rows(Path("early.csv"), [row("acme-bank", "req-20")])
    Path("withdrawn.txt").write_text("req-20\n")
    written(Path("half.jsonl"), [gateway("g", customer="acme-bank", trace="4bf92f3577b34da6a3ce929d0e0e4736")])
    written(Path("gateway.jsonl"), [gateway("h", customer="acme-bank", **{"at": 1778061600000, "in": 1, "out": 1})])
    run_ledger("contract", "add", ROOT / "contracts" / "acme-bank.yaml")
    for arguments in (["may.csv"], ["--mapping", "gateway-half.yaml", "half.jsonl"], ["load-test.csv"]):
        assert run_ledger("ingest", *arguments).exit_code == 0
    assert run_ledger("ingest", "--mapping", "wrong.yaml", "gateway.jsonl").exit_code == 0
    assert run_ledger("ingest", "early.csv", now="2026-05-01T00:00:00Z").exit_code == 0
    commands = re.findall(r"^    ledger (.+?)(?:  +.*)?$", PAGE.read_text(), re.MULTILINE)
    for command in commands:
        result = run_ledger(*shlex.split(command))
        assert result.exit_code == 0, f"{command}: {result.output}"
        if "export" in command:
            table = Path("repair.csv").read_text()
            Path("repair.csv").write_text(re.sub(r'("10","",)""', r'\1"5"', table))
    status = run_ledger("status").stdout
    assert "rows refused" not in status and "conflict" not in status.split("Last loads")[0]
    assert run_ledger("quarantine", "list", "--count").stdout == ""
    assert run_ledger("verify", "--cells").exit_code == 0
