"""What differs between two statements of one month: the lines and the breaches of both in pairs. Nothing is computed anew.

Source: specification, section 9 (`ledger contract diff --replay`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from ledger.settlement.statement import Breach, InvoiceLine, LineKind, Statement

Member = TypeVar("Member")
Key = TypeVar("Key")
BreachKey = tuple[datetime, datetime, str, bool]


class LineKey(NamedTuple):
    """What lines of both sides have in common that are held against each other; version, rate and multiplier may differ."""

    kind: LineKind
    model: str | None
    variant: str | None
    queue: str | None
    forfeited: bool
    band: str | None
    token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePair:
    """The lines of one key on both sides; several if their multipliers differ."""

    key: LineKey
    before: tuple[InvoiceLine, ...]
    after: tuple[InvoiceLine, ...]

    @property
    def amounts_minor(self) -> tuple[int, int]:
        """The sums of the rounded lines."""
        return sum(line.amount_minor for line in self.before), sum(line.amount_minor for line in self.after)

    @property
    def quantities(self) -> tuple[int, int]:
        """The sums of the tokens; 0 for lines without tokens."""
        return sum(line.quantity or 0 for line in self.before), sum(line.quantity or 0 for line in self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreachPair:
    """What became of one window on both sides; None where it is no breach, or no window."""

    before: Breach | None
    after: Breach | None

    @property
    def breach(self) -> Breach:
        """The one of the two that there is."""
        breach = self.before or self.after
        assert breach is not None, "a pair has at least one side"
        return breach


def line_pairs(before: Statement, after: Statement) -> tuple[LinePair, ...]:
    """All lines of both, in the order of lines; those of the second that the first has not behind the others of their kind."""
    paired = _paired(before.lines, after.lines, _line_key)
    pairs = [LinePair(key=key, before=tuple(old), after=tuple(new)) for key, (old, new) in paired.items()]
    kinds = list(LineKind)
    return tuple(sorted(pairs, key=lambda pair: kinds.index(pair.key.kind)))


def breach_pairs(before: Statement, after: Statement) -> tuple[BreachPair, ...]:
    """All breaches of both, in order of end, start and scope."""
    paired = _paired(before.breaches, after.breaches, _breach_key)
    pairs = [BreachPair(before=next(iter(old), None), after=next(iter(new), None)) for old, new in paired.values()]
    return tuple(sorted(pairs, key=lambda pair: (pair.breach.end, pair.breach.start, pair.breach.scope, pair.breach.pooled)))


def _paired(
    before: Iterable[Member], after: Iterable[Member], key_of: Callable[[Member], Key]
) -> dict[Key, tuple[list[Member], list[Member]]]:
    paired: defaultdict[Key, tuple[list[Member], list[Member]]] = defaultdict(lambda: ([], []))
    for side, members in enumerate((before, after)):
        for member in members:
            paired[key_of(member)][side].append(member)
    return paired


def _line_key(line: InvoiceLine) -> LineKey:
    return LineKey(*(getattr(line, name) for name in LineKey._fields))


def _breach_key(breach: Breach) -> BreachKey:
    return breach.start, breach.end, breach.scope, breach.pooled
