"""Credits on demand: any split of a line comes to the line, and no more than the line and its document is given back."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.contract.model import Rounding
from ledger.settlement.charges import exact_amount
from ledger.settlement.credits import amount_line
from ledger.settlement.money import to_minor
from ledger.settlement.partial_credit import CreditedDocument, CreditRefused, LineCredit, credit_by_amount, credit_by_tokens
from ledger.settlement.statement import InvoiceLine, LineKind, TaxTerms
from tests.settlement.lines import SIX_PERCENT, adjustment, credit, usage

DAMAGES = TaxTerms(rate=Decimal("0.06"), credits_outside_scope=True)


def document(*lines: InvoiceLine, later: tuple[InvoiceLine, ...] = (), terms: TaxTerms = SIX_PERCENT, digits: int = 2) -> CreditedDocument:
    return CreditedDocument(lines=lines, terms=terms, adjusted_later=later, minor_digits=digits, rounding=Rounding.HALF_UP)


def priced(quantity: int, rate: Decimal, multiplier: Decimal, digits: int = 2) -> InvoiceLine:
    """A usage line, rounded as a settlement does."""
    amount_minor = to_minor(exact_amount(quantity, rate, multiplier), digits, Rounding.HALF_UP)
    return usage(amount_minor, quantity=quantity, rate=rate, multiplier=multiplier)


def by_tokens(of: CreditedDocument, *parts: tuple[int, int]) -> list[LineCredit]:
    """One credit after the other: the line's position and tokens."""
    given: list[LineCredit] = []
    for position, tokens in parts:
        given.append(credit_by_tokens(of, given, position, tokens))
    return given


def by_amount(of: CreditedDocument, *parts: tuple[int, int]) -> list[LineCredit]:
    """One credit after the other: the line's position and the amount in minor units."""
    given: list[LineCredit] = []
    for position, amount_minor in parts:
        given.append(credit_by_amount(of, given, position, amount_minor))
    return given


def sums(credits: list[LineCredit]) -> tuple[int, int]:
    return sum(credit.net_minor for credit in credits), sum(credit.tax_minor for credit in credits)


def test_a_thousand_credits_of_less_than_a_cent_come_to_the_whole_line() -> None:
    of = document(priced(1_000_000, Decimal("4.00"), Decimal(1)))
    credits = by_tokens(of, *[(1, 1_000)] * 1_000)
    assert sums(credits) == (4_00, 24)
    assert [credit.net_minor for credit in credits[:4]] == [0, 1, 0, 1]


def test_tokens_are_credited_at_the_price_of_their_line() -> None:
    of = document(priced(1_000_000, Decimal("200"), Decimal("0.3")))
    assert by_tokens(of, (1, 250_000)) == [LineCredit(position=1, tokens=250_000, net_minor=15_00, tax_minor=90)]


def test_an_amount_is_credited_with_its_tax() -> None:
    assert by_amount(document(usage(100_00)), (1, 12_34)) == [LineCredit(position=1, tokens=None, net_minor=12_34, tax_minor=74)]


@pytest.mark.parametrize(("digits", "net", "tax"), [(0, 4, 0), (3, 4_000, 240)])
def test_a_credit_has_the_digits_of_its_currency(digits: int, net: int, tax: int) -> None:
    of = document(priced(1_000_000, Decimal("4.00"), Decimal(1), digits), digits=digits)
    assert sums(by_tokens(of, (1, 500_000), (1, 500_000))) == (net, tax)


@st.composite
def split_lines(draw: st.DrawFn) -> tuple[CreditedDocument, list[tuple[int, int]], list[tuple[int, int]]]:
    """A document, the tokens of its lines in parts, and the same parts in another order."""
    digits = draw(st.sampled_from((0, 2, 3)))
    rates = st.decimals("0.01", "900", places=3)
    found: list[InvoiceLine] = []
    for _ in range(draw(st.integers(1, 3))):
        line = priced(draw(st.integers(1, 10**7)), draw(rates), draw(st.sampled_from((Decimal("0.3"), Decimal(2)))), digits)
        adjusted = adjustment(replace(line, amount_minor=draw(st.integers(1, 10**6))))
        found.append(draw(st.sampled_from((line, adjusted))))
    charged = [line for line in found if line.amount_minor > 0]
    parts = [
        (position, size)
        for position, line in enumerate(charged, 1)
        for size in split(line.quantity or 0, draw(st.lists(st.integers(1, 10**7), max_size=6)))
    ]
    return document(*charged, digits=digits), parts, draw(st.permutations(parts))


