"""What an issued document posts: balanced, and by kind of account the totals of the document."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.settlement.credits import amount_line
from ledger.settlement.journal import Posting, credit_note_postings, statement_postings
from ledger.settlement.settlement import totals_of
from ledger.settlement.statement import InvoiceLine, LineKind, Statement, TaxTerms
from tests.documents.statements import build_statement, read_case, read_months
from tests.settlement.lines import SIX_PERCENT, adjustment, credit, usage

GOLDEN = Path(__file__).parents[1] / "golden" / "cases"
AMOUNTS = st.integers(-(10**12), 10**12)
OTHER_TAX = TaxTerms(rate=Decimal("0.13"), credits_outside_scope=True)


def statements(folder: Path) -> Iterator[Statement]:
    """The statement of each case in the folder."""
    for case in sorted(path.parent for path in folder.glob("*/expected.json")):
        yield build_statement(*read_case(case))


def posted(statement: Statement) -> list[tuple[str, int, str]]:
    return [(posting.account, posting.amount_minor, posting.memo) for posting in statement_postings(statement)]


def assert_totals_are_posted(statement: Statement) -> None:
    """Each total is what its accounts have; what they have is all that is posted, and it comes to zero."""
    sums = dict.fromkeys(("receivable", "balance", "revenue", "true_up", "sla_credits", "adjustments", "tax"), 0)
    for posting in statement_postings(statement):
        assert posting.amount_minor, posting
        sums[posting.account.partition(":")[0]] += posting.amount_minor
    totals = statement.totals
    assert sums == {
        "receivable": totals.due,
        "balance": totals.carried_in - totals.carried_out,
        "revenue": -totals.charges,
        "true_up": -totals.true_up,
        "sla_credits": -totals.credits,
        "adjustments": -totals.adjustments,
        "tax": -totals.tax,
    }
    assert sum(sums.values()) == 0


def test_every_golden_case_posts_its_totals_and_balances() -> None:
    found = list(statements(GOLDEN))
    assert len(found) >= 34
    for statement in found:
        assert_totals_are_posted(statement)


def test_every_shared_case_posts_its_totals_and_balances(shared: Path) -> None:
    months = [month for path in sorted((shared / "cases-months").glob("*/expected.json")) for month in read_months(path.parent)]
    found = [*statements(shared / "cases"), *months]
    assert len(found) >= 46 + 6
    for statement in found:
        assert_totals_are_posted(statement)


def test_a_month_with_adjustments_posts_them_apart_from_its_own_revenue(shared: Path) -> None:
    june = read_months(shared / "cases-months" / "late-and-void")[1]
    assert posted(june) == [
        ("receivable", 4053_81, "due for 2026-06"),
        ("revenue:fast", -343_84, "2026-06"),
        ("revenue:slow", -14_99, "2026-06"),
        ("revenue:standard", -3476_65, "2026-06"),
        ("sla_credits", 99_96, "2026-06"),
        ("adjustments:sla_credits", 5_52, "2026-05, adjusts INV-2026-05"),
        ("adjustments:revenue:fast", -11_49, "2026-05, adjusts INV-2026-05"),
        ("adjustments:revenue:slow", -84, "2026-05, adjusts INV-2026-05"),
        ("adjustments:revenue:standard", -82_02, "2026-05, adjusts INV-2026-05"),
        ("tax", -229_46, "VAT"),
    ]


def test_a_balance_from_before_is_set_off_and_what_is_left_of_it_stays(shared: Path) -> None:
    may, june, july = read_months(shared / "cases-months" / "balance-carried")
    balances = [[line for line in posted(month) if line[0] in ("receivable", "balance")] for month in (may, june, july)]
    assert balances == [
        [("balance", -5531_48, "left over of 2026-05")],
        [("balance", 2607_27, "set off in 2026-06")],
        [("receivable", 2846_62, "due for 2026-07"), ("balance", 2924_21, "set off in 2026-07")],
    ]


def test_a_month_without_requests_posts_nothing() -> None:
    assert statement_postings(build_statement(*read_case(GOLDEN / "no-traffic"))) == ()


@st.composite
def lines(draw: st.DrawFn) -> list[InvoiceLine]:
    """Lines of every kind, and adjustments of two months with two ways of taxing."""
    amounts = draw(st.lists(st.tuples(AMOUNTS, st.sampled_from(("fast", "slow", "cold_start"))), max_size=5))
    own = [usage(amount, band=band) for amount, band in amounts]
    own += [credit(amount) for amount in draw(st.lists(AMOUNTS, max_size=2))]
    own += [amount_line(kind, draw(AMOUNTS)) for kind in (LineKind.TRUE_UP, LineKind.CAP)]
    adjusted = draw(
        st.lists(st.tuples(st.sampled_from(own), st.sampled_from(("2026-03", "2026-04")), st.sampled_from((SIX_PERCENT, OTHER_TAX))))
    )
    return [*own, *(adjustment(line, period, tax) for line, period, tax in adjusted)]


@given(lines=lines(), carried_in=st.integers(0, 10**12))
def test_any_statement_posts_its_totals_and_balances(lines: list[InvoiceLine], carried_in: int) -> None:
    case = build_statement(*read_case(GOLDEN / "money-usd"))
    totals = totals_of(case.contract, lines, carried_in, case.minor_digits)
    assert_totals_are_posted(replace(case, lines=tuple(lines), totals=totals))


def test_lines_that_do_not_come_to_the_total_stop_the_posting() -> None:
    case = build_statement(*read_case(GOLDEN / "money-usd"))
    with pytest.raises(AssertionError, match="debits and credits are equal"):
        statement_postings(replace(case, lines=case.lines[:-1]))


@pytest.mark.parametrize(
    ("line", "account"),
    [
        (usage(100_00, band="fast"), "credit_notes:revenue:fast"),
        (adjustment(usage(100_00, band="fast")), "credit_notes:revenue:fast"),
        (amount_line(LineKind.TRUE_UP, 100_00), "credit_notes:true_up"),
        (amount_line(LineKind.CAP, 100_00), "credit_notes:sla_credits"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_a_credit_note_takes_back_revenue_and_tax_and_is_owed_to_the_customer(line: InvoiceLine, account: str) -> None:
    memo = "credit of INV-2026-000001"
    assert credit_note_postings(line, "INV-2026-000001", 50_00, 3_00) == (
        Posting(account=account, amount_minor=50_00, memo=memo),
        Posting(account="tax", amount_minor=3_00, memo=memo),
        Posting(account="balance", amount_minor=-53_00, memo=memo),
    )


def test_a_credit_of_less_than_a_minor_unit_posts_nothing() -> None:
    assert credit_note_postings(usage(100_00), "INV-2026-000001", 0, 0) == ()
