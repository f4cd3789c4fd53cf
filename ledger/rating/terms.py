"""The terms of a contract that decide how it classifies events, and no others: contracts with equal terms share one plan.

Takes a contract, gives a value to compare and to compile. What a cell costs (rates, multipliers) is not among them.
Source: specification, section 4; architecture, "The one idea".
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Literal

from ledger.contract.expression import Definition
from ledger.contract.model import Contract, Exemption, Outcomes

ANY_MULTIPLIER = Decimal(1)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Durations in microseconds. `tiers_from_us` are the lower ends of the tiers in the contract's order; `waits_us` the longest wait of
    each queue whose multiplier is forfeited beyond it."""

    timezone: str
    latency_default: str
    latency_by_queue: tuple[tuple[str, str], ...]
    definitions: tuple[tuple[str, Definition], ...]
    window: str
    target_us: int
    up_to: Decimal
    queues_judged: tuple[str, ...]
    tiers_from_us: tuple[int, ...]
    missing_latency: Literal["late", "exclude"]
    waits_us: tuple[tuple[str, int], ...]
    exemptions: tuple[Exemption, ...]
    outcomes: Outcomes

    @property
    def late_from_us(self) -> int:
        """The first whole microsecond above the target."""
        return self.target_us + 1

    @property
    def over_from_us(self) -> int:
        """The first whole microsecond above target x up_to, which itself may have a fraction."""
        return int(self.target_us * Fraction(self.up_to)) + 1

    @cached_property
    def edges_us(self) -> tuple[int, ...]:
        """Latencies, ascending, at which a rule changes: class k holds latencies from edges[k - 1] to before edges[k]."""
        starts = set(self.tiers_from_us) - {0}
        return tuple(sorted(starts | {self.late_from_us, self.over_from_us}))


def terms_of(contract: Contract) -> Terms:
    """The contract's terms of classification."""
    return Terms(
        timezone=contract.calendar.timezone,
        latency_default=contract.latency.default,
        latency_by_queue=tuple(sorted(contract.latency.by_queue.items())),
        definitions=tuple(sorted(contract.latency.define.items(), key=lambda item: item[0])),
        window=contract.objective.window,
        target_us=contract.objective.target_us,
        up_to=contract.error_budget.up_to,
        queues_judged=tuple(sorted(contract.objective.queues)),
        tiers_from_us=tuple(tier.latency.from_us for tier in contract.pricing.tiers),
        missing_latency=contract.pricing.missing_latency.objective,
        waits_us=tuple(
            sorted(
                (name, queue.max_queue_us)
                for name, queue in contract.queues.by_name.items()
                if queue.over_limit == "forfeit" and queue.max_queue_us is not None
            )
        ),
        exemptions=tuple(one.model_copy(update={"clause": None, "multiplier": ANY_MULTIPLIER}) for one in contract.exemptions),
        outcomes=contract.outcomes,
    )
