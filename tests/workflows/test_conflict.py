"""A half that was refused is settled by a correction that says what it says, and by no other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.gateway_logs import Row, vllm_span, write_nginx_log, write_vllm_traces
from tests.ingest.halves import written
from tests.ingest.sample_rows import GOLDEN

Run = Callable[..., Any]
Query = Callable[[str], list[tuple[Any, ...]]]

TRACE = "a" * 32
START_NS = 1778032800_010000000
OPEN = "SELECT quarantine_id FROM quarantine WHERE resolution IS NULL ORDER BY 1"


class Request:
    """The request `g` of one customer, as a gateway and its engine tell of it."""

    def __init__(self, folder: Path, run_ledger: Run) -> None:
        self.folder, self.run_ledger, self.number = folder, run_ledger, 0

    def gateway(self, *, status: int = 200, took: float = 0.5, trace: str = TRACE) -> Row:
        """The totals of a load of the gateway's row; e2e is what it took."""
        return self.load(write_nginx_log(self.path(), [("g", 0, status, took, trace)], "acme"))

    def engine(self, *spans: str, **attributes: float) -> Row:
        """The same of its engine's spans, each of 100 + 100 tokens in 0.2 s."""
        rows = [vllm_span(TRACE, name * 16, "chatcmpl-g", START_NS, **attributes) for name in spans or ("1",)]
        return self.load(write_vllm_traces(self.path(), rows))

    def calls(self, *rows: Row) -> Row:
        """The same of rows of LiteLLM under the call id `c`, which have tokens of their own."""
        shared = {"call_type": "acompletion", "team_id": "acme", "model_group": "m", "litellm_call_id": "c"}
        return self.load(written(self.path(), [shared | row for row in rows]))

    def correct(self, request: str = "g", **values: object) -> str:
        """What a correction of these columns says that it settles."""
        settings = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        done = self.run_ledger("correct", request, *settings, "--reason", "meter")
        assert done.exit_code == 0, done.output
        return "".join(line.strip() for line in done.stdout.splitlines() if "settles" in line)

    def path(self) -> Path:
        self.number += 1
        return self.folder / f"{self.number}.jsonl"

    def load(self, file: Path) -> Row:
        result = self.run_ledger("ingest", "--format", "json", file)
        assert result.exit_code == 0, result.output
        total: Row = json.loads(result.stdout)["total"]
        return {name: total[name] for name in ("new", "merged", "duplicate", "conflict", "refused") if total[name]}


@pytest.fixture
def request_(tmp_path: Path, run_ledger: Run) -> Request:
    """The request, joined of its two halves."""
    made = Request(tmp_path, run_ledger)
    assert (made.gateway(), made.engine()) == ({"refused": 1}, {"merged": 1})
    return made


def call(id_: str, start: int, end: int, *, status: str = "success", tokens: int = 10, first: int | None = None) -> Row:
    """A row of LiteLLM between these seconds, the first token at another."""
    at = "2026-05-06T02:00:{:02}+00:00".format
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens} if status == "success" else {"prompt_tokens": 0, "completion_tokens": 0}
    times = {"startTime": at(start), "endTime": at(end), "completionStartTime": at(end if first is None else first)}
    return {"request_id": id_, "status": status} | times | usage


def test_a_gateways_half_is_settled_by_a_correction_to_what_it_says(request_: Request, rows_of: Query) -> None:
    assert request_.gateway(took=0.6) == {"conflict": 1}
    assert rows_of("SELECT reason, detail FROM quarantine WHERE quarantine_id = 2") == [
        ("conflict", "differs from the stored row in e2e_us")
    ]
    assert request_.correct(e2e_ms=600) == "settles the rows in conflict 2"
    assert rows_of("SELECT resolution, resolution_reason FROM quarantine WHERE quarantine_id = 2") == [("corrected", "meter")]


def test_an_engines_half_is_settled_by_a_correction_to_what_it_says(request_: Request) -> None:
    assert request_.engine(completion_tokens=120, e2e=0.21) == {"conflict": 1}  # the event has the gateway's e2e
    assert request_.correct(output_tokens=120) == "settles the rows in conflict 2"


def test_both_halves_are_settled_when_the_request_says_what_both_say(request_: Request, rows_of: Query) -> None:
    request_.gateway(took=0.6)
    request_.engine(completion_tokens=120)
    assert request_.correct(e2e_ms=600) == "settles the rows in conflict 2"
    assert request_.correct(output_tokens=120) == "settles the rows in conflict 3"
    assert rows_of(OPEN) == []


@pytest.mark.parametrize(
    ("half", "said", "corrected"),
    [
        ("gateway", {"took": 0.6}, {"e2e_ms": 700}),
        ("gateway", {"took": 0.6}, {"e2e_ms": 600, "status": 500}),
        ("gateway", {"took": 0.6, "trace": "b" * 32}, {"e2e_ms": 600}),  # it may be of another request
        ("engine", {"completion_tokens": 120}, {"output_tokens": 110}),
        ("engine", {"completion_tokens": 120, "prompt_tokens": 90}, {"output_tokens": 120}),
        ("engine", {"e2e": 0.21}, {"node": "n1"}),  # the request takes nothing of what is in conflict
    ],
)
def test_a_half_that_says_something_else_stays_in_conflict(
    half: str, said: dict[str, Any], corrected: dict[str, object], request_: Request, rows_of: Query
) -> None:
    assert getattr(request_, half)(**said) == {"conflict": 1}
    assert request_.correct(**corrected) == ""
    assert rows_of(OPEN) == [(2,)]


