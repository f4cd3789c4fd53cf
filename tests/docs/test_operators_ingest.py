"""The commands and the mapping of the page on loading do what it says."""

import gzip
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from ledger.ingest.mapping_file import built_in_mappings
from tests.conftest import RunLedger
from tests.ingest.sample_rows import GOLDEN, row, write_rows

PAGE = (Path(__file__).parents[2] / "docs" / "operators-ingest.md").read_text()
RowsOf = Callable[[str], list[tuple[Any, ...]]]
LOG = """trace_id;span_id;started;ended;tenant;model;queue_time;prompt_tokens;completion_tokens;state;error_code;path
t;s1;1778033730118;1778033732284;acme;DeepSeek-V4;0.0214;1830.0;95;success;;/v1
t;s2;1778033730118;1778033732284;acme;DeepSeek-V4;;1830;;failed;503;/v1
t;s3;1778033730118;1778033732284;acme;DeepSeek-V4;;;;success;;/healthz
"""


def test_the_commands_run_as_written(run_ledger: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("telemetry/2026-05").mkdir(parents=True)
    write_rows(Path("telemetry/2026-05/rows.csv"), [row(request_id="r1")])
    Path("gateway.yaml").write_text(re.findall(r"```yaml\n(schema: .+?)```", PAGE, re.DOTALL)[0])
    Path("access.csv.gz").write_bytes(gzip.compress(LOG.encode()))
    Path("new.csv").write_text(LOG)
    Path("gateway.csv").write_text(LOG)
    specimens = {"vllm-bench.json": "vllm-bench.json", "aiperf.jsonl": "profile_export.jsonl", "llmperf.json": "llmperf.json",
                 "openrouter.json": "generations.json", "litellm.jsonl": "spend-logs.jsonl", "vllm-otlp.jsonl": "traces.jsonl"}  # fmt: skip
    for specimen, name in specimens.items():
        shutil.copy(GOLDEN / "formats" / specimen, name)
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="load", attributes=[KeyValue(key="gen_ai.latency.time_in_queue")])
    groups = [ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])]
    Path("traces.pb").write_bytes(TracesData(resource_spans=groups).SerializeToString())
    commands = [re.split(" {2,}", line)[0] for line in re.findall(r"^    ledger ((?:ingest|formats).*)$", PAGE, re.MULTILINE)]
    commands = [command for command in commands if "://" not in command]  # of a proxy that is not there
    said = {}
    for command in commands:
        result = run_ledger(*shlex.split(command), now="2026-06-01T00:00:00Z")
        assert result.exit_code == 0, f"{command}: {result.stderr}"
        said[command] = result.stdout
    assert len(commands) == 12
    assert (
        "3 read = 2 new + 0 duplicate + 0 conflict + 0 refused + 1 skipped (1 health_check);"
        in said["ingest --mapping gateway.yaml access.csv.gz"]
    )
    assert "status=200, queue_us=21400, e2e_us=2166000, input_tokens=1830," in " ".join(
        said["ingest --check --mapping gateway.yaml new.csv"].split()
    )


def test_a_file_of_a_wrong_unit_is_repaired_by_the_commands_of_the_page(run_ledger: RunLedger, tmp_path: Path, rows_of: RowsOf) -> None:
    file = tmp_path / "gateway.csv"
    file.write_text(LOG)
    right = re.findall(r"```yaml\n(schema: .+?)```", PAGE, re.DOTALL)[0]
    mapping = tmp_path / "gateway.yaml"
    mapping.write_text(right.replace("{value: started, unit: epoch_ms}", "{value: started, unit: epoch_us}"))
    assert "gateway.csv:2: received_at is in the year 1970" in run_ledger("ingest", "--mapping", mapping, file).stderr
    mapping.write_text(right)
    recipe = [line for line in PAGE.splitlines() if line.startswith("    ledger ") and "wrong mapping" in line]
    assert len(recipe) == 4
    for line in recipe:
        words = [str(tmp_path / word) if word == "gateway.yaml" else word for word in shlex.split(line)[1:]]
        result = run_ledger(*(words if words[0] != "ingest" else [*words[:-1], str(file)]))
        assert result.exit_code == 0, result.stderr
    assert "2 new + 0 duplicate + 0 conflict" in result.stdout
    assert rows_of("SELECT DISTINCT revision, received_at::date::text FROM event ORDER BY 1") == [(1, "1970-01-21"), (2, "2026-05-06")]


def test_every_format_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z-]+)`", PAGE))
    assert {mapping.name for mapping in built_in_mappings().values() if mapping.refusal is None} <= named
