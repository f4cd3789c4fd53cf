"""Tax: what is in its base, which adjustments share the one rounding of the period, and which are taxed by themselves."""

from decimal import Decimal

import pytest

from ledger.contract.model import Rounding
from ledger.settlement.credits import amount_line
from ledger.settlement.settlement import totals_of
from ledger.settlement.statement import InvoiceLine, LineKind, TaxTerms
from ledger.settlement.tax import tax_of, tax_terms
from tests.settlement.closed_months import adjustment
from tests.settlement.months import month

NO_TAX = (", tax: {name: VAT, rate: 6%}", "")
DAMAGES = ("tax: reduces_base", "tax: outside_scope")
USAGE, TRUE_UP, CREDIT, CAP = LineKind.USAGE, LineKind.TRUE_UP, LineKind.CREDIT, LineKind.CAP
MONTH = [amount_line(kind, amount) for kind, amount in ((USAGE, 10_000), (TRUE_UP, 500), (CREDIT, -2_000), (CAP, 100))]


def terms(rate: str, *, outside_scope: bool = False) -> TaxTerms:
    return TaxTerms(rate=Decimal(rate), credits_outside_scope=outside_scope)


def test_a_version_says_how_its_period_is_taxed() -> None:
    assert tax_terms(month().last) == terms("0.06")
    assert tax_terms(month(DAMAGES).last) == terms("0.06", outside_scope=True)
    assert tax_terms(month(NO_TAX).last) == terms("0")


@pytest.mark.parametrize(
    ("taxed", "tax"),
    [
        (terms("0.06"), 516),  # of 86.00
        (terms("0.06", outside_scope=True), 630),  # of 105.00: neither credits nor their cap
        (terms("0"), 0),
    ],
)
def test_credits_reduce_the_base_unless_they_are_damages(taxed: TaxTerms, tax: int) -> None:
    assert tax_of(MONTH, taxed, 2, Rounding.HALF_UP) == tax
    adjusted = [adjustment(line.amount_minor, line.kind, rate=str(taxed.rate), outside_scope=taxed.credits_outside_scope) for line in MONTH]
    assert tax_of(adjusted, terms("0.06"), 2, Rounding.HALF_UP) == tax  # an adjustment counts as what it adjusts


@pytest.mark.parametrize(("rounding", "tax"), [(Rounding.HALF_UP, -1), (Rounding.HALF_EVEN, 0)])
def test_tax_is_rounded_once_by_the_rule_of_the_contract_for_both_signs(rounding: Rounding, tax: int) -> None:
    assert tax_of([amount_line(USAGE, -3), amount_line(USAGE, -2)], terms("0.10"), 2, rounding) == tax
    assert tax_of([amount_line(USAGE, 5)], terms("0.10"), 2, rounding) == -tax


OWN = amount_line(USAGE, 10_008)  # 6.0048 of tax


@pytest.mark.parametrize(
    ("adjustments", "tax"),
    [
        ([], 600),
        ([adjustment(8)], 601),  # taxed as the month is: 100.16 together are 6.0096
        ([adjustment(4, period="2026-03"), adjustment(4, period="2026-04")], 601),
        ([adjustment(8, rate="0.05")], 600),  # 0.004 by itself
        ([adjustment(8, rate="0.05", period="2026-03"), adjustment(8, rate="0.05", period="2026-04")], 600),  # each month by itself
        ([adjustment(8, rate="0.05"), adjustment(8, rate="0.05")], 601),  # lines of one month together: 0.008
        ([adjustment(1_000, rate="0.09"), adjustment(-1_000, rate="0.06")], 630),  # a corrected rate: 9 % for 6 %
        ([adjustment(-1_000, CREDIT)], 540),
        ([adjustment(8, outside_scope=True)], 601),  # of another month in what credits are, but at the same rate
        ([adjustment(-1_000, CREDIT, outside_scope=True)], 600),  # damages in the month adjusted, whatever they are now
        ([adjustment(-1_000, CAP, rate="0.09", outside_scope=True), adjustment(1_000, rate="0.09", outside_scope=True)], 690),
        ([adjustment(8, rate="0")], 600),
    ],
)
def test_adjustments_are_taxed_as_the_month_that_they_adjust(adjustments: list[InvoiceLine], tax: int) -> None:
    totals = totals_of(month().last, [OWN, *adjustments], 0, 2)
    adjusted = sum(line.amount_minor for line in adjustments)
    assert (totals.tax, totals.adjustments, totals.net, totals.total) == (tax, adjusted, 10_008 + adjusted, 10_008 + adjusted + tax)


def test_credits_of_the_period_itself_are_taxed_by_its_own_rule_and_adjusted_ones_by_theirs() -> None:
    lines = [*MONTH, adjustment(-1_000, CREDIT)]
    # 6 % of 105.00 without the credits; by itself 6 % less of 10.00, for they reduced the base in their month.
    assert totals_of(month(DAMAGES).last, lines, 0, 2).tax == 630 - 60


@pytest.mark.parametrize(
    ("net", "carried_in", "due", "carried_out"),
    [
        (1_000, 0, 1_060, 0),
        (1_000, 60, 1_000, 0),
        (1_000, 1_060, 0, 0),
        (1_000, 2_000, 0, 940),
        (-1_000, 0, 0, 1_060),
        (-1_000, 500, 0, 1_560),
        (0, 0, 0, 0),
    ],
)
def test_a_balance_is_set_off_after_tax_and_what_is_left_is_carried_on(net: int, carried_in: int, due: int, carried_out: int) -> None:
    totals = totals_of(month().last, [amount_line(USAGE, net)], carried_in, 2)
    assert (totals.carried_in, totals.due, totals.carried_out) == (carried_in, due, carried_out)
    assert totals.due - totals.carried_out == totals.total - carried_in
