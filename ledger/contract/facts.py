"""What a contract means, as facts: one small value for each thing that it says, defaults included.

Takes a contract and the texts of its file (`reader.contract_texts`), gives facts in the order of the file's sections. Equal meaning
gives equal facts, however it is written: a key left out or its default written out, 0.3 or 30%, `> 16000` or `>= 16001`.
Source: specification, section 3.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.contract.diagnostic import Path
from ledger.contract.example import Example, ExampleEvent
from ledger.contract.fact import Fact, FactCode, Listed, Value, Written
from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract, Exemption
from ledger.contract.scalar import Threshold, currency_digits, duration_text


def facts_of(contract: Contract, texts: object) -> tuple[Fact, ...]:
    """The facts of the contract whose file has these texts: by section in the file's order, a section left out behind the one it follows in
    the specification."""
    source = _Source(contract, texts)
    by_section: dict[str, list[Fact]] = {}
    for section in _SECTIONS:
        for fact in section(source):
            by_section.setdefault(fact.section, []).append(fact)
    return tuple(fact for name in _in_order_of_file(list(by_section), texts) for fact in by_section[name])


def _in_order_of_file(keys: list[str], texts: object) -> list[str]:
    """The keys as the file orders them, one that it leaves out behind the one that it follows here."""
    order = [str(key) for key in texts if key in keys] if isinstance(texts, dict) else []
    for place, name in enumerate(keys):
        if name not in order:
            order.insert(order.index(keys[place - 1]) + 1 if place else 0, name)
    return order


@dataclass(frozen=True, slots=True)
class _Source:
    contract: Contract
    texts: object

    def written(self, value: Value, path: Path, otherwise: str = "") -> Written[Value]:
        """The value with the text that stands at the place; `otherwise` is the text of a default."""
        node: Any = self.texts
        for part in path:
            node = node.get(part) if isinstance(node, dict) else node[part] if isinstance(node, list) and isinstance(part, int) else None
        return Written(value, node if isinstance(node, str) else otherwise)

    def optional(self, value: Value | None, path: Path) -> Written[Value] | None:
        return None if value is None else self.written(value, path)


def _general(source: _Source) -> Iterator[Fact]:
    contract, governing = source.contract, source.contract.governing_text
    yield Fact(code=FactCode.SCHEMA, path=("schema",), values={"schema": contract.schema_name})
    yield Fact(code=FactCode.ID, path=("id",), values={"id": contract.id})
    yield Fact(code=FactCode.VERSION, path=("version",), values={"version": contract.version})
    yield Fact(code=FactCode.REPLACES, path=("replaces",), values={"replaces": contract.replaces})
    yield Fact(code=FactCode.TITLE, path=("title",), values={"title": contract.title})
    keys = ("language", "document", "sha256")
    yield Fact(code=FactCode.GOVERNING_TEXT, path=("governing_text",), values={key: getattr(governing, key, None) for key in keys})


def _parties(source: _Source) -> Iterator[Fact]:
    parties = source.contract.parties
    for role, party in (("provider", parties.provider), ("customer", parties.customer)):
        values = {"name": party.name, "tax_id": party.tax_id, "address": party.address}
        yield Fact(code=FactCode.PARTY, subject=(role,), path=("parties", role), values=values)
    yield Fact(code=FactCode.ACCOUNTS, path=("parties", "customer", "accounts"), values={"accounts": parties.customer.accounts})


def _calendar(source: _Source) -> Iterator[Fact]:
    effective, calendar = source.contract.effective, source.contract.calendar
    yield Fact(code=FactCode.EFFECTIVE, path=("effective",), values={"from": effective.start, "until": effective.until})
    yield Fact(code=FactCode.TIMEZONE, path=("calendar", "timezone"), values={"timezone": calendar.timezone})
    yield Fact(code=FactCode.BILLING_PERIOD, path=("calendar", "billing_period"), values={"period": calendar.billing_period})
    path: Path = ("calendar", "grace")
    yield Fact(code=FactCode.GRACE, path=path, values={"grace": source.written(calendar.grace_us, path)})
    path = ("calendar", "corrections")
    within_us = calendar.corrections.within_us
    values = {
        "within": source.written(within_us, (*path, "within"), duration_text(within_us)),
        "may_charge_more": calendar.corrections.may_charge_more,
    }
    yield Fact(code=FactCode.CORRECTIONS, path=path, values=values)


def _money(source: _Source) -> Iterator[Fact]:
    contract, money = source.contract, source.contract.money
    values: dict[str, object] = {"currency": money.currency, "digits": currency_digits(money.currency)}
    yield Fact(code=FactCode.CURRENCY, path=("money", "currency"), values=values)
    yield Fact(code=FactCode.ROUNDING, path=("money", "rounding"), values={"rounding": money.rounding})
    path: Path = ("money", "tax")
    values = {"name": money.tax and money.tax.name, "rate": source.optional(money.tax and money.tax.rate, (*path, "rate"))}
    yield Fact(code=FactCode.TAX, path=path, values=values)
    payment = contract.payment
    values = {
        "due": source.optional(payment.due_us if payment else None, ("payment", "due")),
        "details": payment.details if payment else None,
    }
    yield Fact(code=FactCode.PAYMENT, path=("payment",), values=values)
    minimum = source.optional(contract.minimum_commitment, ("minimum_commitment",))
    yield Fact(code=FactCode.MINIMUM, path=("minimum_commitment",), values={"minimum": minimum})
    yield Fact(code=FactCode.APPROVALS, path=("require_approvals",), values={"roles": Listed(contract.require_approvals)})


def _models(source: _Source) -> Iterator[Fact]:
    yield Fact(code=FactCode.MODEL_OF_REQUEST, path=("models",))
    for name, model in source.contract.models.items():
        path: Path = ("models", name)
        served = Listed(model.served_as or (name,))
        yield Fact(code=FactCode.SERVED_AS, subject=(name,), path=(*path, "served_as"), values={"names": served})
        rates, at = model.per_million_tokens, (*path, "per_million_tokens")
        values = {kind: source.written(getattr(rates, kind), (*at, kind)) for kind in ("input", "cached_input", "output")}
        yield Fact(code=FactCode.RATES, subject=(name,), path=at, values=values)
        for variant, terms in model.degraded.items():
            at = (*path, "degraded", variant, "max_multiplier")
            limit = source.written(terms.max_multiplier, at)
            yield Fact(code=FactCode.VARIANT, subject=(name, variant), path=at, values={"max_multiplier": limit})


def _latency(source: _Source) -> Iterator[Fact]:
    """What each declared queue is measured by, said of all of them: a queue may be given the default."""
    latency = source.contract.latency
    path: Path = ("latency", "default")
    yield Fact(code=FactCode.DEFAULT_LATENCY, path=path, clause=latency.clause, values={"latency": latency.default})
    for queue in source.contract.queues.by_name:
        at: Path = ("latency", "by_queue", queue) if queue in latency.by_queue else path
        values = {"latency": latency.by_queue.get(queue, latency.default)}
        yield Fact(code=FactCode.QUEUE_LATENCY, subject=(queue,), path=at, clause=latency.clause, values=values)
    for name, definition in latency.define.items():
        at, tree = ("latency", "define", name), Written(definition.tree, definition.text)
        yield Fact(code=FactCode.DEFINITION, subject=(name,), path=at, clause=latency.clause, values={"definition": tree})


def _objective(source: _Source) -> Iterator[Fact]:
    objective, at = source.contract.objective, ("objective",)

    def fact(code: FactCode, key: str, **values: object) -> Fact:
        return Fact(code=code, path=(*at, key), clause=objective.clause, values=values)

    yield fact(
        FactCode.PROMISE,
        "percentile",
        percentile=source.written(objective.percentile, (*at, "percentile")),
        target=source.written(objective.target_us, (*at, "target")),
        scope=objective.scope,
    )
    yield fact(FactCode.WINDOW, "window", window=objective.window)
    yield fact(FactCode.QUEUES_JUDGED, "queues", queues=Listed(objective.queues))
    minimum = source.written(objective.min_requests, (*at, "min_requests"))
    yield fact(FactCode.SMALL_WINDOWS, "min_requests", min_requests=minimum, small_windows=objective.small_windows)
    yield fact(FactCode.OVERLOAD, "max_requests", max_requests=source.optional(objective.max_requests, (*at, "max_requests")))


def _pricing(source: _Source) -> Iterator[Fact]:
    pricing = source.contract.pricing
    for place, tier in enumerate(pricing.tiers):
        path: Path = ("pricing", "tiers", place)
        span = (tier.latency.from_us, tier.latency.until_us)
        values = {"latency": Written(span, tier.latency.text), "multiplier": source.written(tier.multiplier, (*path, "multiplier"))}
        yield Fact(code=FactCode.TIER, subject=(tier.name,), path=path, clause=pricing.clause, values=values)
    path = ("pricing", "missing_latency")
    missing = pricing.missing_latency
    values = {"multiplier": source.written(missing.multiplier, (*path, "multiplier")), "objective": missing.objective}
    yield Fact(code=FactCode.MISSING_LATENCY, path=path, clause=pricing.clause, values=values)


def _queues(source: _Source) -> Iterator[Fact]:
    """A way to combine says nothing without a multiplier, and what happens over a limit says nothing without a limit."""
    queues = source.contract.queues
    yield Fact(code=FactCode.QUEUE_OF_REQUEST, path=("queues",))
    for name, queue in queues.by_name.items():
        path: Path = ("queues", name)
        multiplier = source.optional(queue.multiplier, (*path, "multiplier"))
        longest = source.optional(queue.max_queue_us, (*path, "max_queue"))
        values: dict[str, object] = {
            "multiplier": multiplier,
            "combine": queue.combine if multiplier else None,
            "max_queue": longest,
            "over_limit": queue.over_limit if longest else None,
        }
        yield Fact(code=FactCode.QUEUE, subject=(name,), path=path, clause=queues.clause, values=values)


def _exemptions(source: _Source) -> Iterator[Fact]:
    exemptions = source.contract.exemptions
    yield Fact(code=FactCode.EXEMPTIONS, path=("exemptions",), values={"count": len(exemptions)})
    seen: Counter[str] = Counter()
    for place, exemption in enumerate(exemptions):
        seen[exemption.kind] += 1
        yield _exemption(source, exemption, place, seen[exemption.kind])


def _exemption(source: _Source, exemption: Exemption, place: int, among_its_kind: int) -> Fact:
    path: Path = ("exemptions", place)
    values: dict[str, object] = {"place": place + 1, "multiplier": source.written(exemption.multiplier, (*path, "multiplier"))}
    match exemption:
        case CircuitBreaker(queues=queues):
            code = FactCode.CIRCUIT_BREAKER
            values |= {"queues": Listed(queues)}
        case Async(input_tokens=threshold, evidence=evidence):
            code = FactCode.ASYNC
            tokens = source.written(_tokens(threshold), (*path, "input_tokens"))
            values |= {"input_tokens": tokens, "evidence": evidence}
        case ColdStart(limit=limit, per=per):
            code = FactCode.COLD_START
            longest = source.written(exemption.max_duration_us, (*path, "max_duration"))
            values |= {"limit": source.written(limit, (*path, "limit")), "per": per, "max_duration": longest}
    return Fact(code=code, subject=(str(among_its_kind),), path=path, clause=exemption.clause, values=values)


def _tokens(threshold: Threshold) -> tuple[int, int | None]:
    """The numbers of tokens that satisfy the comparison, half open; None has no end."""
    match threshold.op:
        case "<":
            return 0, threshold.tokens
        case "<=":
            return 0, threshold.tokens + 1
        case ">":
            return threshold.tokens + 1, None
        case ">=":
            return threshold.tokens, None


def _outcomes(source: _Source) -> Iterator[Fact]:
    outcomes = source.contract.outcomes
    yield Fact(code=FactCode.SUCCESS, path=("outcomes",))
    written = source.texts.get("outcomes") if isinstance(source.texts, dict) else None
    for name in _in_order_of_file(["server_error", "rate_limited", "client_error", "cancelled"], written):
        path: Path = ("outcomes", name)
        if name == "cancelled":
            values = {"bill": outcomes.cancelled.bill, "objective": outcomes.cancelled.objective}
            yield Fact(code=FactCode.CANCELLED, path=path, values=values)
        else:
            yield Fact(code=FactCode.FAILURE, subject=(name,), path=path, values={"objective": getattr(outcomes, name).objective})


def _error_budget(source: _Source) -> Iterator[Fact]:
    budget, at = source.contract.error_budget, ("error_budget",)
    breaches = source.written(budget.breaches, (*at, "breaches"))
    values: dict[str, object] = {"breaches": breaches, "per": budget.per, "order": budget.order}
    yield Fact(code=FactCode.BUDGET, path=(*at, "breaches"), clause=budget.clause, values=values)
    values = {"up_to": source.written(budget.up_to, (*at, "up_to"))}
    yield Fact(code=FactCode.TOLERANCE, path=(*at, "up_to"), clause=budget.clause, values=values)
    values = {"alert_at": source.written(budget.alert_at, (*at, "alert_at"))}
    yield Fact(code=FactCode.ALERT, path=(*at, "alert_at"), clause=budget.clause, values=values)


def _refund(source: _Source) -> Iterator[Fact]:
    refund, at = source.contract.refund, ("refund",)
    tokens = source.written(refund.tokens, (*at, "tokens"))

    def fact(code: FactCode, key: str, **values: object) -> Fact:
        return Fact(code=code, path=(*at, key), clause=refund.clause, values=values)

    yield fact(FactCode.REFUND, "of", of=refund.of, tokens=tokens)
    yield fact(FactCode.REFUND_VALUE, "valued_at", valued_at=refund.valued_at)
    yield fact(FactCode.REFUND_FAILED, "failed", failed=refund.failed)
    yield fact(FactCode.REFUND_TAX, "tax", tax=refund.tax)
    yield fact(FactCode.CAP, "cap", cap=source.optional(refund.cap, (*at, "cap")))


def _accepts(source: _Source) -> Iterator[Fact]:
    accepts = source.contract.accept
    yield Fact(code=FactCode.ACCEPTS, path=("accept",), values={"count": len(accepts)})
    for place, (entry, subject) in enumerate(zip(accepts, _distinct([entry.code for entry in accepts]), strict=True)):
        values = {"warning": entry.code, "reason": entry.reason}
        yield Fact(code=FactCode.ACCEPTED, subject=subject, path=("accept", place), values=values)


def _examples(source: _Source) -> Iterator[Fact]:
    examples = source.contract.examples
    yield Fact(code=FactCode.EXAMPLES, path=("examples",), values={"count": len(examples)})
    for place, (example, subject) in enumerate(zip(examples, _distinct([example.it for example in examples]), strict=True)):
        values = _example(source, example, ("examples", place))
        yield Fact(code=FactCode.EXAMPLE, subject=subject, path=("examples", place), clause=example.clause, values=values)


def _example(source: _Source, example: Example, path: Path) -> dict[str, object]:
    """`intervals`, `events` and `windows` as mappings of what is given of each; of what is expected None where nothing is."""
    expect = example.expect
    multipliers = [source.optional(one, (*path, "expect", "multiplier", at)) for at, one in enumerate(expect.multiplier or ())]
    windows = [
        {
            "at": source.written(window.at, (*path, "windows", at, "at")),
            "p99": source.written(window.p99_us, (*path, "windows", at, "p99")),
            "requests": window.requests,
        }
        for at, window in enumerate(example.windows)
    ]
    intervals = [
        {
            "kind": interval.kind,
            "node": interval.node,
            "model": interval.model,
            "start": source.written(interval.start, (*path, "intervals", at, "start")),
            "end": source.written(interval.end, (*path, "intervals", at, "end")),
        }
        for at, interval in enumerate(example.intervals)
    ]
    return {
        "it": example.it,
        "intervals": tuple(intervals),
        "events": tuple(_event(source, event, (*path, "events", at)) for at, event in enumerate(example.events)),
        "windows": tuple(windows),
        "band": expect.band,
        "multiplier": tuple(multipliers) if expect.multiplier is not None else None,
        "objective": expect.objective,
        "charge": source.optional(expect.charge, (*path, "expect", "charge")),
        "results": expect.results,
    }


def _event(source: _Source, event: ExampleEvent, path: Path) -> dict[str, object]:
    """What the file gives of the event, durations in microseconds."""
    given = {name: value for name in ExampleEvent.model_fields if (value := getattr(event, name)) is not None}
    if "received_at" in given:
        given["received_at"] = source.written(given["received_at"], (*path, "received_at"))
    return given


def _distinct(names: list[str]) -> list[tuple[str, ...]]:
    """An identity for each: its name, and its number if the name stands there before."""
    seen: Counter[str] = Counter()
    subjects: list[tuple[str, ...]] = []
    for name in names:
        seen[name] += 1
        subjects.append((name,) if seen[name] == 1 else (name, str(seen[name])))
    return subjects


_SECTIONS = (
    *(_general, _parties, _calendar, _money, _models, _latency, _objective, _pricing, _queues),
    *(_exemptions, _outcomes, _error_budget, _refund, _accepts, _examples),
)
