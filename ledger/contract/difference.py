"""What changed in meaning between two contracts: the facts of both in, those that one has and the other has not out.

Facts are paired by identity. What they were written from makes no difference: equal meaning gives equal facts (`facts`).
Source: specification, section 9 (`ledger contract diff`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger.contract.fact import Fact, FactCode, Identity

# How many there are is said by those that came or went.
COUNTS = frozenset({FactCode.EXEMPTIONS, FactCode.ACCEPTS, FactCode.EXAMPLES})
# What decides no request and no amount: only a reader of the file sees it.
FOR_READERS = frozenset({FactCode.ACCEPTED, FactCode.EXAMPLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One fact before and after; None before if it was added, None after if it was removed."""

    before: Fact | None
    after: Fact | None

    @property
    def fact(self) -> Fact:
        """The newer of the two."""
        fact = self.after or self.before
        assert fact is not None, "a change has at least one side"
        return fact

    @property
    def kind(self) -> str:
        """`added`, `removed` or `changed`."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


def difference(before: Sequence[Fact], after: Sequence[Fact]) -> tuple[Change, ...]:
    """The changes in the order of the later contract, what was removed behind what it followed; none between contracts of equal meaning.

    An exemption that stands at another place has changed only if it now comes before or after another that was there already.
    """
    old, new = ({fact.identity: fact for fact in facts if fact.code not in COUNTS} for facts in (before, after))
    is_order_kept = _exemptions(old, new) == _exemptions(new, old)
    changes = []
    for identity in _in_order(list(old), list(new)):
        change = Change(before=old.get(identity), after=new.get(identity))
        if not _is_same(change, is_order_kept=is_order_kept):
            changes.append(change)
    return tuple(changes)


def _in_order(old: list[Identity], new: list[Identity]) -> list[Identity]:
    order, known = list(new), set(new)
    for place, identity in enumerate(old):
        if identity not in known:
            order.insert(order.index(old[place - 1]) + 1 if place else 0, identity)
    return order


def _is_same(change: Change, *, is_order_kept: bool) -> bool:
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    return before == after or (is_order_kept and _without_place(before) == _without_place(after))


def _without_place(fact: Fact) -> Fact:
    return replace(fact, values={name: value for name, value in fact.values.items() if name != "place"})


def _exemptions(facts: dict[Identity, Fact], others: dict[Identity, Fact]) -> list[Identity]:
    """The exemptions that the others have too, in order."""
    return [identity for identity, fact in facts.items() if "place" in fact.values and identity in others]
