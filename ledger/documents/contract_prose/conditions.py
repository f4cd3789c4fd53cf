"""What a contract has or has not, on which sentences of every language depend: its facts in, yes or no out."""

from collections.abc import Iterable

from ledger.contract.fact import FactCode, Facts


def is_unmeasured_outside(facts: Facts) -> bool:
    """Whether a success without a latency is outside the objective."""
    return bool(facts.of(FactCode.MISSING_LATENCY)["objective"] == "exclude")


def is_price_of_queue(facts: Facts, queues: Iterable[str] | None = None) -> bool:
    """Whether a queue, of these or of all, changes the price of its requests."""
    among = None if queues is None else set(queues)
    return any(
        queue["multiplier"] is not None and (queue["combine"], queue["multiplier"].value) != ("multiply", 1)
        for queue in facts.every(FactCode.QUEUE)
        if among is None or queue.subject[0] in among
    )


def is_standard_declared(facts: Facts) -> bool:
    """Whether the contract has the queue of requests that name none."""
    return any(queue.subject == ("standard",) for queue in facts.every(FactCode.QUEUE))


def is_budget_empty(facts: Facts) -> bool:
    """Whether no number of breaches is forgiven."""
    return bool(facts.of(FactCode.BUDGET)["breaches"].value == 0)


def is_nothing_tolerated(facts: Facts) -> bool:
    """Whether no breach can lie within the tolerance: each is above the target."""
    return bool(facts.of(FactCode.TOLERANCE)["up_to"].value <= 1)


def is_alert_of_refunds_alone(facts: Facts) -> bool:
    """Whether no number of forgiven breaches makes the alert due."""
    breaches = facts.of(FactCode.BUDGET)["breaches"].value
    due_after = max(int(facts.of(FactCode.ALERT)["alert_at"].value * breaches), 1)
    return is_budget_empty(facts) or is_nothing_tolerated(facts) or due_after > breaches
