"""Answers and scrapes of Prometheus: exact values, nothing that is no number, and hostile content refused in one sentence."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import LedgerError
from ledger.ingest import prometheus_source
from ledger.ingest.breaker import spans_above
from ledger.ingest.gpu_memory import FREE, USED, csv_series, readings
from ledger.ingest.prometheus import cut, merged, read_answer, read_scrape
from ledger.ingest.prometheus_source import read_file

GOLDEN = Path(__file__).parents[1] / "golden" / "prometheus"
LIMIT = Fraction(95, 100)


def answer(*results: tuple[dict[str, str], list[Any]]) -> bytes:
    result = [{"metric": metric, "values": values} for metric, values in results]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def test_values_and_instants_are_exact() -> None:
    values = [[1778040000, "9007199254740993"], [1778040000.123, "0.1"], [1778040000.1234565, "1.5e-3"], [1778040001, "2e+3"]]
    [series] = read_answer(answer(({"a": "b"}, values)), "x")
    assert list(series.values) == [9007199254740993, Fraction(1, 10), Fraction(15, 10_000), 2000]
    assert [at_us - 1_778_040_000_000_000 for at_us in series.at_us] == [0, 123_000, 123_456, 1_000_000]


def test_what_is_no_number_is_no_sample_and_counted() -> None:
    [series] = read_answer(answer(({}, [[1, "NaN"], [2, "+Inf"], [3, "-Inf"], [4, "1"]])), "x")
    assert (list(series.values), series.not_numbers) == ([1], 3)


def test_a_sample_that_comes_twice_counts_once_and_two_that_contradict_not_at_all() -> None:
    parts = read_answer(answer(({"a": "b"}, [[2, "1"], [1, "1"]]), ({"a": "b"}, [[2, "1"], [1, "2"], [3, "4"]]), ({"a": "c"}, [])), "x")
    whole, empty = merged(parts)
    assert (list(whole.at_us), list(whole.values), whole.contradicting) == ([2_000_000, 3_000_000], [1, 4], 1)
    assert (list(empty.values), list(cut(whole, 2_000_001, None).values)) == ([], [4])


def test_three_samples_of_one_instant_contradict_in_every_order() -> None:
    ways = [[[1, "1"]], [[1, "2"]], [[1, "1"]]]
    for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        [whole] = merged(read_answer(answer(*(({}, ways[one]) for one in order)), "x"))
        assert (list(whole.values), whole.contradicting) == ([], 1)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"), (b"\xff\xfe\x00", "no JSON"), (b"[" * 100_000, "nested too deeply"), (b"[]", "the object is missing"),
        (b'{"status":"error","error":"timeout"}', "status is not success"), (b'{"status":"success"}', "data is missing"),
        (b'{"status":"success","data":{"resultType":"vector","result":[]}}', "no matrix"),
        (b'{"status":"success","data":{"resultType":"matrix","result":{}}}', "a list of results is missing"),
        (answer()[:-3] + b"1]}}", "an object for each result is missing"),
        (answer(({"a": None}, [])), "text of the label 'a' is missing"),  # type: ignore[dict-item]
        (answer(({}, [[1]])), "a sample is not"), (answer(({}, [[1, None]])), "a sample is not"), (answer(({}, [5])), "a sample is not"),
        (answer(({}, [[1, "1,5"]])), "'1,5' is no number"), (answer(({}, [[1, "1" * 99]])), "is no number"),
        (answer(({}, [[1, "1e9999"]])), "'1e9999' is no number"), (answer(({}, [[-1, "1"]])), "'-1' is no instant"),
        (answer(({}, [[10**30, "1"]])), "is no instant"), (answer(({}, [["NaN", "1"]])), "'NaN' is no instant"),
        (b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[]}]}}', "values is missing"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_with_its_place(content: bytes, why: str) -> None:
    with pytest.raises(LedgerError) as refused:
        read_answer(content, "file.json")
    assert refused.value.message.startswith("file.json: ") and why in refused.value.message and len(refused.value.message) < 200


def test_a_file_that_is_too_large_or_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_source, "MOST_BYTES", 4)
    (tmp_path / "large").write_bytes(b"12345")
    for name, why in (("large", "more than"), ("missing", "No such file"), ("", "Is a directory")):
        with pytest.raises(LedgerError, match=why):
            read_file(str(tmp_path / name))


def test_a_scrape_is_read_line_by_line() -> None:
    text = '# HELP a b\n# TYPE a counter\na_total{model="m\\"\\\\\\n}x",le="+Inf",} 1.5e+06 1778040000000\n\nplain 3\nnone{} NaN\n'
    first, plain, none = read_scrape(text.encode(), 7, "x")
    assert (first.labels, list(first.values), list(first.at_us)) == (
        {"__name__": "a_total", "model": 'm"\\\n}x', "le": "+Inf"}, [1_500_000], [7],
    )  # fmt: skip
    assert (plain.labels, list(plain.values)) == ({"__name__": "plain"}, [3])
    assert (list(none.values), none.not_numbers) == ([], 1)


@pytest.mark.parametrize(
    "line", ["<html>", "a 1 2 3", 'a{b="c} 1', "a{b=c} 1", "abc1", 'a{b="c"', "a{} x", 'a{b="c" d="e"} 1', "a{" + 'b="' * 5000]
)
def test_a_line_of_a_scrape_that_is_none_is_named(line: str) -> None:
    with pytest.raises(LedgerError, match=r"^x:2: "):
        read_scrape(f"a 1\n{line}\n".encode(), 0, "x")


def spans(*contents: bytes, **options: Any) -> dict[str, list[tuple[int, int]]]:
    series = [one for content in contents for one in read_answer(content, "x")]
    found: dict[str, list[tuple[int, int]]] = {}
    for gpu in readings(series, above=LIMIT, **options):
        found.setdefault(gpu.node, []).extend(spans_above(gpu.samples, for_us=300_000_000).spans)
    return {node: sorted(some) for node, some in found.items()}


def test_a_series_cut_into_answers_and_shuffled_gives_the_same() -> None:
    content = (GOLDEN / "memory.json").read_bytes()
    expected = spans(content)
    assert sum(map(len, expected.values())) == 3
    results = json.loads(content)["data"]["result"]
    chance = random.Random(1)
    for cut_at in range(1, 10):
        halves = []
        for part in (slice(None, cut_at), slice(cut_at, None)):
            some = [(one["metric"], chance.sample(one["values"][part], len(one["values"][part]))) for one in results]
            halves.append(answer(*chance.sample(some, len(some))))
        assert spans(*halves) == expected == spans(*reversed(halves))


def test_exactly_the_limit_is_not_above_whatever_the_digits() -> None:
    at = [60 * minute for minute in range(6)]
    for used, free, is_above in (("95", "5", 0), ("95.000000000000000000000000000000000001", "5", 1), ("9.5e1", "0.5E+1", 0)):
        series = [({"__name__": name, "node": "n"}, [[one, value] for one in at]) for name, value in ((USED, used), (FREE, free))]
        assert len(spans(answer(*series))["n"]) == is_above, used


def test_the_samples_of_a_gpu_go_on_when_its_pod_changes() -> None:
    parts = [
        ({"__name__": name, "Hostname": "n", "gpu": "3", "pod": f"vllm-{start}"}, [[60 * m, value] for m in range(start, start + 4)])
        for start in (0, 4)
        for name, value in ((USED, "96"), (FREE, "4"))
    ]
    assert spans(answer(*parts)) == {"n": [(0, 420_000_000)]}


def test_a_ratio_says_its_unit_and_other_metrics_are_left_alone() -> None:
    high = [[60 * minute, "0.96"] for minute in range(6)]
    ratio = answer(({"instance": "n:9400"}, high), ({"__name__": "DCGM_FI_DEV_FB_RESERVED", "instance": "n:9400"}, high))
    assert spans(ratio, unit="share") == {"n:9400": [(0, 300_000_000)]}
    assert spans(ratio, unit="percent") == {"n:9400": []}
    for options, why in (({}, "no samples of GPU memory"), ({"unit": "share", "node_label": "host"}, "has no label host")):
        with pytest.raises(LedgerError, match=why):
            spans(ratio, **options)
    with pytest.raises(LedgerError, match="96 is no share"):
        spans(answer(({"instance": "n"}, [[1, "96"]])), unit="share")
    with pytest.raises(LedgerError, match="no name of a node"):
        spans(answer(({"instance": "a\nb"}, high)), unit="share")


def test_csv_has_the_same_meaning() -> None:
    at = [f"2026-05-06T04:0{minute}:00Z" for minute in range(7)]
    percent = "node,at,percent\n" + "".join(f"n,{one},{'95.1' if number < 6 else 95}\n" for number, one in enumerate(at))
    total = "\ufeffat;used;total;node;gpu\n" + "".join(f"{one};96;100;n;{gpu}\n" for one in at[:6] for gpu in "01")
    found = readings(csv_series(percent.encode(), "x"), above=LIMIT)
    assert [end - start for gpu in found for start, end in spans_above(gpu.samples, for_us=300_000_000).spans] == [360_000_000]
    found = readings(csv_series(total.encode(), "x"), above=LIMIT)
    assert [end - start for gpu in found for start, end in spans_above(gpu.samples, for_us=300_000_000).spans] == [300_000_000] * 2
    lost = readings(csv_series(f"node,at,percent\nn,{at[0]},NaN\nn,{at[1]},1\n".encode(), "x"), above=LIMIT)
    assert [(len(gpu.samples), gpu.left_out) for gpu in lost] == [(1, 1)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "found the columns"), ("node,at\n", "x:1: found the columns"),
        ("node,at,percent\nn,2026-05-06T04:00:00,1\n", "x:2: expected an instant"),
        ("node,at,percent\nn,2026-05-06T04:00:00Z,101\n", "x:2: 101 of 100"), ("node,at,percent\nn\n", "x:2: another number of cells"),
        ("node,at,used,total\nn,2026-05-06T04:00:00Z,1,x\n", "x:2: 'x' is no number"),
        ("node,at,percent\nn,2026-05-06T04:00:00Z,\n", "'' is no number"),
        ('node,at,percent\n"n\n', "x:1: "),
    ],
)  # fmt: skip
def test_a_line_of_csv_that_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(LedgerError, match=why):
        csv_series(text.encode(), "x")
