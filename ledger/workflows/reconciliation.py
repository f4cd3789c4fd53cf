"""What a ledger and engines' counters say of the same requests, side by side: the checks, their bounds and their verdicts. Pure.

Takes sums of requests by when they began and ended, and what counters counted in the same span. An engine counts a request when it ends,
and prompts and generated tokens as it goes; a counter is seen at scrapes alone. So for every check there is what the ledger expects, and
the least and most that may be seen because of requests near the edges of the span, or near a restart. Nothing here changes a figure.
Where the ledger has rows of engines, these are compared, one for each choice, and what was cancelled without one; else its requests are.
Source: telemetry of vLLM, "Prometheus: names, and how to reconcile a ledger with them", whose table the checks follow row by row.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

from ledger.contract.scalar import duration_text
from ledger.ingest.counter import Counted
from ledger.ingest.engine_counters import Counter
from ledger.ingest.prometheus import Number
from ledger.ingest.span import Span, union
from ledger.store.ended_requests import EndedRequests, RowKind


class Verdict(StrEnum):
    """What a check found."""

    EQUAL = "equal"
    WITHIN_EDGE = "within the edge"
    DIFFERS = "differs"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison: what is compared, with which counter, what the ledger expects, what was seen, and the least and most that may be
    seen. Queue times are in seconds. `why` says why nothing can be checked, or what a difference usually means."""

    name: str
    counter: str
    verdict: Verdict
    expected: Number | None = None
    seen: Number | None = None
    least: Number | None = None
    most: Number | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A sum of the ledger: of the requests that ended in the span, of those that were certainly counted in it, and of those that may have
    been. `unknown` is how many of these have no value: they count as 0."""

    expected: Number
    least: Number
    most: Number
    unknown: int = 0


Amount: TypeAlias = Callable[[EndedRequests], int]


class Pieces:
    """The pieces of time between the instants, as `ended_requests` numbers them, from where a span stands."""

    def __init__(self, instants_us: Sequence[int], span: Span, unsure: Sequence[Span]) -> None:
        """The edges of the span and of all that is unsure are among the instants."""
        self._instants_us = instants_us
        united = union(unsure)
        near = [one for one in united if any(one[0] <= edge <= one[1] for edge in span)]
        self._inside = self._numbers(span)
        self._unsure = {number for one in united for number in self._numbers(one)}
        self._near = {*self._inside, *(number for one in near for number in self._numbers(one))}

    def _numbers(self, span: Span) -> range:
        return range(bisect_right(self._instants_us, span[0]), bisect_left(self._instants_us, span[1]) + 1)

    def has(self, row: EndedRequests) -> bool:
        """Whether the requests ended in the span."""
        return row.ended in self._inside

    def may_have(self, row: EndedRequests) -> bool:
        """Whether the requests may have been counted in the span."""
        return row.ended in self._near

    def bounds(
        self, rows: Sequence[EndedRequests], of: Amount, *, doubtful: Amount = lambda _: 0, unknown: Amount = lambda _: 0,
        as_it_goes: bool = False,
    ) -> Bounds:  # fmt: skip
        """The sum of an amount over the requests that ended in the span. What is counted as a request goes may be counted in part wherever
        the request was under way. `doubtful` is the part of the amount that need not have been counted."""
        expected = least = most = without = 0
        for row in rows:
            touched = range(row.began, row.ended + 1) if as_it_goes else (row.ended,)
            amount = of(row)
            if self.has(row):
                expected += amount
            if all(number in self._inside and number not in self._unsure for number in touched):
                least += amount - doubtful(row)
            if any(number in self._near for number in touched):
                most += amount
                without += unknown(row)
        return Bounds(expected=expected, least=least, most=most, unknown=without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both sides of one model in one span: the ledger's rows that are compared and where they lie, and what each counter and each bucket
    counted. `by_engine`: whether the answered ones are rows of engines; `nameless` such rows may belong here, and nothing says of which
    model they are. `edges_us` are the latencies that are looked at, in the order of `EndedRequests.within`; `flag` is what gives vLLM
    buckets for all of them."""

    rows: Sequence[EndedRequests]
    pieces: Pieces
    by_engine: bool
    nameless: int
    counters: Mapping[Counter, Counted]
    buckets: Mapping[Fraction, Counted]
    edges_us: Sequence[int]
    flag: str

    def counter(self, counter: Counter) -> Counted | None:
        """What the counter counted, if an engine shows it."""
        return self.counters.get(counter)

    def means(self, what: tuple[str, str]) -> str:
        """Of what a difference usually means, for requests and for rows of engines, what fits here."""
        return what[self.by_engine]


