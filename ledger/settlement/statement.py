"""The statement of a settled period: what a settlement gives and every document shows. Values only.

Amounts are integer minor units of the currency (`_minor`), instants aware and in UTC. Source: specification, section 9.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from ledger.contract.model import Contract


class LineKind(StrEnum):
    """What a line is, in the order in which lines stand on an invoice."""

    USAGE = "usage"
    TRUE_UP = "true_up"
    CREDIT = "credit"
    CAP = "cap"
    ADJUSTMENT = "adjustment"


class CauseKind(StrEnum):
    """What made a closed month come out otherwise than it was issued."""

    CONTRACT = "contract"
    CORRECT = "correct"
    INTERVAL = "interval"
    JOIN = "join"
    LATE = "late"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cause:
    """One cause of an adjustment: its kind, and what it is about, such as a request's id."""

    kind: CauseKind
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxTerms:
    """How lines are taxed: the rate, 0 without a tax, and whether credits are damages, which no tax is taken off for."""

    rate: Decimal
    credits_outside_scope: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """What an adjustment line is of: a line of `kind` in the closed month `period`, issued as the document `invoice` and taxed by `tax`,
    and the causes of the difference: at most 100, in order, of `causes_total`."""

    period: str
    invoice: str
    kind: LineKind
    tax: TaxTerms
    causes: tuple[Cause, ...]
    causes_total: int


class Verdict(StrEnum):
    """What became of a breach."""

    FORGIVEN = "forgiven"
    REFUNDED = "refunded"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """One line: quantity (tokens) x rate (per 1,000,000) x multiplier, rounded once. Credits are negative.

    True-up and cap lines have None in every field but kind, forfeited (False) and the amount. An adjustment is what a line of a closed
    month is now less what has been posted for it, in tokens and in money: its amount is not the product of its figures.
    """

    kind: LineKind
    version: int | None
    model: str | None
    variant: str | None
    queue: str | None
    forfeited: bool
    band: str | None
    token: str | None
    quantity: int | None
    rate: Decimal | None
    multiplier: Decimal | None
    amount_minor: int
    of: Adjusted | None = None

    @property
    def origin(self) -> LineKind:
        """The kind of the line, and of an adjustment the kind of the line that it adjusts."""
        return self.kind if self.of is None else self.of.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedLine:
    """A line of an issued document, and how it was taxed."""

    line: InvoiceLine
    tax: TaxTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A judged window whose percentile missed the target. `percentile_us` None: the rank falls on a request without a number."""

    start: datetime
    end: datetime
    scope: str
    version: int
    requests: int
    late: int
    over: bool
    percentile_us: int | None
    verdict: Verdict
    pooled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """How many requests the period has, by what the rules made of them."""

    total: int
    billed: int
    in_objective: int
    late: int
    missing_latency: int
    outcomes: dict[str, int]
    exempt: dict[str, int]
    cancelled_without_usage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrated:
    """Requests that must be priced or judged, but whose model or queue the contract does not know."""

    what: str  # "model" or "queue"
    name: str
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCounts:
    """How many windows (or pools) were judged, missed the target, or could not be judged."""

    judged: int
    breached: int
    insufficient: int
    overload: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The error budget: breaches allowed and used (forgiven), breaches refunded, and whether an alert is due."""

    allowed: int
    used: int
    refunded: int
    alert: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of rounded lines, tax, and what is to pay; integer minor units. Specification, section 8."""

    charges: int
    true_up: int
    credits: int
    adjustments: int
    net: int
    tax: int
    total: int
    carried_in: int
    due: int
    carried_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Rows of the period that are not settled: they wait for somebody."""

    conflicts: int = 0
    quarantined: int = 0
    unassigned: int = 0
    unjoined: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAfterwards:
    """What was changed after the period had ended."""

    voids: int = 0
    corrections: int = 0
    repairs: int = 0
    joins: int = 0
    intervals: int = 0


class NotBilled(StrEnum):
    """Why a difference of a closed month is reported and not adjusted."""

    TOO_LATE = "too_late"  # calendar.corrections.within has passed
    CHARGES_MORE = "charges_more"  # calendar.corrections.may_charge_more: no


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A difference of a closed month that is not billed: net and tax, integer minor units, and why."""

    period: str
    invoice: str
    gross_minor: int
    reason: NotBilled


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One contract's settled period. `contracts` are the versions in force in it, by version; `contract` the one in force last."""

    contract: Contract
    contracts: dict[int, Contract]
    contract_hashes: dict[int, str]
    period: str
    start: datetime
    end: datetime
    state: str
    minor_digits: int
    events: EventCounts
    lines: tuple[InvoiceLine, ...]
    unresolved: Unresolved
    changed_afterwards: ChangedAfterwards
    windows: WindowCounts
    breaches: tuple[Breach, ...]
    budget: Budget
    totals: Totals
    reported: tuple[Reported, ...] = ()
    is_test: bool = False
