"""Why an example of a contract comes to what it does: the rule that decided, in plain words with the figures that it looked at.

Takes what was found, gives one line of text. Source: specification, sections 4 to 7 and 10.
"""

from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from ledger.contract.model import Contract
from ledger.contract.scalar import duration_text
from ledger.documents.number import decimal_text, grouped_count, percent_text, rate_text
from ledger.documents.wording import measured_words
from ledger.settlement.cell import Outcome
from ledger.settlement.charges import Tokens, band_and_multiplier
from ledger.settlement.example import NOT_BILLED, Difference, ExampleFound, RequestFound, WindowFound
from ledger.settlement.money import exact_decimal

TOKENS = {"input": "input", "cached_input": "cached input", "output": "output"}


def why(found: ExampleFound, difference: Difference) -> str:
    """What decided the value that was found."""
    contract = found.contract
    match difference.key:
        case "charge":
            return "; ".join(_charge(contract, request, place) for place, request in enumerate(found.requests, start=1))
        case "results":
            assert difference.place is not None
            return _result(contract, found.windows[difference.place])
    assert difference.place is not None
    request = found.requests[difference.place]
    match difference.key:
        case "band":
            return _band(contract, request)
        case "multiplier":
            return _multiplier(contract, request)
        case _:
            return _objective(contract, request)


def exact_text(value: str | Decimal | Fraction | None) -> str:
    """An expected or found value; a fraction with all its digits."""
    match value:
        case None:
            return NOT_BILLED
        case Fraction():
            return decimal_text(exact_decimal(value))
        case Decimal():
            return decimal_text(value)
        case str():
            return value
        case _:
            assert_never(value)


def _band(contract: Contract, request: RequestFound) -> str:
    cell = request.cell
    if request.price is None:
        return _not_billed(contract, request)
    if cell.exemption is not None:
        exemption = contract.exemptions[cell.exemption]
        return f"the exemption {exemption.kind}{_clause(exemption.clause)} takes it"
    if cell.tier is not None:
        tier = contract.pricing.tiers[cell.tier]
        closed = "closed by the client after the target, it is priced like a success: " if cell.outcome is Outcome.CANCELLED else ""
        return f"{closed}{_latency(contract, request)} lies in the tier {tier.name}, {tier.latency.text}{_clause(contract.pricing.clause)}"
    if cell.outcome is Outcome.CANCELLED:
        return (
            f"the client closed it, and {_latency(contract, request)} is not over the target {duration_text(contract.objective.target_us)}"
        )
    return f"{_latency(contract, request)} was measured"


def _not_billed(contract: Contract, request: RequestFound) -> str:
    outcome = request.cell.outcome
    rule = "of which the contract bills nothing" if outcome is Outcome.CANCELLED else "which is never billed"
    return f"status {request.event.status} is {outcome}, {rule}"


def _latency(contract: Contract, request: RequestFound) -> str:
    measured = measured_words(contract, request.cell.queue)
    return f"no latency {measured}" if request.latency_us is None else f"a latency of {duration_text(request.latency_us)} {measured}"


def _multiplier(contract: Contract, request: RequestFound) -> str:
    if request.price is None:
        return _not_billed(contract, request)
    parts = [f"{_band(contract, request)}: {decimal_text(band_and_multiplier(contract, request.cell)[1])}"]
    queue = contract.queues.by_name[request.cell.queue]
    if queue.multiplier is not None and request.cell.forfeited:
        wait_us = request.event.queue_us
        waited = "for an unknown time" if wait_us is None else duration_text(wait_us)
        longest = "" if queue.max_queue_us is None else f", not within {duration_text(queue.max_queue_us)}"
        parts.append(f"the multiplier of the queue {request.cell.queue} is forfeited, as it waited {waited}{longest}")
    elif queue.multiplier is not None:
        how = "times" if queue.combine == "multiply" else "or, if that is higher,"
        parts.append(f"{how} {decimal_text(queue.multiplier)} of the queue {request.cell.queue}{_clause(contract.queues.clause)}")
    if request.price.variant is not None and request.is_capped:
        highest = contract.models[request.price.model].degraded[request.price.variant].max_multiplier
        parts.append(f"the variant {request.price.variant} is never above {decimal_text(highest)}")
    return ", ".join(parts)


