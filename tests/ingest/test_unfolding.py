"""Files whose records do not stand one by one: every record comes out once, whole, with its line, however the content arrives."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from ledger.ingest.chunk import Judge
from ledger.ingest.mapping_file import built_in_mappings
from ledger.ingest.reading.json_file import JsonFile
from ledger.ingest.reading.line_file import LONGEST_MEAN_BYTES
from ledger.ingest.reading.opening import open_records
from ledger.ingest.unfolding import Broken, listed, unfolding_of, vllm_bench
from tests.conftest import RunLedger
from tests.ingest.gateway_logs import vllm_span, write_vllm_traces

HARD = r'{"t": "}\"]{[\\", "u": "ü", "n": [{"a": {}}, []], "e": {}}'
LISTED = {
    "an answer": ('{"data": [' + HARD + ",\n" + HARD + '], "meta": {"page": 1}}', [(1, HARD), (2, HARD)]),
    "an empty answer": ('{"data": [], "meta": {}}', []),
    "one object under data": ('{"data": {"a": 1}}\n', [(1, '{"a": 1}')]),
    "data beside other fields": ('{\n"data": {"a": 1}, "id": 2}', [(1, '{"data": {"a": 1}, "id": 2}')]),
    "objects over several lines": ('{\n "a": 1\n}\n{\n "a": 2\n}\n', [(1, '{"a": 1}'), (4, '{"a": 2}')]),
    "several answers": ('{"data": [{"a": 1}]}\n{"data": [{"a": 2}]}\n', [(1, '{"a": 1}'), (2, '{"a": 2}')]),
    "a trace": (
        '{"trace": {"userId": "u", "n": 3, "input": null}, "observations": [{"a": 1}, {}]}',
        [
            (1, '{"trace": {"userId": "u", "n": "3", "input": null}, "a": 1}'),
            (1, '{"trace": {"userId": "u", "n": "3", "input": null}}'),
        ],
    ),
    "no records among them": ('{"data": [\n17, {"a": 1},\n\n"x"\n]}', [(2, "17"), (2, '{"a": 1}'), (4, '"x"')]),
    "a text behind them": ('{\n"a": 1\n}\nend', [(1, '{"a": 1}'), (4, "end")]),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_listed_records_come_out_alike_in_pieces_of_any_size(name: str) -> None:
    content, expected = LISTED[name]
    for size in (1, 2, 3, 7, len(content.encode())):
        pieces = [content.encode()[at : at + size] for at in range(0, len(content.encode()), size)]
        found = [(line, text.decode()) for line, text in listed.unfold(pieces)]
        assert all("\n" not in text for _, text in found)
        assert [(line, _read(text)) for line, text in found] == [(line, _read(text)) for line, text in expected], size


def _read(text: str) -> object:
    try:
        return json.loads(text, parse_int=str)  # some are written anew, with their numbers as texts
    except ValueError:
        return text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [{"a": 1}', "ends in the middle"),
        ('{\n"a": "', "ends in the middle"),
        ('{"observations": [{"a": 1}], "trace": {"userId": "u"}}', "stands behind its observations"),
    ],
)
def test_what_cannot_be_listed_is_broken(content: str, message: str) -> None:
    with pytest.raises(Broken, match=message):
        list(listed.unfold([content.encode()]))


def test_a_record_longer_than_a_line_may_be_loses_its_long_texts_alone() -> None:
    record = {"id": "r", "n": 12345678901234567890, "input": ["x" * 20_000] * 60, "output": "short"}
    [(_, text)] = listed.unfold([json.dumps({"data": [record]}).encode()])
    assert len(text) < 1_000 and json.loads(text) == {"id": "r", "n": "12345678901234567890", "input": [""] * 60, "output": "short"}


RESULT = {
    "model_id": "m", "request_throughput": 1.0, "input_lens": [1, 2], "output_lens": [3, 4], "ttfts": [0.1, 0.2],
    "itls": [[0.1], [0.1, 0.2]], "errors": ["", ""],
}  # fmt: skip


def test_sums_of_a_benchmark_are_exact() -> None:
    content = json.dumps(RESULT).encode()
    assert unfolding_of(content) == "vllm_bench"
    records = [json.loads(text) for _, text in vllm_bench.unfold([content])]
    assert [(one["request"], one["ttft_s"], one["e2e_s"], one["status"]) for one in records] == [
        ("1", "0.1", "0.2", 200),
        ("2", "0.2", "0.5", 200),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output_lens": [3]}, "input_lens 2, output_lens 1"),
        ({"ttfts": None}, "ttfts missing"),
        ({"itls": "many"}, "itls missing"),
        ({"start_times": [1.0]}, "start_times 1"),
    ],
)
def test_arrays_that_do_not_belong_together_are_broken(change: dict[str, object], message: str) -> None:
    with pytest.raises(Broken, match=message):
        list(vllm_bench.unfold([json.dumps(RESULT | change).encode()]))


def test_several_results_in_one_file_are_broken() -> None:
    with pytest.raises(Broken, match="several benchmark results"):
        list(vllm_bench.unfold([json.dumps(RESULT).encode() + b"\n" + json.dumps(RESULT).encode()]))


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e400", "1e99999999", "1e-99999999", '"x"', "null", "{}", "[1]", "true"]
)
def test_a_value_that_is_no_time_is_never_a_small_one(value: str) -> None:
    """It stays a text that the rules refuse, or nothing at all."""
    content = json.dumps(RESULT).replace('"ttfts": [0.1', f'"ttfts": [{value}').replace('"itls": [[0.1]', f'"itls": [[{value}]')
    content = content.replace('"errors"', f'"start_times": [{value}, 5.5], "errors"')
    first, second = (json.loads(text) for _, text in vllm_bench.unfold([content.encode()]))
    for name in ("ttft_s", "e2e_s", "since_start_s"):
        shown = first[name]
        assert shown is None or not str(shown).replace(".", "").replace("-", "").isdecimal(), name
    assert second["ttft_s"] == "0.2" and second["since_start_s"] == "0.0"


@pytest.mark.parametrize(("prompt", "are_lines"), [("", True), ("x" * 2 * LONGEST_MEAN_BYTES, False)], ids=["lines", "table"])
def test_records_that_stood_on_one_line_keep_its_number_in_any_span(tmp_path: Path, prompt: str, are_lines: bool) -> None:
    def line(*names: str) -> str:
        attributes = [
            {"key": "prompt", "value": {"stringValue": prompt}}, {"key": "gen_ai.latency.time_in_queue", "value": {"doubleValue": 0.5}},
        ]  # fmt: skip
        spans = [{"traceId": "a" * 32, "spanId": name * 16, "startTimeUnixNano": "1", "attributes": attributes} for name in names]
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n"

    file = tmp_path / "spans.jsonl"
    file.write_text(line("1", "2", "3") + 'a "quote\n' + line("4"))
    with open_records(file, tuple(built_in_mappings().values())) as records:
        assert isinstance(records, JsonFile) and (records.lines is not None, records.records) == (are_lines, 5)
        found = []
        for number, (first, last) in enumerate(((0, 2), (2, 4), (4, 5))):
            judge = Judge(records, now_us=0)
            with closing(judge.chunk(judge.cut(number=number, first=first, last=last))) as chunk:
                rows = chunk.connection.execute("SELECT line, record, right(record_id, 1), reason FROM judged ORDER BY record")
                found += rows.fetchall()
    assert found == [(1, 1, "1", None), (1, 2, "2", None), (1, 3, "3", None), (2, 4, None, "bad_text"), (3, 5, "4", None)]


@pytest.mark.parametrize("signal", ["resourceLogs", "resourceMetrics", "resourceProfiles"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_line_of_another_signal_among_traces_is_skipped_and_named(signal: str, place: int, tmp_path: Path, run_ledger: RunLedger) -> None:
    file = write_vllm_traces(tmp_path / "mixed.jsonl", [vllm_span("0" * 31 + "a", "0" * 15 + "1", "chatcmpl-l1", 1778033730 * 10**9)])
    lines = [file.read_text(), json.dumps({signal: [{"scopeLogs": []}]}) + "\n"]
    file.write_text(lines[place] + lines[1 - place])
    total = json.loads(run_ledger("ingest", file, "--format", "json").stdout)["total"]
    assert (total["read"], total["merged"], total["refused"], total["skipped"]) == (2, 1, 0, {"other_signal": 1})


def test_spans_with_long_prompts_need_no_more_memory_than_others(tmp_path: Path, run_ledger: RunLedger) -> None:
    spans = [vllm_span(f"{n + 1:032x}", f"{n + 1:016x}", f"chatcmpl-{n}", 1778033730 * 10**9) for n in range(200)]
    for span in spans:
        span["attributes"].append({"key": "gen_ai.prompt", "value": {"stringValue": "a" * 900_000}})
    file = write_vllm_traces(tmp_path / "long.jsonl", spans)
    assert json.loads(run_ledger("ingest", file, "--format", "json").stdout)["total"]["merged"] == 200
