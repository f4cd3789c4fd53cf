"""What a contract's rules say, in words that the customer's finance team understands: bands, queues, the promise, credits.

Takes a contract and gives short English phrases. Source: specification, sections 3 to 7.
"""

from decimal import Decimal
from fractions import Fraction

from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract, Queue
from ledger.contract.scalar import DURATION, UNIT_US, Span
from ledger.documents.number import decimal_text, grouped_count, percent_text
from ledger.settlement.statement import InvoiceLine, LineKind

TOKENS = {"input": "Input tokens, not cached", "cached_input": "Cached input tokens", "output": "Output tokens"}
_SPANS = {"d": "day", "h": "hour", "m": "minute"}  # the largest first
_COMPARED = {"<": "below", "<=": "up to", ">": "above", ">=": "at least"}
_JOINED = {"..": "to", "..<": "to just below"}
_TOKENS_COMPARED = {"<": "under", "<=": "up to", ">": "over", ">=": "at least"}
_MEASURED = {"end_to_end": "end to end", "inference": "by inference time", "first_token": "to the first token"}


def duration_words(duration_us: int) -> str:
    """A duration in its largest even unit: `300 ms`, `8.3 s`, `5 minutes`, `30 days`. Exact."""
    for unit, name in _SPANS.items():
        if duration_us and duration_us % UNIT_US[unit] == 0:
            count = duration_us // UNIT_US[unit]
            return f"{grouped_count(count)} {name}{'' if count == 1 else 's'}"
    unit = "s" if duration_us >= UNIT_US["s"] else "ms"
    return f"{_exact(Fraction(duration_us, UNIT_US[unit]))} {unit}"


def milliseconds(duration_us: int) -> str:
    """Milliseconds with all three digits of the microseconds, thousands grouped: `1,046.002`."""
    return f"{grouped_count(duration_us // 1000)}.{duration_us % 1000:03d}"


def span_words(span: Span) -> str:
    """A tier's latencies as the contract writes them: `below 100 ms`, `100 ms to 300 ms`, `above 300 ms`."""
    sign, edges = span.written
    words = [DURATION.sub(r"\1 \2", edge) for edge in edges]
    return f" {_JOINED[sign]} ".join(words) if sign in _JOINED else f"{_COMPARED[sign]} {words[0]}"


def window_words(window: str) -> str:
    """The span in which the promise is judged: `hour`, `5 minutes`, `day`, `month`."""
    if window == "month":
        return "month"
    count, unit = window[:-1], _SPANS[window[-1]]
    return unit if count == "1" else f"{count} {unit}s"


def windows_words(window: str) -> str:
    """Windows in the plural: `hours`, `months`, `5-minute spans`."""
    count, _, unit = window_words(window).partition(" ")
    return f"{count}-{unit.removesuffix('s')} spans" if unit else f"{count}s"


def measured_words(contract: Contract, queue: str) -> str:
    """How the latency of a queue is measured: `end to end`; a definition of the contract's own is quoted with its name."""
    name = contract.latency.by_queue.get(queue, contract.latency.default)
    return _MEASURED.get(name) or f"by the definition “{name}: {contract.latency.define[name].text}”"


def promise_words(contract: Contract) -> str:
    """The service level in one sentence."""
    objective = contract.objective
    scope = "each model" if objective.scope == "model" else "all models together"
    spans = {"month": "In every calendar month", "1d": "On every day"}
    span = spans.get(objective.window, f"In every {window_words(objective.window)}")
    ways: dict[str, list[str]] = {}
    for queue in objective.queues:
        ways.setdefault(measured_words(contract, queue), []).append(queue)
    if len(ways) == 1:
        measured = f", measured {next(iter(ways))}"
    else:
        measured = "; measured " + ", ".join(f"{way} in the {queues_words(queues)}" for way, queues in ways.items())
    return (
        f"{span}, {percent_text(objective.percentile)} of the requests to {scope} in the {queues_words(list(objective.queues))} "
        f"are answered within {duration_words(objective.target_us)}{measured}."
    )


def band_words(contract: Contract, line: InvoiceLine) -> tuple[str, str]:
    """The name of a usage line's band, and why its requests have their price; `contract` is the line's version."""
    assert line.band is not None
    name, rule = _band_rule(contract, line.band)
    return name, "; ".join(part for part in (rule, *_multiplier_notes(contract, line)) if part)


