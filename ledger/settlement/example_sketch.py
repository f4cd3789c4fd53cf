"""Examples as a contract file writes them, made from its terms: what an example for a rule could look like.

Takes a contract and what the example is about, gives its `events`, `intervals`, `windows` and `expect` as texts. Pure; a test shows that
they come to what they expect. Source: specification, section 10.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from ledger.contract.model import Contract, Exemption, Tier
from ledger.contract.scalar import duration_text
from ledger.instant import MICROSECOND, local_text
from ledger.settlement.calendar import DAY, WINDOW_STEPS, local_days, zone
from ledger.settlement.charges import Price, Tokens, exact_charge, multiplier_in_queue
from ledger.settlement.money import exact_decimal, without_trailing_zeros

Text = str | list["Text"] | dict[str, "Text"]
Sketch = dict[str, Text]

BREAKER_S = 300  # how long the circuit breaker of a sketch is open
TOKENS: dict[str, Text] = {"input_tokens": "1000", "output_tokens": "500"}
_MEASURED = {"end_to_end": "e2e", "inference": "inference", "first_token": "ttft"}


def standard_queue(contract: Contract) -> str:
    """The queue of an event that names none: `standard` where the contract has it, else its first."""
    return "standard" if "standard" in contract.queues.by_name else next(iter(contract.queues.by_name))


def quiet_instant(contract: Contract, *, avoiding: Sequence[tuple[datetime, datetime]] = ()) -> datetime:
    """The middle of the version's first day, or of the first one whose middle lies in none of the spans [start, end)."""
    on = contract.effective.start
    until = contract.effective.until or on + timedelta(days=len(avoiding) + 2)
    days = local_days(contract.calendar.timezone, on, min(until, on + timedelta(days=len(avoiding) + 2)))
    middles = [start + (end - start) / 2 for start, end in zip(days.starts, (*days.starts[1:], days.end), strict=True)]
    return next((one for one in middles if not any(start <= one < end for start, end in avoiding)), middles[0])


def latency_in(tier: Tier) -> int:
    """A latency in the middle of a tier, or, if it has no end, above its edge."""
    span = tier.latency
    return max(span.edges_us) + 50_000 if span.until_us is None else (span.from_us + span.until_us) // 2


def limit_us(contract: Contract) -> int:
    """The largest whole latency within the tolerance of the error budget."""
    return int(contract.objective.target_us * Fraction(contract.error_budget.up_to))


def priced(contract: Contract, latency_us: int | None) -> Sketch:
    """A request of this latency, or without one, its band and its multiplier."""
    if latency_us is None:
        band, multiplier = "missing_latency", contract.pricing.missing_latency.multiplier
    else:
        tier = _tier(contract, latency_us)
        band, multiplier = tier.name, tier.multiplier
    expected = _multiplier(contract, multiplier, standard_queue(contract), None)
    return {"events": [_event(contract, latency_us)], "expect": {"band": [band], "multiplier": [expected]}}


def charged(contract: Contract, model: str) -> Sketch:
    """A request for the model with tokens of each kind, and its exact charge."""
    tier, tokens = contract.pricing.tiers[0], Tokens(input=800, cached_input=200, output=500)
    served = next(name for name, (owner, variant) in contract.served_names().items() if (owner, variant) == (model, None))
    event = _event(contract, latency_in(tier), wait_us=0) | {"model": served, "cached_input_tokens": str(tokens.cached_input)}
    multiplier = multiplier_in_queue(contract, tier.multiplier, standard_queue(contract), forfeited=False)
    price = Price(version=contract.version, model=model, band=tier.name, multiplier=multiplier)
    return {"events": [event], "expect": {"charge": f"{exact_decimal(exact_charge(price, tokens, contract)):f}"}}


def judged(contract: Contract, latency_us: int | None, objective: str, *, queue: str | None = None) -> Sketch:
    """A request of this latency, or without one, and how it counts in the objective."""
    event = _event(contract, latency_us, queue=queue or contract.objective.queues[0])
    return {"events": [event], "expect": {"objective": [objective]}}


