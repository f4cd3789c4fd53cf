"""Logs of gateways and spans of engines become the halves and the events that they should, and nothing confidential in them stays."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, TracesData
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ledger.store.embedded import Server
from tests.conftest import ROOT, ledger_on, owner_url_of
from tests.ingest.gateway_logs import vllm_span, write_nginx_log, write_vllm_traces
from tests.ingest.gateway_specimens import REFUSED, SPECIMENS
from tests.ingest.sample_rows import FORMATS

Row = dict[str, Any]
Run = Callable[..., Any]
Query = Callable[[str], list[Row]]

NOW = "2026-06-15T00:00:00Z"
TIMES = "queue_us, prefill_us, decode_us, inference_us, ttft_us, e2e_us"
TOKENS = "input_tokens, cached_input_tokens, output_tokens"
AT = "to_char(received_at, 'HH24:MI:SS.US') AS at"
MARK = "MARKED"  # begins every prompt, answer, address and key of the specimens


@pytest.fixture(scope="module")
def database_url(module_database_url: str) -> str:
    return module_database_url


@pytest.fixture(scope="module", autouse=True)
def loaded(module_database_url: str) -> dict[str, Any]:
    """What the command said of each specimen, and what it printed; all of them are in one database."""
    result = ledger_on(module_database_url)("ingest", "--format", "json", *(FORMATS / name for name in SPECIMENS), now=NOW)
    assert result.exit_code == 0, result.output
    found = {Path(found["file"]).name: found for found in json.loads(result.stdout)["files"]}
    return found | {"stdout": result.stdout, "stderr": result.stderr}


# Of each specimen: its format, the parts of its total that are not 0, the reasons of what was refused, and what is no request.
SUMMARIES: dict[str, tuple[dict[str, int], dict[str, int], dict[str, int]]] = {
    "litellm.jsonl": (
        {"new": 6, "merged": 3, "refused": 3}, {"bad_text": 1, "missing_field": 1, "usage_missing": 1},
        {"administration": 1, "cache_hit": 2, "mirror": 1, "retrieval": 2},
    ),
    "envoy.jsonl": ({"new": 4, "refused": 3}, {"bad_instant": 1, "usage_missing": 2}, {"health_check": 1}),
    "envoy-ai-gateway.jsonl": ({"new": 3, "refused": 1}, {"usage_missing": 1}, {}),
    "nginx.jsonl": ({"new": 3, "refused": 5}, {"bad_number": 1, "missing_field": 1, "usage_missing": 3}, {"health_check": 1}),
    "sglang.log": ({"merged": 5, "duplicate": 1, "refused": 1}, {"negative_duration": 1}, {}),
    "sglang-otlp.json": ({"merged": 2}, {}, {"other_span": 1, "prefill_server": 1, "unfinished": 1}),
    "vllm-otlp.jsonl": (
        {"merged": 7, "duplicate": 1, "refused": 6}, {"bad_number": 1, "bad_text": 3, "missing_field": 1, "negative_duration": 1},
        {"other_span": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIMENS)
def test_every_row_is_counted_under_the_name_of_what_it_is(name: str, loaded: dict[str, Any]) -> None:
    parts = {part: loaded[name][part] for part in ("new", "merged", "duplicate", "conflict", "refused") if loaded[name][part]}
    assert (parts, loaded[name]["reasons"], loaded[name]["skipped"]) == SUMMARIES[name]
    assert loaded[name]["mapping"] == name.split(".")[0]


# received_at, the TIMES, the TOKENS, status, queue, async_header
EVENTS = {
    "litellm.jsonl": {
        ("acme-bank", "chatcmpl-l1", "deepseek-v4"):
            ("02:15:30.118000", None, None, None, None, 183_000, 2_166_000, 1830, 1024, 95, 200, "standard", False),
        ("northwind", "chatcmpl-l2", "deepseek-v4-pro"):  # the end stands where no first token was seen
            ("02:16:00.000000", None, None, None, None, None, 1_500_000, 1830, 1024, 95, 200, "standard", False),
        ("contoso", "chatcmpl-l9", "deepseek-v4"):  # two failed tries and an answer: from the first one's start to the last end
            ("02:18:00.000000", None, None, None, None, 2_400_000, 4_200_000, 1830, 0, 95, 200, "standard", False),
        ("acme-bank", "chatcmpl-l10", "deepseek-v4"):  # one call in two rows
            ("02:19:00.000000", None, None, None, None, 500_000, 2_001_000, 1830, 0, 95, 200, "standard", False),
        ("acme-bank", "fail-1", "deepseek-v4"):
            ("02:20:00.000000", None, None, None, None, None, 100_000, None, 0, None, 429, "standard", False),
        ("acme-bank", "fail-2", "deepseek-v4"):
            ("02:20:10.000000", None, None, None, None, None, 100_000, None, 0, None, 500, "standard", False),
    },
    "envoy.jsonl": {
        ("acme-bank", "ev-2/2026-05-06T02:31:00.000Z", "deepseek-v4"):
            ("02:31:00.000000", None, None, None, None, None, 120_000, None, 0, None, 499, "standard", False),
        ("acme-bank", "ev-3/2026-05-06T02:31:10.000Z", "deepseek-v4"):
            ("02:31:10.005000", None, None, None, None, 195_000, 1_995_000, None, 0, None, 499, "standard", False),
        ("acme-bank", "ev-4/2026-05-06T02:31:20.000Z", "deepseek-v4"):
            ("02:31:20.000000", None, None, None, None, None, None, None, 0, None, 504, "standard", False),
        ("acme-bank", "ev-5/2026-05-06T02:31:30.000Z", "deepseek-v4"):
            ("02:31:30.008000", None, None, None, None, None, None, None, 0, None, 429, "standard", False),
    },
    "envoy-ai-gateway.jsonl": {
        ("acme-bank", "ai-1/2026-05-06T02:40:30.118Z", "deepseek-v4"):
            ("02:40:30.121000", None, None, None, None, 180_000, None, 1830, 1024, 95, 200, "standard", False),
        ("acme-bank", "ai-2/2026-05-06T02:41:00Z", "deepseek-ai/DeepSeek-V4"):
            ("02:41:00.003000", None, None, None, None, 180_000, 2_163_000, 1830, 0, 7, 499, "standard", False),
        ("acme-bank", "ai-4/2026-05-06T02:41:20Z", "deepseek-v4"):
            ("02:41:20.003000", None, None, None, None, 180_000, None, None, 0, None, 429, "standard", False),
    },
    "nginx.jsonl": {
        ("acme-bank", "ng-4", "deepseek-v4"):
            ("02:50:58.500000", None, None, None, None, None, None, None, 0, None, 502, "standard", False),
        ("acme-bank", "ng-5", "deepseek-v4"):
            ("02:51:09.880000", None, None, None, None, None, 119_000, None, 0, None, 499, "standard", False),
        ("acme-bank", "ng-6", "deepseek-v4"):
            ("02:51:18.000000", None, None, None, None, None, 2_000_000, None, 0, None, 499, "batch", False),
    },
}  # fmt: skip
# Rows that wait for their engine: received_at, e2e, header, trace, async_header.
WAITING = {
    "litellm.jsonl": {"chatcmpl-l11": ("02:21:00.000000", 100_000, "l11", None, False)},
    "envoy.jsonl": {
        "ev-1/2026-05-06T02:30:30.118Z": ("02:30:30.122000", 2_158_204, "ev-1", "4bf92f3577b34da6a3ce929d0e0e4e01", True),
        "ev-1/2026-05-06T02:31:50.000Z": ("02:31:50.000000", None, "ev-1", None, False),
    },
    "envoy-ai-gateway.jsonl": {"ai-3/2026-05-06T02:41:10Z": ("02:41:10.003000", None, "ai-3", None, False)},
    "nginx.jsonl": {
        "ng-1": ("02:50:30.118000", 2_161_000, "ng-1", "4bf92f3577b34da6a3ce929d0e0e4f01", False),
        "ng-2": ("02:50:36.500000", 3_411_000, "ng-2", None, True),  # three servers were tried
        "ng-3": ("02:50:46.500000", 3_461_000, "ng-3", None, False),
    },
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_gateways_rows_become_these_events_and_those_wait(name: str, query: Query) -> None:
    rows = query(
        f"SELECT account, request_id, model, {AT}, {TIMES}, {TOKENS}, status, queue, async_header "  # noqa: S608
        f"FROM event JOIN batch USING (batch_id) WHERE source = '{name}' AND revision = 1"
    )
    assert {tuple(row.values())[:3]: tuple(row.values())[3:] for row in rows} == EVENTS[name]
    rows = query(
        f"SELECT record_id, {AT}, e2e_us, header, trace, async_header FROM observation JOIN batch USING (batch_id) "  # noqa: S608
        f"WHERE source = '{name}' AND refused_sha256 IS NOT NULL"
    )
    assert {row.pop("record_id"): tuple(row.values()) for row in rows} == WAITING[name]


VLLM, SGLANG = "4bf92f3577b34da6a3ce929d0e0e47", "00000000000000008c1fa7be03d24e55"
V1 = ("02:15:30.123456", 21_400, 143_200, 1_981_000, 2_124_200, 171_800, 2_157_200, 1830, 0, 95, 200)
# The record's id: request_id, header, model, node, received_at, the TIMES, the TOKENS, status
SPANS = {
    "vllm-otlp.jsonl": {
        f"{VLLM}36/00f067aa0ba902b7": (f"{VLLM}36/chatcmpl-gw-7f3a", "gw-7f3a", None, "gpu-3", *V1),
        # Two choices of one request.
        f"{VLLM}37/0000000000000c01": (f"{VLLM}37/chatcmpl-two", "two", None, "vllm-0", "02:15:30.123456", 1_000, 143_200, 500_000, 625_000,
                                       171_800, 750_000, 1830, 0, 10, 200),
        f"{VLLM}37/0000000000000c02": (f"{VLLM}37/chatcmpl-two", "two", None, "vllm-0", "02:15:30.123456", 1_000, 143_200, 750_000, 875_000,
                                       171_800, 1_000_000, 1830, 0, 12, 200),
        # The first engine gives no parts: 71.2305 - 5.23 ms is 66.0005 ms, half even; so is 1050 - 71.2305 ms.
        "00000000000000000000000000000001/00000000000000a1": (
            "00000000000000000000000000000001/cmpl-b7c1-0", "b7c1", "meta-llama/Llama-3.1-8B", None, "02:15:30.123456", 5_230, 66_000,
            978_770, None, 71_230, 1_050_000, 512, 0, 64, 200),
        # Nanoseconds behind the microsecond count by their digits: 0.1000004999999999999999 and 2.15720050000000000001 s.
        f"{VLLM}39/00f067aa0ba90202": (f"{VLLM}39/chatcmpl-exact", "exact", None, "gpu-3", "02:15:30.123456", 100_000, 57, 1_981_000,
                                       2_000_000, 171_800, 2_157_201, 1830, 0, 95, 200),
        f"{VLLM}3a/00f067aa0ba90203": (f"{VLLM}3a/00f067aa0ba90203", None, None, "gpu-3", *V1),
        f"{VLLM}3c/00f067aa0ba90206": (f"{VLLM}3c/chatcmpl-b64", "b64", None, "gpu-3", *V1),
    },
    "sglang-otlp.json": {  # the queue is inside prefill
        f"{SGLANG}/00f067aa0ba90301": (f"{SGLANG}/9f2c41d0", "9f2c41d0", "deepseek-v4", "sgl-1", "02:15:30.123456", None, 164_800,
                                       1_985_400, 2_150_200, 171_800, 2_157_200, 1830, 1024, 95, 200),
        f"{SGLANG}/00f067aa0ba90304": (f"{SGLANG}/5d", "5d", "deepseek-v4", "sgl-1", "02:15:30.123456", None, 164_800, 1_985_400,
                                       2_150_200, 171_800, 2_157_200, 1830, 1024, 3, 499),
    },
    "sglang.log": {
        "sg-1/1778036430.123456": ("sg-1/1778036430.123456", "sg-1", None, None, "03:00:30.123456", 21_400, 150_400, 1_985_400, None,
                                   171_800, 2_157_200, 1830, 1024, 95, 200),
        "sg-1/1778036440.123456": ("sg-1/1778036440.123456", "sg-1", None, None, "03:00:40.123456", 21_400, 150_400, 1_985_400, None,
                                   171_800, 2_157_200, 1830, 1024, 95, 200),
        "sg-2/1778036430.123456": ("sg-2/1778036430.123456", "sg-2", None, None, "03:00:30.123456", 0, 171_800, 1_985_400, None,
                                   171_800, 2_157_200, 1830, 1024, 95, 200),  # its queue was -4 ms
        "sg-4/1778036450.5": ("sg-4/1778036450.5", "sg-4", None, None, "03:00:50.500000", None, None, None, None,
                              None, 5_000_000, None, 0, 0, 503),  # aborted in the queue
        "sg-5/1778036430.123456": ("sg-5/1778036430.123456", "sg-5", None, None, "03:00:30.123456", 21_400, 150_400, 1_985_400, None,
                                   171_800, 2_157_200, 1830, 1024, 3, 499),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SPANS)
def test_an_engines_rows_become_these_halves(name: str, query: Query) -> None:
    rows = query(
        f"SELECT record_id, trace, request_id, header, model, node, {AT}, {TIMES}, {TOKENS}, status "  # noqa: S608
        f"FROM observation JOIN batch USING (batch_id) WHERE source = '{name}' AND role = 'engine'"
    )
    assert {row["trace"] for row in rows} == ({None} if name == "sglang.log" else {row["record_id"].split("/")[0] for row in rows})
    assert {row["record_id"]: tuple(row.values())[2:] for row in rows} == SPANS[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_settled_is_refused_with_the_reason_and_the_cure(name: str, run_ledger: Run) -> None:
    file = FORMATS / "refused" / name
    result = run_ledger("ingest", file)
    assert (result.exit_code, result.stdout) == (1, "")
    message, cure = result.stderr.splitlines()
    assert message == f"error: {file}: {REFUSED[name]}" and cure.strip()


def _load(run_ledger: Run, *files: Path) -> Row:
    """The parts of the total that are not 0."""
    result = run_ledger("ingest", "--format", "json", *files, now=NOW)
    assert result.exit_code == 0, result.output
    total = json.loads(result.stdout)["total"]
    return {name: total[name] for name in ("new", "merged", "duplicate", "conflict", "refused") if total[name]}


def test_every_gateway_meets_its_engine_by_trace_or_header(run_ledger: Run, query: Query, tmp_path: Path) -> None:
    start = 1778033730_200000000
    spans = [
        vllm_span("0" * 31 + "a", "0" * 15 + "1", "chatcmpl-l1", start, prompt_tokens=1830, completion_tokens=96),
        vllm_span("0" * 31 + "b", "0" * 15 + "2", "cmpl-ai-1-0", start + 1500 * 10**9, prompt_tokens=1830),
        vllm_span("4bf92f3577b34da6a3ce929d0e0e4e01", "0" * 15 + "3", "chatcmpl-random", start + 900 * 10**9),  # Envoy, by trace
        vllm_span("4bf92f3577b34da6a3ce929d0e0e4f01", "0" * 15 + "4", "chatcmpl-random", start + 2100 * 10**9),  # nginx, by trace
    ]
    sglang = json.loads((FORMATS / "sglang.log").read_text().splitlines()[0]) | {"id": "ng-2", "request_received_ts": 1778035836.51}
    (tmp_path / "sglang.log").write_text(json.dumps(sglang) + "\n")
    assert _load(run_ledger, write_vllm_traces(tmp_path / "spans.jsonl", spans), tmp_path / "sglang.log") == {"merged": 5}
    rows = query(
        f"SELECT request_id, revision, {AT}, queue_us, inference_us, ttft_us, e2e_us, {TOKENS}, async_header FROM event "  # noqa: S608
        "WHERE request_id IN ('chatcmpl-l1', 'ng-1', 'ng-2') OR request_id LIKE 'ai-1/%' OR request_id LIKE 'ev-1/%' ORDER BY revision DESC"
    )
    latest = {row["request_id"]: tuple(row.values())[1:] for row in reversed(rows)}
    assert latest == {
        # Receipt, first token, end and header are the gateway's; the queue, inference and the tokens the engine's.
        "chatcmpl-l1": (2, "02:15:30.118000", 10_000, 180_000, 183_000, 2_166_000, 1830, 1024, 96, False),
        "ev-1/2026-05-06T02:30:30.118Z": (1, "02:30:30.122000", 10_000, 180_000, 179_000, 2_158_204, 100, 0, 100, True),
        "ai-1/2026-05-06T02:40:30.118Z": (2, "02:40:30.121000", 10_000, 180_000, 180_000, 200_000, 1830, 1024, 100, False),
        "ng-1": (1, "02:50:30.118000", 10_000, 180_000, 50_000, 2_161_000, 100, 0, 100, False),
        "ng-2": (1, "02:50:36.500000", 21_400, None, 171_800, 3_411_000, 1830, 1024, 95, True),
    }


def test_a_span_exported_twice_is_one_and_spans_with_one_header_are_two(run_ledger: Run, query: Query, tmp_path: Path) -> None:
    """Fault 27, with a log that has the trace and with one that has the header alone."""
    first, second = "c" * 32, "d" * 32
    spans = [vllm_span(trace, "0" * 15 + "1", "chatcmpl-again", at * 10**9) for trace, at in ((first, 1778032801), (second, 1778032803))]
    assert _load(run_ledger, write_vllm_traces(tmp_path / "spans.jsonl", [spans[0], spans[0], spans[1]])) == {"merged": 2, "duplicate": 1}
    assert _load(run_ledger, write_vllm_traces(tmp_path / "retried.jsonl", spans[:1])) == {"duplicate": 1}
    log = write_nginx_log(tmp_path / "log.jsonl", [("again-1", 1, 200, 0.5, first), ("again-2", 3, 200, 0.5, second)], "fault-27")
    assert _load(run_ledger, log) == {"new": 2}
    rows = query("SELECT request_id, input_tokens, output_tokens FROM event WHERE account = 'fault-27' ORDER BY request_id")
    assert [tuple(row.values()) for row in rows] == [("again-1", 100, 100), ("again-2", 100, 100)]

    by_header = [vllm_span(trace * 32, "0" * 15 + "1", "chatcmpl-same", 1778032805 * 10**9) for trace in ("e", "f")]
    log = write_nginx_log(tmp_path / "headers.jsonl", [("same", 5, 200, 0.5, None)], "fault-27")
    assert _load(run_ledger, write_vllm_traces(tmp_path / "headers-spans.jsonl", by_header), log) == {"merged": 2, "refused": 1}
    waiting = query("SELECT of_request, merged FROM engine_request WHERE request_id LIKE '%/chatcmpl-same'")
    assert waiting == [{"of_request": None, "merged": False}] * 2


def test_requests_that_the_client_cut_are_in_the_gateways_log_alone(run_ledger: Run, query: Query, tmp_path: Path) -> None:
    """Fault 28: 10 rows, two of them 499, 8 spans; cut at 120 ms it is outside the objective, at 2 s late."""
    rows = [(f"cut-{n}", float(n), 200, 0.25, None) for n in range(8)]
    log = write_nginx_log(tmp_path / "log.jsonl", [*rows, ("cut-8", 8, 499, 0.12, None), ("cut-9", 9, 499, 2.0, None)], "fault-28")
    spans = [vllm_span(f"{n + 1:032x}", f"{n + 1:016x}", f"chatcmpl-cut-{n}", 1778032800_010000000 + n * 10**9) for n in range(8)]
    assert _load(run_ledger, write_vllm_traces(tmp_path / "spans.jsonl", spans), log) == {"merged": 8, "new": 10}
    found = query("SELECT status, e2e_us, queue_us, input_tokens FROM event WHERE account = 'fault-28' ORDER BY request_id")
    cut = [(499, 120_000, None, None), (499, 2_000_000, None, None)]
    assert [tuple(row.values()) for row in found] == [(200, 250_000, 10_000, 100)] * 8 + cut
    text = (ROOT / "contracts" / "acme-bank.yaml").read_text().replace("accounts: [acme-bank]", "accounts: [fault-28]")
    (tmp_path / "contract.yaml").write_text(text)
    assert run_ledger("contract", "add", tmp_path / "contract.yaml").exit_code == 0
    result = run_ledger("settle", "2026-05", "--format", "json", "--output", tmp_path / "out", now=NOW)
    assert result.exit_code == 0, result.output
    [settlement] = json.loads(result.stdout)
    events = settlement["events"]
    assert (events["total"], events["outcomes"]["success"], events["outcomes"]["cancelled"]) == (10, 8, 2)
    assert (events["in_objective"], events["late"]) == (9, 1)


def test_tries_of_one_call_are_one_request_in_any_order_of_their_rows(run_ledger: Run, query: Query, tmp_path: Path) -> None:
    """Fault 29: the specimen's rows once more, under another account, the last ones first and in files of their own."""
    lines = [line for line in (FORMATS / "litellm.jsonl").read_text().splitlines() if "call-tries" in line or "call-twice" in line]
    rows = [json.loads(line) | {"team_id": "fault-29"} for line in reversed(lines)]
    files = [tmp_path / f"{number}.json" for number in range(len(rows))]
    for file, row in zip(files, rows, strict=True):
        file.write_text(json.dumps([row]))
    _load(run_ledger, *files)
    found = query(
        f"SELECT request_id, {AT}, ttft_us, e2e_us, status FROM event WHERE account = 'fault-29' AND NOT EXISTS ("  # noqa: S608
        "SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (event.account, event.request_id, event.revision)) ORDER BY 1"
    )
    assert [tuple(row.values()) for row in found] == [
        ("chatcmpl-l10", "02:19:00.000000", 500_000, 2_001_000, 200), ("chatcmpl-l9", "02:18:00.000000", 2_400_000, 4_200_000, 200),
    ]  # fmt: skip


