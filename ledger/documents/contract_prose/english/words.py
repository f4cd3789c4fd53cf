"""English: the words of sections, choices and units, and how names and durations are written in a sentence."""

from collections.abc import Iterable

from ledger.contract.fact import Written
from ledger.documents.contract_prose.figures import duration_parts, quoted
from ledger.documents.wording import and_list

HEADINGS = {
    **dict.fromkeys(("schema", "id", "version", "replaces", "title", "governing_text"), "The contract"),
    "parties": "The parties",
    "effective": "When it applies",
    "calendar": "Calendar and settlement",
    **dict.fromkeys(("money", "payment", "minimum_commitment"), "Money and payment"),
    "require_approvals": "Approvals",
    "models": "Models and rates",
    "latency": "How latency is measured",
    "objective": "The promise",
    "pricing": "The price by latency",
    "queues": "Queues",
    "exemptions": "Exemptions",
    "outcomes": "Billing and judging by outcome",
    "error_budget": "The error budget",
    "refund": "Refunds",
    "accept": "Warnings that are accepted",
    "examples": "Examples in the contract",
}
PREFACE = (
    "Every sentence follows from the contract file, in its order. In square brackets stands the clause of the signed agreement that the "
    "file names for it. Below a sentence stand worked numbers, computed by the rules that settle a month."
)
LATENCIES = {
    "end_to_end": "the end-to-end time: from the instant at which the gateway has the full request until it has the last token",
    "inference": "the inference time: from the first scheduling of the request to its last token, without the wait in the queue",
    "first_token": "the time to first token: from the instant at which the gateway has the full request to the first token",
}
MEASURES = {
    "queue": "the wait in the queue",
    "prefill": "the time from the first scheduling to the first token",
    "decode": "the time from the first to the last token",
    "inference": "the time from the first scheduling to the last token",
    "ttft": "the time to first token",
    "e2e": "the end-to-end time",
    "input_tokens": "the number of input tokens",
    "output_tokens": "the number of output tokens",
    "cached_input_tokens": "the number of cached input tokens",
    "if": "“if(a, b, c)” is b where a holds and c where it does not",
    "min": "“min” is the smallest of its parts",
    "max": "“max” is the largest of its parts",
}
WARNINGS = {
    "target_inside_tier": "the target lies inside a tier",
    "last_token": "latency is measured to the last token although a tier ends below 1 s",
    "alert_share": "no number of breaches hits the share at which the alert is due",
    "limit_16k": "16,000 and 16,384 tokens are easily confused",
    "template_value": "a value is still that of the template",
    "template_money": "prices, tax and minimum are those of the template",
    "utc_calendar": "the calendar is UTC although a party is elsewhere",
    "zone_without_place": "the time zone is that of no place",
    "text_cut_off": "a text goes on in a comment",
    "several_names": "one name holds a comma",
    "no_cap": "refunds have no cap",
    "base_rate_refund": "refunds are valued at the base rate",
    "cancelled_free": "cancelled requests are not billed",
    "shedding_free": "refusing requests for their rate has no consequence for the promise",
    "breaker_share": "circuit breakers are open for more than 5% of a month",
    "single_late_breach": "a single late request can be a breach",
    "unusable_budget": "as many breaches are forgiven as a month has windows",
    "no_tolerance": "no breach lies within the tolerance",
    "max_below_min": "every window is small or an overload",
    "large_multiplier": "a multiplier is above 10",
    "slower_costs_more": "a slower tier costs more than a faster one",
    "until_last_day": "the version ends before the last day of a month",
    "short_term": "a term of days is shorter",
    "inference_latency": "the wait in the queue is not part of the latency",
    "low_percentile": "the percentile is below 99",
    "no_clause": "a section names no clause",
}
LATE = {
    "late": "counts in the objective as late",
    "exclude": "stays outside the objective",
    "late_if_over_target": "counts in the objective as late if its latency is above the target, and else stays outside the objective",
}
COMPARED = {"<": "below", "<=": "of at most", ">": "above", ">=": "of at least"}
STATUSES = {
    "server_error": "A server error (any HTTP status but 200–299 and 400–499)",
    "rate_limited": "A request refused for its rate (HTTP status 429)",
    "client_error": "A client error (HTTP status 400–499, but neither 429 nor 499)",
}
FIELDS: dict[str, str] = {
    "account": "account",
    "model": "model",
    "queue": "queue",
    "node": "node",
    "cold_start": "cold start",
}
TIMES = {
    "queue_us": "wait in the queue",
    "prefill_us": "first scheduling to first token",
    "decode_us": "first to last token",
    "inference_us": "inference time",
    "ttft_us": "time to first token",
    "e2e_us": "end-to-end time",
}
TOKENS = {"input_tokens": "input tokens", "cached_input_tokens": "of them cached", "output_tokens": "output tokens"}
UNITS = {"us": "µs", "ms": "ms", "s": "s", "m": "minute", "h": "hour", "d": "day"}
KINDS = {"input": "input", "cached_input": "cached input", "output": "output"}
BANDS = {
    "async": "the exemption asynchronous processing",
    "cold_start": "the exemption cold start",
    "circuit_breaker": "the exemption circuit breaker",
    "missing_latency": "without a latency",
    "cancelled": "cancelled in time",
    "none": "not billed",
}
RESULTS = {
    "met": "the promise is kept",
    "forgiven": "the breach is forgiven",
    "refunded": "the breach is refunded",
    "insufficient": "too few requests to be judged",
    "overload": "more requests than are judged",
}
IN_OBJECTIVE = {"met": "meets the target", "late": "is late", "exclude": "is outside the objective"}
INTERVALS = {"circuit_breaker": "a circuit breaker open", "model_load": "a model being loaded"}


def duration(given: Written[int] | int) -> str:
    """A duration as the file writes it: `300 ms`, `24 hours`."""
    number, unit = duration_parts(given)
    plural = "s" if unit in "mhd" and number != "1" else ""
    return f"{number} {UNITS[unit]}{plural}"


def names(given: Iterable[str], last: str = "and") -> str:
    """Names in quotation marks, each once."""
    return and_list([quoted(name) for name in dict.fromkeys(given)], last)


def queue_words(queues: Iterable[str]) -> str:
    """`the queues “a” and “b”`."""
    listed = list(dict.fromkeys(queues))
    return f"the queue{plural(len(listed))} {names(listed)}"


def plural(count: int) -> str:
    """The ending of a noun."""
    return "" if count == 1 else "s"
