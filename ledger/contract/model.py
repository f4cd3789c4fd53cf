"""The contract as frozen types: what a contract file means once it has been read. Every other part of ledger takes its terms from here.

Durations are integer microseconds (`_us`), rates, multipliers and shares exact decimals (30% is Decimal("0.3")), amounts
decimals of the currency. Names follow the file's keys; a unit is added where the file writes it in the value.
Source: specification, section 3.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ledger.contract.diagnostic import Path, Refusal
from ledger.contract.example import Example
from ledger.contract.expression import Expression
from ledger.contract.terms import Terms
from ledger.contract.types import (
    Clause,
    ContractId,
    Count,
    Currency,
    Day,
    DistinctLines,
    DistinctNames,
    Duration,
    Factor,
    Holding,
    Identifier,
    LatencySpan,
    Line,
    Lines,
    Multiplier,
    OptionalAmount,
    OptionalCount,
    OptionalDuration,
    OptionalMultiplier,
    OptionalShare,
    Percentile,
    Rate,
    Sha256,
    Share,
    Term,
    Timezone,
    TokenComparison,
    Tolerance,
    VersionNumber,
    YesNo,
    not_empty,
)


class Rounding(StrEnum):
    """The rule of the one rounding of a line: away from zero at the half, or to the even neighbour."""

    HALF_UP = "half_up"
    HALF_EVEN = "half_even"


class ExemptionKind(StrEnum):
    """What takes a request out of the objective and prices it by itself."""

    CIRCUIT_BREAKER = "circuit_breaker"
    ASYNC = "async"
    COLD_START = "cold_start"


class GoverningText(Terms):
    """The signed document that rules in case of doubt."""

    language: Line
    document: Line
    sha256: Sha256


class Provider(Terms):
    """Who sells. `tax_id` owns the series of invoice numbers."""

    name: Line
    tax_id: Line
    address: Lines


class Customer(Terms):
    """Who buys, and under which accounts the gateway knows them."""

    name: Line
    tax_id: Line
    address: Lines
    accounts: DistinctLines


class Parties(Terms):
    """The two parties of the agreement."""

    provider: Provider
    customer: Customer


class Effective(Terms):
    """Local days on which the version applies. `until` is exclusive; without it, until another version begins."""

    start: Day = Field(alias="from")
    until: Day | None = None


class Corrections(Terms):
    """How long after the end of a month it may still be adjusted, and whether an adjustment may cost the customer more."""

    within_us: Term = Field(alias="within", default=365 * 86_400_000_000)
    may_charge_more: YesNo = True


class Calendar(Terms):
    """The zone whose days and months are meant, and when a month may be settled."""

    timezone: Timezone
    billing_period: Literal["month"] = Field(description="What one invoice covers.")
    grace_us: Term = Field(alias="grace")
    corrections: Corrections = Corrections()


class Tax(Terms):
    """A tax on the taxable net."""

    name: Line
    rate: Share


class Money(Terms):
    """The currency, how lines are rounded to its minor unit, and the tax if there is one."""

    currency: Currency
    rounding: Rounding
    tax: Tax | None = None


class Payment(Terms):
    """When and where to pay."""

    due_us: Term = Field(alias="due")
    details: Line


class Rates(Terms):
    """Currency per 1,000,000 tokens of each kind; `input` is for uncached prompt tokens."""

    input: Rate
    cached_input: Rate
    output: Rate


class Degraded(Terms):
    """A weaker variant of a model: its multiplier never exceeds this."""

    max_multiplier: Multiplier


class Model(Terms):
    """A model on sale. `served_as` are the names in telemetry (without it, the key); `degraded` its weaker variants by served name."""

    served_as: DistinctLines | None = None
    degraded: Mapping[Line, Degraded] = {}
    per_million_tokens: Rates


class Latency(Terms):
    """Which span of a request is its latency: a built-in name or one under `define`, by queue or by default."""

    clause: Clause = None
    default: Identifier
    by_queue: Mapping[Identifier, Identifier] = {}
    define: Mapping[Identifier, Expression] = {}


class Objective(Terms):
    """The promise: `percentile` of the latencies in each window stays within the target."""

    clause: Clause = None
    percentile: Percentile
    target_us: Duration = Field(alias="target")
    window: Literal["1m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "4h", "6h", "8h", "12h", "1d", "month"] = Field(
        description="The span of time over which the percentile is judged."
    )
    scope: Literal["model", "contract"] = Field(description="Whether each model is judged by itself or all together.")
    min_requests: Count
    small_windows: Literal["evaluate", "skip", "pool_day"] = Field(
        description="What becomes of windows with fewer than min_requests: judged all the same, left out, or judged together as one a day."
    )
    max_requests: OptionalCount = None
    queues: DistinctNames


class Tier(Terms):
    """A latency band with its multiplier."""

    name: Identifier
    latency: LatencySpan
    multiplier: Multiplier


class MissingLatency(Terms):
    """How a success without a measured latency is priced and judged."""

    multiplier: Multiplier
    objective: Literal["late", "exclude"] = Field(description="Whether such requests count as late or are outside the objective.")


class Pricing(Terms):
    """The latency tiers; together they cover every latency exactly once."""

    clause: Clause = None
    tiers: tuple[Tier, ...]
    missing_latency: MissingLatency


class Queue(Terms):
    """A queue class. Without a `multiplier` that of the tier or exemption stays alone."""

    multiplier: OptionalMultiplier = None
    combine: Literal["multiply", "highest"] = Field(
        default="multiply",
        description="Whether the multipliers of queue and tier are multiplied, or the higher one applies.",
    )
    max_queue_us: OptionalDuration = Field(alias="max_queue", default=None)
    over_limit: Literal["report", "forfeit"] = Field(
        default="report", description="What a wait above max_queue means: it is reported, or the queue's multiplier is lost."
    )


class Queues(Terms):
    """The declared queue classes by name."""

    clause: Clause = None
    by_name: Mapping[Identifier, Queue]

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object) -> object:
        """In the file the queues stand beside `clause`; no queue may be called `clause`."""
        declared = value.get("by_name") if isinstance(value, dict) else None
        if not isinstance(value, dict) or (isinstance(declared, dict) and any(isinstance(terms, Queue) for terms in declared.values())):
            return value
        by_name = {key: terms for key, terms in value.items() if key != "clause"}
        if isinstance(value.get("clause"), dict):
            cure = "call the queue something else"
            raise Refusal("reserved_queue", "the clause of the agreement", cure, found="a queue called `clause`", key="clause")
        return {"by_name": by_name} | {key: text for key, text in value.items() if key == "clause"}


class CircuitBreaker(Terms):
    """Requests of the listed queues inside a recorded breaker interval."""

    kind: Literal[ExemptionKind.CIRCUIT_BREAKER] = Field(description="Requests in a recorded interval of an open circuit breaker.")
    clause: Clause = None
    queues: DistinctNames
    multiplier: Multiplier


class Async(Terms):
    """Long inputs answered asynchronously; with evidence `header` only if the response said so."""

    kind: Literal[ExemptionKind.ASYNC] = Field(description="Long inputs that are answered asynchronously.")
    clause: Clause = None
    input_tokens: TokenComparison
    evidence: Literal["header"] | None = Field(default=None, description="With `header`, only if the response said so.")
    multiplier: Multiplier


class ColdStart(Terms):
    """The first `limit` cold starts of a local day, each for requests up to `max_duration` after its first."""

    kind: Literal[ExemptionKind.COLD_START] = Field(description="Requests that a cold start of a model delayed.")
    clause: Clause = None
    limit: Count
    per: Literal["day"] = Field(description="The span in which at most `limit` cold starts are exempt.")
    max_duration_us: Duration = Field(alias="max_duration")
    multiplier: Multiplier


Exemption = Annotated[CircuitBreaker | Async | ColdStart, Field(discriminator="kind")]


class FailureOutcome(Terms):
    """How requests that failed in one way count in the objective; they are never billed."""

    objective: Literal["late", "exclude"] = Field(description="Whether such requests count as late or are outside the objective.")


class CancelledOutcome(Terms):
    """How requests that the client closed are billed and judged."""

    bill: Literal["produced", "nothing"] = Field(description="Whether the tokens that were produced until then are billed.")
    objective: Literal["late_if_over_target", "exclude"] = Field(
        description="Whether such requests count as late if they lasted longer than the target, or are outside the objective."
    )


class Outcomes(Terms):
    """What follows from each outcome other than success."""

    server_error: FailureOutcome
    rate_limited: FailureOutcome
    client_error: FailureOutcome
    cancelled: CancelledOutcome


class ErrorBudget(Terms):
    """Breaches that are forgiven each month, if they stay within `up_to` of the target."""

    clause: Clause = None
    breaches: Count
    per: Literal["month"] = Field(description="The span in which that many breaches are forgiven.")
    up_to: Tolerance
    order: Literal["chronological"] = Field(description="Which breaches are forgiven first.")
    alert_at: Share


class Refund(Terms):
    """What a breach that is not forgiven gives back. `cap` is a share of the period's charges."""

    clause: Clause = None
    of: Literal["late_requests", "window"] = Field(description="Whose tokens are given back: of late requests, or of all.")
    tokens: Factor
    valued_at: Literal["base_rate", "charged_rate"] = Field(description="At which price: the rate alone, or with the multiplier charged.")
    failed: Literal["none", "input_tokens"] = Field(default="none", description="What failed requests give back besides.")
    tax: Literal["reduces_base", "outside_scope"] = Field(
        default="reduces_base", description="Whether credits reduce the price that is taxed, or are damages that no tax is due on."
    )
    cap: OptionalShare