def _any_value(value: Row) -> AnyValue:
    if "intValue" in value:
        return AnyValue(int_value=int(value["intValue"]))
    return AnyValue(double_value=value["doubleValue"]) if "doubleValue" in value else AnyValue(string_value=value["stringValue"])


def _key_values(pairs: list[Row]) -> list[KeyValue]:
    return [KeyValue(key=pair["key"], value=_any_value(pair["value"])) for pair in pairs]


def _protobuf(line: str) -> ResourceSpans:
    """The same spans in protobuf."""
    [group] = json.loads(line)["resourceSpans"]
    made = ResourceSpans()
    made.resource.attributes.extend(_key_values(group["resource"]["attributes"]))
    scope = made.scope_spans.add()
    for span in group["scopeSpans"][0]["spans"]:
        scope.spans.append(
            Span(
                trace_id=bytes.fromhex(span["traceId"]), span_id=bytes.fromhex(span["spanId"]), name=span["name"], kind=span["kind"],
                start_time_unix_nano=int(span["startTimeUnixNano"]), attributes=_key_values(span["attributes"]),
            )
        )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def messages() -> list[bytes]:
    """The first five lines of the specimen, each a message of the protocol."""
    lines = (FORMATS / "vllm-otlp.jsonl").read_text().splitlines()[:5]
    return [TracesData(resource_spans=[_protobuf(line)]).SerializeToString() for line in lines]


