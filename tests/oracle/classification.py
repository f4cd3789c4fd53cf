"""Events to requests: what the contract makes of each event, step by step. Source: specification, section 4, and 5 for what stops.

Takes events, intervals, the stretches in which versions are in force and the local days; gives the covered requests, classified.
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from tests.oracle.expression import evaluate
from tests.oracle.telemetry import Event, read_instant
from tests.oracle.terms import Rule, Stretch, Terms, satisfies

MICROSECOND = timedelta(microseconds=1)
OUTCOMES = ("success", "cancelled", "rate_limited", "client_error", "server_error")
Load = tuple[str | None, str | None, datetime, datetime, str]  # node, model, start, end, id
Breaker = tuple[str | None, datetime, datetime]  # node, start, end


class Stopped(Exception):
    """The contract cannot be settled: a served name that no model claims, or a queue that is not declared. `events` is how many it has."""

    def __init__(self, what: str, name: str, events: int) -> None:
        super().__init__(f"{what} {name!r} is not in the contract and has {events} events")
        self.what = what
        self.name = name
        self.events = events


@dataclass
class Request:
    """An event and what the rules make of it, filled in step by step. `exemption` is the index of the rule that took it."""

    event: Event
    stretch: Stretch
    day: tuple[datetime, datetime]
    outcome: str
    latency_us: int | None
    cold_start: str | None
    model: str | None = None
    variant: str | None = None
    exemption: int | None = None
    billed: bool = False
    forfeited: bool = False
    band: str | None = None
    multiplier: Fraction = Fraction(1)
    in_objective: bool = False
    late: bool = False
    over: bool = False

    @property
    def terms(self) -> Terms:
        return self.stretch.terms

    @property
    def over_target(self) -> bool:
        return self.latency_us is not None and self.latency_us > self.terms.target_us


def classify(
    events: list[Event], intervals: list[dict[str, str]], stretches: list[Stretch], days: list[tuple[datetime, datetime]]
) -> list[Request]:
    """The covered events of the period with every step of section 4 applied. Raises Stopped."""
    spans = [
        (row["kind"], row.get("node") or None, row.get("model") or None, read_instant(row["start"]), read_instant(row["end"]), load_id(row))
        for row in intervals
    ]
    breakers = [(node, start, end) for kind, node, _, start, end, _ in spans if kind == "circuit_breaker"]
    loads = [(node, model, start, end, name) for kind, node, model, start, end, name in spans if kind == "model_load"]
    day_starts = [start for start, _ in days]

    requests = []
    for event in events:
        for stretch in stretches:
            if stretch.start <= event.received_at < stretch.end and event.account in stretch.terms.accounts:
                day = days[bisect_right(day_starts, event.received_at) - 1]
                outcome = outcome_of(event.status)
                latency_us = latency_of(event, outcome, stretch.terms)
                request = Request(event, stretch, day, outcome, latency_us, cold_start_of(event, loads))
                request.model, request.variant = stretch.terms.served.get(event.model, (None, None))
                requests.append(request)
    exempt(requests, breakers)
    for request in requests:
        request.billed = request.outcome == "success" or (request.outcome == "cancelled" and request.terms.cancelled_bill == "produced")
        request.in_objective = is_in_objective(request)
        request.late = request.in_objective and (request.over_target or request.latency_us is None or is_failure(request))
        beyond = request.latency_us is None or request.latency_us > request.terms.target_us * request.terms.up_to
        request.over = request.in_objective and (beyond or is_failure(request))
    stop_if_unknown(requests)
    for request in requests:
        if request.billed:
            price(request)
    return requests


def outcome_of(status: int) -> str:
    """Step 1."""
    if 200 <= status <= 299:
        return "success"
    if status == 499:
        return "cancelled"
    if status == 429:
        return "rate_limited"
    if 400 <= status <= 499:
        return "client_error"
    return "server_error"


def is_failure(request: Request) -> bool:
    """Neither `success` nor `cancelled`."""
    return request.outcome not in ("success", "cancelled")


def latency_of(event: Event, outcome: str, terms: Terms) -> int | None:
    """Step 2: L by the queue's definition; e2e stands in for a cancelled event without L."""
    definition = terms.latency_by_queue.get(event.queue, terms.latency_default)
    if definition == "end_to_end":
        latency_us = event.e2e
    elif definition == "inference":
        latency_us = event.inference
    elif definition == "first_token":
        latency_us = event.ttft
    else:
        values = {
            "queue": event.queue_us,
            "prefill": event.prefill_us,
            "decode": event.decode_us,
            "inference": event.inference,
            "ttft": event.ttft,
            "e2e": event.e2e,
            "input_tokens": event.input_tokens,
            "output_tokens": event.output_tokens,
            "cached_input_tokens": event.cached_input_tokens,
        }
        latency_us = evaluate(terms.latency_define[definition], values)
    if latency_us is None and outcome == "cancelled":
        latency_us = event.e2e
    return latency_us


def load_id(row: dict[str, str]) -> str:
    """The id of a model load: the one given, else one made of what the load is."""
    return row.get("id") or f"load {row.get('node')} {row.get('model')} {row['start']} {row['end']}"


def cold_start_of(event: Event, loads: list[Load]) -> str | None:
    """The event's own cold start, else that of a load of its node and model that overlaps its wait (the earliest, then by id)."""
    if event.cold_start is not None or event.queue_us is None:
        return event.cold_start
    waited_until = event.received_at + event.queue_us * MICROSECOND
    overlapping = [
        (start, name)
        for node, model, start, end, name in loads
        if node == event.node and model == event.model and max(start, event.received_at) < min(end, waited_until)
    ]
    return min(overlapping)[1] if overlapping else None


