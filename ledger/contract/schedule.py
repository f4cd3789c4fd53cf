"""The days on which the versions of one contract are in force, after replacement. Takes the versions, gives stretches of local days.

Rules: a version without `until` ends where the next one begins that replaces nothing; `replaces: N` stands for version N on the days
that both cover, and for what N itself replaces (3 replaces 2 replaces 1: version 3 stands for 1 too).
Source: specification, section 3, "Rules the validator proves".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from ledger.contract.model import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Days on which one version is in force: from_on <= day < until_on. `until_on` None has no end."""

    version: int
    from_on: date
    until_on: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Days that more than one version covers, none of which replaces the others."""

    versions: tuple[int, ...]
    from_on: date
    until_on: date | None


class VersionConflict(Exception):
    """Versions that do not replace each other cover the same days. `check_versions` reports it before a contract can be used."""

    def __init__(self, overlap: Overlap) -> None:
        super().__init__(f"versions {', '.join(map(str, overlap.versions))} all cover {overlap.from_on} and none replaces the others")
        self.overlap = overlap


def stretches(versions: Sequence[Contract]) -> tuple[Stretch, ...]:
    """The stretches of one contract in order of time; an interrupted version has several. Raises VersionConflict."""
    found: list[Stretch] = []
    for in_force, from_on, until_on in _timeline(versions):
        if len(in_force) > 1:
            raise VersionConflict(Overlap(versions=in_force, from_on=from_on, until_on=until_on))
        found.append(Stretch(version=in_force[0], from_on=from_on, until_on=until_on))
    return tuple(found)


def overlaps(versions: Sequence[Contract]) -> tuple[Overlap, ...]:
    """The days on which it is not decided which version is in force, in order of time."""
    return tuple(
        Overlap(versions=in_force, from_on=from_on, until_on=until_on)
        for in_force, from_on, until_on in _timeline(versions)
        if len(in_force) > 1
    )


def _timeline(versions: Sequence[Contract]) -> Iterator[tuple[tuple[int, ...], date, date | None]]:
    """Longest spans of days with the same versions in force (one, where all is well); days that no version covers are left out."""
    replaced = {version.version: _replaced_by(version, versions) for version in versions}
    spans = {version.version: (version.effective.start, _end(version, versions, replaced[version.version])) for version in versions}
    edges = sorted({start for start, _ in spans.values()} | {end for _, end in spans.values() if end is not None})
    pending: tuple[tuple[int, ...], date, date | None] | None = None
    for from_on, until_on in pairwise([*edges, None]):
        assert from_on is not None
        in_force = _in_force(from_on, spans, replaced)
        if pending and pending[0] == in_force:
            pending = (in_force, pending[1], until_on)
            continue
        if pending and pending[0]:
            yield pending
        pending = (in_force, from_on, until_on)
    if pending and pending[0]:
        yield pending


def _end(version: Contract, versions: Sequence[Contract], stands_for: frozenset[int]) -> date | None:
    """A version does not end where one begins that it stands for: it may correct a start that was too late."""
    if version.effective.until is not None:
        return version.effective.until
    later = [
        other.effective.start
        for other in versions
        if other.replaces is None and other.effective.start > version.effective.start and other.version not in stands_for
    ]
    return min(later, default=None)


def _replaced_by(version: Contract, versions: Sequence[Contract]) -> frozenset[int]:
    """The numbers that the version stands for, directly or through others. `replaces` names a lower number, so the walk ends."""
    replaces = {other.version: other.replaces for other in versions}
    stands_for: set[int] = set()
    number = version.replaces
    while number is not None and number not in stands_for:
        stands_for.add(number)
        number = replaces.get(number)
    return frozenset(stands_for)


def _in_force(on: date, spans: Mapping[int, tuple[date, date | None]], replaced: Mapping[int, frozenset[int]]) -> tuple[int, ...]:
    covering = [number for number, (start, end) in spans.items() if start <= on and (end is None or on < end)]
    away = frozenset[int]().union(*(replaced[number] for number in covering))
    return tuple(sorted(number for number in covering if number not in away))
