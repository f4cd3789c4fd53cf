"""The commands of the page on nodes and engines do what it says, in its order: with its own file of intervals, and servers for its URLs."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.ingest.prometheus_server import serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operators-engines.md").read_text()
GOLDEN = ROOT / "tests" / "golden"
SAMPLES = "node,at,percent\n" + "".join(f"gpu-17,2026-05-07T10:0{minute}:00+08:00,97.5\n" for minute in range(7))


def test_its_commands_run_as_written(run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = GOLDEN / "prometheus"
    for name, file in (
        ("memory.json", "memory.json"),
        ("counters.json", "counters.json"),
        ("a.txt", "scrape-a.txt"),
        ("b.txt", "scrape-b.txt"),
    ):
        (tmp_path / name).symlink_to(golden / file)
    [intervals] = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "breakers.csv").write_text(intervals)
    (tmp_path / "memory.csv").write_text(SAMPLES)
    monkeypatch.chdir(tmp_path)
    assert run_ledger("ingest", golden / "events.csv").exit_code == 0
    said = []
    with serving(golden / "memory.json") as nodes, serving(golden / "counters.json") as engines:
        for command in re.findall(r"^    ledger (.+?)(?:  .*)?$", PAGE, re.MULTILINE):
            host = (nodes if command.startswith("interval") else engines).host
            result = run_ledger(*shlex.split(command.replace("prometheus:9090", host)))
            # The two scrapes are of one engine of two.
            assert result.exit_code == (3 if "--from-scrape" in command else 0), f"{command}: {result.output}"
            said.append((command.split()[:2], result.stdout))
    counts = [text.splitlines()[-1] for words, text in said if words == ["interval", "add"]]
    assert counts == ["3 read, 3 would be new", "3 read, 3 new", "2 read, 2 new"]
    assert "gpu-17" in said[2][1] and "model_load" not in said[2][1]
    assert "1 would be recorded" in said[6][1]
    checks = re.findall(r"^\| ([^|,]+)", PAGE.partition("## Does")[2], re.MULTILINE)
    assert [check for check in checks[1:] if check.strip(" -") and check.strip().removesuffix(" 300 ms") not in said[7][1]] == []