def in_queue(
    contract: Contract,
    queue: str,
    *,
    wait_us: int | None,
    latency_us: int | None = None,
    variant: tuple[str, Decimal] | None = None,
) -> Sketch:
    """A request that waited so long in a queue, and its multiplier; of a variant with its cap, if one is given."""
    if latency_us is None:
        latency_us = (wait_us or 0) + 50_000
    event = _event(contract, latency_us, queue=queue, wait_us=wait_us)
    multiplier = _multiplier(contract, _tier(contract, latency_us).multiplier, queue, wait_us)
    if variant is not None:
        event |= {"model": variant[0]}
        multiplier = f"{min(Decimal(multiplier), variant[1]):f}"
    return {"events": [event], "expect": {"multiplier": [multiplier]}}


def in_breaker(contract: Contract, queue: str, *, seconds: int, taken_by: Exemption | None = None) -> Sketch:
    """A request so many seconds after a circuit breaker opened, which closes after BREAKER_S; taken by an exemption or by none."""
    start = quiet_instant(contract)
    interval: Text = {
        "kind": "circuit_breaker",
        "start": _at(contract, start),
        "end": _at(contract, start + BREAKER_S * 1_000_000 * MICROSECOND),
    }
    event = _event(contract, 50_000, queue=queue, received_at=_at(contract, start + seconds * 1_000_000 * MICROSECOND))
    return {"intervals": [interval], "events": [event], "expect": _taken(contract, queue, taken_by)}


def of_tokens(contract: Contract, input_tokens: int, *, has_header: bool, taken_by: Exemption | None = None) -> Sketch:
    """A request of so many input tokens; taken by an exemption or by none."""
    event = _event(contract, 50_000) | {"input_tokens": str(input_tokens)}
    event |= {"async_header": "yes"} if has_header else {}
    return {"events": [event], "expect": _taken(contract, standard_queue(contract), taken_by)}


def of_first_cold_start(contract: Contract, before: int, taken_by: Exemption) -> Sketch:
    """The first cold start that an exemption takes, after so many that others take before it."""
    sketch = of_cold_starts(contract, before + 1)
    return sketch if before else sketch | {"expect": _taken(contract, standard_queue(contract), taken_by)}


def of_cold_starts(contract: Contract, taken: int, *, one_more: bool = False, goes_on: bool = False) -> Sketch:
    """So many cold starts that are exempt, and perhaps one more, which another exemption takes or none."""
    event = _event(contract, 50_000) | {"cold_start": "true"}
    bands: list[Text] = ["cold_start"] * taken
    if one_more:
        bands.append("cold_start" if goes_on else _tier(contract, 50_000).name)
    return {"events": [dict(event) for _ in bands], "expect": {"band": bands}}


def of_long_cold_start(contract: Contract, longest_us: int) -> Sketch:
    """Two requests of one cold start, of which the second is received after the longest time that one is exempt."""
    first = quiet_instant(contract)
    events: list[Text] = [
        _event(contract, 50_000, received_at=_at(contract, at)) | {"cold_start": "load-1"}
        for at in (first, first + longest_us * MICROSECOND + 1_000_000 * MICROSECOND)
    ]
    return {"events": events, "expect": {"band": ["cold_start", _tier(contract, 50_000).name]}}


def cancelled(contract: Contract, *, is_over: bool) -> Sketch:
    """A request that the client closed, before or after the target, and its band."""
    latency_us = contract.objective.target_us + 1000 if is_over else contract.objective.target_us
    band = _tier(contract, latency_us).name if is_over else "cancelled"
    expected = band if contract.outcomes.cancelled.bill == "produced" else "none"
    return {"events": [_event(contract, latency_us) | {"status": "499"}], "expect": {"band": [expected]}}


def cancelled_judged(contract: Contract) -> Sketch:
    """A request that the client closed after the target, and how it counts in the objective."""
    objective = "late" if contract.outcomes.cancelled.objective == "late_if_over_target" else "exclude"
    sketch = judged(contract, contract.objective.target_us + 1000, objective)
    event = _event(contract, contract.objective.target_us + 1000, queue=contract.objective.queues[0]) | {"status": "499"}
    return sketch | {"events": [event]}


