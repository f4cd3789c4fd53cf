"""What a contract file says, and when each version is in force. Reads valid files only: to refuse the others is no part of a settlement.

Takes the texts of the versions of one contract; gives their terms and the stretches in which they rule. Source: specification, section 3.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import yaml

from tests.oracle.days import day_start
from tests.oracle.expression import UNIT_US

LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # the same, written in C, where it is installed
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Tier:
    name: str
    latency: str
    multiplier: Fraction

    def holds(self, latency_us: int) -> bool:
        """`< a`, `<= a`, `> a`, `>= a`, `a .. b` (both ends included) or `a ..< b`."""
        if "..<" in self.latency:
            low, high = self.latency.split("..<")
            return duration_us(low) <= latency_us < duration_us(high)
        if ".." in self.latency:
            low, high = self.latency.split("..")
            return duration_us(low) <= latency_us <= duration_us(high)
        return satisfies(latency_us, self.latency, duration_us)


@dataclass(frozen=True)
class Rule:
    """One exemption. Only the fields of its kind are filled."""

    kind: str
    multiplier: Fraction
    queues: tuple[str, ...] = ()
    input_tokens: str = ""
    needs_header: bool = False
    limit: int = 0
    max_duration_us: int = 0


@dataclass(frozen=True)
class Queue:
    multiplier: Fraction | None
    combine: str
    max_queue_us: int | None
    over_limit: str


@dataclass(frozen=True)
class Terms:
    """One version. Shares are fractions (30% is 3/10), durations microseconds."""

    contract: str
    version: int
    replaces: int | None
    effective_from: date
    effective_until: date | None
    accounts: tuple[str, ...]
    timezone: str
    within_us: int  # corrections.within
    may_charge_more: bool
    currency: str
    rounding: str
    tax_rate: Fraction
    minimum: Decimal | None
    rates: dict[tuple[str, str], str]  # (model, token) -> as the contract writes it
    served: dict[str, tuple[str, str | None]]  # served name -> (model, variant)
    max_multiplier: dict[str, Fraction]  # of a variant
    latency_default: str
    latency_by_queue: dict[str, str]
    latency_define: dict[str, str]
    percentile: Fraction
    target_us: int
    window: str
    scope: str
    min_requests: int
    small_windows: str
    max_requests: int | None
    objective_queues: tuple[str, ...]
    tiers: tuple[Tier, ...]
    missing_multiplier: Fraction
    missing_objective: str
    queues: dict[str, Queue]
    rules: tuple[Rule, ...]
    failure_objective: dict[str, str]  # outcome -> late | exclude
    cancelled_bill: str
    cancelled_objective: str
    breaches: int
    up_to: Fraction
    alert_at: Fraction
    refund_of: str
    refund_factor: int
    valued_at: str
    refund_failed: str
    refund_tax: str
    refund_cap: Fraction | None


@cache
def duration_us(text: str) -> int:
    """`8.3s` in microseconds."""
    number = text.strip().rstrip("usmhd")
    return int(Fraction(number) * UNIT_US[text.strip()[len(number) :]])


def share(text: str) -> Fraction:
    """`30%` or `2.0`."""
    return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)


def satisfies(value: int, comparison: str, read: Any = int) -> bool:
    """Whether the value stands to the bound as `< bound`, `<= bound`, `> bound` or `>= bound` says."""
    comparison = comparison.strip()
    if comparison.startswith("<="):
        return bool(value <= read(comparison[2:]))
    if comparison.startswith(">="):
        return bool(value >= read(comparison[2:]))
    if comparison.startswith("<"):
        return bool(value < read(comparison[1:]))
    assert comparison.startswith(">")
    return bool(value > read(comparison[1:]))


def unless_none(text: str, read: Any) -> Any:
    return None if text == "none" else read(text)


def read_terms(text: str) -> Terms:
    """The terms of one version; every scalar is the text that stands in the file (BaseLoader)."""
    file: dict[str, Any] = yaml.load(text, Loader=LOADER)
    served: dict[str, tuple[str, str | None]] = {}
    rates, max_multiplier = {}, {}
    for model, sold in file["models"].items():
        for name in sold.get("served_as", [model]):
            served[name] = (model, None)
        for name, variant in sold.get("degraded", {}).items():
            served[name] = (model, name)
            max_multiplier[name] = share(variant["max_multiplier"])
        for token, rate in sold["per_million_tokens"].items():
            rates[model, token] = rate
    latency, objective, pricing = file["latency"], file["objective"], file["pricing"]
    outcomes, budget, refund = file["outcomes"], file["error_budget"], file["refund"]
    corrections = file["calendar"].get("corrections", {})
    return Terms(
        contract=file["id"],
        version=int(file["version"]),
        replaces=int(file["replaces"]) if "replaces" in file else None,
        effective_from=date.fromisoformat(file["effective"]["from"]),
        effective_until=date.fromisoformat(file["effective"]["until"]) if "until" in file["effective"] else None,
        accounts=tuple(file["parties"]["customer"]["accounts"]),
        timezone=file["calendar"]["timezone"],
        within_us=duration_us(corrections.get("within", "365d")),
        may_charge_more=corrections.get("may_charge_more", "yes") in ("yes", "true"),
        currency=file["money"]["currency"],
        rounding=file["money"]["rounding"],
        tax_rate=share(file["money"]["tax"]["rate"]) if "tax" in file["money"] else Fraction(0),
        minimum=unless_none(file["minimum_commitment"], Decimal),
        rates=rates,
        served=served,
        max_multiplier=max_multiplier,
        latency_default=latency["default"],
        latency_by_queue=latency.get("by_queue", {}),
        latency_define=latency.get("define", {}),
        percentile=Fraction(objective["percentile"]) / 100,
        target_us=duration_us(objective["target"]),
        window=objective["window"],
        scope=objective["scope"],
        min_requests=int(objective["min_requests"]),
        small_windows=objective["small_windows"],
        max_requests=unless_none(objective.get("max_requests", "none"), int),
        objective_queues=tuple(objective["queues"]),
        tiers=tuple(Tier(tier["name"], tier["latency"], share(tier["multiplier"])) for tier in pricing["tiers"]),
        missing_multiplier=share(pricing["missing_latency"]["multiplier"]),
        missing_objective=pricing["missing_latency"]["objective"],
        queues={name: read_queue(queue) for name, queue in file["queues"].items() if name != "clause"},
        rules=tuple(read_rule(rule) for rule in file["exemptions"]),
        failure_objective={name: outcomes[name]["objective"] for name in ("server_error", "rate_limited", "client_error")},
        cancelled_bill=outcomes["cancelled"]["bill"],
        cancelled_objective=outcomes["cancelled"]["objective"],
        breaches=int(budget["breaches"]),
        up_to=share(budget["up_to"]),
        alert_at=share(budget["alert_at"]),
        refund_of=refund["of"],
        refund_factor=int(refund["tokens"].removesuffix("x")),
        valued_at=refund["valued_at"],
        refund_failed=refund.get("failed", "none"),
        refund_tax=refund.get("tax", "reduces_base"),
        refund_cap=unless_none(refund["cap"], share),
    )


def read_queue(queue: dict[str, str]) -> Queue:
    return Queue(
        multiplier=share(queue["multiplier"]) if "multiplier" in queue else None,
        combine=queue.get("combine", "multiply"),
        max_queue_us=unless_none(queue.get("max_queue", "none"), duration_us),
        over_limit=queue.get("over_limit", "report"),
    )


def read_rule(rule: dict[str, Any]) -> Rule:
    return Rule(
        kind=rule["kind"],
        multiplier=share(rule["multiplier"]),
        queues=tuple(rule.get("queues", ())),
        input_tokens=rule.get("input_tokens", ""),
        needs_header=rule.get("evidence") == "header",
        limit=int(rule.get("limit", "0")),
        max_duration_us=duration_us(rule.get("max_duration", "0s")),
    )


@dataclass(frozen=True)
class Stretch:
    """A span [start, end) in which one version is in force without a break."""

    start: datetime
    end: datetime
    terms: Terms


def stretches_in_force(versions: list[Terms]) -> list[Stretch]:
    """The stretches of all versions, in order of time, none overlapping another."""
    spans: dict[int, tuple[datetime, datetime]] = {}
    for terms in versions:
        start = day_start(terms.effective_from, terms.timezone)
        if terms.effective_until is not None:
            end = day_start(terms.effective_until, terms.timezone)
        else:
            # "A version without `until` ends where the next one begins that replaces nothing."
            later = [
                day_start(other.effective_from, other.timezone)
                for other in versions
                if other.replaces is None and other.effective_from > terms.effective_from
            ]
            end = min(later, default=FOREVER)
        spans[terms.version] = (start, end)

    stretches = []
    for terms in versions:
        # "This version stands for version N on the days that both cover": those days are taken out of N.
        pieces = [spans[terms.version]]
        for other in versions:
            if other.replaces == terms.version:
                pieces = [piece for whole in pieces for piece in without(whole, spans[other.version])]
        stretches += [Stretch(start, end, terms) for start, end in pieces if start < end]  # a skipped day alone is no time at all
    stretches.sort(key=lambda stretch: stretch.start)
    for before, after in pairwise(stretches):
        assert before.end <= after.start, f"versions {before.terms.version} and {after.terms.version} overlap"
    return stretches


def without(whole: tuple[datetime, datetime], hole: tuple[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    """What is left of a span when another is taken out of it."""
    left = (whole[0], min(whole[1], hole[0]))
    right = (max(whole[0], hole[1]), whole[1])
    if hole[0] >= hole[1]:
        return [whole]
    return [piece for piece in (left, right) if piece[0] < piece[1]]
