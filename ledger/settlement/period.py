"""A contract's period: the month as instants, and the pieces in which one version is in force.

Source: specification, sections 3 (versions in force) and 6 (windows are cut where a version gives way to another).
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property

from ledger.contract.model import Contract
from ledger.contract.schedule import stretches
from ledger.settlement.calendar import Days, day_start, local_days, month_days

CONTRACT_SCOPE = "contract"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One version over the local days of the period on which it is in force without interruption."""

    contract: Contract
    days: Days

    @cached_property
    def served_names(self) -> dict[str, tuple[str, str | None]]:
        """Each served name with its model and, for a degraded variant, the variant."""
        return self.contract.served_names()

    @cached_property
    def percentile(self) -> Fraction:
        """The objective's percentile as a fraction: 99/100."""
        return Fraction(self.contract.objective.percentile)

    def scope_of(self, served: str) -> str:
        """The scope that judges requests of this served name, which some model claims."""
        return self.served_names[served][0] if self.contract.objective.scope == "model" else CONTRACT_SCOPE

    def served_in(self, scope: str) -> list[str]:
        """The served names that a scope judges."""
        return [served for served in self.served_names if self.scope_of(served) == scope]


@dataclass(frozen=True, kw_only=True)
class Period:
    """A local month of one contract, its pieces in order of time; none if the contract had ended before. `last` is the version in force
    last, or that was: the one that started last, and of two that started together the higher number."""

    name: str
    start: datetime
    end: datetime
    pieces: tuple[Piece, ...]
    last: Contract

    @cached_property
    def by_version(self) -> dict[int, Piece]:
        """A piece of each version that is in force in the period: what does not depend on the days is the same in all its pieces."""
        return {piece.contract.version: piece for piece in self.pieces}

    def piece_at(self, instant: datetime) -> int:
        """The index of the piece that holds an instant at which some version is in force."""
        return bisect_right(self._starts, instant) - 1

    @cached_property
    def _starts(self) -> list[datetime]:
        return [piece.days.starts[0] for piece in self.pieces]


def contract_period(versions: Sequence[Contract], name: str) -> Period | None:
    """The period of that name (`2026-05`) for the versions of one contract; None if none of them is in force in it."""
    timezone = versions[0].calendar.timezone
    first_on, next_on = month_days(name)
    by_number = {contract.version: contract for contract in versions}
    pieces = []
    for stretch in stretches(versions):
        from_on = max(first_on, stretch.from_on)
        until_on = next_on if stretch.until_on is None else min(next_on, stretch.until_on)
        # A day that the clocks skipped has no instant, so there may be days and no time.
        if from_on < until_on and day_start(timezone, from_on) < day_start(timezone, until_on):
            pieces.append(Piece(contract=by_number[stretch.version], days=local_days(timezone, from_on, until_on)))
    return _period(name, pieces, _started_last(piece.contract for piece in pieces)) if pieces else None


def ended_period(versions: Sequence[Contract], name: str) -> Period | None:
    """The period of that name for a contract that was in force before it and is not any more; None if it is, or never was before.

    It has no usage, but adjustments of months that are closed. Source: specification, section 8.
    """
    first_on, _ = month_days(name)
    before = [stretch.version for stretch in stretches(versions) if stretch.from_on < first_on]
    if not before or contract_period(versions, name) is not None:
        return None
    by_number = {contract.version: contract for contract in versions}
    return period_without_usage(_started_last(by_number[version] for version in before), name)


def period_without_usage(last: Contract, name: str) -> Period:
    """The period of that name with no version in force in it; `last` was before."""
    return _period(name, [], last)


def _period(name: str, pieces: Sequence[Piece], last: Contract) -> Period:
    start, end = (day_start(last.calendar.timezone, day) for day in month_days(name))
    return Period(name=name, start=start, end=end, pieces=tuple(pieces), last=last)


def _started_last(contracts: Iterable[Contract]) -> Contract:
    return max(contracts, key=lambda contract: (contract.effective.start, contract.version))