@pytest.mark.parametrize("form", ["one message", "behind lengths", "compressed"])
def test_the_same_spans_in_protobuf_are_the_same(form: str, messages: list[bytes], run_ledger: Run, tmp_path: Path) -> None:
    content = b"".join(messages) if form != "behind lengths" else b"".join(len(one).to_bytes(4, "big") + one for one in messages)
    file = tmp_path / ("spans.bin.gz" if form == "compressed" else "spans.bin")
    file.write_bytes(gzip.compress(content) if form == "compressed" else content)
    assert _load(run_ledger, file) == {"duplicate": 5}


def test_protobuf_that_is_cut_off_loads_nothing(messages: list[bytes], run_ledger: Run, tmp_path: Path) -> None:
    file = tmp_path / "spans.bin"
    file.write_bytes(b"".join(messages)[:-20])
    result = run_ledger("ingest", file)
    assert result.exit_code == 1 and "cut off" in result.stderr and "nothing of it was loaded" in result.stderr


# The columns of LiteLLM's schema that have no default.
_SPEND_LOGS = """
CREATE TABLE "LiteLLM_SpendLogs" (
    request_id text PRIMARY KEY, call_type text NOT NULL, api_key text, spend double precision, total_tokens integer, prompt_tokens integer,
    completion_tokens integer, "startTime" timestamp(3) NOT NULL, "endTime" timestamp(3) NOT NULL, "completionStartTime" timestamp(3),
    request_duration_ms integer, model text, model_group text, api_base text, metadata jsonb, cache_hit text, team_id text,
    organization_id text, end_user text, requester_ip_address text, status text, litellm_call_id text, messages jsonb, response jsonb,
    proxy_server_request jsonb);
CREATE ROLE {reader} LOGIN PASSWORD 'MARKED-password-1';
CREATE ROLE {stranger} LOGIN PASSWORD 'MARKED-password-2';
GRANT SELECT ON "LiteLLM_SpendLogs" TO {reader};
INSERT INTO "LiteLLM_SpendLogs" SELECT * FROM jsonb_populate_recordset(NULL::"LiteLLM_SpendLogs", {rows});
"""


