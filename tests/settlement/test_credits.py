"""Credits: what a refunded window gives back, at which rate, the cap on it, and the minimum that charges are lifted to."""

import pytest

from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.credits import cap_line, credit_lines, true_up_line
from tests.settlement.months import cell, late, month

Shown = tuple[str | None, str | None, int | None, str, int]  # band, queue, quantity, multiplier, amount in cents

OF_WINDOW = ("of: late_requests", "of: window")
AT_BASE = ("valued_at: charged_rate", "valued_at: base_rate")
FAILED = ("failed: none", "failed: input_tokens")
SERVER_ERRORS = late(1, outcome=Outcome.SERVER_ERROR, tier=None, tokens_cached_input=500_000)


def credits(refunded: list[Cell], *changes: tuple[str, str]) -> list[Shown]:
    """The credit lines for the cells of refunded windows."""
    lines = credit_lines(month(*changes), refunded, 2)
    return [(line.band, line.queue, line.quantity, str(line.multiplier), line.amount_minor) for line in lines]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        # 2 x 98,000,000 and 2 x 2,000,000 tokens at 20 per million.
        ((), [("slow", "standard", 4_000_000, "0.3", -2_400)]),
        ((OF_WINDOW,), [("standard", "standard", 196_000_000, "1", -392_000), ("slow", "standard", 4_000_000, "0.3", -2_400)]),
        ((AT_BASE,), [("refund", None, 4_000_000, "1", -8_000)]),
        ((AT_BASE, OF_WINDOW), [("refund", None, 200_000_000, "1", -400_000)]),
        ((("tokens: 2x", "tokens: 3x"),), [("slow", "standard", 6_000_000, "0.3", -3_600)]),
    ],
)
def test_a_refunded_window_gives_back_its_late_requests_or_all_of_them(changes: tuple[tuple[str, str], ...], lines: list[Shown]) -> None:
    assert credits([cell(98), late(2)], *changes) == lines


def test_failed_requests_give_back_their_input_if_that_is_agreed() -> None:
    cells = [cell(98), late(1), SERVER_ERRORS]
    assert [line[0] for line in credits(cells)] == ["slow"]
    # 2 x 1,500,000 tokens, cached ones included, at 20 per million.
    assert credits(cells, FAILED)[1] == ("failed", None, 3_000_000, "1", -6_000)


@pytest.mark.parametrize(
    "left_out",
    [
        late(2, outcome=Outcome.CANCELLED),  # cancelling would pay
        late(2, in_objective=False),
        late(2, outcome=Outcome.SERVER_ERROR, tier=None),  # unless that is agreed
    ],
)
def test_requests_outside_the_objective_cancelled_and_failed_ones_give_nothing_back(left_out: Cell) -> None:
    breached = [cell(98), late(2)]
    assert credits([*breached, left_out]) == credits(breached)


@pytest.mark.parametrize(
    ("cap", "charges", "credits_minor", "amount"),
    [
        ("100%", 1_000, -1_000, None),
        ("100%", 1_000, -1_001, 1),
        ("100%", 0, 0, None),
        ("33%", 1_001, -500, 170),  # 500 - 330.33 = 169.67
        ("none", 0, -1_000, None),
    ],
)
def test_the_cap_takes_back_what_credits_exceed_a_share_of_the_charges_by(
    cap: str, charges: int, credits_minor: int, amount: int | None
) -> None:
    line = cap_line(month(("cap: 100%", f"cap: {cap}")).last, charges, credits_minor, 2)
    assert (line and line.amount_minor) == amount


@pytest.mark.parametrize(
    ("minimum", "charges", "amount"),
    [("none", 0, None), ("10.00", 1_000, None), ("10.00", 999, 1), ("10.00", 0, 1_000)],
)
def test_the_true_up_lifts_charges_to_the_minimum(minimum: str, charges: int, amount: int | None) -> None:
    line = true_up_line(month(("minimum_commitment: none", f"minimum_commitment: {minimum}")).last, charges, 2)
    assert (line and line.amount_minor) == amount
    if line:
        assert (line.quantity, line.rate, line.multiplier, line.forfeited) == (None, None, None, False)
        assert not any((line.version, line.model, line.queue, line.band, line.token))


def test_credits_are_negative_and_rounded_once() -> None:
    lines = credits([cell(98, tokens_input=0), late(2, tokens_input=500)])
    # 2 x 500 x 20 / 1,000,000 x 0.3 = 0.006, and no line of quantity 0.
    assert lines == [("slow", "standard", 1_000, "0.3", -1)]
