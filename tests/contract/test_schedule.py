"""Which version of a contract is in force on which day."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.contract.model import Contract
from ledger.contract.reader import read_contract
from ledger.contract.schedule import Overlap, VersionConflict, overlaps, stretches
from ledger.settlement.period import contract_period

from .golden import QUIET, check, edited, version

CASES = Path(__file__).parents[3] / "shared" / "cases"


def days(*versions: Contract) -> list[tuple[int, str, str | None]]:
    return [(each.version, str(each.from_on), str(each.until_on) if each.until_on else None) for each in stretches(versions)]


def test_no_version_is_in_force_without_versions() -> None:
    assert stretches(()) == ()


def test_a_version_without_until_has_no_end() -> None:
    assert days(version(1, "2026-01-01")) == [(1, "2026-01-01", None)]


def test_a_version_without_until_ends_where_the_next_begins_that_replaces_nothing() -> None:
    first, amendment = version(1, "2026-01-01"), version(2, "2026-05-16")
    assert days(amendment, first) == [(1, "2026-01-01", "2026-05-16"), (2, "2026-05-16", None)]


def test_a_gap_between_versions_stays_a_gap() -> None:
    first, second = version(1, "2026-01-01", "2026-03-01"), version(2, "2026-05-01", "2026-06-01")
    assert days(first, second) == [(1, "2026-01-01", "2026-03-01"), (2, "2026-05-01", "2026-06-01")]


def test_a_replaced_version_has_a_stretch_before_and_after() -> None:
    first, correction = version(1, "2026-01-01"), version(2, "2026-05-11", "2026-05-21", replaces=1)
    assert days(first, correction) == [(1, "2026-01-01", "2026-05-11"), (2, "2026-05-11", "2026-05-21"), (1, "2026-05-21", None)]


def test_a_version_replaced_on_all_its_days_is_never_in_force() -> None:
    first, correction = version(1, "2026-02-01", "2026-03-01"), version(2, "2026-01-01", replaces=1)
    assert days(first, correction) == [(2, "2026-01-01", None)]


def test_a_replacement_without_until_ends_where_the_next_begins_that_replaces_nothing() -> None:
    first, amendment, correction = version(1, "2026-01-01"), version(2, "2026-05-16"), version(3, "2026-04-01", replaces=1)
    assert days(first, amendment, correction) == [(1, "2026-01-01", "2026-04-01"), (3, "2026-04-01", "2026-05-16"), (2, "2026-05-16", None)]


def test_replacements_of_replacements_stand_for_the_first() -> None:
    first = version(1, "2026-01-01")
    correction = version(2, "2026-05-11", "2026-05-21", replaces=1)
    again = version(3, "2026-05-15", "2026-05-25", replaces=2)
    assert days(first, correction, again) == [
        (1, "2026-01-01", "2026-05-11"),
        (2, "2026-05-11", "2026-05-15"),
        (3, "2026-05-15", "2026-05-25"),
        (1, "2026-05-25", None),
    ]


def test_versions_that_do_not_replace_each_other_conflict() -> None:
    first, second = version(1, "2026-01-01", "2026-06-01"), version(2, "2026-05-31")
    overlap = Overlap(versions=(1, 2), from_on=date(2026, 5, 31), until_on=date(2026, 6, 1))
    assert overlaps((first, second)) == (overlap,)
    with pytest.raises(VersionConflict) as conflict:
        stretches((first, second))
    assert conflict.value.overlap == overlap


def test_two_corrections_of_one_version_conflict_where_both_cover_a_day() -> None:
    versions = (version(1, "2026-01-01"), version(2, "2026-05-01", "2026-05-11", 1), version(3, "2026-05-10", "2026-05-21", 1))
    assert [(each.versions, str(each.from_on), str(each.until_on)) for each in overlaps(versions)] == [((2, 3), "2026-05-10", "2026-05-11")]


def test_versions_that_start_together_conflict() -> None:
    assert [each.versions for each in overlaps((version(1, "2026-01-01"), version(2, "2026-01-01")))] == [(1, 2)]


def test_the_version_in_force_last_is_the_one_that_started_last() -> None:
    first, correction = version(1, "2026-01-01"), version(2, "2026-05-11", "2026-05-21", replaces=1)
    may, june = contract_period((first, correction), "2026-05"), contract_period((first, correction), "2026-06")
    assert may is not None and may.last == correction
    assert june is not None and june.last == first
    assert contract_period((first, correction), "2025-01") is None
    together = contract_period((version(1, "2026-05-01"), version(2, "2026-05-01", "2026-05-08", replaces=1)), "2026-05")
    assert together is not None and together.last.version == 2


def test_the_same_version_twice_is_no_fault() -> None:
    assert not check((("one.yaml", QUIET.encode()), ("copy.yaml", QUIET.encode())))


def test_minimum_cap_and_tax_may_differ_between_versions() -> None:
    second = edited(
        QUIET,
        [
            "version: 3",
            "version: 4",
            "from: 2026-01-01, until: 2027-01-01",
            "from: 2027-01-01",
            "rate: 6%",
            "rate: 13%",
            "minimum_commitment: none",
            "minimum_commitment: 5.00",
            "cap: 100%",
            "cap: 50%",
        ],
    )
    assert not check((("v3.yaml", QUIET.encode()), ("v4.yaml", second.encode())))


def test_the_versions_of_the_shared_cases_follow_each_other() -> None:
    if not CASES.is_dir():
        pytest.skip("../shared/cases is missing")
    for case in sorted({path.parent for path in CASES.glob("*/contract-v*.yaml")}):
        contracts = [read_contract(path.read_bytes(), path.name).contract for path in sorted(case.glob("contract*.yaml"))]
        assert stretches([contract for contract in contracts if contract])[0].from_on == date(2026, 1, 1)


spans = st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(1, 20)), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, min_size=1, max_size=4))
def test_each_day_has_the_version_that_a_search_day_by_day_finds(drawn: list[tuple[int, int | None, bool]]) -> None:
    start = date(2026, 1, 1)
    versions = [
        version(
            number,
            str(start + timedelta(days=first)),
            str(start + timedelta(days=first + length)) if length else None,
            number - 1 if replaces and number > 1 else None,
        )
        for number, (first, length, replaces) in enumerate(drawn, 1)
    ]
    for offset in range(60):
        on = start + timedelta(days=offset)
        expected = day_by_day(versions, on)
        conflicting = [each.versions for each in overlaps(versions) if each.from_on <= on and (each.until_on is None or on < each.until_on)]
        if len(expected) > 1:
            assert conflicting == [expected]
        elif not overlaps(versions):
            found = [each.version for each in stretches(versions) if each.from_on <= on and (each.until_on is None or on < each.until_on)]
            assert found == list(expected)


def day_by_day(versions: list[Contract], on: date) -> tuple[int, ...]:
    def covers(each: Contract) -> bool:
        next_ones = [o for o in versions if o.replaces is None and o.effective.start > each.effective.start]
        later = [o.effective.start for o in next_ones if o.version not in stands_for(each)]
        end = each.effective.until or (min(later) if later else date.max)
        return each.effective.start <= on < end

    def stands_for(each: Contract) -> set[int]:
        return set() if each.replaces is None else {each.replaces} | stands_for(versions[each.replaces - 1])

    covering = [each for each in versions if covers(each)]
    return tuple(each.version for each in covering if not any(each.version in stands_for(other) for other in covering))
