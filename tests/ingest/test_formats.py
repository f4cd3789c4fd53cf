"""What becomes of each format's specimen, and of real exports, row by row; and what cannot be settled is refused with the reason.

Values are read without a database; one test loads them all into one.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ledger.errors import LedgerError
from ledger.ingest.chunk import Judge
from ledger.ingest.given import Given, instant_us
from ledger.ingest.mapping_file import BUILT_IN, built_in_mappings
from ledger.ingest.reading.opening import open_records
from tests.ingest.gateway_specimens import REFUSED as REFUSED_OF_GATEWAYS
from tests.ingest.gateway_specimens import SPECIMENS as OF_GATEWAYS
from tests.ingest.sample_rows import FORMATS, HEADER

NOW_US = instant_us("2026-06-01T00:00:00Z")
ACCOUNT = Given(account="acct", model="mdl")
START_TEXT = "2026-05-06T00:00:00+08:00"
START = Given(account="acct", model="mdl", start_us=instant_us(START_TEXT))
STEP = replace(START, model=None, step_us=1_500_000)  # the model of llmperf is the name of its file
NONE = (None, None, None)  # nothing measured, or counted

# request id, account, model, received at, ttft_us, e2e_us, input tokens (cached ones among them), cached ones, output tokens, status
Event = tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """What becomes of a file: its format and events; reason and words by line of what is refused; what is no request."""

    format: str
    events: list[Event]
    refused: dict[int, str] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)


def outcome(path: Path, given: Given, source: str | None = None) -> Outcome:
    """What becomes of the file's rows, in their order."""
    mappings = [mapping.filled(given) for mapping in built_in_mappings().values() if source in (None, mapping.name)]
    with open_records(path, tuple(mappings)) as records:
        chunk = Judge(records, now_us=NOW_US).first_chunk(records.records)
        events = chunk.first_events(records.records)
        never = [
            name for name in ("queue_us", "prefill_us", "decode_us", "inference_us", "cold_start", "node") if any(e[name] for e in events)
        ]
        assert never == [] and {event["queue"] for event in events} <= {"standard"}
        assert chunk.read == len(events) + chunk.refused.total() + chunk.skipped.total()
        found = Outcome(
            format=records.mapping.name,
            events=[
                (
                    event["request_id"], event["account"], event["model"], str(event["received_at"]).removesuffix("+00"), event["ttft_us"],
                    event["e2e_us"], event["input_tokens"], event["cached_input_tokens"], event["output_tokens"], event["status"],
                )
                for event in events
            ],
            refused={line: f"{reason}: {detail}" for line, reason, detail in chunk.first_refused(records.records)},
            skipped=dict(chunk.skipped),
        )  # fmt: skip
        chunk.close()
        return found


def options(given: Given, source: str | None) -> list[str]:
    """What the command line says where `outcome` is given the same."""
    said = {"--account": given.account, "--model": given.model, "--source": source}
    said |= {"--start": START_TEXT if given.start_us else None, "--step": f"{given.step_us}us" if given.step_us else None}
    return [f"{option}={value}" for option, value in said.items() if value]


