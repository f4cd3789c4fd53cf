"""Worked numbers that stand under the sentences of a contract: what the rules make of one request, window or amount.

Values only. The functions that settle real months make them (`workflows/illustrate_contract`), a language says them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from ledger.contract.fact import Identity
from ledger.settlement.statement import InvoiceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Instants:
    """The first instant of a version and the first one after it, in the contract's zone."""

    first: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Tokens by kind with their rates; `amount` is exact, `multiplier` what came of band, queue and variant."""

    tokens: tuple[tuple[str, int, Decimal], ...]
    multiplier: Decimal
    amount: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """Exact amounts and what each becomes on an invoice, in minor units."""

    amounts: tuple[tuple[Decimal, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxed:
    """An invoice of these charges and credits (negative), in minor units."""

    charges: int
    credits: int
    tax: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueUp:
    """A month whose charges are too low, in minor units."""

    charges: int
    true_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a request took (microseconds) and the latency that follows; None for none."""

    queue_us: int
    prefill_us: int
    decode_us: int
    latency_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerated:
    """Of so many requests in a window, at most `tolerated` may be late."""

    requests: int
    tolerated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Two latencies a microsecond apart, with the tier of each, whether it is late, and which of them the contract writes."""

    below_us: int
    below_tier: str
    below_late: bool
    above_tier: str
    above_late: bool
    is_written_below: bool

    @property
    def above_us(self) -> int:
        """The first latency beyond the edge."""
        return self.below_us + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A request of this latency, the multiplier of its tier, and what it costs in its queue (if it `is_in_queue`) and variant."""

    latency_us: int
    tier: str
    tier_multiplier: Decimal
    charge: Charge
    is_in_queue: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The longest wait that keeps the queue's multiplier, what is charged then, and what is charged beyond it or of an unknown wait."""

    longest_us: int
    tier: str
    within: Decimal
    beyond: Decimal
    unknown: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCases:
    """Requests around the limit: input tokens, whether the header was there, whether the exemption takes them."""

    cases: tuple[tuple[int, bool, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStartCases:
    """How many of the requests are exempt: of two that share a cold start, so long apart; and of so many cold starts of a day."""

    apart: tuple[tuple[int, int], ...]
    of_day: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerCases:
    """Whether requests received as the breaker opens, a microsecond before it closes, and as it closes are exempt."""

    exempt: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What becomes of a request that failed, was cancelled or has no latency. `latency_us` None: unknown, or it does not matter. `queue` is
    its queue, where the price depends on it."""

    queue: str | None
    status: int
    latency_us: int | None
    charge: Charge | None  # None: not billed
    in_objective: bool
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The largest latency within the tolerance, and whether it and the next one are over it."""

    limit_us: int
    limit_over: bool
    beyond_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Of breaches within the tolerance, in order, which are forgiven; and whether one over it is, before the budget is touched."""

    within: tuple[bool, ...]
    is_over_forgiven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """The number of forgiven breaches at which the alert is due."""

    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """A refund of these tokens, which were charged so much, in minor units. `latency_us` None: the requests failed. `queue` is their
    queue, where the price depends on it."""

    queue: str | None
    latency_us: int | None
    tokens: Mapping[str, int]
    factor: int
    charged: int
    lines: tuple[InvoiceLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """Charges and credits (negative) of a month, and what the cap takes back, in minor units."""

    charges: int
    credits: int
    taken_back: int


Illustration = (
    Instants
    | Rounded
    | Taxed
    | TrueUp
    | Measured
    | Tolerated
    | Edge
    | Priced
    | Waits
    | AsyncCases
    | ColdStartCases
    | BreakerCases
    | Judged
    | Tolerance
    | Verdicts
    | Alert
    | Credit
    | Capped
)
Illustrations = Mapping[Identity, Sequence[Illustration]]
