"""Why a request has its band, its multiplier, its place in the objective and its charge: the rule that decided, in plain words.

Takes a contract and a priced request, gives one line of text each, with the figures that the rule looked at. Source: specification,
sections 4 and 5.
"""

from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from ledger.contract.model import Contract
from ledger.contract.scalar import duration_text
from ledger.documents.number import decimal_text, grouped_count, rate_text
from ledger.documents.wording import measured_words
from ledger.settlement.cell import Outcome
from ledger.settlement.charges import Tokens, band_and_multiplier
from ledger.settlement.money import exact_decimal
from ledger.settlement.priced_request import NOT_BILLED, PricedRequest

TOKENS = {"input": "input", "cached_input": "cached input", "output": "output"}


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


def band_reason(contract: Contract, request: PricedRequest) -> str:
    """What put the request into its band."""
    cell = request.cell
    if request.price is None:
        return _not_billed(contract, request)
    if cell.exemption is not None:
        exemption = contract.exemptions[cell.exemption]
        return f"the exemption {exemption.kind}{clause_words(exemption.clause)} takes it"
    if cell.tier is not None:
        tier = contract.pricing.tiers[cell.tier]
        closed = "closed by the client after the target, it is priced like a success: " if cell.outcome is Outcome.CANCELLED else ""
        lies = f"lies in the tier {tier.name}, {tier.latency.text}{clause_words(contract.pricing.clause)}"
        return f"{closed}{_latency(contract, request)} {lies}"
    if cell.outcome is Outcome.CANCELLED:
        return (
            f"the client closed it, and {_latency(contract, request)} is not over the target {duration_text(contract.objective.target_us)}"
        )
    return f"{_latency(contract, request)} was measured"


def _not_billed(contract: Contract, request: PricedRequest) -> str:
    outcome = request.cell.outcome
    rule = "of which the contract bills nothing" if outcome is Outcome.CANCELLED else "which is never billed"
    return f"status {request.status} is {outcome}, {rule}"


def _latency(contract: Contract, request: PricedRequest) -> str:
    measured = measured_words(contract, request.cell.queue)
    return f"no latency {measured}" if request.latency_us is None else f"a latency of {duration_text(request.latency_us)} {measured}"


def multiplier_reason(contract: Contract, request: PricedRequest) -> str:
    """How its multiplier is put together."""
    if request.price is None:
        return _not_billed(contract, request)
    parts = [f"{band_reason(contract, request)}: {decimal_text(band_and_multiplier(contract, request.cell)[1])}"]
    queue = contract.queues.by_name[request.cell.queue]
    if queue.multiplier is not None and request.cell.forfeited:
        wait_us = request.queue_us
        waited = "for an unknown time" if wait_us is None else duration_text(wait_us)
        longest = "" if queue.max_queue_us is None else f", not within {duration_text(queue.max_queue_us)}"
        parts.append(f"the multiplier of the queue {request.cell.queue} is forfeited, as it waited {waited}{longest}")
    elif queue.multiplier is not None:
        how = "times" if queue.combine == "multiply" else "or, if that is higher,"
        parts.append(f"{how} {decimal_text(queue.multiplier)} of the queue {request.cell.queue}{clause_words(contract.queues.clause)}")
    if request.price.variant is not None and request.is_capped:
        highest = contract.models[request.price.model].degraded[request.price.variant].max_multiplier
        parts.append(f"the variant {request.price.variant} is never above {decimal_text(highest)}")
    return ", ".join(parts)


def objective_reason(contract: Contract, request: PricedRequest) -> str:
    """Why it counts in the objective as it does."""
    cell, objective = request.cell, contract.objective
    if cell.in_objective and cell.outcome.is_failure:
        return f"status {request.status} is {cell.outcome}, which counts as late"
    if cell.in_objective:
        side = "above" if cell.late else "within"
        target = f"is {side} the target {duration_text(objective.target_us)}{clause_words(objective.clause)}"
        return f"{_latency(contract, request)} {'counts as late' if request.latency_us is None else target}"
    if cell.queue not in objective.queues:
        return f"the queue {cell.queue} is not in the objective{clause_words(objective.clause)}"
    if cell.exemption is not None:
        exemption = contract.exemptions[cell.exemption]
        return f"the exemption {exemption.kind}{clause_words(exemption.clause)} takes it out"
    if cell.outcome is Outcome.SUCCESS:
        return f"{_latency(contract, request)}: missing_latency is outside the objective"
    if cell.outcome is Outcome.CANCELLED:
        return f"the client closed it: cancelled counts {contract.outcomes.cancelled.objective}, and it has {_latency(contract, request)}"
    return f"status {request.status} is {cell.outcome}, which is outside the objective"


def charge_sum(contract: Contract, request: PricedRequest) -> str:
    """How the exact charge comes about."""
    if request.price is None:
        return f"{_not_billed(contract, request)}: 0"
    rates, tokens = contract.models[request.price.model].per_million_tokens, Tokens()
    tokens.add(request.cell)
    counted = [
        f"{grouped_count(quantity)} {TOKENS[kind]} at {rate_text(getattr(rates, kind))}"
        for kind, quantity in tokens.by_kind().items()
        if quantity
    ]
    priced = f"{' + '.join(counted) or 'no tokens'} per 1,000,000, times {decimal_text(request.price.multiplier)}"
    return f"{priced} = {exact_text(request.charge)}"


def clause_words(clause: str | None) -> str:
    """The clause behind a rule, in brackets; nothing without one."""
    return f" (clause {clause})" if clause else ""
