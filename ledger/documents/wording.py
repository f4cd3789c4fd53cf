"""What a contract's rules say, in words that the customer's finance team understands: bands, queues, the promise, credits.

Takes a contract and gives short English phrases. Source: specification, sections 3 to 7.
"""

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract, Queue
from ledger.contract.scalar import Span
from ledger.documents.number import decimal_text, grouped_count, percent_text
from ledger.settlement.statement import InvoiceLine, LineKind

TOKENS = {"input": "Input tokens", "cached_input": "Cached input tokens", "output": "Output tokens"}
BANDS = {"missing_latency": "no latency measured", "circuit_breaker": "circuit breaker", "cold_start": "cold start", "async": "async"}
_SPANS = {"h": "hour", "m": "minute", "d": "day"}
_COMPARED = {"<": "below", "<=": "up to", ">": "above", ">=": "at least"}
_TOKENS_COMPARED = {"<": "under", "<=": "up to", ">": "over", ">=": "at least"}
_MEASURED = {"end_to_end": "end to end", "inference": "inference time", "first_token": "time to first token"}


def printable(text: str) -> str:
    """The text with characters that act instead of showing (controls, direction marks) written as escapes."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else f"\\u{ord(c):04x}" for c in text)


def duration_words(duration_us: int) -> str:
    """A duration in its largest even unit: `300 ms`, `8.3 s`, `5 minutes`, `30 days`. Exact."""
    for size_us, name in ((86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute")):
        if duration_us and duration_us % size_us == 0:
            count = duration_us // size_us
            return f"{grouped_count(count)} {name}{'' if count == 1 else 's'}"
    size_us, unit = (1_000_000, "s") if duration_us >= 1_000_000 else (1_000, "ms")
    return f"{_exact(Fraction(duration_us, size_us))} {unit}"


def milliseconds(duration_us: int) -> str:
    """Milliseconds with all three digits of the microseconds, thousands grouped: `1,046.002`."""
    return f"{grouped_count(duration_us // 1000)}.{duration_us % 1000:03d}"


def span_words(span: Span) -> str:
    """A tier's latencies as the contract writes them: `below 100 ms`, `100 ms to 300 ms`, `above 300 ms`."""
    text = re.sub(r"(\d)(us|ms|s|m|h|d)\b", lambda match: f"{match[1]} {match[2]}", " ".join(span.text.split()))
    if " ..< " in (spaced := re.sub(r"\s*(\.\.<|\.\.)\s*", r" \1 ", text)):
        return spaced.replace(" ..< ", " to just below ")
    if " .. " in spaced:
        return spaced.replace(" .. ", " to ")
    operator, edge = re.fullmatch(r"(<=|<|>=|>)\s*(.*)", text).groups()  # type: ignore[union-attr]  # parse_span admits no other form
    return f"{_COMPARED[operator]} {edge}"


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


def latency_words(contract: Contract, queue: str | None = None) -> str:
    """How the latency of a queue is measured; a definition of the contract's own is named and quoted."""
    name = contract.latency.by_queue.get(queue or "", contract.latency.default)
    if name in _MEASURED:
        return _MEASURED[name]
    return f"{name}: {contract.latency.define[name].text}" if name in contract.latency.define else name


def promise_words(contract: Contract) -> str:
    """The service level in one sentence."""
    objective = contract.objective
    scope = "each model" if objective.scope == "model" else "all models together"
    spans = {"month": "In every calendar month", "1d": "On every day"}
    span = spans.get(objective.window, f"In every {window_words(objective.window)}")
    ways = {queue: latency_words(contract, queue) for queue in objective.queues}
    if len(set(ways.values())) == 1:
        measured = f", measured {_as_measure(next(iter(ways.values())))}"
    else:
        measured = "; measured " + ", ".join(f"{_as_measure(way)} in the {queue} queue" for queue, way in ways.items())
    queues = and_list(list(objective.queues))
    return (
        f"{span}, {percent_text(objective.percentile)} of the requests to {scope} in the {queues} "
        f"queue{'' if len(objective.queues) == 1 else 's'} are answered within {duration_words(objective.target_us)}{measured}."
    )


