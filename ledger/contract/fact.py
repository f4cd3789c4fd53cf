"""A fact: one thing that a contract says, as a value without words of any language, and how it is known again in another version.

Facts are made in `facts`, said in `documents/contract_prose`. Source: specification, section 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from ledger.contract.diagnostic import Path

Value = TypeVar("Value")


class FactCode(StrEnum):
    """What a fact is about. A code, once given, keeps its meaning."""

    SCHEMA = "contract.schema"
    ID = "contract.id"
    VERSION = "contract.version"
    REPLACES = "contract.replaces"
    TITLE = "contract.title"
    GOVERNING_TEXT = "contract.governing_text"
    PARTY = "parties.party"  # by role
    ACCOUNTS = "parties.accounts"
    EFFECTIVE = "effective"
    TIMEZONE = "calendar.timezone"
    BILLING_PERIOD = "calendar.billing_period"
    GRACE = "calendar.grace"
    CORRECTIONS = "calendar.corrections"
    CURRENCY = "money.currency"
    ROUNDING = "money.rounding"
    TAX = "money.tax"
    PAYMENT = "payment"
    MINIMUM = "minimum_commitment"
    APPROVALS = "require_approvals"
    MODEL_OF_REQUEST = "models.of_request"
    SERVED_AS = "models.served_as"  # by model
    RATES = "models.rates"  # by model
    VARIANT = "models.variant"  # by model and variant
    DEFAULT_LATENCY = "latency.default"
    QUEUE_LATENCY = "latency.queue"  # by queue
    DEFINITION = "latency.definition"  # by name
    PROMISE = "objective.promise"
    WINDOW = "objective.window"
    QUEUES_JUDGED = "objective.queues"
    SMALL_WINDOWS = "objective.small_windows"
    OVERLOAD = "objective.max_requests"
    TIER = "pricing.tier"  # by tier
    MISSING_LATENCY = "pricing.missing_latency"
    QUEUE_OF_REQUEST = "queues.of_request"
    QUEUE = "queues.queue"  # by queue
    EXEMPTIONS = "exemptions"
    CIRCUIT_BREAKER = "exemptions.circuit_breaker"  # by place among its kind
    ASYNC = "exemptions.async"
    COLD_START = "exemptions.cold_start"
    SUCCESS = "outcomes.success"
    FAILURE = "outcomes.failure"  # by outcome
    CANCELLED = "outcomes.cancelled"
    BUDGET = "error_budget.breaches"
    TOLERANCE = "error_budget.up_to"
    ALERT = "error_budget.alert_at"
    REFUND = "refund.of"
    REFUND_VALUE = "refund.valued_at"
    REFUND_FAILED = "refund.failed"
    REFUND_TAX = "refund.tax"
    CAP = "refund.cap"
    ACCEPTS = "accept"
    ACCEPTED = "accept.warning"  # by code of the warning
    EXAMPLES = "examples"
    EXAMPLE = "examples.example"  # by its statement


@dataclass(frozen=True, slots=True)
class Written(Generic[Value]):
    """A value and how the file writes it. Two are equal if their values are."""

    value: Value
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Names in the order of the file, which says nothing: two are equal if they hold the same names.

    >>> Listed(("b", "a")) == Listed(("a", "b")), Listed(("a",)) == Listed(("b",))
    (True, False)
    """

    names: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and set(self.names) == set(other.names)

    def __hash__(self) -> int:
        return hash(frozenset(self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that a contract says.

    `code` and `subject` (names: of a model, a tier, ...) are its identity, unique in a contract; the clause and `values` are what may
    differ between two versions of it. `path` is the place in the file, or where the key would stand; it makes no difference.
    """

    code: FactCode
    subject: tuple[str, ...] = ()
    path: Path = field(compare=False)
    clause: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> "Identity":
        """What it is about, and of whom."""
        return self.code, self.subject

    @property
    def section(self) -> str:
        """The key at the top of the file."""
        return str(self.path[0])

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


Identity = tuple[FactCode, tuple[str, ...]]


class Facts:
    """The facts of one contract, for a sentence that needs to know another."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.all = tuple(facts)
        self._by_identity = {fact.identity: fact for fact in facts}
        assert len(self._by_identity) == len(facts), "no two facts have the same identity"

    def of(self, code: FactCode, *subject: str) -> Fact:
        """The fact of this identity, which every contract has."""
        return self._by_identity[code, subject]

    def every(self, code: FactCode) -> tuple[Fact, ...]:
        """All facts of a code, in order."""
        return tuple(fact for fact in self.all if fact.code is code)
