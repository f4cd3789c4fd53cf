"""Samples above a limit become spans: the rule at its edges, and against plain loops on random series."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ledger.ingest.breaker import spans_above
from ledger.ingest.span import union

MINUTE = 60_000_000
Samples = list[tuple[int, bool]]


def minutes(text: str, *, step: int = MINUTE) -> Samples:
    """A sample each minute: + above, - not, a blank for none."""
    return [(step * place, sign == "+") for place, sign in enumerate(text) if sign != " "]


def found(text: str, **options: int) -> list[tuple[int, int]]:
    above = spans_above(minutes(text), **({"for_us": 5 * MINUTE} | options))
    return [(start // MINUTE, end // MINUTE) for start, end in above.spans]


def test_a_span_goes_from_the_first_sample_above_to_the_first_that_is_not() -> None:
    assert found("-++++++--") == [(1, 7)]
    assert found("++++++-++++++-") == [(0, 6), (7, 13)]


def test_five_minutes_have_to_lie_between_samples_above() -> None:
    assert found("-+++++-") == []  # four minutes are proved
    assert found("-++++++") == [(1, 6)]
    assert found("-++-+++-") == []


def test_samples_that_end_or_are_missing_prove_nothing() -> None:
    assert found("++++++") == [(0, 5)]  # up to the last above
    assert found("++++++  +++---") == [(0, 5)]  # three steps are a gap
    assert found("++++ ++---") == [(0, 7)]  # two are none
    assert found("+++   +++") == []
    assert found("+++   +++", gap_us=4 * MINUTE) == [(0, 8)]
    assert spans_above(minutes("+  +  +", step=1), for_us=1).gaps == 0  # the step is three
    assert spans_above(minutes("++  ++  -", step=1), for_us=9).gaps == 2


def test_no_sample_and_one_sample_are_no_span() -> None:
    assert spans_above([], for_us=1).spans == ()
    assert spans_above([(7, True)], for_us=1).spans == ()


def plainly(samples: Samples, for_us: int, gap_us: int) -> list[tuple[int, int]]:
    """The same by looking at every pair of samples above: the span between is open if no sample and no gap in it says otherwise."""
    ordered = sorted(samples)
    spans = []
    for first, (start, above) in enumerate(ordered):
        if not above or (first > 0 and ordered[first - 1][1] and start - ordered[first - 1][0] <= gap_us):
            continue
        last = first
        while last + 1 < len(ordered) and ordered[last + 1][1] and ordered[last + 1][0] - ordered[last][0] <= gap_us:
            last += 1
        if ordered[last][0] - start >= for_us:
            is_followed = last + 1 < len(ordered) and ordered[last + 1][0] - ordered[last][0] <= gap_us
            spans.append((start, ordered[last + 1][0] if is_followed else ordered[last][0]))
    return spans


def plain_gap(samples: Samples) -> int:
    instants = sorted(at for at, _ in samples)
    distances = sorted(later - earlier for earlier, later in pairwise(instants))
    return 2 * distances[(len(distances) - 1) // 2] if distances else 0


SERIES = st.dictionaries(st.integers(0, 60), st.sampled_from([True, True, True, False]), max_size=40)


@given(SERIES, st.integers(1, 12), st.one_of(st.none(), st.integers(1, 8)), st.randoms(use_true_random=False))
def test_it_agrees_with_plain_loops_whatever_the_order(series: dict[int, bool], for_us: int, gap_us: int | None, random: object) -> None:
    samples = list(series.items())
    random.shuffle(samples)  # type: ignore[attr-defined]
    above = spans_above(samples, for_us=for_us, gap_us=gap_us)
    gap = plain_gap(samples) if gap_us is None else gap_us
    assert list(above.spans) == plainly(samples, for_us, gap)
    instants = sorted(series)
    assert above.gaps == sum(later - earlier > gap for earlier, later in pairwise(instants))
    assert all(any(start <= at <= end for at, is_above in samples if is_above) for start, end in above.spans)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)).map(lambda span: (span[0], span[0] + span[1]))))
def test_a_union_has_the_same_instants_and_nothing_that_touches(spans: Sequence[tuple[int, int]]) -> None:
    joined = union(spans)
    assert {at for start, end in spans for at in range(start, end)} == {at for start, end in joined for at in range(start, end)}
    assert all(one[1] < other[0] for one, other in pairwise(joined))
