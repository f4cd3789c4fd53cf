"""Adjustments of closed months: the difference of each line of what is known now and what was posted, billed, reported or left alone."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.settlement.adjustments import Adjustments, adjust, difference_lines
from ledger.settlement.cell import Cell
from ledger.settlement.credits import amount_line
from ledger.settlement.period import contract_period, ended_period
from ledger.settlement.statement import Cause, CauseKind, InvoiceLine, LineKind, NotBilled, PostedLine, Reported, TaxTerms
from tests.contract.golden import version
from tests.settlement.closed_months import INVOICE, JUNE, adjustment, closed, lines_of, posted, statement_of, surroundings
from tests.settlement.months import SLOW, cell, late, month

Shown = tuple[str, int | None, int]  # kind of the line adjusted, quantity, amount in cents

MINIMUM = ("minimum_commitment: none", "minimum_commitment: 300.00")
CAP = ("cap: 100%", "cap: 40%")
MAY_NOT = ("may_charge_more: yes", "may_charge_more: no")
SIX = TaxTerms(rate=Decimal("0.06"), credits_outside_scope=False)
NINE = TaxTerms(rate=Decimal("0.09"), credits_outside_scope=False)


def shown(lines: list[InvoiceLine] | tuple[InvoiceLine, ...]) -> list[Shown]:
    assert all(line.kind is LineKind.ADJUSTMENT for line in lines)
    return sorted((line.origin.value, line.quantity, line.amount_minor) for line in lines)


def differences(
    before: list[Cell], now: list[Cell], *changes: tuple[str, str], refunded: tuple[list[Cell], list[Cell]] = ([], [])
) -> list[Shown]:
    """The adjustments of a May that was closed with some cells and has others now; likewise the refunded ones."""
    may = month(*changes)
    return shown(difference_lines(closed(may, posted(may, lines_of(may, before, refunded[0])), lines_of(may, now, refunded[1]))))


def test_a_late_request_is_the_difference_of_its_line_with_all_that_the_line_says() -> None:
    may = month()
    before, now = lines_of(may, [cell(10)]), lines_of(may, [cell(11)])
    cause = Cause(kind=CauseKind.LATE, ref="r1")
    [line] = difference_lines(closed(may, posted(may, before), now, [cause]))
    assert line == replace(now[0], kind=LineKind.ADJUSTMENT, quantity=1_000_000, amount_minor=2_000, of=line.of)
    assert line.of is not None
    assert (line.of.period, line.of.invoice, line.of.kind, line.of.tax) == ("2026-05", INVOICE, LineKind.USAGE, SIX)
    assert (line.of.causes, line.of.causes_total) == ((cause,), 1)


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ([cell(10)], [cell(10)], []),
        ([], [], []),
        ([cell(10)], [cell(9)], [("usage", -1_000_000, -2_000)]),  # withdrawn
        ([cell(1)], [], [("usage", -1_000_000, -2_000)]),
        ([cell(2)], [cell(1), late(1)], [("usage", -1_000_000, -2_000), ("usage", 1_000_000, 600)]),  # corrected: it was slow
        # 428,402 tokens at 20 x 0.3 are 2.57, 434,601 are 2.61, both rounded: 0.04, though 6,199 tokens are 0.037.
        ([late(1, tokens_input=428_402)], [late(1, tokens_input=434_601)], [("usage", 6_199, 4)]),
        ([cell(1, tokens_input=1_000)], [cell(1, tokens_input=1_100)], [("usage", 100, 0)]),  # tokens that do not make a cent are told
    ],
)
def test_each_line_is_adjusted_by_what_it_is_now_less_what_it_was(before: list[Cell], now: list[Cell], lines: list[Shown]) -> None:
    assert differences(before, now) == lines


def test_a_true_up_shrinks_by_what_a_late_request_adds() -> None:
    assert differences([cell(10)], [cell(12)], MINIMUM) == [("true_up", None, -4_000), ("usage", 2_000_000, 4_000)]
    assert differences([cell(10)], [cell(20)], MINIMUM) == [("true_up", None, -10_000), ("usage", 10_000_000, 20_000)]


def test_a_cap_moves_with_the_charges_and_with_the_credits() -> None:
    # Charges 26.00, credits 12.00, of which 40 % of the charges are left: the cap takes back 1.60.
    before, refunded = [cell(1), late(1)], [late(1)]
    assert lines_of(month(CAP), before, refunded)[-1].amount_minor == 160
    more = [cell(2), late(1)]
    assert differences(before, more, CAP, refunded=(refunded, refunded)) == [("cap", None, -160), ("usage", 1_000_000, 2_000)]
    # A window is not refunded any more: the credit is taken back, and the cap with it.
    assert differences(before, before, CAP, refunded=(refunded, [])) == [("cap", None, -160), ("credit", -2_000_000, 1_200)]


def test_adjustments_of_several_later_months_add_up() -> None:
    may = month()
    states = [[cell(10)], [cell(12)], [cell(11), late(1)], [cell(11), late(1)], [cell(10)]]
    booked, found = posted(may, lines_of(may, states[0])), []
    for state in states[1:]:
        lines = difference_lines(closed(may, booked, lines_of(may, state)))
        booked += posted(may, lines)
        found.append(shown(lines))
    assert found == [
        [("usage", 2_000_000, 4_000)],
        [("usage", -1_000_000, -2_000), ("usage", 1_000_000, 600)],
        [],
        [("usage", -1_000_000, -2_000), ("usage", -1_000_000, -600)],
    ]


def test_each_line_of_a_month_names_the_causes_that_are_named_and_how_many_there_are() -> None:
    may = month()
    causes = tuple(Cause(kind=CauseKind.LATE, ref=f"r{number:03}") for number in range(100))
    changed = replace(closed(may, (), lines_of(may, [cell(1), late(1)]), causes), causes_total=152)
    assert [(line.of.causes, line.of.causes_total) for line in difference_lines(changed) if line.of] == [(causes, 152)] * 2


def test_a_month_is_adjusted_until_corrections_within_has_passed_and_reported_from_then_on() -> None:
    may = month()
    late_request = closed(may, posted(may, lines_of(may, [cell(10)])), lines_of(may, [cell(11)]))
    limit = may.end + timedelta(days=365)
    in_time = adjust([late_request], limit - timedelta(microseconds=1), 2)
    assert (shown(in_time.lines), in_time.reported) == ([("usage", 1_000_000, 2_000)], ())
    too_late = Reported(period="2026-05", invoice=INVOICE, gross_minor=2_120, reason=NotBilled.TOO_LATE)  # 20.00 and 6 % tax
    assert adjust([late_request], limit, 2) == Adjustments(reported=(too_late,))
    unchanged = replace(late_request, now=tuple(one.line for one in late_request.posted))
    assert adjust([unchanged], limit, 2) == Adjustments()


@pytest.mark.parametrize(
    ("now", "gross_minor", "is_billed"),
    [
        ([cell(11)], 2_120, False),
        ([cell(9)], -2_120, True),
        ([cell(9), late(3)], -212, True),  # some lines are more, the month is less: all of it
        ([cell(9), late(4)], 424, False),  # 24.00 more, 20.00 less: none of it, not the part that is less
        ([cell(10), cell(1, tokens_input=100, tier=SLOW)], 0, True),  # more tokens, no more to pay
    ],
)
def test_a_month_that_may_not_charge_more_is_judged_as_a_whole_and_with_tax(now: list[Cell], gross_minor: int, is_billed: bool) -> None:
    may = month(MAY_NOT)
    changed = closed(may, posted(may, lines_of(may, [cell(10)])), lines_of(may, now))
    report = Reported(period="2026-05", invoice=INVOICE, gross_minor=gross_minor, reason=NotBilled.CHARGES_MORE)
    expected = Adjustments(lines=tuple(difference_lines(changed))) if is_billed else Adjustments(reported=(report,))
    assert adjust([changed], JUNE, 2) == expected and difference_lines(changed)


def test_a_month_that_only_the_tax_makes_dearer_may_not_charge_more() -> None:
    may, dearer = month(MAY_NOT), month(MAY_NOT, ("rate: 6%", "rate: 9%"))
    lines = lines_of(may, [cell(10)])
    report = Reported(period="2026-05", invoice=INVOICE, gross_minor=600, reason=NotBilled.CHARGES_MORE)
    assert adjust([closed(dearer, posted(may, lines), lines)], JUNE, 2) == Adjustments(reported=(report,))


def test_a_withheld_month_does_not_hold_up_another() -> None:
    may = month(MAY_NOT)
    june = replace(month(), name="2026-06")
    before, now = posted(may, lines_of(may, [cell(10)])), lines_of(may, [cell(11)])
    found = adjust([closed(may, before, now), closed(june, before, now, invoice="INV-2026-000002")], JUNE, 2)
    assert [(line.of.period, line.of.invoice) for line in found.lines if line.of] == [("2026-06", "INV-2026-000002")]
    assert [report.period for report in found.reported] == ["2026-05"]


def test_a_corrected_tax_rate_takes_back_each_line_at_the_old_rate_and_posts_it_at_the_new() -> None:
    six, nine = month(), month(("rate: 6%", "rate: 9%"))
    lines = lines_of(six, [cell(10)])
    found = difference_lines(closed(nine, posted(six, lines), lines))
    taxed = {line.of.tax: (line.quantity, line.amount_minor) for line in found if line.of}
    assert taxed == {SIX: (-10_000_000, -20_000), NINE: (10_000_000, 20_000)}
    june = statement_of(six, around=replace(surroundings(), adjustments=Adjustments(lines=tuple(found))))
    assert [line.amount_minor for line in june.lines] == [-20_000, 20_000]  # nothing else tells them apart: first what is taken back
    # Posted once, it is the line that the month has.
    assert difference_lines(closed(nine, posted(six, lines) + posted(nine, found), lines)) == []


def test_a_corrected_price_is_another_version_whose_lines_stand_for_those_taken_back() -> None:
    may, lines = month(), lines_of(month(), [cell(10)])
    corrected = tuple(replace(line, version=2, rate=Decimal("18.00"), amount_minor=18_000) for line in lines)
    found = difference_lines(closed(may, posted(may, lines), corrected))
    assert {(line.version, line.rate, line.quantity, line.amount_minor) for line in found} == {
        (1, Decimal("20.00"), -10_000_000, -20_000),
        (2, Decimal("18.00"), 10_000_000, 18_000),
    }


Amounts = dict[int, tuple[int, int]]


@st.composite
def known_lines(draw: st.DrawFn) -> tuple[TaxTerms, list[InvoiceLine]]:
    """What a month comes to at some time: some of a few lines, each with tokens and cents, and how it is taxed then."""
    lines: list[InvoiceLine] = []
    for tier in draw(st.sets(st.sampled_from(["fast", "standard", "slow"]))):
        kind = draw(st.sampled_from([LineKind.USAGE, LineKind.CREDIT]))
        amounts = amount_line(kind, draw(st.integers(-3, 3)))
        lines.append(replace(amounts, version=draw(st.integers(1, 2)), band=tier, token="input", quantity=draw(st.integers(1, 3))))
    for kind in draw(st.sets(st.sampled_from([LineKind.TRUE_UP, LineKind.CAP]))):
        lines.append(amount_line(kind, draw(st.integers(1, 3))))
    return draw(st.sampled_from([SIX, NINE])), lines


@settings(deadline=None)
@given(st.lists(known_lines(), min_size=1, max_size=8))
def test_all_that_is_posted_adds_up_to_what_is_known_last(states: list[tuple[TaxTerms, list[InvoiceLine]]]) -> None:
    by_terms = {SIX: month(), NINE: month(("rate: 6%", "rate: 9%"))}
    booked: tuple[PostedLine, ...] = ()
    for number, (terms, now) in enumerate(states):
        may = by_terms[terms]
        added = now if number == 0 else difference_lines(closed(may, booked, now))
        booked += posted(may, added)
        assert sums(booked) == sums(posted(may, now))


def sums(lines: tuple[PostedLine, ...]) -> dict[tuple[object, ...], tuple[int, int]]:
    """Tokens and cents by line, those that come to nothing left out."""
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for one in lines:
        key = (one.line.origin, one.line.version, one.line.band, one.line.token, one.tax)
        quantity, amount_minor = found.get(key, (0, 0))
        found[key] = quantity + (one.line.quantity or 0), amount_minor + one.line.amount_minor
    return {key: value for key, value in found.items() if value != (0, 0)}


def test_an_ended_contract_has_a_period_of_its_last_version_after_its_end_and_none_before() -> None:
    first, second = version(1, "2026-01-01", "2026-04-01"), version(2, "2026-04-01", "2026-05-21")
    ended = ended_period((first, second), "2026-06")
    assert ended is not None
    assert (ended.name, ended.pieces, ended.last.version) == ("2026-06", (), 2)
    zone = {"2026-06": (ended.start, ended.end)}
    assert zone["2026-06"] == (month().end, month().end + timedelta(days=30))
    assert ended_period((first, second), "2026-05") is None  # in force until the 20th
    assert ended_period((first, second), "2025-12") is None  # it had not begun
    assert contract_period((first, second), "2026-06") is None


def test_a_month_between_two_versions_has_the_period_of_the_first() -> None:
    ended = ended_period((version(1, "2026-01-01", "2026-04-01"), version(2, "2026-07-01")), "2026-05")
    assert ended is not None and ended.last.version == 1


def test_an_ended_contract_bills_its_adjustments_alone_without_a_minimum() -> None:
    may = month(MINIMUM)
    june = replace(may, name="2026-06", start=may.end, end=may.end + timedelta(days=30), pieces=())
    before, now = posted(may, lines_of(may, [cell(20)])), lines_of(may, [cell(21)])
    around = replace(surroundings(), adjustments=adjust([closed(may, before, now)], JUNE, 2), carried_in_minor=500)
    statement = statement_of(june, around=around)
    assert shown(statement.lines) == [("usage", 1_000_000, 2_000)]
    totals = statement.totals
    assert (totals.charges, totals.true_up, totals.credits, totals.adjustments) == (0, 0, 0, 2_000)
    assert (totals.net, totals.tax, totals.total, totals.carried_in, totals.due, totals.carried_out) == (2_000, 120, 2_120, 500, 1_620, 0)
    assert (statement.events.total, statement.breaches, statement.budget.used, statement.contract) == (0, (), 0, may.last)


def test_adjustments_stand_last_by_month_then_kind_in_alphabetical_order() -> None:
    of = [(period, kind) for period in ("2026-04", "2026-03") for kind in (LineKind.USAGE, LineKind.TRUE_UP, LineKind.CREDIT, LineKind.CAP)]
    lines = tuple(adjustment(1, kind, period=period) for period, kind in of)
    statement = statement_of(month(), [cell(1)], around=replace(surroundings(), adjustments=Adjustments(lines=lines)))
    assert statement.lines[0].kind is LineKind.USAGE
    assert [(line.of.period, line.of.kind.value) for line in statement.lines[1:] if line.of] == [
        (period, kind) for period in ("2026-03", "2026-04") for kind in ("cap", "credit", "true_up", "usage")
    ]