def is_by_engine(rows: Sequence[EndedRequests], pieces: Pieces) -> bool:
    """Whether the ledger has rows of engines for the span: it is they that are compared then."""
    return any(row.kind is RowKind.ENGINE and pieces.has(row) for row in rows)


def compared(rows: Sequence[EndedRequests], *, by_engine: bool) -> list[EndedRequests]:
    """The rows that engines should have counted. A request that was cancelled leaves no row of an engine, or is in those that it left."""
    if by_engine:
        return [row for row in rows if row.kind is RowKind.ENGINE or (row.kind is RowKind.ALONE and row.is_cancelled)]
    return [row for row in rows if row.kind is not RowKind.ENGINE]


def checks(sides: Sides) -> list[Check]:
    """Every check of the table, in its order."""
    answered = [row for row in sides.rows if not row.is_cancelled]
    cancelled = [row for row in sides.rows if row.is_cancelled]
    bounds = sides.pieces.bounds
    finished, aborted = bounds(answered, lambda row: row.requests), bounds(cancelled, lambda row: row.requests)
    prompts = bounds(answered, lambda row: row.input_tokens)
    return [
        *_finished(sides, finished),
        _check(sides, "cancelled requests", Counter.ABORTED, sides.counter(Counter.ABORTED), aborted, means=_ABORTED),
        _check(
            sides, "prompt tokens", Counter.PROMPT_OF_FINISHED, sides.counter(Counter.PROMPT_OF_FINISHED), prompts,
            means=sides.means(_PROMPTS),
        ),
        _cancelled_prompts(sides, cancelled, prompts),
        _check(
            sides,
            "output tokens",
            Counter.GENERATION_OF_FINISHED,
            sides.counter(Counter.GENERATION_OF_FINISHED),
            bounds(answered, lambda row: row.output_tokens, unknown=lambda row: row.without_output),
            unknown="output tokens",
            means=sides.means(_LOST),
        ),
        _check(
            sides,
            "output tokens, cancelled too",
            Counter.GENERATION,
            sides.counter(Counter.GENERATION),
            bounds(sides.rows, lambda row: row.output_tokens, unknown=lambda row: row.without_output, as_it_goes=True),
            unknown="output tokens",
            means=_GENERATION,
        ),
        *(_latency(sides, answered, place) for place in range(len(sides.edges_us))),
        _queue(sides, answered, finished),
    ]  # fmt: skip


def _finished(sides: Sides, finished: Bounds) -> list[Check]:
    """What engines finished, against rows of engines; without such rows against requests, which is not the same."""
    counter = Counter.FINISHED
    name = "engine requests" if sides.by_engine else "answered requests"
    check = _check(sides, name, counter, sides.counter(counter), finished, means=sides.means(_LOST))
    missing = Check(name="engine requests", counter=counter, verdict=Verdict.NOT_CHECKABLE, why=_NO_ENGINE_ROWS)
    return [check] if sides.by_engine else [missing, check]


def _cancelled_prompts(sides: Sides, cancelled: Sequence[EndedRequests], prompts: Bounds) -> Check:
    """Prompts that were read and not finished are the difference of two counters, and so are their bounds."""
    name, counter = "prompt tokens, cancelled", f"{Counter.PROMPT} - {Counter.PROMPT_OF_FINISHED}"
    everything, of_finished = (sides.counter(one) for one in (Counter.PROMPT, Counter.PROMPT_OF_FINISHED))
    difference = None
    if everything is not None and of_finished is not None:
        total, missing = everything.total - of_finished.total, everything.missing or of_finished.missing
        difference = replace(everything, total=total, missing=missing)
    read = sides.pieces.bounds(sides.rows, lambda row: row.input_tokens, unknown=lambda row: row.without_input, as_it_goes=True)
    bounds = Bounds(
        expected=sides.pieces.bounds(cancelled, lambda row: row.input_tokens).expected,
        least=read.least - prompts.most,
        most=read.most - prompts.least,
        unknown=read.unknown,
    )
    return _check(sides, name, counter, difference, bounds, unknown="prompt tokens", means=_CANCELLED_PROMPTS)


