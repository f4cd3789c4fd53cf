"""Why an example of a contract comes to what it does: the rule that decided, in plain words with the figures that it looked at.

Takes what was found, gives one line of text. Source: specification, sections 4 to 7 and 10.
"""

from fractions import Fraction

from ledger.contract.model import Contract
from ledger.contract.scalar import duration_text
from ledger.documents.number import grouped_count, percent_text
from ledger.documents.request_words import band_reason, charge_sum, clause_words, exact_text, multiplier_reason, objective_reason
from ledger.settlement.example import Difference, ExampleFound, RequestFound, WindowFound


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
            return band_reason(contract, request)
        case "multiplier":
            return multiplier_reason(contract, request)
        case _:
            return objective_reason(contract, request)


def _charge(contract: Contract, request: RequestFound, number: int) -> str:
    band = "" if request.price is None else f", band {request.band}"
    return f"event {number}{band}: {charge_sum(contract, request)}"


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
        return f"{told} within {tolerance}; {used}{clause_words(budget.clause)}"
    if window.is_over:
        return f"{told} above {tolerance}, which is never forgiven{clause_words(budget.clause)}"
    return f"{told} within {tolerance}, but {used}{clause_words(budget.clause)}"
