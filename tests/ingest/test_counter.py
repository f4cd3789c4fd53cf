"""What counters counted: restarts, edges, and series that come and go, by hand."""

import json
from fractions import Fraction

import pytest

from ledger.ingest.counter import Counted, counted
from ledger.ingest.engine_counters import Counter, counters_by_model, scrape_step_us
from ledger.ingest.prometheus import Series, read_answer

SPAN = (100, 200)


def series(*samples: tuple[int, int | Fraction]) -> Series:
    return Series(labels={}, at_us=[at for at, _ in samples], values=[value for _, value in samples])


def steady(first: int, last: int, *, each: int = 1, start: int = 50) -> Series:
    """A sample every ten, from first to last, that rises by `each`."""
    return series(*((at, start + each * number) for number, at in enumerate(range(first, last + 1, 10))))


def count(*some: Series, edge: int = 0) -> Counted:
    return counted(some, SPAN, 10, edge)


def test_the_samples_at_or_before_the_edges_are_subtracted() -> None:
    assert count(steady(60, 240)).total == 10
    assert count(steady(95, 205), steady(100, 200)).total == 20
    assert count(series((95, Fraction(1, 10)), (105, Fraction(1, 10)), (200, Fraction(3, 10)))).total == Fraction(1, 5)


def test_what_lies_around_an_edge_is_unsure() -> None:
    assert count(steady(60, 240)).unsure == ((100, 100), (200, 200))  # samples at the very edges
    assert count(steady(95, 205)).unsure == ((95, 105), (195, 205))
    assert count(steady(95, 205), edge=7).unsure == ((93, 107), (193, 207))


def test_a_counter_that_falls_started_again() -> None:
    done = count(series((100, 50), (110, 60), (120, 3), (130, 4), (200, 4)))
    assert (done.total, done.restarts, done.unsure) == (14, 1, ((100, 100), (110, 120), (200, 200)))
    late = count(series((100, 50), (110, 60), (190, 3), (200, 4)))  # gone for long: dead before the next scrape
    assert (late.total, late.unsure) == (14, ((100, 100), (110, 130), (200, 200)))


def test_samples_that_begin_late_are_not_extrapolated() -> None:
    done = count(steady(112, 182))
    assert (done.total, done.first_after_us, done.last_before_us, done.unsure) == (7, 12, 18, ((100, 112), (182, 200)))
    for some in (steady(130, 240), steady(60, 170)):
        assert count(some).missing == "there are no samples near the start or the end"


def test_series_that_come_and_go_among_others() -> None:
    born = count(steady(60, 240), steady(130, 240, start=5))
    assert (born.total, born.started) == (10 + 5 + 7, 1)
    dead = count(steady(60, 240), steady(60, 150))
    assert (dead.total, dead.stopped, dead.unsure) == (10 + 5, 1, ((100, 100), (150, 170), (200, 200)))
    assert count(steady(60, 240), steady(10, 60), steady(210, 240)).total == 10


def test_a_hole_over_an_edge_has_no_figure_unless_nothing_was_counted() -> None:
    assert count(steady(60, 240), series((60, 5), (140, 9), (200, 9))).missing.startswith("a series has no samples near")
    assert count(steady(60, 240), series((60, 5), (140, 5), (200, 9))).total == 14


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_counters_are_sorted_by_model_and_reason(order: tuple[int, ...]) -> None:
    labels = [{"finished_reason": reason, "model_name": "m"} for reason in ("stop", "abort", "error")]
    results = [{"metric": {"__name__": "vllm:request_success_total", **labels[one]}, "values": [[1, "1"], [16, "2"]]} for one in order]
    results += [
        {"metric": {"__name__": "vllm:e2e_request_latency_seconds_bucket", "model_name": "m", "le": le}, "values": [[1, "NaN"]]}
        for le in ("0.3", "3e-1", "+Inf", "x")
    ]
    results += [{"metric": {"__name__": name, "model_name": "m"}, "values": []} for name in ("up", "vllm:prompt_tokens_total")]
    results += [{"metric": {"__name__": "vllm:prompt_tokens_total"}, "values": []}]
    content = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": results}}).encode()
    [(model, found)] = counters_by_model(read_answer(content, "x")).items()
    assert (model, {counter: len(some) for counter, some in found.counters.items()}) == (
        "m", {Counter.FINISHED: 1, Counter.ABORTED: 1, Counter.PROMPT: 1},
    )  # fmt: skip
    assert {edge: len(some) for edge, some in found.buckets.items()} == {Fraction(300_000): 2}
    assert scrape_step_us(found.series()) == 15_000_000
