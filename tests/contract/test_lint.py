"""Warnings: what they say and what silences them. That each is given and withheld is proved by rules.yaml."""

from datetime import UTC, datetime, timedelta

import pytest

from ledger.contract.diagnostic import Severity
from ledger.contract.lint import lint, lint_breaker_share

from .codes_page import parts
from .golden import QUIET, Case, cases, check, edited, read

LINT = {row["code"] for row in parts()[-1]["codes"]}

MAY = datetime(2026, 4, 30, 16, tzinfo=UTC)
JUNE = datetime(2026, 5, 31, 16, tzinfo=UTC)
FIVE_PERCENT = (JUNE - MAY) / 20


def test_a_warning_is_silenced_only_by_its_own_accept() -> None:
    two = ["cap: 100%", "cap: none", "bill: produced", "bill: nothing"]
    assert [each.code for each in lint(read(*two))] == ["no_cap", "cancelled_free"]
    accepted = ["accept: []", "accept: [{code: no_cap, reason: agreed in the meeting}]"]
    assert [each.code for each in lint(read(*two, *accepted))] == ["cancelled_free"]


SILENCED = [case for case in cases() if case.code in LINT and case.test is None and case.code != "useless_accept"]


def test_every_warning_of_the_specification_has_a_case() -> None:
    assert {case.code for case in SILENCED} | {"breaker_share", "useless_accept"} == LINT


@pytest.mark.parametrize("case", SILENCED, ids=lambda case: case.name)
def test_every_warning_is_silenced_by_its_accept(case: Case) -> None:
    ((name, content),) = case.bad
    accepted = content.decode().replace("accept: []", f"accept: [{{code: {case.code}, reason: agreed}}]")
    assert {each.severity for each in check(case.bad)} == {Severity.WARNING}
    assert check(((name, accepted.encode()),)) == ()


def test_an_accept_of_nothing_cannot_be_accepted() -> None:
    accepts = "accept: [{code: no_cap, reason: agreed}, {code: useless_accept, reason: agreed}]"
    assert [each.code for each in lint(read("accept: []", accepts))] == ["useless_accept"] * 2


def test_a_warning_does_not_stop_a_contract() -> None:
    found = check((("contract.yaml", edited(QUIET, ["cap: 100%", "cap: none"]).encode()),))
    assert [each.severity for each in found] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("target", "late"),
    [
        ("100.001ms", ", 99.9% of the tier, are late"),  # 199,999 of 200,001
        ("299.999ms", ", 0.1% of the tier, are late"),  # the one that is exactly 300 ms
        ("301ms", "whose latencies above 301ms are late"),
        ("50ms", ", 50% of the tier, are late"),
    ],
)
def test_the_late_share_of_a_tier_is_exact(target: str, late: str) -> None:
    found = [each.found for each in lint(read("target: 300ms", f"target: {target}")) if each.code == "target_inside_tier"]
    assert len(found) == 1 and found[0].endswith(late), found


def test_a_target_at_either_edge_of_a_tier_is_at_its_edge() -> None:
    tiers = ["< 100ms", "< 100ms", "100ms .. 300ms", "100ms ..< 300ms", "> 300ms", ">= 300ms"]
    assert lint(read(*tiers)) == ()


def test_breaker_intervals_above_5_percent_of_the_month_are_warned_of() -> None:
    contract = read()
    exactly = [(MAY + timedelta(days=3), MAY + timedelta(days=3) + FIVE_PERCENT)]
    assert lint_breaker_share(contract, exactly, MAY, JUNE) == ()
    longer = [(MAY + timedelta(days=3), MAY + timedelta(days=3, microseconds=1) + FIVE_PERCENT)]
    (warning,) = lint_breaker_share(contract, longer, MAY, JUNE)
    assert warning.code == "breaker_share" and warning.path == ("exemptions", 0) and warning.severity is Severity.WARNING


def test_breaker_intervals_that_overlap_or_leave_the_month_count_once_and_inside() -> None:
    half = (MAY + timedelta(days=3), MAY + timedelta(days=3) + FIVE_PERCENT / 2)
    outside = [(MAY - timedelta(days=9), MAY), (JUNE, JUNE + timedelta(days=9))]
    before = (MAY - timedelta(days=9), MAY + FIVE_PERCENT / 2)
    assert lint_breaker_share(read(), [half, half, *outside, before], MAY, JUNE) == ()
    inside = (MAY + timedelta(days=3), MAY + timedelta(days=3, seconds=1))
    assert lint_breaker_share(read(), [half, inside, *outside, before], MAY, JUNE) == ()
    more = (MAY + timedelta(days=9), MAY + timedelta(days=9, seconds=1))
    assert lint_breaker_share(read(), [more, half, *outside, before], MAY, JUNE) != ()


def test_breaker_intervals_are_not_warned_of_where_they_exempt_nothing_or_are_accepted() -> None:
    all_month = [(MAY, JUNE)]
    exemption = '  - {kind: circuit_breaker, clause: "3.1", queues: [batch], multiplier: 1.0}\n'
    assert lint_breaker_share(read(exemption, ""), all_month, MAY, JUNE) == ()
    accepted = read("accept: []", "accept: [{code: breaker_share, reason: maintenance in May}]")
    assert lint_breaker_share(accepted, all_month, MAY, JUNE) == ()
    assert lint(accepted) == ()


@pytest.mark.parametrize(
    ("alert_at", "breaches", "message"),
    [
        (
            "10%",
            1,
            "found an alert at 10% of 1 breach, that is at 0.1; expected a share that is a whole number of breaches, such as 100% "
            "for 1 of 1; the alert is due after 1 of 1: write 100% if that is meant, else the share of another number",
        ),
        (
            "70%",
            3,
            "found an alert at 70% of 3 breaches, that is at 2.1; expected a share that is a whole number of breaches, such as 67% "
            "for 2 of 3; the alert is due after 2 of 3: write 67% if that is meant, else the share of another number",
        ),
        (
            "150%",
            2,
            "found an alert at 150% of 2 breaches, that is at 3; expected at most 100%; "
            "no more than 2 are ever forgiven, so that only a refund would raise the alert: write 100% or less",
        ),
    ],
)
def test_an_alert_between_two_numbers_of_breaches_is_told_with_the_share_that_hits_one(alert_at: str, breaches: int, message: str) -> None:
    edit = ("alert_at: 100%", f"alert_at: {alert_at}", "breaches: 3", f"breaches: {breaches}")
    (found,) = [each for each in lint(read(*edit)) if each.code == "alert_share"]
    assert f"found {found.found}; expected {found.expected}; {found.cure}" == message


def test_no_warning_cites_a_clause_of_an_agreement() -> None:
    edits = ("percentile: 99", "percentile: 95", "default: first_token", "default: inference")
    assert not [each for each in lint(read(*edits)) if "clause" in each.cure]