@pytest.fixture
def proxy(new_database: Callable[[], str], server: Server) -> Iterator[Callable[[str], str]]:
    """`proxy("reader")` is the URL of a LiteLLM proxy's database with the specimen's rows, for a user who may read them, or "stranger"."""
    url = owner_url_of(server, new_database())
    database = conninfo_to_dict(url)["dbname"]
    roles = {name: sql.Identifier(f"{database}_{name}") for name in ("reader", "stranger")}
    lines = (FORMATS / "litellm.jsonl").read_text().splitlines()[:-1]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(_SPEND_LOGS).format(rows=sql.Literal(f"[{','.join(lines)}]"), **roles))
        host = conninfo_to_dict(url)["host"]
        password = {"reader": "MARKED-password-1", "stranger": "MARKED-password-2"}
        yield lambda name: f"postgresql://{database}_{name}:{password[name]}@/{database}?host={host}"
        connection.execute(sql.SQL("DROP OWNED BY {reader}; DROP ROLE {reader}; DROP ROLE {stranger}").format(**roles))


def test_spend_logs_come_straight_from_the_proxys_database(
    proxy: Callable[[str], str], run_ledger: Run, query: Query, database_url: str
) -> None:
    result = run_ledger("ingest", proxy("reader"), "--format", "json", now=NOW)
    assert result.exit_code == 0, result.output
    [found] = json.loads(result.stdout)["files"]
    # The file's rows, all but the broken one, and the same to the last value: nothing is new.
    assert (found["read"], found["new"], found["duplicate"], found["conflict"]) == (17, 0, 9, 0)
    assert found["reasons"] == {"missing_field": 1, "usage_missing": 1} and found["ignored"] == []
    assert found["skipped"] == SUMMARIES["litellm.jsonl"][2]
    assert found["file"].startswith("LiteLLM_SpendLogs of test_")
    checked = run_ledger("ingest", "--check", proxy("reader"), now=NOW)
    assert checked.exit_code == 0 and "17 looked at" in checked.stdout
    refused = [
        run_ledger("ingest", url) for url in (
            proxy("stranger"), proxy("reader").replace("password-1", "password-3"), database_url,
            "mysql://user:MARKED-password-4@localhost/litellm", "postgresql://user:MARKED password-5@localhost:port/litellm",
        )
    ]  # fmt: skip
    assert [one.exit_code for one in refused] == [4, 4, 1, 2, 2]
    assert "permission denied for table LiteLLM_SpendLogs" in refused[0].stderr and 'no table "LiteLLM_SpendLogs"' in refused[2].stderr
    assert MARK not in "".join(one.output for one in (result, checked, *refused))
    assert query("SELECT DISTINCT source FROM batch WHERE source LIKE 'LiteLLM%'") == [{"source": found["file"]}]


