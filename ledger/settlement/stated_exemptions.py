"""The rules of a contract's exemptions that its examples should reach: taken, and each way of just not being taken.

Takes a contract, gives a `StatedRule` for each. Source: specification, section 4, step 3 and "Cold starts".
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import assert_never

from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract
from ledger.contract.scalar import duration_text
from ledger.settlement import example_sketch as sketch
from ledger.settlement.example import ExampleFound, RequestFound
from ledger.settlement.example_sketch import Sketch
from ledger.settlement.stated_rule import IsReached, StatedRule, of_band, of_multiplier

MOST_COLD_STARTS = 100  # a day; nobody writes an example of more
Cases = Iterator[tuple[str, Sketch, IsReached]]  # what is said of an exemption, an example, what reaches it


def exemption_rules(contract: Contract) -> Iterator[StatedRule]:
    """Each exemption: that it takes a request, and each way in which it just does not."""
    for at, exemption in enumerate(contract.exemptions):
        count = [one.kind for one in contract.exemptions[: at + 1]].count(exemption.kind)
        name = f"exemption {exemption.kind}" + (f" (number {count})" if count > 1 else "")
        match exemption:
            case CircuitBreaker():
                cases = _breaker_cases(contract, at, exemption)
            case Async():
                cases = _async_cases(contract, at, exemption)
            case ColdStart():
                cases = _cold_start_cases(contract, at, exemption)
            case _:
                assert_never(exemption)
        for says, example, is_reached in cases:
            yield StatedRule(name=f"{name}: {says}", clause=exemption.clause, sketch=example, is_reached_by=is_reached)


def _taken(at: int) -> IsReached:
    return of_multiplier(lambda request: request.cell.exemption == at and request.price is not None)


def _is_passed(request: RequestFound, at: int) -> bool:
    """Whether the exemption could have taken the request, and neither it nor an earlier one did."""
    return request.price is not None and (request.cell.exemption is None or request.cell.exemption > at)


def _breaker_cases(contract: Contract, at: int, exemption: CircuitBreaker) -> Cases:
    yield "taken", sketch.in_breaker(contract, exemption.queues[0], seconds=0, taken_by=exemption), _taken(at)

    def at_the_end(found: ExampleFound) -> bool:
        ends = {interval.end for interval in found.example.intervals if interval.kind == "circuit_breaker"}
        return of_band(
            lambda request: _is_passed(request, at) and request.cell.queue in exemption.queues and request.event.received_at in ends
        )(found)

    yield "not at the end of the interval", sketch.in_breaker(contract, exemption.queues[0], seconds=sketch.BREAKER_S), at_the_end
    others = [queue for queue in contract.queues.by_name if queue not in exemption.queues]

    def in_another_queue(found: ExampleFound) -> bool:
        spans = [(one.start, one.end) for one in found.example.intervals if one.kind == "circuit_breaker"]
        return of_band(
            lambda request: (
                _is_passed(request, at)
                and request.cell.queue not in exemption.queues
                and request.event.received_at is not None
                and any(start <= request.event.received_at < end for start, end in spans)
            )
        )(found)

    if others:
        yield "not in another queue", sketch.in_breaker(contract, others[0], seconds=0), in_another_queue


def _async_cases(contract: Contract, at: int, exemption: Async) -> Cases:
    limit, op = exemption.input_tokens.tokens, exemption.input_tokens.op
    is_above = op.startswith(">")
    # The count at the edge that the comparison still holds for, and the one beside it that it does not.
    holds = limit if op in (">=", "<=") else limit + (1 if is_above else -1)
    fails = holds - 1 if is_above else holds + 1
    has_evidence = exemption.evidence is not None
    if holds >= 0:
        yield "taken", sketch.of_tokens(contract, holds, has_header=has_evidence, taken_by=exemption), _taken(at)

    def has_what_is_needed(request: RequestFound) -> bool:
        return bool(request.event.async_header) or not has_evidence

    if fails >= 0:
        yield (
            f"not with {fails} input tokens",
            sketch.of_tokens(contract, fails, has_header=has_evidence),
            of_band(lambda request: _is_passed(request, at) and has_what_is_needed(request) and request.event.input_tokens == fails),
        )
    if has_evidence and holds >= 0:

        def is_long_enough(request: RequestFound) -> bool:
            tokens = request.event.input_tokens
            return tokens is not None and (tokens >= holds if is_above else tokens <= holds)

        yield (
            "not without the header",
            sketch.of_tokens(contract, holds, has_header=False),
            of_band(lambda request: _is_passed(request, at) and not request.event.async_header and is_long_enough(request)),
        )


def _cold_start_cases(contract: Contract, at: int, exemption: ColdStart) -> Cases:
    others = [(place, one) for place, one in enumerate(contract.exemptions) if isinstance(one, ColdStart) and place != at]
    before = sum(one.limit for place, one in others if place < at)
    goes_on = any(place > at and one.limit for place, one in others)
    if exemption.limit > 0 and before < MOST_COLD_STARTS:
        yield "taken", sketch.of_first_cold_start(contract, before, exemption), _taken(at)

    def siblings(found: ExampleFound, request: RequestFound) -> bool:
        """Whether the exemption took another request of the same cold start."""
        own = request.event.cold_start
        return (
            own is not None
            and own.lower() != "true"
            and any(one.cell.exemption == at and one.event.cold_start == own for one in found.requests)
        )

    def passed(found: ExampleFound, *, with_siblings: bool) -> bool:
        return of_band(
            lambda request: (
                _is_passed(request, at)
                and request.event.cold_start is not None
                and request.event.cold_start.lower() != "false"
                and siblings(found, request) == with_siblings
            )
        )(found)

    if before + exemption.limit < MOST_COLD_STARTS:
        beyond = sketch.of_cold_starts(contract, before + exemption.limit, one_more=True, goes_on=goes_on)
        yield f"not the one after {exemption.limit} a day", beyond, lambda found: passed(found, with_siblings=False)
    if exemption.limit and timedelta(microseconds=exemption.max_duration_us) < timedelta(hours=10):
        longest = duration_text(exemption.max_duration_us)
        late = sketch.of_long_cold_start(contract, exemption.max_duration_us)
        yield f"not later than {longest} after its first request", late, lambda found: passed(found, with_siblings=True)
