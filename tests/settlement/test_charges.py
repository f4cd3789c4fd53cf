"""Usage lines: the band of a request, its multiplier put together, and the sum of a line."""

from decimal import Decimal
from fractions import Fraction

import pytest

from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.charges import charge_of, is_billed, price_of, usage_lines
from tests.settlement.months import ASYNC, BREAKER, FAST, SLOW, STANDARD, cell, month

HIGHEST = ("combine: multiply", "combine: highest")


@pytest.mark.parametrize(
    ("changes", "priced", "band", "multiplier"),
    [
        ((), cell(tier=FAST), "fast", "2"),
        ((), cell(tier=SLOW), "slow", "0.3"),
        ((), cell(tier=None), "missing_latency", "1"),
        ((), cell(tier=None, outcome=Outcome.CANCELLED), "cancelled", "1"),
        ((), cell(tier=SLOW, outcome=Outcome.CANCELLED), "slow", "0.3"),  # over target: as a success
        ((), cell(tier=None, exemption=ASYNC), "async", "1"),
        ((), cell(tier=FAST, queue="vip"), "fast", "6"),
        ((), cell(tier=SLOW, queue="vip"), "slow", "0.9"),
        ((), cell(tier=FAST, queue="vip", forfeited=True), "fast", "2"),
        ((), cell(tier=None, queue="vip", exemption=BREAKER), "circuit_breaker", "3"),  # the queue's factor holds for every band
        ((), cell(tier=None, queue="vip", outcome=Outcome.CANCELLED), "cancelled", "3"),
        ((HIGHEST,), cell(tier=FAST, queue="vip"), "fast", "3"),
        ((), cell(tier=FAST, model="deepseek-moe-4bit"), "fast", "1"),  # a weaker variant earns no premium
        ((), cell(tier=SLOW, model="deepseek-moe-4bit"), "slow", "0.3"),
        ((), cell(tier=SLOW, queue="vip", model="deepseek-moe-4bit"), "slow", "0.9"),  # the cap comes last
    ],
)
def test_a_price_is_the_band_then_the_queue_then_the_cap_of_a_variant(
    changes: tuple[tuple[str, str], ...], priced: Cell, band: str, multiplier: str
) -> None:
    price = price_of(month(*changes).pieces[0], priced)
    assert (price.band, price.multiplier) == (band, Decimal(multiplier))


@pytest.mark.parametrize(
    ("bill", "billed"),
    [("produced", {Outcome.SUCCESS, Outcome.CANCELLED}), ("nothing", {Outcome.SUCCESS})],
)
def test_only_successes_and_what_was_produced_for_cancelled_requests_are_billed(bill: str, billed: set[Outcome]) -> None:
    contract = month(("bill: produced", f"bill: {bill}")).last
    assert {outcome for outcome in Outcome if is_billed(contract, cell(outcome=outcome))} == billed


def test_cells_of_one_price_make_one_line_for_each_kind_of_token() -> None:
    cells = [
        cell(tokens_input=3_000, tokens_cached_input=1_000, tokens_output=250, tier=FAST, queue="vip"),
        cell(tokens_input=1_000, tier=FAST, queue="vip", model="deepseek-ai/DeepSeek-V4", late=True),  # another name of the model
        cell(tokens_input=0, tier=STANDARD),  # nothing to show
    ]
    lines = {line.token: line for line in usage_lines(month(), cells, 2)}
    assert {token: (line.quantity, line.rate, line.amount_minor) for token, line in lines.items()} == {
        "input": (4_000, Decimal("20.00"), 48),  # 4,000 x 20 / 1,000,000 x 6 = 0.48
        "cached_input": (1_000, Decimal("5.00"), 3),
        "output": (250, Decimal("80.00"), 12),
    }
    assert {(line.model, line.queue, line.band) for line in lines.values()} == {("deepseek-v4", "vip", "fast")}


def test_a_line_is_rounded_once_and_not_each_request() -> None:
    tiny = cell(tokens_input=1, tier=STANDARD)
    assert [line.amount_minor for line in usage_lines(month(), [tiny] * 100, 2)] == [0]  # 0.002
    assert [line.amount_minor for line in usage_lines(month(), [tiny] * 250, 2)] == [1]  # 0.005


def test_a_charge_is_exact_before_any_rounding() -> None:
    piece = month().pieces[0]
    priced = cell(tier=SLOW, queue="vip", tokens_input=1, tokens_cached_input=1, tokens_output=1)
    assert charge_of(piece, priced) == Fraction(20 + 5 + 80, 10**6) * Fraction(9, 10)
    assert charge_of(piece, cell(outcome=Outcome.SERVER_ERROR)) == 0