SPECIMENS: dict[str, tuple[Given, str | None, Outcome]] = {
    "aiperf.jsonl": (
        ACCOUNT,
        None,
        Outcome(
            "aiperf",
            [
                ("r-1", "acct", "mdl", "2026-05-06 02:15:30.118", 183_000, 2_166_002, 1830, 0, 95, 200),
                ("r-2", "acct", "mdl", "2026-05-06 02:15:31.118", 183_000, 2_166_000, 10, 0, 5, 200),
                ("r-3", "acct", "mdl", "2026-05-06 02:15:32.118", 183_000, 2_166_000, 10, 0, 5, 200),
                ("r-4", "acct", "mdl", "2026-05-06 02:15:33.118", *NONE, 0, None, 503),
                ("r-5", "acct", "mdl", "2026-05-06 02:15:34.118", *NONE, 0, None, 499),
                ("r-6", "acct", "mdl", "2026-05-06 02:15:35.118", *NONE, 0, None, 500),
            ],
            {
                7: "bad_number: e2e is 'of the unit fortnights', expected a decimal number such as 99.5",
                8: "bad_number: ttft is 'of the unit none', expected a decimal number such as 99.5",
                9: "bad_number: input_tokens is '10.5', expected a whole number",
            },
        ),
    ),
    "azure-trace.csv": (
        ACCOUNT,
        None,
        Outcome(
            "azure-trace",
            [
                ("azure-trace/1", "acct", "mdl", "2026-05-06 10:15:30.123456", None, None, 1830, 0, 95, 200),
                ("azure-trace/2", "acct", "mdl", "2024-05-10 00:00:00.00993", None, None, 2162, 0, 5, 200),
            ],
            {
                4: "bad_instant: received_at is '2026-05-06 24:00:00.0000000+00:00', expected an instant with its offset, such as "
                "2026-05-06T10:00:00+08:00",
                5: "bad_number: input_tokens is '1.5', expected a whole number",
            },
        ),
    ),
    "burstgpt.csv": (
        START,
        None,
        Outcome(
            "burstgpt",
            [
                ("burstgpt/1", "acct", "GPT-4", "2026-05-06 02:15:30.123", None, 2_157_000, 1830, 0, 95, 200),
                ("burstgpt/2", "acct", "ChatGPT", "2026-05-06 02:15:31", None, None, 20, 0, 0, 500),  # failed at once is not fast
                ("burstgpt/3", "acct", "ChatGPT", "2026-05-06 02:15:32.5", None, 4_500_000, 20, 0, 0, 500),
                ("burstgpt/4", "acct", "GPT-4", "2026-05-06 16:00:00", None, 1_000_000, 1, 0, 1, 200),
            ],
            {
                6: "bad_instant: received_at is 'noon', expected a number that names an instant of the years 1 to 9999",
                7: "bad_number: e2e is '1,5', expected a decimal number such as 99.5",
            },
        ),
    ),
    "helicone.jsonl": (
        Given(),
        None,
        Outcome(
            "helicone",
            [
                ("gw-7f3a", "acme-bank", "deepseek-v4", "2026-05-06 02:15:30.118", 183_000, 2_166_000, 1830, 1024, 95, 200),
                ("gw-7f3b", "northwind", "claude", "2026-05-06 02:16:30.118", None, 500_000, 1030, 1000, 5, 200),  # beside, by the total
                ("gw-7f3c", "acme-bank", "deepseek-v4", "2026-05-06 02:17:30.118", None, 12_500, None, 0, None, 429),
            ],
            {
                4: "cached_exceeds_input: cached_input_tokens is 11 of 10 input_tokens",
                5: "bad_instant: received_at is '2026-05-06 02:18:30.118', expected an instant with its offset, such as "
                "2026-05-06T10:00:00+08:00",
                6: "bad_number: e2e is 'NaN', expected a decimal number such as 99.5",
                7: "missing_field: account is empty",
            },
        ),
    ),
    "langfuse.jsonl": (
        Given(),
        None,
        Outcome(
            "langfuse",
            [
                ("t-1/obs-1", "acme-bank", "deepseek-v4", "2026-05-06 02:15:30.118", 183_000, 2_166_000, 1830, 1024, 95, 200),
                ("t-1/obs-2", "acme-bank", "deepseek-v4", "2026-05-06 02:15:33", None, 1_500_000, 1830, 1024, 95, 200),
                ("t-1/obs-3", "acme-bank", "deepseek-v4", "2026-05-06 02:15:35", None, 1_000_000, 22, 5, 7, 200),
                ("t-2/obs-4", "acme-bank", "deepseek-v4", "2026-05-06 02:16:00", None, 1_000_000, None, 0, None, 500),
                ("t-3/obs-5", "acme-bank", "deepseek-v4", "2026-05-06 02:17:00", None, None, 20, 0, 4, 200),
                ("obs-6", "northwind", "deepseek-v4", "2026-05-06 02:17:01", None, None, 21, 0, 5, 200),
            ],
            {
                10: "usage_missing: input_tokens and output_tokens are empty, with status 200",
                11: "negative_duration: elapsed_us(startTime, endTime) is '-200000', which is negative",
                12: "bad_number: input_tokens is 'CHARACTERS', expected a whole number",
                13: "bad_text: the record is not a JSON object",
                14: "bad_number: input_tokens is 'parts that do not add up to the total 1150', expected a whole number",
                15: "cached_exceeds_input: cached_input_tokens is 80 of 10 input_tokens",
            },
            {"span": 1, "tool": 1, "no_generation": 1},
        ),
    ),
    "langfuse-answer.json": (
        ACCOUNT,
        None,
        Outcome(
            "langfuse",
            [("t-9/obs-1", "acct", "deepseek-v4", "2026-05-06 02:15:30.118", None, 2_166_000, 1830, 0, 95, 200)],  # latency: 2166
            {3: "bad_text: the record is not a JSON object"},
            {"event": 1},
        ),
    ),
    "langfuse-trace.json": (
        Given(),
        None,
        Outcome(
            "langfuse",
            [("t-10/obs-1", "acme-bank", "deepseek-v4", "2026-05-06 02:20:00", None, 1_874_000, 1200, 0, 15, 200)],  # latency: 1.874
            skipped={"chain": 1},
        ),
    ),
    "llmperf.json": (
        STEP,
        None,
        Outcome(
            "llmperf",
            [
                ("llmperf/1", "acct", "llmperf", "2026-05-05 16:00:00", 297_978, 890_009, 550, 0, 150, 200),
                ("llmperf/2", "acct", "llmperf", "2026-05-05 16:00:01.5", None, None, 550, 0, 1, 429),  # never a fast success
                ("llmperf/3", "acct", "llmperf", "2026-05-05 16:00:03", 613_839, 5_049_238, 550, 0, 102, -100),
            ],
            {4: "negative_duration: ttft is '-1', which is negative"},
        ),
    ),
    "mooncake.jsonl": (
        START,
        None,
        Outcome(
            "mooncake",
            [
                ("mooncake/1", "acct", "mdl", "2026-05-05 16:00:03.123", None, None, 1830, 0, 95, 200),
                ("mooncake/2", "acct", "mdl", "2026-05-05 16:00:00", None, None, 1830, 0, 95, 200),
            ],
            {3: "missing_field: received_at is empty", 4: "negative_tokens: input_tokens is '-1'"},
        ),
    ),
    "openrouter.json": (
        Given(),
        "openrouter-first-token",
        Outcome(
            "openrouter-first-token",
            [
                ("gen-1", "acme-bank", "deepseek/deepseek-v4", "2026-05-06 02:15:30.118", 183_000, 2_166_000, 1830, 1024, 95, 200),
                ("gen-2", "acme-bank", "deepseek/deepseek-v4", "2026-05-06 02:15:31", *NONE, 0, None, 499),
                ("gen-4", "acme-bank", "deepseek/deepseek-v4", "2026-05-06 02:15:33", None, None, 5, 0, 0, 500),
            ],
            {3: "usage_missing: input_tokens and output_tokens are empty, with status 200"},
        ),
    ),
    "vllm-bench.json": (
        START,
        None,
        Outcome(
            "vllm-bench",
            [
                ("vllm-bench/1", "acct", "deepseek-v4", "2026-05-05 16:00:00.25", 171_800, 2_157_200, 1830, 0, 95, 200),
                ("vllm-bench/2", "acct", "deepseek-v4", "2026-05-05 16:00:00", 250_000, 350_000, 10, 0, 5, 200),
                ("vllm-bench/3", "acct", "deepseek-v4", "2026-05-05 16:00:00.750001", None, None, 12, 0, 0, 429),
                ("vllm-bench/4", "acct", "deepseek-v4", "2026-05-05 16:00:02.25", None, None, 13, 0, 0, 500),
                ("vllm-bench/5", "acct", "deepseek-v4", "2026-05-05 16:00:03.25", 300_000, None, 14, 0, 0, 500),
            ],
        ),
    ),
    "vllm-bench-old.json": (
        STEP,
        None,
        Outcome(
            "vllm-bench",
            [("vllm-bench-old/1", "acct", "deepseek-v3", "2026-05-05 16:00:00", 250_000, 750_000, 10, 0, 5, 200)],
            {2: "bad_number: ttft_s is 'x', expected a decimal number such as 99.5"},
        ),
    ),
}


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_specimen_becomes_these_events(name: str) -> None:
    given, source, expected = SPECIMENS[name]
    assert outcome(FORMATS / name, given, source) == expected