def exempt(requests: list[Request], breakers: list[Breaker]) -> None:
    """Step 3: the first rule in the contract's order that matches. Rules are tried one after the other, each on what is left."""
    for terms in {request.terms.version: request.terms for request in requests}.values():
        for index, rule in enumerate(terms.rules):
            left = [request for request in requests if request.terms is terms and request.exemption is None]
            if rule.kind == "cold_start":
                matching = first_cold_starts(left, rule)
            elif rule.kind == "async":
                matching = [request for request in left if is_async(request, rule)]
            else:
                matching = [request for request in left if is_broken(request, rule, breakers)]
            for request in matching:
                request.exemption = index


def is_broken(request: Request, rule: Rule, breakers: list[Breaker]) -> bool:
    """`circuit_breaker` (any outcome): "an interval or an event without a node matches any"."""
    event = request.event
    return event.queue in rule.queues and any(
        start <= event.received_at < end and (node is None or event.node is None or node == event.node) for node, start, end in breakers
    )


def is_async(request: Request, rule: Rule) -> bool:
    """`async` (`success`, `cancelled`): null satisfies no comparison."""
    event = request.event
    if is_failure(request) or event.input_tokens is None or (rule.needs_header and not event.async_header):
        return False
    return satisfies(event.input_tokens, rule.input_tokens)


def first_cold_starts(left: list[Request], rule: Rule) -> list[Request]:
    """The requests exempt under one `cold_start` rule, of those that no earlier exemption took. Section 4, "Cold starts"."""
    by_day: dict[datetime, dict[tuple[str, ...], list[Request]]] = {}
    for request in left:
        if request.cold_start is not None and not is_failure(request):
            event = request.event
            # "Events with the same id on the same local day are one occurrence; `true` makes each request its own."
            own: tuple[str, ...] = ("own", event.account, event.request_id)
            occurrence = own if request.cold_start == "true" else ("id", request.cold_start)
            by_day.setdefault(request.day[0], {}).setdefault(occurrence, []).append(request)

    exempted = []
    for occurrences in by_day.values():
        # "By earliest received_at, then id (for `true` the request_id), then account."
        ranked = []
        for occurrence, members in occurrences.items():
            first = min(members, key=lambda member: (member.event.received_at, member.event.account))
            name = occurrence[1] if occurrence[0] == "id" else first.event.request_id
            ranked.append((first.event.received_at, name, first.event.account, occurrence))
        for first_at, _, _, occurrence in sorted(ranked)[: rule.limit]:
            longest = rule.max_duration_us * MICROSECOND
            exempted += [member for member in occurrences[occurrence] if member.event.received_at - first_at <= longest]
    return exempted


def is_in_objective(request: Request) -> bool:
    """ "Queue listed in `objective.queues`, not exempt, and one of ..." """
    terms = request.terms
    if request.event.queue not in terms.objective_queues or request.exemption is not None:
        return False
    if request.outcome == "success":
        return request.latency_us is not None or terms.missing_objective == "late"
    if request.outcome == "cancelled":
        return request.over_target and terms.cancelled_objective == "late_if_over_target"
    return terms.failure_objective[request.outcome] == "late"


def stop_if_unknown(requests: list[Request]) -> None:
    """Section 5: an unclaimed served name, or an undeclared queue, stops the settlement "if any of them would be billed or could enter
    the objective"; otherwise it is only counted."""
    unknown: dict[tuple[str, str], list[Request]] = {}
    for request in requests:
        if request.model is None:
            unknown.setdefault(("model", request.event.model), []).append(request)
        if request.event.queue not in request.terms.queues:
            unknown.setdefault(("queue", request.event.queue), []).append(request)
    for (what, name), those in sorted(unknown.items()):
        if any(request.billed or request.in_objective for request in those):
            raise Stopped(what, name, len(those))


def price(request: Request) -> None:
    """Steps 4 and 5: the band of a billed event and its multiplier."""
    terms, event = request.terms, request.event
    if request.exemption is not None:
        rule = terms.rules[request.exemption]
        request.band, multiplier = rule.kind, rule.multiplier
    elif request.outcome == "cancelled" and not request.over_target:
        request.band, multiplier = "cancelled", Fraction(1)
    elif request.latency_us is None:
        request.band, multiplier = "missing_latency", terms.missing_multiplier
    else:
        [tier] = [tier for tier in terms.tiers if tier.holds(request.latency_us)]
        request.band, multiplier = tier.name, tier.multiplier

    queue = terms.queues[event.queue]
    if queue.over_limit == "forfeit" and queue.max_queue_us is not None:
        request.forfeited = event.queue_us is None or event.queue_us > queue.max_queue_us
    if queue.multiplier is not None and not request.forfeited:
        multiplier = multiplier * queue.multiplier if queue.combine == "multiply" else max(multiplier, queue.multiplier)
    if request.variant is not None:
        multiplier = min(multiplier, terms.max_multiplier[request.variant])
    request.multiplier = multiplier


def count_events(requests: list[Request]) -> dict[str, Any]:
    """`events` of section 9."""
    exempt_kinds = [request.terms.rules[request.exemption].kind for request in requests if request.exemption is not None]
    return {
        "total": len(requests),
        "billed": sum(request.billed for request in requests),
        "in_objective": sum(request.in_objective for request in requests),
        "late": sum(request.late for request in requests),
        "missing_latency": sum(request.band == "missing_latency" for request in requests),
        "outcomes": {outcome: sum(request.outcome == outcome for request in requests) for outcome in OUTCOMES},
        "exempt": {kind: exempt_kinds.count(kind) for kind in ("circuit_breaker", "async", "cold_start")},
    }