class Accepted(Terms):
    """A lint warning that was read and is meant."""

    code: Line
    reason: Line


class Contract(Terms):
    """One version of one contract, complete."""

    schema_name: Literal["ledger/contract/v1"] = Field(alias="schema", description="The language that this file is written in.")
    id: ContractId
    version: VersionNumber
    replaces: VersionNumber | None = None
    title: Line | None = None
    governing_text: GoverningText | None = None
    parties: Parties
    effective: Effective
    calendar: Calendar
    money: Money
    payment: Payment | None = None
    minimum_commitment: OptionalAmount
    require_approvals: DistinctNames = ()
    models: Annotated[Mapping[Identifier, Model], AfterValidator(not_empty), Holding((("minProperties", 1),))]
    latency: Latency
    objective: Objective
    pricing: Pricing
    queues: Queues
    exemptions: tuple[Exemption, ...] = Field(description="What is outside the objective; the first that fits decides.")
    outcomes: Outcomes
    error_budget: ErrorBudget
    refund: Refund
    accept: tuple[Accepted, ...] = ()
    examples: tuple[Example, ...] = ()

    def served_names(self) -> dict[str, tuple[str, str | None]]:
        """Each served name with the model it belongs to and, for a degraded variant, the variant (the served name itself)."""
        return {served: (model, variant) for served, model, variant, _ in served_names(self.models)}


def served_names(models: Mapping[str, Model]) -> Iterator[tuple[str, str, str | None, Path]]:
    """Each served name as the file lists it, repetitions included: name, model, variant and where it stands."""
    for key, model in models.items():
        if model.served_as is None:
            yield key, key, None, ("models", key)
        for at, served in enumerate(model.served_as or ()):
            yield served, key, None, ("models", key, "served_as", at)
        for served in model.degraded:
            yield served, key, served, ("models", key, "degraded", served)