def _objective(contract: Contract, request: RequestFound) -> str:
    cell, objective = request.cell, contract.objective
    if cell.in_objective and cell.outcome.is_failure:
        return f"status {request.event.status} is {cell.outcome}, which counts as late"
    if cell.in_objective:
        side = "above" if cell.late else "within"
        compared = (
            "" if request.latency_us is None else f" is {side} the target {duration_text(objective.target_us)}{_clause(objective.clause)}"
        )
        return f"{_latency(contract, request)}{compared or ' counts as late'}"
    if cell.queue not in objective.queues:
        return f"the queue {cell.queue} is not in the objective{_clause(objective.clause)}"
    if cell.exemption is not None:
        exemption = contract.exemptions[cell.exemption]
        return f"the exemption {exemption.kind}{_clause(exemption.clause)} takes it out"
    if cell.outcome is Outcome.SUCCESS:
        return f"{_latency(contract, request)}: missing_latency is outside the objective"
    if cell.outcome is Outcome.CANCELLED:
        return f"the client closed it: cancelled counts {contract.outcomes.cancelled.objective}, and it has {_latency(contract, request)}"
    return f"status {request.event.status} is {cell.outcome}, which is outside the objective"


def _charge(contract: Contract, request: RequestFound, number: int) -> str:
    if request.price is None:
        return f"event {number}: {_not_billed(contract, request)}: 0"
    rates, tokens = contract.models[request.price.model].per_million_tokens, Tokens()
    tokens.add(request.cell)
    counted = [
        f"{grouped_count(quantity)} {TOKENS[kind]} at {rate_text(getattr(rates, kind))}"
        for kind, quantity in tokens.by_kind().items()
        if quantity
    ]
    priced = f"{' + '.join(counted) or 'no tokens'} per 1,000,000, times {decimal_text(request.price.multiplier)}"
    return f"event {number}, band {request.band}: {priced} = {exact_text(request.charge)}"


def _result(contract: Contract, window: WindowFound) -> str:
    objective, budget = contract.objective, contract.error_budget
    target, limit_us = duration_text(objective.target_us), objective.target_us * Fraction(budget.up_to)
    requests = f"{grouped_count(window.requests)} request{'' if window.requests == 1 else 's'}"
    if window.result == "insufficient":
        return f"{requests}, and fewer than {grouped_count(objective.min_requests)} are not judged ({objective.small_windows})"
    if window.result == "overload":
        return f"{requests}, and more than {grouped_count(objective.max_requests or 0)} are an overload"
    if window.result == "met":
        return f"{duration_text(window.window.p99_us)} is {'within' if not window.is_late else 'above'} the target {target}" + (
            "" if not window.is_late else ", but too few requests of its pool are late"
        )
    tolerance = f"{percent_text(budget.up_to)} of the target, {exact_text(limit_us / 1000)}ms"
    pooled = " (judged together with the other small windows of its day)" if window.pooled else ""
    told = f"{duration_text(window.window.p99_us)} is above the target {target}{pooled} and"
    if not window.is_late:  # a slower window of its pool decides
        within = f"{duration_text(window.window.p99_us)} is within the target {target}"
        told = f"{within}, but not all small windows of its day together, and these are"
    used = f"{window.used} of {budget.breaches} breaches of the month were used before"
    if window.result == "forgiven":
        return f"{told} within {tolerance}; {used}{_clause(budget.clause)}"
    if window.is_over:
        return f"{told} above {tolerance}, which is never forgiven{_clause(budget.clause)}"
    return f"{told} within {tolerance}, but {used}{_clause(budget.clause)}"


def _clause(clause: str | None) -> str:
    return f" (clause {clause})" if clause else ""
