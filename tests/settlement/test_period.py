"""A contract's period: days that do not exist, the piece that an instant lies in, and the scope that judges a served name."""

from datetime import timedelta

import pytest

from ledger.settlement.period import Period, contract_period
from tests.contract.golden import version
from tests.settlement.months import month

LAST_MOMENT = timedelta(microseconds=1)
SERVED = ["deepseek-v4", "deepseek-ai/DeepSeek-V4", "deepseek-moe-4bit"]
MINI = "deepseek-v4-mini"


def test_a_version_whose_only_day_the_clocks_skipped_is_never_in_force() -> None:
    # Apia went from 29 to 31 December 2011.
    skipped = version(1, "2011-12-30", "2011-12-31")
    apia = skipped.model_copy(update={"calendar": skipped.calendar.model_copy(update={"timezone": "Pacific/Apia"})})
    assert contract_period((apia,), "2011-12") is None


def corrected() -> Period:
    """May under version 1, except from the 11th to the 20th."""
    period = contract_period((version(1, "2026-01-01"), version(2, "2026-05-11", "2026-05-21", replaces=1)), "2026-05")
    assert period is not None
    return period


def test_an_instant_lies_in_the_piece_that_has_its_day() -> None:
    period = corrected()
    assert [len(piece.days.starts) for piece in period.pieces] == [10, 10, 11]
    for index, piece in enumerate(period.pieces):
        assert {period.piece_at(start) for start in piece.days.starts} == {index}
        assert period.piece_at(piece.days.end - LAST_MOMENT) == index


def test_an_instant_after_days_without_a_version_lies_in_the_next_piece() -> None:
    period = contract_period((version(1, "2026-01-01", "2026-05-11"), version(2, "2026-05-21")), "2026-05")
    assert period is not None
    before, after = period.pieces
    assert before.days.end < after.days.starts[0]
    assert [period.piece_at(at) for at in (before.days.end - LAST_MOMENT, after.days.starts[0], period.end - LAST_MOMENT)] == [0, 1, 1]


def test_a_version_is_found_by_its_number_however_many_pieces_it_has() -> None:
    period = corrected()
    assert [piece.contract.version for piece in period.pieces] == [1, 2, 1]
    assert {number: piece.contract.version for number, piece in period.by_version.items()} == {1: 1, 2: 2}


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ((), {"deepseek-v4": SERVED, MINI: [MINI]}),  # all names of a model, also its weaker variants
        ((("scope: model", "scope: contract"),), {"contract": [*SERVED, MINI]}),
    ],
)
def test_a_scope_judges_the_served_names_that_are_its_own(changes: tuple[tuple[str, str], ...], scopes: dict[str, list[str]]) -> None:
    (piece,) = month(*changes).pieces
    assert {scope: piece.served_in(scope) for scope in scopes} == scopes
    assert {served: piece.scope_of(served) for served in (*SERVED, MINI)} == {
        served: scope for scope, names in scopes.items() for served in names
    }
    assert piece.served_in("deepseek-ai/DeepSeek-V4") == []  # a served name is no scope