def split(whole: int, cuts: list[int]) -> list[int]:
    """The whole in parts of at least 1, cut at these places as far as it reaches."""
    places = sorted({0, whole, *(cut for cut in cuts if cut < whole)})
    return [end - start for start, end in pairwise(places)]


@given(case=split_lines())
def test_any_split_into_tokens_in_any_order_comes_to_the_lines_and_their_tax(
    case: tuple[CreditedDocument, list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    of, parts, shuffled = case
    whole_minor = sum(line.amount_minor for line in of.lines)
    tax_minor = to_minor(Fraction(6, 100) * whole_minor / 10**of.minor_digits, of.minor_digits, Rounding.HALF_UP)
    for credits in (by_tokens(of, *parts), by_tokens(of, *shuffled)):
        assert sums(credits) == (whole_minor, tax_minor)
        assert all(credit.net_minor >= 0 and credit.tax_minor >= 0 for credit in credits)


@given(amounts=st.lists(st.integers(1, 10**6), min_size=1, max_size=8), data=st.data())
def test_any_split_into_amounts_in_any_order_comes_to_the_line_and_its_tax(amounts: list[int], data: st.DataObject) -> None:
    of = document(usage(sum(amounts)))
    whole = by_amount(of, (1, sum(amounts)))
    for order in (amounts, data.draw(st.permutations(amounts))):
        assert sums(by_amount(of, *((1, amount) for amount in order))) == sums(whole)


def test_all_lines_credited_give_back_the_tax_of_the_document() -> None:
    """Of 0.54 cents each, and so a cent for each line by itself."""
    lines = (usage(9), usage(9, token="output"))
    assert sums(by_amount(document(*lines), (1, 9), (2, 9))) == (18, 1)


def test_an_adjustment_is_credited_in_equal_parts_of_what_it_came_to() -> None:
    """Its 6,199 tokens would cost 0.37: it is a difference of rounded lines."""
    of = document(adjustment(usage(38, quantity=6_199, rate=Decimal("200"), multiplier=Decimal("0.3"))))
    assert [credit.net_minor for credit in by_tokens(of, (1, 3_000), (1, 3_199))] == [18, 20]


def test_an_adjustment_of_a_month_with_another_rate_is_credited_with_that_tax() -> None:
    other = TaxTerms(rate=Decimal("0.13"), credits_outside_scope=False)
    of = document(usage(100_00), adjustment(usage(100_00), tax=other))
    assert [credit.tax_minor for credit in by_amount(of, (1, 10_00), (2, 10_00))] == [60, 1_30]


def test_a_credit_of_what_the_cap_took_back_has_no_tax_where_credits_are_damages() -> None:
    lines = (usage(100_00), credit(-50_00), amount_line(LineKind.CAP, 20_00))
    assert sums(by_amount(document(*lines, terms=DAMAGES), (3, 20_00))) == (20_00, 0)
    assert sums(by_amount(document(*lines), (3, 20_00))) == (20_00, 1_20)


LINE = usage(100_00, quantity=1_000_000, rate=Decimal("100"))


@pytest.mark.parametrize(
    ("ask", "message", "cure"),
    [
        (lambda: by_amount(document(LINE), (2, 1)), "there is no line 2: the document has lines 1 to 1", "name a line of the document"),
        (lambda: by_amount(document(), (1, 1)), "there is no line 1: the document has no lines", "name a line of the document"),
        (
            lambda: by_amount(document(LINE, credit(-50_00)), (2, 1)),
            "line 2 comes to -50.00: nothing was charged by it",
            "name a line with an amount above 0",
        ),
        (lambda: by_amount(document(LINE), (1, 0)), "a credit of 0.00 is none", "credit an amount above 0"),
        (lambda: by_tokens(document(LINE), (1, 0)), "a credit of 0 tokens is none", "credit 1 token or more"),
        (
            lambda: by_tokens(document(amount_line(LineKind.TRUE_UP, 5_00)), (1, 1)),
            "line 1 has no tokens to credit",
            "credit it by amount",
        ),
        (
            lambda: by_amount(document(LINE, LINE), (1, 60_00), (1, 40_01)),
            "line 1 comes to 100.00, of which 60.00 is credited; 40.01 more is too much",
            "credit at most 40.00",
        ),
        (
            lambda: by_tokens(document(LINE), (1, 900_000), (1, 100_001)),
            "line 1 has 1,000,000 tokens, of which 900,000 are credited; 100,001 more are too many",
            "credit at most 100,000 tokens",
        ),
        (
            lambda: by_tokens(document(LINE), (1, 1_000_000), (1, 1)),
            "line 1 has 1,000,000 tokens, of which 1,000,000 are credited; 1 more are too many",
            "all its tokens are credited",
        ),
        (
            lambda: by_amount(document(LINE, credit(-30_00)), (1, 70_01)),
            "the document, net of its later adjustments, comes to 70.00, of which 0.00 is credited; 70.01 more is too much",
            "credit at most 70.00",
        ),
        (
            lambda: by_amount(document(LINE, later=(adjustment(usage(-40_00)),)), (1, 50_00), (1, 10_01)),
            "the document, net of its later adjustments, comes to 60.00, of which 50.00 is credited; 10.01 more is too much",
            "credit at most 10.00",
        ),
        (
            lambda: by_amount(document(usage(10_00), credit(-30_00)), (1, 1)),
            "the document, net of its later adjustments, comes to -20.00, of which 0.00 is credited; 0.01 more is too much",
            "nothing of it is left to credit",
        ),
    ],
)
def test_what_cannot_be_credited_is_refused_with_what_can(ask: Callable[[], list[LineCredit]], message: str, cure: str) -> None:
    with pytest.raises(CreditRefused) as refused:
        ask()
    assert (refused.value.message, refused.value.cure) == (message, cure)


def test_a_line_credited_by_tokens_and_by_amount_is_never_credited_twice() -> None:
    of = document(LINE, LINE)
    first = credit_by_amount(of, [], 1, 10_00)
    with pytest.raises(CreditRefused, match=r"line 1 comes to 100\.00, of which 10\.00 is credited; 100\.00 more is too much"):
        credit_by_tokens(of, [first], 1, 1_000_000)
    second = credit_by_tokens(of, [first], 1, 900_000)
    assert sums([first, second]) == (100_00, 6_00)


def test_a_later_adjustment_that_charges_more_leaves_more_to_credit_but_no_more_of_a_line() -> None:
    of = document(LINE, credit(-30_00), later=(adjustment(usage(50_00)),))
    assert sums(by_amount(of, (1, 100_00))) == (100_00, 6_00)
    with pytest.raises(CreditRefused, match="line 1"):
        by_amount(of, (1, 100_01))


def test_a_document_is_not_exceeded_with_tax_where_adjustments_bear_another_tax() -> None:
    """Net 50.00, tax 6.00 - 6.50: with tax 49.50, which a credit of 50.00 and 3.00 would exceed."""
    other = TaxTerms(rate=Decimal("0.13"), credits_outside_scope=False)
    of = document(LINE, adjustment(usage(-50_00), tax=other))
    words = "the document, net of its later adjustments, with tax"
    with pytest.raises(CreditRefused) as refused:
        by_amount(of, (1, 50_00))
    assert refused.value.message == f"{words} comes to 49.50, of which 0.00 is credited; 53.00 more is too much"
    assert sums(by_amount(of, (1, 46_70))) == (46_70, 2_80)


def test_a_document_credited_in_full_after_a_later_adjustment_is_worth_nothing() -> None:
    """The tax on 100.30 is 6.02; that on 100.40 less that on 0.10 is 6.01."""
    of = document(usage(100_40), later=(adjustment(usage(-10)),))
    assert sums(by_amount(of, (1, 20_00), (1, 80_30))) == (100_30, 6_02)