def test_a_generation_whose_latency_is_the_whole_time_is_read_as_such_only_when_told_so() -> None:
    file = FORMATS / "openrouter.json"
    assert [event[4:6] for event in outcome(file, Given(), "openrouter-total").events] == [(None, 183_000), (None, None), (None, None)]
    with pytest.raises(LedgerError) as refused:
        outcome(file, Given())
    assert refused.value.message.endswith("does not say which it is: openrouter-first-token, openrouter-total")
    assert "--source" in refused.value.cure


TRACE = "e1fde3efec57ce8a69bafd3fb928a7eb"
REAL: dict[str, tuple[Given, Outcome]] = {
    "aiperf-profile-export/qwen_concurrency1_profile_export.line1.jsonl": (
        ACCOUNT,
        Outcome(
            "aiperf",
            [("fd78b108-2a8f-43b0-8327-0f97e76c6a9c", "acct", "mdl", "2025-11-07 21:38:54.797068", 31_743, 3_644_260, 100, 0, 200, 200)],
        ),
    ),
    "aiperf-profile-export/run1_profile_export.lines1-4_cancelled.jsonl": (
        ACCOUNT,
        Outcome(
            "aiperf",
            [
                ("c087da26-5552-4785-958a-cad75c7b22de", "acct", "mdl", "2025-10-03 20:13:39.15483", *NONE, 0, None, 499),
                ("46137b1b-a389-42e7-8132-9111f6e468e3", "acct", "mdl", "2025-10-03 20:13:39.155728", *NONE, 0, None, 499),
                ("4990ce7e-9c57-41f7-ab52-0ff53f2d916f", "acct", "mdl", "2025-10-03 20:13:39.157422", *NONE, 0, None, 499),
                ("ac0310f1-416f-45f3-a101-809792bad942", "acct", "mdl", "2025-10-03 20:13:39.156898", *NONE, 0, None, 499),
            ],
        ),
    ),
    "langfuse-exports/google-gemini-2025-08-01.json": (  # latency in ms; reasoning inside the output
        ACCOUNT,
        Outcome(
            "langfuse",
            [
                ("9f2f0fe0228fd81a9fe75882934b384a/b7a63ca7e1d083bc", "acct", "gemini-2.5-flash", "2025-08-01 13:22:00.147",
                 None, 12_032_000, 6, 0, 2055, 200),
            ],
        ),
    ),
    "langfuse-exports/google-vertex-tools-langchain-2025-09-19.json": (  # latency in seconds
        ACCOUNT,
        Outcome(
            "langfuse",
            [
                ("vertex-gemini-trace-001/vertex-gemini-obs-001", "acct", "gemini-2.5-flash", "2025-09-19 21:59:59.034",
                 None, 1_874_000, 1200, 0, 15, 200),
            ],
        ),
    ),
    "langfuse-exports/langgraph-2025-08-22.json": (
        ACCOUNT,
        Outcome(
            "langfuse",
            [
                (f"{TRACE}/4f6535aaebcda355", "acct", "gpt-4o-2024-08-06", "2025-08-22 09:38:56.232", None, 848_000, 60, 0, 15, 200),
                (f"{TRACE}/5ba09605e0929d78", "acct", "gpt-4o-2024-08-06", "2025-08-22 09:38:57.089", None, 1_743_000, 108, 0, 51, 200),
            ],
            skipped={"span": 7},
        ),
    ),
    "langfuse-exports/openai-assistants-2024-05-29.json": (  # never ended
        ACCOUNT,
        Outcome(
            "langfuse",
            [
                ("b3b7b128-5664-4f42-9fab-31999da9e2f1/0d8f5427-c91a-44c8-86c5-e12d806edd57", "acct", "gpt-4", "2024-05-29 13:46:19.963",
                 None, None, 49, 0, 40, 200),
            ],
            skipped={"span": 3},
        ),
    ),
    "langfuse-exports/autogen-2025-06-06.json": (
        Given(),
        Outcome(
            "langfuse",
            [
                ("1b72c51fabed12ae7df83bfd4a09f545/83517f9062f5ada4", "user_123", "gpt-4o", "2025-06-06 11:31:33.978",
                 None, 628_000, 41, 0, 3, 200),
            ],
            skipped={"span": 1},
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_a_real_export_becomes_these_events(name: str, shared: Path) -> None:
    given, expected = REAL[name]
    assert outcome(shared / "data" / name, given) == expected


def test_a_real_benchmark_with_rejected_calls(shared: Path) -> None:
    found = outcome(shared / "data" / "llmperf-leaderboard" / "individual" / "lepton_70b.json", STEP)
    rejected = [event for event in found.events if event[-1] == 429]
    assert len(rejected) == 130 and {event[4:9] for event in rejected} == {(None, None, 550, 0, 1)}
    served = [event for event in found.events if event[-1] == 200]
    assert len(served) == 20 and min(event[5] for event in served) > 1_000_000


@pytest.mark.parametrize(
    ("name", "rows", "first"),
    [
        ("AzureLLMInferenceTrace_code", 8_819, ("2023-11-16 18:17:03.97996", None, None, 4808, 0, 10, 200)),
        ("AzureLLMInferenceTrace_conv", 19_366, ("2023-11-16 18:15:46.68059", None, None, 374, 0, 44, 200)),
    ],
)
def test_a_real_trace_has_arrivals_and_tokens_alone(name: str, rows: int, first: Event, shared: Path) -> None:
    found = outcome(shared / "data" / "azure-llm-2023" / f"{name}.csv.gz", ACCOUNT)
    assert (len(found.events), found.refused) == (rows, {})
    assert found.events[0] == (f"{name}/1", "acct", "mdl", *first)


REFUSED = {
    "aiperf-summary-table.csv": "profile_export.jsonl",
    "aiperf-summary.json": "profile_export.jsonl",
    "histogram.csv": "A histogram cannot be settled",
    "llmperf-summary.json": "individual responses",
    "prometheus-answer.json": "A histogram cannot be settled",
    "prometheus.txt": "`ledger reconcile` holds",
    "vllm-bench-summary.json": "--save-detailed",
}


@pytest.mark.parametrize("name", REFUSED)
def test_sums_and_percentiles_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(LedgerError) as refused:
        outcome(FORMATS / "refused" / name, STEP)
    assert "cannot be settled" in refused.value.message and REFUSED[name] in refused.value.cure


def test_every_format_has_a_specimen_and_its_name_and_says_what_it_is() -> None:
    mappings = built_in_mappings()
    assert sorted(mappings) == sorted(path.stem for path in BUILT_IN.glob("*.yaml"))
    shown = {expected.format for _, _, expected in SPECIMENS.values()} | {Path(name).stem for name in REFUSED}
    shown |= {Path(name).stem for name in (*OF_GATEWAYS, *REFUSED_OF_GATEWAYS)}
    assert set(mappings) - shown == {"canonical", "openrouter-total"}
    assert {path.name for path in FORMATS.glob("*.*")} - {"README.md"} == set(SPECIMENS) | set(OF_GATEWAYS)
    assert all(mapping.description.endswith(".") for mapping in mappings.values())


@pytest.mark.parametrize(
    ("name", "given", "message", "cure"),
    [
        ("aiperf.jsonl", Given(), "does not say its account, model", "add --account NAME, whose requests these are, and --model NAME"),
        ("vllm-bench.json", ACCOUNT, "does not say its instant", "add --start 2026-05-01T00:00:00Z"),
        ("vllm-bench-old.json", START, "does not say its time between its records", "add --step 1s"),
        ("langfuse.jsonl", START, "says itself when its records were received", "load it without --start"),
        ("burstgpt.csv", STEP, "says itself when its records were received", "load it without --step"),
    ],
)
def test_what_a_file_does_not_say_is_asked_for(name: str, given: Given, message: str, cure: str) -> None:
    with pytest.raises(LedgerError) as refused:
        outcome(FORMATS / name, given)
    assert message in refused.value.message and cure in refused.value.cure


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("model", "modle") + "\n", "fields account, request_id, modle, received_at, inference_us, input_tokens, "
         "output_tokens; nearest is canonical, which misses model"),
        ("TIMESTAMP;ContextTokens;when\n", "fields TIMESTAMP, ContextTokens, when; nearest is azure-trace, which misses GeneratedTokens"),
        ('{"id":1,"traceId":2,"began":3}\n', "fields began, id, traceId; nearest is langfuse, which misses type, startTime"),
        ("Timestamp,x\n", "fields Timestamp, x; nearest is burstgpt, which misses Model, Request tokens, Response tokens, Log Type"),
        ("a,b\n", "no format fits a csv file with the fields a, b"),
    ],
)  # fmt: skip
def test_a_file_that_no_format_fits_is_told_the_nearest(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises(LedgerError) as refused:
        outcome(file, Given())
    assert message in refused.value.message
    assert "`ledger formats`" in refused.value.cure and "--mapping" in refused.value.cure


def test_a_file_of_broken_records_alone_is_no_format_that_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": 1\n')
    with pytest.raises(LedgerError) as refused:
        outcome(file, Given())
    assert refused.value.message == f"{file}: a jsonl file in which no record can be read"


@pytest.mark.parametrize(("name", "source"), [("vllm-bench.json", "canonical"), ("langfuse.jsonl", "vllm-bench")])
def test_a_file_of_another_kind_than_was_named_is_refused(name: str, source: str) -> None:
    with pytest.raises(LedgerError, match=f"no file of the format {source}"):
        outcome(FORMATS / name, STEP, source)


def test_fields_whose_names_differ_in_large_letters_alone_are_two(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"request_id": "r", "request_created_at": "2026-05-06T02:15:30Z", "response_status": 503, "delay_ms": 1, "request_model": "m"}
    texts = [row | {"request_properties": {"customer": "small"}}, row | {"request_properties": {"Customer": "LARGE"}}]
    file.write_text("".join(json.dumps(one) + "\n" for one in texts))
    assert [event[1] for event in outcome(file, Given()).events] == ["small", "LARGE"]


def test_many_rows_of_which_some_are_no_requests_fit_into_memory(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    request, span, *_ = (line for line in (FORMATS / "langfuse.jsonl").read_text().splitlines() if "obs-1" in line or "span-1" in line)
    file.write_text("".join(f"{request.replace('obs-1', f'obs-{n}')}\n{span}\n" for n in range(3_000)))
    found = outcome(file, Given())
    assert (len(found.events), found.refused, found.skipped) == (3_000, {}, {"span": 3_000})


def test_all_specimens_load_add_up_are_sent_in_again_and_leave_no_prompt(
    run_ledger: Callable[..., Any], query: Callable[[str], list[dict[str, Any]]]
) -> None:
    alike: dict[tuple[Given, str | None], list[str]] = {}
    for name, (given, source, _) in SPECIMENS.items():
        alike.setdefault((given, source), []).append(name)
    for (given, source), names in alike.items():
        files = [FORMATS / name for name in names]
        result = run_ledger("ingest", *options(given, source), *files, "--format", "json", now="2026-06-01T00:00:00Z")
        for name, file in zip(names, json.loads(result.stdout)["files"], strict=True):
            expected = SPECIMENS[name][2]
            found = (file["new"], file["refused"], file["skipped"])
            assert found == (len(expected.events), len(expected.refused), expected.skipped), result.stderr
            assert file["read"] == file["new"] + file["refused"] + sum(file["skipped"].values())
            assert file["unmeasured"] == (expected.format in ("azure-trace", "mooncake"))
    counted = "SELECT count(*) FROM quarantine"
    assert query(counted) == [{"count": sum(len(expected.refused) for _, _, expected in SPECIMENS.values())}]
    # Their instants follow from what the command line gave then, which is known again.
    before = query(
        "SELECT quarantine_id, reason, detail FROM quarantine JOIN batch USING (batch_id) WHERE mapping IN ('burstgpt', 'llmperf')"
    )
    again = run_ledger("quarantine", "requeue", *(str(row["quarantine_id"]) for row in before), now="2026-06-01T00:00:00Z")
    assert again.stdout.splitlines() == [f"{row['quarantine_id']} {row['reason']}: {row['detail']}" for row in before] and len(before) == 3
    for (table,) in (row.values() for row in query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")):
        found = query(f"SELECT count(*) FROM {table} AS stored WHERE stored::text LIKE '%MARKED%'")  # noqa: S608
        assert found == [{"count": 0}], table


def test_refused_rows_of_every_format_that_are_sent_in_again_are_what_their_files_would_have_made(
    run_ledger: Callable[..., Any], database_url: str, new_database: Callable[[], str]
) -> None:
    direct = new_database()
    for name, (given, source, _) in SPECIMENS.items():
        told = options(given, source)
        assert run_ledger("ingest", *told, FORMATS / name, database=direct).exit_code == 0
        assert run_ledger("ingest", *told, FORMATS / name, now="1990-01-01T00:00:00Z").exit_code == 0
    assert run_ledger("quarantine", "export", "--refused-for", "future", "--output", "-").exit_code == 0
    requeued = json.loads(run_ledger("quarantine", "requeue", "--refused-for", "future", "--format", "json").stdout)
    assert {one["outcome"] for one in requeued} <= {"accepted", "duplicate"} and len(requeued) > 30
    content = "SELECT to_jsonb(event) - 'batch_id' FROM event ORDER BY account, request_id"
    with psycopg.connect(direct) as one, psycopg.connect(database_url) as other:
        assert other.execute(content).fetchall() == one.execute(content).fetchall()