def test_reading_a_proxys_database_cannot_write_in_it(new_database: Callable[[], str], server: Server, run_ledger: Run) -> None:
    url = owner_url_of(server, new_database())
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE trace (n integer); CREATE FUNCTION leave() RETURNS text LANGUAGE sql AS "
            "'INSERT INTO trace VALUES (1) RETURNING n::text'; "
            'CREATE VIEW "LiteLLM_SpendLogs" AS SELECT leave() AS request_id, now() AS "startTime"'
        )
    result = run_ledger("ingest", url)
    assert result.exit_code == 4 and "read-only transaction" in result.stderr


def test_an_answer_of_the_list_api_holds_the_same_rows(run_ledger: Run, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (FORMATS / "litellm.jsonl").read_text().splitlines()[:-1]]
    (tmp_path / "logs.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "page.json").write_text(json.dumps({"data": rows, "total": 17, "page": 1, "page_size": 50, "total_pages": 1}))
    for name in ("logs.json", "page.json"):
        assert _load(run_ledger, tmp_path / name) == {"duplicate": 9, "refused": 2}


def _in_docs(language: str, start: str) -> str:
    """The block of the page on formats that begins so."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / "operators-ingest.md").read_text(), re.MULTILINE | re.DOTALL)
    [found] = [block for block in blocks if block.startswith(start)]
    return str(found)


def test_the_log_formats_of_the_page_make_these_requests(run_ledger: Run, query: Query, tmp_path: Path) -> None:
    variables = {
        "msec": "1778032832.284", "request_id": "docs-1", "otel_trace_id": "", "status": "499", "request_time": "2.166",
        "upstream_response_time": "1.000, 0.250", "uri": "/v1/chat/completions", "ledger_customer": "docs", "ledger_model": "deepseek-v4",
        "ledger_queue": "batch", "sent_http_x_async_processing": "true",
    }  # fmt: skip
    nginx = "".join(re.findall(r"'([^']*)'", _in_docs("nginx", "log_format")))
    (tmp_path / "nginx.log").write_text(re.sub(r"\$(\w+)", lambda found: variables[found[1]], nginx) + "\n")
    operators = {
        "%START_TIME(%Y-%m-%dT%H:%M:%S.%6fZ)%": "2026-05-06T02:00:30.118000Z", "%DURATION%": 2166, "%REQUEST_DURATION%": 4,
        "%RESPONSE_DURATION%": 183, "%COMMON_DURATION(DS_RX_END:US_RX_END:us)%": "2158204", "%RESPONSE_CODE%": 200,
        "%RESPONSE_FLAGS%": "DC",
        "%REQ(X-REQUEST-ID)%": "docs-2", "%TRACE_ID%": None, "%REQ(:PATH)%": "/v1/chat/completions", "%REQ(X-CUSTOMER)%": "docs",
        "%REQ(X-MODEL)%": "deepseek-v4", "%REQ(X-QUEUE-CLASS)%": None, "%RESP(X-ASYNC-PROCESSING)%": None,
    }  # fmt: skip
    envoy = {name: operators[operator] for name, operator in yaml.safe_load(_in_docs("yaml", "json_format"))["json_format"].items()}
    (tmp_path / "envoy.log").write_text(json.dumps(envoy) + "\n")
    assert _load(run_ledger, tmp_path / "nginx.log", tmp_path / "envoy.log") == {"new": 2}
    rows = query(
        f"SELECT request_id, model, {AT}, ttft_us, e2e_us, status, queue, async_header FROM event WHERE account = 'docs' ORDER BY 1"  # noqa: S608
    )
    assert [tuple(row.values()) for row in rows] == [
        ("docs-1", "deepseek-v4", "02:00:30.118000", None, 1_250_000, 499, "batch", True),
        ("docs-2/2026-05-06T02:00:30.118000Z", "deepseek-v4", "02:00:30.122000", 179_000, 2_158_204, 499, "standard", False),
    ]


def test_a_real_spend_log_row_becomes_this_event(shared: Path, run_ledger: Run, query: Query) -> None:
    file = shared / "data" / "litellm-spendlogs" / "spend_logs_payload.json"
    result = run_ledger("ingest", "--account", "real", file, "--format", "json")
    assert json.loads(result.stdout)["total"]["new"] == 1
    [row] = query(f"SELECT request_id, model, received_at::text, {TIMES}, {TOKENS}, status FROM event WHERE account = 'real'")  # noqa: S608
    assert tuple(row.values()) == (
        "chatcmpl-2283081b-dc89-41f6-93e6-d4f914774027", "gpt-4o", "2025-01-24 09:20:46.847371+00", None, None, None, None, None, 4_583,
        10, 0, 20, 200,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [("trace", "OTLP traces without a span of vLLM or SGLang"), ("logs", "OTLP logs"),
     ("events", "OTLP logs"), ("metrics", "OTLP metrics")],
)  # fmt: skip
def test_the_protocols_own_examples_are_told_from_requests(name: str, message: str, shared: Path, run_ledger: Run) -> None:
    result = run_ledger("ingest", shared / "data" / "otlp-json-examples" / f"{name}.json")
    assert result.exit_code == 1 and f"{name}.json: {message}, which cannot be settled" in result.stderr


def test_nothing_that_was_said_in_confidence_stays_anywhere(loaded: dict[str, Any], run_ledger: Run, query: Query, tmp_path: Path) -> None:
    """Prompts, answers, addresses, keys, passwords: in no table, in nothing that is printed, in no file that is written."""
    specimens = "".join((FORMATS / name).read_text() for name in SPECIMENS)
    assert specimens.count(MARK) > 100  # else nothing is proven
    outputs = [loaded["stdout"], loaded["stderr"]]
    for arguments in (
        ("ingest", *sorted((FORMATS / "refused").iterdir())), ("ingest", "--check", *(FORMATS / name for name in SPECIMENS)),
        ("quarantine", "list"), ("settle", "2026-05", "--output", tmp_path), ("quarantine", "requeue"),
    ):  # fmt: skip
        outputs.append(run_ledger(*arguments, now=NOW).output)
    assert "time_in_queue\" is '-3.1', which is negative" in outputs[-1]  # rows of every format go through their rules again
    tables = [row["name"] for row in query("SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'")]
    dumps = [query(f"SELECT count(*), string_agg(t::text, chr(10)) AS text FROM {name} t")[0] for name in tables]  # noqa: S608
    rows = dict(zip(tables, (dump["count"] for dump in dumps), strict=True))
    assert min(rows[name] for name in ("observation", "event", "quarantine", "batch")) > 5
    files = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert [text for text in (*outputs, *files, *(dump["text"] or "" for dump in dumps)) if MARK in text] == []