def _latency(sides: Sides, answered: Sequence[EndedRequests], place: int) -> Check:
    """Requests that took at most an edge; only where vLLM has a bucket that ends there. Of those that took exactly that long, to the
    microsecond, nobody knows to which side the fraction belongs that was rounded away."""
    edge_us = sides.edges_us[place]
    name, metric = f"answered within {duration_text(edge_us)}", "vllm:e2e_request_latency_seconds_bucket"
    if sides.buckets and Fraction(edge_us) not in sides.buckets:
        why = f"no bucket ends there; it would with {sides.flag}"
        return Check(name=name, counter=metric, verdict=Verdict.NOT_CHECKABLE, why=why)
    bounds = sides.pieces.bounds(
        answered, lambda row: row.within[place], doubtful=lambda row: row.exactly[place], unknown=lambda row: row.without_latency
    )
    return _check(sides, name, metric, sides.buckets.get(Fraction(edge_us)), bounds, unknown="latency", means=sides.means(_CLOCKS))


def _queue(sides: Sides, answered: Sequence[EndedRequests], finished: Bounds) -> Check:
    """Seconds in the queue; the ledger rounds each to the microsecond."""
    us = sides.pieces.bounds(answered, lambda row: row.queue_us, unknown=lambda row: row.without_queue)
    seconds = [Fraction(value) / 1_000_000 for value in (us.expected, us.least, us.most)]
    bounds = Bounds(expected=seconds[0], least=seconds[1], most=seconds[2], unknown=us.unknown)
    rounded = Fraction(finished.most) / 1_000_000
    counter = Counter.QUEUE_SECONDS
    return _check(
        sides, "seconds in the queue", counter, sides.counter(counter), bounds, slack=rounded, unknown="queue time", means=_QUEUE
    )  # fmt: skip


def _check(
    sides: Sides, name: str, counter: str, counted: Counted | None, bounds: Bounds, *, means: str, slack: Number = 0, unknown: str = ""
) -> Check:
    """The verdict. More than can be explained, while some requests have no value or no model, proves nothing; less always differs."""
    if counted is None or counted.missing:
        return Check(name=name, counter=counter, verdict=Verdict.NOT_CHECKABLE, why=counted.missing if counted else _NO_COUNTER)
    seen, why = counted.total, ""
    least, most = Fraction(bounds.least) - Fraction(slack), Fraction(bounds.most) + Fraction(slack)
    if abs(Fraction(seen) - Fraction(bounds.expected)) <= slack:
        verdict = Verdict.EQUAL
    elif least <= seen <= most:
        verdict = Verdict.WITHIN_EDGE
    elif seen > most and bounds.unknown:
        verdict, why = Verdict.NOT_CHECKABLE, f"the ledger's rows without {unknown}: {bounds.unknown:,}"
    elif seen > most and sides.by_engine and sides.nameless:
        verdict, why = Verdict.NOT_CHECKABLE, f"rows of engines without a model, which may belong here: {sides.nameless:,}"
    else:
        verdict, why = Verdict.DIFFERS, means
    return Check(
        name=name, counter=counter, verdict=verdict, expected=bounds.expected, seen=seen, least=bounds.least, most=bounds.most, why=why
    )


_NO_COUNTER = "no engine shows this counter"
_NO_ENGINE_ROWS = "the ledger has no rows of engines; what it has are requests, and one with several choices is one"
# What a difference usually means: where requests are compared, and where rows of engines are.
_LOST = (
    "rows lost or loaded twice, an engine that is not scraped, or requests with n > 1, which engines count n times",
    "spans lost or loaded twice, or an engine that is not scraped",
)
_PROMPTS = (
    "rows lost or loaded twice, an engine that is not scraped, or requests with n > 1: engines count the prompt n times",
    "spans lost or loaded twice, or choices of a request with n > 1 folded into one row: engines count the prompt of each",
)
_CLOCKS = (
    "two clocks, or two definitions of the latency: the gateway's time has the network in it",
    "two clocks, or two definitions of the latency",
)
_ABORTED = (
    "requests that were closed before they reached an engine, or that the engine finished before it knew; of one with n > 1 engines count n"
)
_CANCELLED_PROMPTS = "prompts of cancelled requests: compare with the 499 rows of the gateway"
_GENERATION = "tokens of cancelled requests, which nobody was billed for"
_QUEUE = "engines of V0 and V1 mixed: V1 leaves out the front end before its queue"
