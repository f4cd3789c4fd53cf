"""English: the rules: latency, promise, prices, exemptions, outcomes, error budget and refunds."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from ledger.contract.expression import words_of
from ledger.contract.fact import Fact, FactCode, Facts, Written
from ledger.contract.scalar import parse_threshold
from ledger.documents.contract_prose.conditions import (
    is_alert_of_refunds_alone,
    is_budget_empty,
    is_nothing_tolerated,
    is_price_of_queue,
    is_standard_declared,
    is_unmeasured_outside,
)
from ledger.documents.contract_prose.english.words import (
    COMPARED,
    LATE,
    LATENCIES,
    MEASURES,
    STATUSES,
    duration,
    queue_words,
)
from ledger.documents.contract_prose.figures import is_share, number_text, quoted, span_parts
from ledger.documents.contract_prose.prose import Say
from ledger.documents.number import grouped_count
from ledger.documents.wording import window_words


def latency_words(name: str) -> str:
    """What a latency of that name is."""
    return LATENCIES.get(name) or f"the contract's own latency {quoted(name)}"


def _definition(fact: Fact, facts: Facts) -> str:
    text = fact["definition"].text
    meanings = [MEASURES[word] if word in ("if", "min", "max") else f"“{word}” is {MEASURES[word]}" for word in words_of(text)]
    return (
        f"The contract's own latency {quoted(fact.subject[0])} is {quoted(text)}. In it {'; '.join(meanings)}. The result is rounded to "
        "the microsecond, a half to the even neighbour. There is none if a quantity in it was not measured, if a measured divisor is not "
        "above zero, or if the result is negative."
    )


def _promise(fact: Fact, facts: Facts) -> str:
    scope = {"model": "for each model by itself", "contract": "for all models together"}[fact["scope"]]
    percentile, target = number_text(fact["percentile"]), duration(fact["target"])
    unmeasured = "" if is_unmeasured_outside(facts) else ", also if it has no latency"
    return (
        f"The promise: in every window, {scope}, at least {percentile}% of the requests in the objective meet the target of {target} "
        f"(P{percentile}, by nearest rank). A request in the objective meets it if it did not fail and its latency is {target} or less; "
        f"else it is late{unmeasured}. A window that does not keep the promise is a breach."
    )


def _window(fact: Fact, facts: Facts) -> str:
    cut = "Where one version of the contract gives way to another, the window is cut in two, and each part is judged by its own version."
    window = fact["window"]
    if window == "month":
        return f"A window is a calendar month. {cut}"
    if window == "1d":
        return f"A window is a local day, which is shorter or longer than 24 hours when the clocks change. {cut}"
    span = window_words(window)
    return (
        f"A window lasts {'1 ' if ' ' not in span else ''}{span}. Windows are counted from the midnight with which the local day begins, "
        "and the last one ends with the day. A request belongs to the window in which the gateway received it; a window's end is not "
        f"part of it. {cut}"
    )


def _queues_judged(fact: Fact, facts: Facts) -> str:
    judged = fact["queues"].names
    others = [one.subject[0] for one in facts.every(FactCode.QUEUE) if one.subject[0] not in judged]
    outside = f"Requests in {queue_words(others)} are" if others else "No queue is"
    return f"The objective holds requests in {queue_words(judged)}. {outside} outside it; exempt requests always are."


def _small_windows(fact: Fact, facts: Facts) -> str:
    requests, window = number_text(fact["min_requests"]), facts.of(FactCode.WINDOW)["window"]
    small = f"A window with fewer than {requests} requests in the objective is small; with exactly {requests} it is not. "
    if fact["small_windows"] == "evaluate":
        return small + "A small window is judged like any other."
    if fact["small_windows"] == "skip":
        return small + "A small window is not judged, only reported as insufficient."
    if window == "month":
        return small + "Months cannot be joined, so a small window is not judged, only reported as insufficient."
    who = {"model": " of a model", "contract": ""}[facts.of(FactCode.PROMISE)["scope"]]
    return small + (
        f"All small windows{who} on one local day are judged as one window, which ends with the day, if together they have at least "
        f"{requests} requests; if it is a breach, it counts as one breach, and only their requests belong to it. With fewer requests "
        "they are only reported as insufficient."
    )


def _overload(fact: Fact, facts: Facts) -> str:
    if fact["max_requests"] is None:
        return "A window is judged however many requests it has."
    most = number_text(fact["max_requests"])
    return (
        f"A window with more than {most} requests in the objective is an overload: it is reported, neither judged nor joined with others. "
        f"With exactly {most} it is judged."
    )


def span_words(text: str) -> str:
    """A tier's latencies: `below 100 ms`."""
    sign, edges = span_parts(text)
    words = [duration(edge) for edge in edges]
    match sign:
        case "..":
            return f"of {words[0]} to {words[1]} (both included)"
        case "..<":
            return f"of {words[0]} (included) to {words[1]} (not included)"
        case _:
            return f"{COMPARED[sign]} {words[0]}"