def band_words(contract: Contract, line: InvoiceLine) -> str:
    """Which requests a line holds, and why they have their price; `contract` is the line's version."""
    assert line.band is not None
    return "; ".join([_band_rule(contract, line.band), *_multiplier_notes(contract, line)])


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


def credit_words(contract: Contract, line: InvoiceLine) -> str:
    """Whose tokens a credit line gives back, and how they are valued."""
    refund, factor = contract.refund, f"{contract.refund.tokens} ×"
    if line.band == "failed":
        return f"failed requests: {factor} their input tokens, at the base rate"
    window = window_words(contract.objective.window)
    requests = "late requests" if refund.of == "late_requests" else f"all requests of the missed {window}"
    if line.band in (None, "refund"):
        return f"{requests}: {factor} their tokens, at the base rate"
    charged = ", ".join(part for part in (line.band, line.queue and f"{line.queue} queue", line.variant) if part)
    return f"{charged}: {factor} the tokens of {requests}, at the rate they were charged"


def token_words(token: str | None) -> str:
    """The kind of token of a line, as a customer knows it."""
    return TOKENS.get(token or "", token or "")


def and_list(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _band_rule(contract: Contract, band: str) -> str:
    for tier in contract.pricing.tiers:
        if tier.name == band:
            priced = "" if tier.multiplier == 1 else f" at {_price(tier.multiplier)}"
            return f"{tier.name}: {span_words(tier.latency)}{priced}"
    if band == "cancelled":
        return "cancelled: the client closed the request in time; tokens produced until then"
    if band == "missing_latency":
        return f"no latency measured, charged at {_price(contract.pricing.missing_latency.multiplier)}"
    rules = [_exemption_rule(exemption) for exemption in contract.exemptions if exemption.kind == band]
    return f"{BANDS.get(band, band)}: {' or '.join(rules)}" if rules else band


def _exemption_rule(exemption: CircuitBreaker | Async | ColdStart) -> str:
    if isinstance(exemption, CircuitBreaker):
        return f"{and_list(list(exemption.queues))} queue while a circuit breaker was open"
    if isinstance(exemption, Async):
        threshold = exemption.input_tokens
        return f"input {_TOKENS_COMPARED[threshold.op]} {grouped_count(threshold.tokens)} tokens, answered asynchronously"
    starts = "the first" if exemption.limit == 1 else f"the first {grouped_count(exemption.limit)}"
    return f"{starts} of a day, up to {duration_words(exemption.max_duration_us)} each"


def _multiplier_notes(contract: Contract, line: InvoiceLine) -> list[str]:
    notes = []
    queue = contract.queues.by_name.get(line.queue or "", Queue())
    if queue.multiplier is not None and line.forfeited:
        limit = f"waited over {duration_words(queue.max_queue_us)}" if queue.max_queue_us is not None else "waited too long"
        notes.append(f"{line.queue} queue, {limit}: its price factor is waived")
    elif queue.multiplier is not None:
        factor = f"× {decimal_text(queue.multiplier)}"
        notes.append(f"{line.queue} queue {factor}" if queue.combine == "multiply" else f"{line.queue} queue: at least {factor}")
    elif line.queue not in (None, "standard"):
        notes.append(f"{line.queue} queue")
    if line.model is not None and line.variant is not None:
        limit = decimal_text(contract.models[line.model].degraded[line.variant].max_multiplier)
        notes.append(f"reduced variant {line.variant}: never above × {limit}")
    return notes


def _price(multiplier: Decimal) -> str:
    return percent_text(multiplier) if multiplier < 1 else f"× {decimal_text(multiplier)}"


def _as_measure(way: str) -> str:
    return {"end to end": "end to end", "inference time": "by inference time", "time to first token": "to the first token"}.get(
        way, f"by the definition “{way}”"
    )


def _exact(number: Fraction) -> str:
    """A fraction whose denominator divides a million, as a decimal without trailing zeros."""
    return decimal_text(Decimal(number.numerator) / Decimal(number.denominator))