def band_clause(contract: Contract, line: InvoiceLine) -> str | None:
    """The clauses that a line follows from, None if the contract names none."""
    if line.kind is LineKind.CREDIT:
        return contract.refund.clause
    tiers = {tier.name for tier in contract.pricing.tiers} | {"missing_latency"}
    band = contract.pricing.clause if line.band in tiers else None
    exempting = [exemption.clause for exemption in contract.exemptions if exemption.kind == line.band]
    queue = contract.queues.by_name.get(line.queue or "")
    queue_clause = contract.queues.clause if queue and queue.multiplier is not None else None
    return ", ".join(dict.fromkeys(clause for clause in (band, *exempting, queue_clause) if clause)) or None


def credit_words(contract: Contract, line: InvoiceLine) -> tuple[str, str]:
    """Whose tokens a credit line gives back, and how they are valued."""
    refund, factor = contract.refund, f"{contract.refund.tokens} ×"
    if line.band == "failed":
        return "failed requests", f"{factor} their input tokens, at the base rate"
    window = window_words(contract.objective.window)
    requests = "late requests" if refund.of == "late_requests" else f"all requests of the missed {window}"
    if line.band in (None, "refund"):
        return requests, f"{factor} their tokens, at the base rate"
    charged = ", ".join(part for part in (line.band, line.queue and f"{line.queue} queue", line.variant) if part)
    return charged, f"{factor} the tokens of {requests}, at the rate they were charged"


def token_words(token: str | None) -> str:
    """The kind of token of a line, as a customer knows it."""
    return TOKENS.get(token or "", token or "")


def queues_words(queues: list[str]) -> str:
    """`standard queue`, `standard and vip queues`."""
    return f"{and_list(queues)} queue{'' if len(queues) == 1 else 's'}"


def and_list(words: list[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _band_rule(contract: Contract, band: str) -> tuple[str, str]:
    for tier in contract.pricing.tiers:
        if tier.name == band:
            return tier.name, f"{span_words(tier.latency)}{_price(tier.multiplier)}"
    if band == "cancelled":
        return band, "the client closed the request in time; tokens produced until then"
    if band == "missing_latency":
        return "no latency", f"nobody measured it{_price_apart(contract.pricing.missing_latency.multiplier)}"
    return band.replace("_", " "), " or ".join(_exemption_rule(exemption) for exemption in contract.exemptions if exemption.kind == band)


def _exemption_rule(exemption: CircuitBreaker | Async | ColdStart) -> str:
    price = _price_apart(exemption.multiplier)
    if isinstance(exemption, CircuitBreaker):
        return f"received while a circuit breaker was open{price}"
    if isinstance(exemption, Async):
        threshold = exemption.input_tokens
        return f"input {_TOKENS_COMPARED[threshold.op]} {grouped_count(threshold.tokens)} tokens, answered asynchronously{price}"
    starts = "the first" if exemption.limit == 1 else f"the first {grouped_count(exemption.limit)}"
    return f"{starts} of a day, up to {duration_words(exemption.max_duration_us)} each{price}"


def _multiplier_notes(contract: Contract, line: InvoiceLine) -> list[str]:
    notes = []
    queue = contract.queues.by_name.get(line.queue or "", Queue())
    if queue.multiplier is not None and line.forfeited:
        limit = f"wait not within {duration_words(queue.max_queue_us)}" if queue.max_queue_us is not None else "waited too long"
        notes.append(f"{line.queue} queue, {limit}: its price factor is waived")
    elif queue.multiplier is not None:
        factor = f"× {decimal_text(queue.multiplier)}"
        notes.append(f"{line.queue} queue {factor}" if queue.combine == "multiply" else f"{line.queue} queue: at least {factor}")
    elif line.queue not in (None, "standard"):
        notes.append(f"{line.queue} queue")
    if (
        line.queue is not None
        and line.queue in contract.latency.by_queue
        and any(tier.name == line.band for tier in contract.pricing.tiers)
    ):
        notes.append(f"measured {measured_words(contract, line.queue)}")
    if line.model is not None and line.variant is not None:
        limit = decimal_text(contract.models[line.model].degraded[line.variant].max_multiplier)
        notes.append(f"reduced variant {line.variant}: never above × {limit}")
    return notes


def _price(multiplier: Decimal) -> str:
    """The price of a band, said only if it is not the plain one: ` at 30%`, ` at × 2`."""
    if multiplier == 1:
        return ""
    return f" at {percent_text(multiplier)}" if multiplier < 1 else f" at × {decimal_text(multiplier)}"


def _price_apart(multiplier: Decimal) -> str:
    return f",{_price(multiplier)}" if multiplier != 1 else ""


def _exact(number: Fraction) -> str:
    """A fraction whose denominator divides a million, as a decimal without trailing zeros."""
    return decimal_text(Decimal(number.numerator) / Decimal(number.denominator))
