"""The golden counters against the golden events: equal, near the edge, different; from files, scrapes and a server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.ingest.halves import Halves, engine, gateway
from tests.ingest.prometheus_server import serving

RunLedger = Callable[..., Result]
GOLDEN = Path(__file__).parents[1] / "golden"
COUNTERS, EVENTS = GOLDEN / "prometheus" / "counters.json", GOLDEN / "prometheus" / "events.csv"
LABEL = ("--model-label", "deepseek-v4=deepseek-ai/DeepSeek-V4", "--format", "json")
SPAN = ("--from", "2026-05-05T23:55:00Z", "--until", "2026-05-06T00:05:00Z")
FILE = ("reconcile", "--prometheus", COUNTERS, *SPAN, *LABEL)


def figures(result: Result, exit_code: int = 0) -> list[dict[str, tuple[Any, Any, Any, Any, str]]]:
    """By model and day, by check: expected, seen, least, most, and the verdict."""
    assert result.exit_code == exit_code, result.stderr
    names = ("expected", "seen", "least", "most", "verdict")
    models = json.loads(result.stdout)["models"]
    return [{check["check"]: tuple(check[name] for name in names) for check in model["checks"]} for model in models]


@pytest.fixture
def loaded(run_ledger: RunLedger) -> RunLedger:
    assert run_ledger("contract", "add", GOLDEN / "cases" / "cold-starts" / "contract.yaml").exit_code == 0
    assert run_ledger("ingest", EVENTS).exit_code == 0
    return run_ledger


def test_each_row_of_the_table_is_compared_by_day_and_only_what_is_beyond_the_edge_differs(loaded: RunLedger) -> None:
    before, after = figures(loaded(*FILE))
    none = (None, None, None, None, "not checkable")
    assert before == {
        "answered requests": (3, 2, 2, 3, "within the edge"), "engine requests": none,
        "cancelled requests": (0, 0, 0, 0, "equal"), "prompt tokens": (1110, 110, 110, 1110, "within the edge"),
        "prompt tokens, cancelled": (0, 0, -1000, 1000, "equal"), "output tokens": (31, 11, 11, 31, "within the edge"),
        "output tokens, cancelled too": (31, 11, 11, 31, "within the edge"), "answered within 100ms": none,
        "answered within 300ms": (2, 1, 1, 2, "within the edge"), "answered within 360ms": none,
        "seconds in the queue": ("0.03", "0.02", "0.02", "0.03", "within the edge"),
    }  # fmt: skip
    assert after["answered requests"] == (2, 3, 2, 3, "within the edge")
    assert after["cancelled requests"] == (1, 1, 1, 1, "equal")
    assert after["prompt tokens, cancelled"] == (7, 7, -993, 1007, "equal")
    assert after["output tokens, cancelled too"] == (73, 93, 73, 93, "within the edge")

    inside = loaded(*FILE, "--from", "2026-05-05T23:56:00Z", "--until", "2026-05-05T23:59:00Z")  # the last ones hold
    assert {row[-1] for row in figures(inside)[0].values()} == {"equal", "not checkable"}

    assert loaded("void", "r4", "--reason", "test").exit_code == 0
    assert loaded("correct", "c1", "--set", "output_tokens=", "--reason", "test").exit_code == 0
    result = loaded(*FILE)
    assert figures(result, exit_code=3)[1] == {
        **after,
        "answered requests": (1, 3, 1, 2, "differs"), "prompt tokens": (100_000, 111_000, 100_000, 101_000, "differs"),
        "output tokens": (40, 90, 40, 60, "differs"), "output tokens, cancelled too": (40, 93, 40, 60, "not checkable"),
        "answered within 300ms": (1, 3, 1, 2, "differs"), "seconds in the queue": ("0.01", "0.03", "0.01", "0.02", "differs"),
    }  # fmt: skip
    [_, model] = json.loads(result.stdout)["models"]
    assert model["notes"] == ["counters started again (1): what was counted between the last sample and the restart is lost"]
    text = loaded("reconcile", "--prometheus", COUNTERS, *SPAN, *LABEL[:2])
    assert text.exit_code == 3
    shown = [" ".join(line.split()) for line in text.stdout.splitlines()]
    assert "answered requests 1 3 +2 1 to 2 differs" in shown
    assert "not checkable: output tokens, cancelled too: the ledger's rows without output tokens: 1" in shown
    flag = "--custom-histogram-buckets '{\"request_latency\":[0.1,0.3,0.36,0.5]}'"
    assert f"not checkable: answered within 100ms; answered within 360ms: no bucket ends there; it would with {flag}" in shown


def test_a_model_that_no_engine_shows_is_named_and_so_are_engines_whose_requests_are_nowhere(loaded: RunLedger) -> None:
    result = loaded("reconcile", "--prometheus", COUNTERS, *SPAN, "--format", "json")
    before, _ = figures(result, exit_code=3)
    assert before["answered requests"] == (0, 2, 0, 0, "differs")
    assert json.loads(result.stdout)["unmatched"] == [{"model": "deepseek-v4", "requests": 6}]


def test_two_scrapes_are_compared_as_one_span(loaded: RunLedger, tmp_path: Path) -> None:
    folder = GOLDEN / "prometheus"
    scrapes = ("reconcile", "--from-scrape", folder / "scrape-a.txt", "--to-scrape", folder / "scrape-b.txt")
    at = ("--from", "2026-05-05T23:54:50Z", "--until", "2026-05-06T00:04:50Z")
    for request in ("r3", "r4", "r5"):  # those of the other engine
        loaded("void", request, "--reason", "test")
    [both] = figures(loaded(*scrapes, *at, *LABEL))
    assert both["answered requests"] == (2, 2, 2, 2, "equal")
    assert both["seconds in the queue"] == ("0.02", "0.02", "0.02", "0.02", "equal")
    assert {row[-1] for row in both.values()} == {"equal", "not checkable"}
    assert loaded(*scrapes, *LABEL).exit_code == 2
    assert loaded(*scrapes[:3], *at).exit_code == 2
    (tmp_path / "html").write_text("<html>")
    broken = loaded(*scrapes[:4], tmp_path / "html", *at)
    assert (broken.exit_code, "html:1: it is no sample" in broken.stderr) == (1, True)


def test_a_server_gives_the_same_as_its_file_and_answers_that_are_none_are_refused(loaded: RunLedger, tmp_path: Path) -> None:
    with serving(COUNTERS) as server:
        url = f"http://ann:s3cret@{server.host}"
        asked = loaded("reconcile", "--prometheus", url, *SPAN, *LABEL)
        refused = loaded("reconcile", "--prometheus", f"{url}/refused", *SPAN)
    assert asked.stdout == loaded(*FILE).stdout
    assert (refused.exit_code, "s3cret" in refused.output + asked.output) == (1, False)
    for name, content in (("deep", "[" * 100_000), ("empty", '{"status":"success","data":{"resultType":"matrix","result":[]}}')):
        (tmp_path / name).write_text(content)
        assert loaded("reconcile", "--prometheus", tmp_path / name).exit_code == 1


def scrape(file: Path, **counters: float) -> Path:
    """What an engine of the model m shows."""
    names = {"finished": 'request_success_total{finished_reason="stop",', "aborted": 'request_success_total{finished_reason="abort",',
             "prompts": "request_prompt_tokens_sum{", "prompt": "prompt_tokens_total{", "outputs": "request_generation_tokens_sum{",
             "output": "generation_tokens_total{", "queue": "request_queue_time_seconds_sum{",
             "fast": 'e2e_request_latency_seconds_bucket{le="0.3",'}  # fmt: skip
    file.write_text("".join(f'vllm:{names[name]}model_name="m"}} {value}\n' for name, value in counters.items()))
    return file


def test_rows_of_engines_are_compared_where_the_ledger_has_them(run_ledger: RunLedger, tmp_path: Path, halves: Halves) -> None:
    halves.load(
        gateway("g"), gateway("h", 1), gateway("alone", 2, **{"in": 1000, "out": 1}), gateway("closed", 3, code=499, **{"in": 7, "out": 3}),
        gateway("late", 4, code=499),
    )  # fmt: skip
    # Two choices of g; h took 300 ms to the microsecond; the client of `late` went away when its engine had just finished.
    halves.load(
        engine("s1", "g", trace="t"), engine("s2", "g", trace="t"), engine("s3", "h", run_ms=290), engine("s4", "late", 4, wait_ms=0)
    )
    zero = scrape(tmp_path / "a", **dict.fromkeys(("finished", "aborted", "prompts", "prompt", "outputs", "output", "queue", "fast"), 0))
    span = ("--from", "2026-05-06T09:59:00Z", "--until", "2026-05-06T10:10:00Z", "--format", "json")

    def compared(exit_code: int = 0, **changed: float) -> tuple[dict[str, tuple[Any, Any, str]], dict[str, Any]]:
        counters = {"finished": 4, "aborted": 1, "prompts": 400, "prompt": 407, "outputs": 80, "output": 83, "queue": 0.03, "fast": 0}
        after = scrape(tmp_path / "b", **(counters | changed))
        result = run_ledger("reconcile", "--from-scrape", zero, "--to-scrape", after, *span)
        [model] = figures(result, exit_code)
        return {name: (row[0], row[1], row[-1]) for name, row in model.items()}, json.loads(result.stdout)

    checks, found = compared()
    assert checks == {
        "engine requests": (4, 4, "equal"), "cancelled requests": (1, 1, "equal"), "prompt tokens": (400, 400, "equal"),
        "prompt tokens, cancelled": (7, 7, "equal"), "output tokens": (80, 80, "equal"), "output tokens, cancelled too": (83, 83, "equal"),
        "answered within 300ms": (1, 0, "within the edge"), "seconds in the queue": ("0.03", "0.03", "equal"),
    }  # fmt: skip
    assert [(one["compared"], one["without_engine_row"]) for one in found["models"]] == [("engine_rows", 1)]
    assert compared(exit_code=3, finished=5)[0]["engine requests"] == (4, 5, "differs")

    halves.load(engine("s5", "nobody"))  # of which model, only its gateway's row would say
    checks, found = compared(finished=5, outputs=100, output=103, prompts=500, prompt=507, queue=0.04)
    assert found["engine_rows_without_model"] == 1
    assert checks["engine requests"] == (4, 5, "not checkable")
    assert compared(exit_code=3, finished=3)[0]["engine requests"] == (4, 3, "differs")
    text = run_ledger("reconcile", "--from-scrape", zero, "--to-scrape", tmp_path / "b", *span[:4]).stdout
    assert "compared: rows of engines, one for each choice of a request\n  answered requests without a row of an engine: 1\n" in text
    assert text.endswith("rows of engines that name no model and wait for their gateway's, and are not compared: 1\n")


def test_samples_of_another_day_say_both_spans(loaded: RunLedger) -> None:
    for options, asked in (
        (("--from", "2026-05-07T00:00:00Z", "--until", "2026-05-08T00:00:00Z"), "from 2026-05-07T00:00:00Z until 2026-05-08T00:00:00Z"),
        (("--until", "2026-05-05T00:00:00Z"), "until 2026-05-05T00:00:00Z"),
    ):
        result = loaded("reconcile", "--prometheus", COUNTERS, *options, *LABEL)
        assert (result.exit_code, result.stderr.splitlines()) == (
            1,
            [
                f"error: the samples are from 2026-05-05T23:54:50Z until 2026-05-06T00:05:50Z, and what is asked for is {asked}",
                "  give samples of that span, or name theirs with --from and --until",
            ],
        )