def failed(contract: Contract, status: int, objective: str) -> Sketch:
    """A request that failed, which is not billed, and how it counts in the objective."""
    event: dict[str, Text] = {"status": str(status)}
    if contract.objective.queues[0] != standard_queue(contract):
        event["queue"] = contract.objective.queues[0]
    return {"events": [event], "expect": {"band": ["none"], "objective": [objective]}}


def of_windows(contract: Contract, percentiles_us: Sequence[int], results: Sequence[str], *, requests: int | None = None) -> Sketch:
    """Windows of these percentiles, one after another in one month, and what becomes of them."""
    step = WINDOW_STEPS.get(contract.objective.window, DAY)
    start = _first_window(contract)
    windows: list[Text] = []
    for number, percentile_us in enumerate(percentiles_us):
        window: dict[str, Text] = {"at": _at(contract, start + number * step), "p99": duration_text(percentile_us)}
        windows.append(window | ({} if requests is None else {"requests": str(requests)}))
    return {"windows": windows, "expect": {"results": list(results)}}


def _first_window(contract: Contract) -> datetime:
    """The start of the first whole month of the version, or of the version if it has none."""
    on, until = contract.effective.start, contract.effective.until
    month = on if on.day == 1 else (on.replace(day=1) + timedelta(days=32)).replace(day=1)
    first = month if until is None or month < until else on
    return local_days(contract.calendar.timezone, first, first + timedelta(days=2)).starts[0]


def _event(
    contract: Contract, latency_us: int | None, *, queue: str | None = None, wait_us: int | None = None, received_at: str | None = None
) -> dict[str, Text]:
    """An event of this latency in a queue, as far as that can be said of the queue's definition."""
    used = queue or standard_queue(contract)
    name = contract.latency.by_queue.get(used, contract.latency.default)
    event: dict[str, Text] = {} if received_at is None else {"received_at": received_at}
    event |= {} if used == standard_queue(contract) else {"queue": used}
    event |= {} if wait_us is None else {"queue_ms": _ms(wait_us)}
    if latency_us is not None and name in _MEASURED:
        event[f"{_MEASURED[name]}_ms"] = _ms(latency_us)
    elif latency_us is not None:  # a definition of the contract's own: all that it may look at
        event |= {"inference_ms": _ms(latency_us - (wait_us or 0)), "ttft_ms": _ms(latency_us), "e2e_ms": _ms(latency_us)}
    return event | TOKENS


def _tier(contract: Contract, latency_us: int) -> Tier:
    """The tier of a latency, of which there is exactly one."""
    (tier,) = (
        tier
        for tier in contract.pricing.tiers
        if tier.latency.from_us <= latency_us and (tier.latency.until_us is None or latency_us < tier.latency.until_us)
    )
    return tier


def _taken(contract: Contract, queue: str, exemption: Exemption | None) -> Sketch:
    """Band and multiplier under an exemption, or under the tier of 50 ms: what is expected of a request of that latency."""
    tier = _tier(contract, 50_000)
    band, multiplier = (tier.name, tier.multiplier) if exemption is None else (exemption.kind.value, exemption.multiplier)
    return {"band": [band], "multiplier": [_multiplier(contract, multiplier, queue, None)]}


def _multiplier(contract: Contract, multiplier: Decimal, queue: str, wait_us: int | None) -> str:
    """The multiplier of a band in a queue after a wait, None for an unknown one."""
    terms = contract.queues.by_name[queue]
    is_forfeited = terms.over_limit == "forfeit" and terms.max_queue_us is not None and (wait_us is None or wait_us > terms.max_queue_us)
    return f"{without_trailing_zeros(multiplier_in_queue(contract, multiplier, queue, forfeited=is_forfeited)):f}"


def _ms(duration_us: int) -> str:
    return f"{Decimal(duration_us).scaleb(-3).normalize():f}"


def _at(contract: Contract, instant: datetime) -> str:
    """The instant in the contract's zone."""
    return local_text(instant.astimezone(zone(contract.calendar.timezone)))
