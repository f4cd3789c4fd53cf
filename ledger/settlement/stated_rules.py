"""The rules of a contract that its examples should reach, derived from its terms: one list, so that none is forgotten.

Takes a contract, gives a `StatedRule` for everything that decides a price, the objective or the fate of a window.
Source: specification, sections 4 to 7 and 10.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal

from ledger.contract.model import Contract, FailureOutcome, Queue, Tier
from ledger.contract.scalar import duration_text
from ledger.settlement import example_sketch as sketch
from ledger.settlement.cell import Outcome
from ledger.settlement.charges import multiplier_in_queue
from ledger.settlement.example import ExampleFound, RequestFound, WindowFound
from ledger.settlement.stated_exemptions import exemption_rules
from ledger.settlement.stated_rule import StatedRule, of_band, of_multiplier, of_objective, of_window

JUDGED = ("met", "forgiven", "refunded")
LONGEST_BUDGET = 100  # breaches; nobody writes an example of more windows


def stated_rules(contract: Contract) -> tuple[StatedRule, ...]:
    """The rules of the contract in the order of its sections; what no example could reach is left out."""
    parts = (_models, _tiers, _objective, _missing_latency, _queues, _variants, exemption_rules, _outcomes, _windows, _small_windows)
    return tuple(rule for part in parts for rule in part(contract))


def _models(contract: Contract) -> Iterator[StatedRule]:
    yield from (_model(contract, model) for model in contract.models)


def _model(contract: Contract, model: str) -> StatedRule:
    def is_reached(found: ExampleFound) -> bool:
        return found.example.expect.charge is not None and any(
            one.price is not None
            and one.price.model == model
            and all((one.cell.tokens_input, one.cell.tokens_cached_input, one.cell.tokens_output))
            for one in found.requests
        )

    return StatedRule(name=f"model {model}: its rates", clause=None, sketch=sketch.charged(contract, model), is_reached_by=is_reached)


def _tiers(contract: Contract) -> Iterator[StatedRule]:
    tiers = contract.pricing.tiers
    for at, tier in enumerate(tiers):
        yield _tier(contract, at, tier)
    for edge_us in sorted({edge_us for tier in tiers for edge_us in tier.latency.edges_us} - {0}):
        yield _tier_edge(contract, edge_us)


def _tier(contract: Contract, at: int, tier: Tier) -> StatedRule:
    return StatedRule(
        name=f"tier {tier.name}: {tier.latency.text}",
        clause=contract.pricing.clause,
        sketch=sketch.priced(contract, sketch.latency_in(tier)),
        is_reached_by=of_multiplier(lambda request: request.cell.tier == at),
    )


def _tier_edge(contract: Contract, edge_us: int) -> StatedRule:
    return StatedRule(
        name=f"tier edge: a latency of exactly {duration_text(edge_us)}",
        clause=contract.pricing.clause,
        sketch=sketch.priced(contract, edge_us),
        is_reached_by=of_band(lambda request: request.cell.tier is not None and request.latency_us == edge_us),
    )


def _objective(contract: Contract) -> Iterator[StatedRule]:
    objective = contract.objective
    target = duration_text(objective.target_us)

    def is_judged(request: RequestFound) -> bool:
        return _succeeds(request) and request.cell.in_objective and request.latency_us is not None

    yield StatedRule(
        name=f"objective: a latency of exactly {target}, the target, is met",
        clause=objective.clause,
        sketch=sketch.judged(contract, objective.target_us, "met"),
        is_reached_by=of_objective(lambda request: is_judged(request) and request.latency_us == objective.target_us),
    )
    yield StatedRule(
        name=f"objective: a latency above {target} is late",
        clause=objective.clause,
        sketch=sketch.judged(contract, objective.target_us + 1000, "late"),
        is_reached_by=of_objective(lambda request: is_judged(request) and request.cell.late),
    )
    yield from (_queue_in_objective(contract, queue) for queue in contract.queues.by_name)


def _queue_in_objective(contract: Contract, queue: str) -> StatedRule:
    is_listed = queue in contract.objective.queues
    return StatedRule(
        name=f"objective: the queue {queue} is {'judged' if is_listed else 'outside'}",
        clause=contract.objective.clause,
        sketch=sketch.judged(contract, contract.objective.target_us + 1000, "late" if is_listed else "exclude", queue=queue),
        is_reached_by=of_objective(lambda request: _succeeds(request) and request.cell.queue == queue and request.cell.exemption is None),
    )


def _succeeds(request: RequestFound) -> bool:
    return request.cell.outcome is Outcome.SUCCESS


def _missing_latency(contract: Contract) -> Iterator[StatedRule]:
    term, clause = contract.pricing.missing_latency, contract.pricing.clause

    def is_unmeasured(request: RequestFound) -> bool:
        return request.band == "missing_latency"

    yield StatedRule(
        name="missing latency: its price", clause=clause, sketch=sketch.priced(contract, None), is_reached_by=of_multiplier(is_unmeasured)
    )
    yield StatedRule(
        name=f"missing latency in the objective: {term.objective}",
        clause=clause,
        sketch=sketch.judged(contract, None, term.objective),
        is_reached_by=of_objective(lambda request: is_unmeasured(request) and request.cell.queue in contract.objective.queues),
    )


def _queues(contract: Contract) -> Iterator[StatedRule]:
    for name, terms in contract.queues.by_name.items():
        yield _queue(contract, name, terms)
        yield from _forfeiture(contract, name, terms)


def _queue(contract: Contract, name: str, terms: Queue) -> StatedRule:
    return StatedRule(
        name=f"queue {name}: {'without a multiplier' if terms.multiplier is None else f'{terms.combine} {terms.multiplier}'}",
        clause=contract.queues.clause,
        sketch=sketch.in_queue(contract, name, wait_us=0),
        is_reached_by=of_multiplier(lambda one: one.cell.queue == name and one.cell.tier is not None and not one.cell.forfeited),
    )


def _forfeiture(contract: Contract, name: str, terms: Queue) -> Iterator[StatedRule]:
    longest_us = terms.max_queue_us
    if terms.multiplier is None or terms.over_limit != "forfeit" or longest_us is None:
        return
    longest = duration_text(longest_us)

    def rule(says: str, wait_us: int | None, holds: Callable[[RequestFound], bool]) -> StatedRule:
        return StatedRule(
            name=f"queue {name}: {says}",
            clause=contract.queues.clause,
            sketch=sketch.in_queue(contract, name, wait_us=wait_us),
            is_reached_by=of_multiplier(lambda request: request.cell.queue == name and request.price is not None and holds(request)),
        )

    def is_known(request: RequestFound) -> bool:
        return request.event.queue_us is not None

    yield rule(f"a wait of exactly {longest} forfeits nothing", longest_us, lambda one: one.event.queue_us == longest_us)
    yield rule(f"a wait above {longest} forfeits its multiplier", longest_us + 1000, lambda one: one.cell.forfeited and is_known(one))
    yield rule("an unknown wait forfeits its multiplier", None, lambda one: one.cell.forfeited and not is_known(one))


def _variants(contract: Contract) -> Iterator[StatedRule]:
    for model, terms in contract.models.items():
        for variant, degraded in terms.degraded.items():
            yield _variant(contract, model, variant, degraded.max_multiplier)


def _variant(contract: Contract, model: str, variant: str, most: Decimal) -> StatedRule:
    """Where no band and queue together come above the cap, any request of the variant will do."""
    tiers, queues = contract.pricing.tiers, contract.queues.by_name
    priced = [(multiplier_in_queue(contract, tier.multiplier, queue, forfeited=False), tier, queue) for tier in tiers for queue in queues]
    highest, tier, queue = max(priced, key=lambda price: price[0])
    takes_effect = highest > most

    def is_reached(request: RequestFound) -> bool:
        return request.price is not None and request.price.variant == variant and (request.is_capped or not takes_effect)

    return StatedRule(
        name=f"variant {variant} of {model}: never above {most}",
        clause=contract.pricing.clause,
        sketch=sketch.in_queue(contract, queue, wait_us=0, latency_us=sketch.latency_in(tier), variant=(variant, most)),
        is_reached_by=of_multiplier(is_reached),
    )


def _outcomes(contract: Contract) -> Iterator[StatedRule]:
    target_us = contract.objective.target_us
    cancelled = contract.outcomes.cancelled

    def is_cancelled(request: RequestFound) -> bool:
        return request.cell.outcome is Outcome.CANCELLED and request.cell.exemption is None

    def is_over(request: RequestFound) -> bool:
        return request.latency_us is not None and request.latency_us > target_us

    is_billed = cancelled.bill == "produced"
    yield StatedRule(
        name=f"outcome cancelled within the target: {'billed' if is_billed else 'not billed'}",
        clause=None,
        sketch=sketch.cancelled(contract, is_over=False),
        is_reached_by=of_band(lambda request: is_cancelled(request) and not is_over(request)),
    )
    if is_billed:
        yield StatedRule(
            name="outcome cancelled over the target: priced by its tier",
            clause=None,
            sketch=sketch.cancelled(contract, is_over=True),
            is_reached_by=of_band(lambda request: is_cancelled(request) and is_over(request)),
        )
    yield StatedRule(
        name=f"outcome cancelled in the objective: {cancelled.objective}",
        clause=None,
        sketch=sketch.cancelled_judged(contract),
        is_reached_by=of_objective(
            lambda request: is_cancelled(request) and is_over(request) and request.cell.queue in contract.objective.queues
        ),
    )
    failures = {
        Outcome.SERVER_ERROR: (500, contract.outcomes.server_error),
        Outcome.RATE_LIMITED: (429, contract.outcomes.rate_limited),
        Outcome.CLIENT_ERROR: (404, contract.outcomes.client_error),
    }
    yield from (_failure(contract, outcome, *failures[outcome]) for outcome in Outcome if outcome.is_failure)


def _failure(contract: Contract, outcome: Outcome, status: int, term: FailureOutcome) -> StatedRule:
    def is_reached(request: RequestFound) -> bool:
        cell = request.cell
        return cell.outcome is outcome and cell.exemption is None and cell.queue in contract.objective.queues

    return StatedRule(
        name=f"outcome {outcome} in the objective: {term.objective}",
        clause=None,
        sketch=sketch.failed(contract, status, term.objective),
        is_reached_by=of_objective(is_reached),
    )


def _windows(contract: Contract) -> Iterator[StatedRule]:
    budget, target_us = contract.error_budget, contract.objective.target_us
    limit_us = sketch.limit_us(contract)
    clause = budget.clause
    yield StatedRule(
        name=f"window: a percentile of exactly {duration_text(target_us)} is met",
        clause=contract.objective.clause,
        sketch=sketch.of_windows(contract, [target_us], ["met"]),
        is_reached_by=of_window(lambda one: one.result == "met" and one.window.p99_us == target_us),
    )
    has_tolerance = limit_us > target_us
    if has_tolerance and budget.breaches:
        yield StatedRule(
            name=f"budget: a breach of exactly {duration_text(limit_us)} is forgiven",
            clause=clause,
            sketch=sketch.of_windows(contract, [limit_us], ["forgiven"]),
            is_reached_by=of_window(lambda one: one.result == "forgiven" and one.window.p99_us == limit_us),
        )
    # With windows of a month or a day there may not be enough of them to use a budget up.
    most = {"month": 1, "1d": 28}.get(contract.objective.window, LONGEST_BUDGET)
    if has_tolerance and budget.breaches < most:
        yield StatedRule(
            name=f"budget: a breach after {budget.breaches} forgiven ones is refunded",
            clause=clause,
            sketch=sketch.of_windows(contract, [limit_us] * (budget.breaches + 1), [*["forgiven"] * budget.breaches, "refunded"]),
            is_reached_by=of_window(lambda one: one.result == "refunded" and not one.is_over),
        )
    over_us = max(limit_us, target_us) + 1000
    yield StatedRule(
        name=f"budget: a breach above {duration_text(max(limit_us, target_us))} is refunded",
        clause=contract.refund.clause,
        sketch=sketch.of_windows(contract, [over_us], ["refunded"]),
        is_reached_by=of_window(lambda one: one.result == "refunded" and one.is_over),
    )


def _small_windows(contract: Contract) -> Iterator[StatedRule]:
    objective, over_us = contract.objective, contract.objective.target_us + 1000
    least, most = objective.min_requests, objective.max_requests
    is_pooled = objective.small_windows == "pool_day" and objective.window not in ("month", "1d")
    fate = "forgiven" if contract.error_budget.breaches and sketch.limit_us(contract) >= over_us else "refunded"

    def rule(says: str, results: list[str], requests: int, holds: Callable[[WindowFound], bool]) -> StatedRule:
        return StatedRule(
            name=says,
            clause=objective.clause,
            sketch=sketch.of_windows(contract, [over_us] * len(results), results, requests=requests),
            is_reached_by=of_window(holds),
        )

    def is_small(window: WindowFound) -> bool:
        return window.requests < least

    if least > 1 and (most is None or least <= most):
        # Said by the example: where it says nothing, the window has as many as the contract asks for, whatever that is.
        judged = f"small windows: one of exactly {least} requests is judged"
        yield rule(judged, [fate], least, lambda one: one.window.requests == least and one.result in JUDGED)
    if least > 1 and (objective.small_windows == "evaluate" or is_pooled):
        says = "judged together with those of their day" if is_pooled else "judged all the same"
        yield rule(f"small windows: {says}", [fate] * (1 + is_pooled), least - 1, lambda one: is_small(one) and one.result in JUDGED)
    if least > 1 and objective.small_windows != "evaluate":
        says = f"fewer than {least} requests{' in a day' if is_pooled else ''} are not judged"
        yield rule(f"small windows: {says}", ["insufficient"], least - 1, lambda one: is_small(one) and one.result == "insufficient")
    if most is not None:
        says = f"large windows: more than {most} requests are not judged"
        yield rule(says, ["overload"], most + 1, lambda one: one.result == "overload")
    if most is not None and most >= least:
        says = f"large windows: one of exactly {most} requests is judged"
        yield rule(says, [fate], most, lambda one: one.window.requests == most and one.result in JUDGED)