def _price(number: Written[Decimal], facts: Facts, queues: Iterable[str] | None = None) -> str:
    """What a request costs, in one of these queues or in any."""
    of = "" if is_share(number) else " times"
    queue = ", before the multiplier of its queue" if is_price_of_queue(facts, queues) else ""
    return f"{number_text(number)}{of or ' of'} the base rates{queue}"


def _tier(fact: Fact, facts: Facts) -> str:
    latency = span_words(fact["latency"].text)
    return f"Tier {quoted(fact.subject[0])}: a request with a latency {latency} costs {_price(fact['multiplier'], facts)}."


def _missing_latency(fact: Fact, facts: Facts) -> str:
    price = _price(fact["multiplier"], facts)
    return f"A success without a measured latency costs {price}{',' * (',' in price)} and {LATE[fact['objective']]}."


def _queue_of_request(fact: Fact, facts: Facts) -> str:
    standard = "“standard”" if is_standard_declared(facts) else "“standard”, which the contract does not have"
    return (
        f"A request for which the telemetry names no queue is in the queue {standard}. A request in a queue that the contract does not "
        "have is not billed at zero: if it would be billed, its month is not settled until that is corrected."
    )


def _queue(fact: Fact, facts: Facts) -> str:
    queue = quoted(fact.subject[0])
    if fact["multiplier"] is None:
        price = f"The queue {queue} changes no price"
    else:
        number, of = number_text(fact["multiplier"]), "the multiplier of a tier, an exemption or any other price"
        multiplied = fact["combine"] == "multiply"
        price = (
            f"The queue {queue} multiplies {of} by {number}"
            if multiplied
            else f"The queue {queue} raises {of} to {number}, if it is smaller"
        )
    if fact["max_queue"] is None:
        return f"{price}, and the wait in it has no limit."
    longest = duration(fact["max_queue"])
    if fact["over_limit"] == "report":
        return f"{price}. Requests that wait in it for more than {longest} are counted in the SLA report; their price stays."
    waits = f"{price}. A request that waits in it for more than {longest}, or for an unknown time,"
    if fact["multiplier"] is None:
        return f"{waits} stands on an invoice line of its own, at the same price; after exactly {longest} it does not."
    return f"{waits} loses the multiplier of the queue; after exactly {longest} it keeps it."


def _exemptions(fact: Fact, facts: Facts) -> str:
    count = fact["count"]
    if not count:
        return "There are no exemptions."
    listed = "There is one exemption." if count == 1 else f"There are {count} exemptions; the first that fits decides, in this order."
    return (
        f"{listed} An exempt request is outside the objective. If it is billed, the exemption's multiplier takes the place of the tier's."
    )


def _circuit_breaker(fact: Fact, facts: Facts) -> str:
    queues = fact["queues"].names
    return (
        f"Exemption {fact['place']}, circuit breaker: a request in {queue_words(queues)}, whatever its outcome, that is received "
        "while a circuit breaker is recorded as open on its node (on any node, if the record or the request names none). If it is billed, "
        f"it costs {_price(fact['multiplier'], facts, queues)}."
    )