def test_one_of_several_choices_stays_in_conflict(request_: Request, rows_of: Query) -> None:
    request_.engine("2")
    assert rows_of("SELECT output_tokens FROM event ORDER BY revision DESC LIMIT 1") == [(200,)]
    assert request_.engine("2", completion_tokens=120) == {"conflict": 1}
    assert [request_.correct(output_tokens=tokens) for tokens in (220, 120)] == ["", ""]
    assert rows_of(OPEN) == [(2,)]


def test_an_answer_after_a_failed_try_stays_in_conflict(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    request = Request(tmp_path, run_ledger)
    assert request.calls(call("f", 0, 1, status="failure"), call("a", 2, 4)) == {"new": 1, "merged": 1}
    assert request.calls(call("a", 2, 6)) == {"conflict": 1}
    assert [request.correct("a", e2e_s=seconds) for seconds in (6, 4)] == ["", ""]
    assert [request.correct("a", received_at="2026-05-06T02:00:02Z")] == [""]
    assert rows_of(OPEN) == [(1,)]


def test_a_gateways_tokens_count_where_no_engine_has_told_them(tmp_path: Path, run_ledger: Run) -> None:
    request = Request(tmp_path, run_ledger)
    assert request.calls(call("a", 2, 4)) == {"new": 1}
    assert request.calls(call("a", 2, 6, tokens=20)) == {"conflict": 1}
    assert [request.correct("a", e2e_s=4.5), request.correct("a", e2e_s=4, input_tokens=20)] == ["", ""]
    assert request.correct("a", output_tokens=20) == "settles the rows in conflict 1"


def test_a_half_that_says_less_than_the_stored_one_stays_in_conflict(tmp_path: Path, run_ledger: Run) -> None:
    request = Request(tmp_path, run_ledger)
    assert request.calls(call("a", 2, 6, first=3)) == {"new": 1}
    assert request.calls(call("a", 2, 7)) == {"conflict": 1}
    assert [request.correct("a", e2e_s=5), request.correct("a", ttft_s="")] == ["", "settles the rows in conflict 1"]


def test_a_gateways_tokens_count_where_its_engines_came_after_somebody_had_decided(tmp_path: Path, run_ledger: Run) -> None:
    request = Request(tmp_path, run_ledger)
    request.calls(call("g", 2, 6))
    request.correct(node="n1")
    assert request.engine() == {"merged": 1}
    assert request.calls(call("g", 2, 7, tokens=20)) == {"conflict": 1}
    assert request.correct(e2e_s=5) == ""
    assert request.engine(completion_tokens=120) == {"conflict": 1}
    assert request.correct(output_tokens=120) == ""


def test_a_half_stays_in_conflict_with_one_that_somebody_has_repaired(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    request = Request(tmp_path, run_ledger)
    assert request.calls(call("g", 2, 6, tokens=0)) == {"refused": 1}
    tokens = ("--set", "input_tokens=7", "--set", "output_tokens=8")
    assert run_ledger("quarantine", "requeue", "1", *tokens, "--reason", "engine's disk was lost").exit_code == 0
    assert (request.engine(), request.calls(call("g", 2, 6, tokens=0))) == ({"merged": 1}, {"refused": 1})
    assert request.calls(call("g", 2, 7, tokens=20)) == {"conflict": 1}
    assert request.correct(e2e_s=5) == ""
    assert rows_of("SELECT resolution FROM quarantine ORDER BY quarantine_id") == [("requeued",), (None,)]


def test_what_the_gateway_does_not_know_is_its_engines(request_: Request) -> None:
    assert request_.engine(time_to_first_token=0.06) == {"conflict": 1}
    assert request_.correct(ttft_ms=60) == "settles the rows in conflict 2"


def test_cached_tokens_are_those_of_the_half_that_has_more(tmp_path: Path, run_ledger: Run) -> None:
    request = Request(tmp_path, run_ledger)
    spoken = json.loads((GOLDEN / "formats" / "sglang.log").read_text().splitlines()[0]) | {
        "id": "g",
        "request_received_ts": START_NS / 10**9,
    }
    cached = [spoken | {"cached_tokens": tokens} for tokens in (1024, 512)]
    request.gateway(took=5, trace="")
    assert [request.load(written(request.path(), [row])) for row in cached] == [{"merged": 1}, {"conflict": 1}]
    assert request.gateway(took=6, trace="") == {"conflict": 1}
    assert request.correct(e2e_s=6) == "settles the rows in conflict 3"
    assert request.correct(cached_input_tokens=512) == "settles the rows in conflict 2"