def _async(fact: Fact, facts: Facts) -> str:
    limit = parse_threshold(fact["input_tokens"].text)
    words = {"<": "fewer than", "<=": "at most", ">": "more than", ">=": "at least"}
    compared = f"{words[limit.op]} {grouped_count(limit.tokens)}"
    evidence = ", whose answer carried the header X-Async-Processing: true." if fact["evidence"] else ". No evidence is needed."
    return (
        f"Exemption {fact['place']}, asynchronous processing: a successful or cancelled request with {compared} input tokens, "
        f"cached ones included{evidence} If it is billed, it costs {_price(fact['multiplier'], facts)}."
    )


def _cold_start(fact: Fact, facts: Facts) -> str:
    limit, longest = number_text(fact["limit"]), duration(fact["max_duration"])
    starts = {"0": "the first 0 cold starts (that is, of none)", "1": "the first cold start"}.get(limit, f"the first {limit} cold starts")
    earlier = " A request that an earlier exemption takes counts for none." if fact["place"] > 1 else ""
    return (
        f"Exemption {fact['place']}, cold start: a successful or cancelled request of {starts} of each local day, received up to {longest} "
        f"after the first request of its cold start (exactly {longest} is included). Requests that name the same cold start, or that "
        "waited during the same recorded load of their model on their node, share one; a request that is marked as a cold start and "
        f"names none is one of its own.{earlier} If an exempt request is billed, it costs {_price(fact['multiplier'], facts)}."
    )


def _success(fact: Fact, facts: Facts) -> str:
    unless = "it is exempt, has no latency or its queue is" if is_unmeasured_outside(facts) else "it is exempt or its queue is"
    return f"A request with an HTTP status of 200–299 is a success: it is billed, and in the objective unless {unless} outside it."


def _failure(fact: Fact, facts: Facts) -> str:
    return f"{STATUSES[fact.subject[0]]} is never billed and {LATE[fact['objective']]}."


def _cancelled(fact: Fact, facts: Facts) -> str:
    queue = ", in both cases before the multiplier of its queue" if is_price_of_queue(facts) else ""
    billed = {
        "produced": "is billed for its input tokens and for the output tokens produced until then: by its tier if its latency is "
        f"above the target, else at 1 times the base rates{queue}. It",
        "nothing": "is not billed. It",
    }[fact["bill"]]
    waited = "If its latency is not known, its end-to-end time stands in; if neither is known, it counts as not above the target."
    return f"A request that the client closed (HTTP status 499) {billed} {LATE[fact['objective']]}. {waited}"


def _budget(fact: Fact, facts: Facts) -> str:
    count = number_text(fact["breaches"])
    breaches, are = ("breach", "is") if fact["breaches"].value == 1 else ("breaches", "are")
    if is_budget_empty(facts):
        return f"No breach is forgiven: the error budget of a calendar month is {count} breaches, and every breach is refunded."
    if is_nothing_tolerated(facts):
        return (
            f"The error budget of a calendar month is {count} {breaches} within the tolerance. No breach lies within it, so "
            "that none is forgiven, and every breach is refunded."
        )
    together = "the one that started first"
    if facts.of(FactCode.PROMISE)["scope"] == "model":
        together += ", then by the name of the model"
    return (
        f"In each calendar month {count} {breaches} within the tolerance {are} forgiven, in the order in which the windows end (of those "
        f"that end together, {together}). This error budget is one for all models and all versions of the month; it starts full each "
        "month and nothing of it is carried over."
    )


def _tolerance(fact: Fact, facts: Facts) -> str:
    percentile = number_text(facts.of(FactCode.PROMISE)["percentile"])
    up_to = number_text(fact["up_to"])
    if is_budget_empty(facts):
        return (
            f"The tolerance is {up_to} of the target. Since no breach is forgiven, it decides nothing; reports only name the breaches that "
            "are beyond it."
        )
    if is_nothing_tolerated(facts):
        return (
            f"The tolerance is {up_to} of the target. A breach is a window whose P{percentile} is above the target, so that none lies "
            "within the tolerance: no breach is forgiven."
        )
    unmeasured = "A request that failed" if is_unmeasured_outside(facts) else "A request that failed or has no latency"
    return (
        f"The tolerance is {up_to} of the target. A breach whose P{percentile} is above it is beyond the tolerance: it is not forgiven and "
        f"uses no budget. {unmeasured} counts as above any tolerance."
    )


def _alert(fact: Fact, facts: Facts) -> str:
    share = number_text(fact["alert_at"])
    if is_alert_of_refunds_alone(facts):
        return f"An alert is due when anything is refunded; no number of forgiven breaches uses {share} of the error budget."
    return f"An alert is due when {share} of the error budget, rounded down and at least one breach, is used, or when anything is refunded."


def _refund(fact: Fact, facts: Facts) -> str:
    whose = {
        "late_requests": "the successful requests of the window that were late",
        "window": "the successful requests of the window in the objective, late or not",
    }[fact["of"]]
    return (
        f"For every breach that is not forgiven, a refund gives the customer back {number_text(fact['tokens'])} times the tokens of "
        f"{whose}. Cancelled requests are not refunded."
    )


def _refund_value(fact: Fact, facts: Facts) -> str:
    if fact["valued_at"] == "base_rate":
        return "The tokens of a refund are valued at the base rates, whatever was charged for them."
    return "The tokens of a refund are valued at the base rates times the multiplier that was charged for them."


def _refund_failed(fact: Fact, facts: Facts) -> str:
    if fact["failed"] == "none":
        return "Nothing is given back for requests that failed."
    factor = number_text(facts.of(FactCode.REFUND)["tokens"])
    return (
        f"Besides, a refund gives back {factor} times the input tokens, cached ones included, of the failed requests that count as late "
        "in the window, all at the base rate of input tokens that were not cached."
    )


def _refund_tax(fact: Fact, facts: Facts) -> str:
    if fact["tax"] == "reduces_base":
        return "Refunds reduce the price: they lower the amount that is taxed."
    return "Refunds are damages and no reduction of the price: they do not lower the amount that is taxed."


def _cap(fact: Fact, facts: Facts) -> str:
    if fact["cap"] is None:
        return "Refunds have no cap."
    cap = number_text(fact["cap"])
    return (
        f"The refunds of a month are at most {cap} of its charges (a line that lifts them to a minimum is not counted); one line takes "
        "back what is more."
    )


SENTENCES: Mapping[FactCode, Say] = {
    FactCode.DEFAULT_LATENCY: lambda fact, _: (
        f"The latency of a request is, unless its queue says otherwise, {latency_words(fact['latency'])}."
    ),
    FactCode.QUEUE_LATENCY: lambda fact, _: (
        f"In the queue {quoted(fact.subject[0])} the latency is {latency_words(fact['latency']).partition(':')[0]}."
    ),
    FactCode.DEFINITION: _definition,
    FactCode.PROMISE: _promise,
    FactCode.WINDOW: _window,
    FactCode.QUEUES_JUDGED: _queues_judged,
    FactCode.SMALL_WINDOWS: _small_windows,
    FactCode.OVERLOAD: _overload,
    FactCode.TIER: _tier,
    FactCode.MISSING_LATENCY: _missing_latency,
    FactCode.QUEUE_OF_REQUEST: _queue_of_request,
    FactCode.QUEUE: _queue,
    FactCode.EXEMPTIONS: _exemptions,
    FactCode.CIRCUIT_BREAKER: _circuit_breaker,
    FactCode.ASYNC: _async,
    FactCode.COLD_START: _cold_start,
    FactCode.SUCCESS: _success,
    FactCode.FAILURE: _failure,
    FactCode.CANCELLED: _cancelled,
    FactCode.BUDGET: _budget,
    FactCode.TOLERANCE: _tolerance,
    FactCode.ALERT: _alert,
    FactCode.REFUND: _refund,
    FactCode.REFUND_VALUE: _refund_value,
    FactCode.REFUND_FAILED: _refund_failed,
    FactCode.REFUND_TAX: _refund_tax,
    FactCode.CAP: _cap,
}
