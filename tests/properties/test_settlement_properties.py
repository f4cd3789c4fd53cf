"""What holds for every settlement, whatever the contract and the traffic. Held against the oracle, with which ledger must agree."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.oracle.classification import Stopped
from tests.oracle.settle import settle
from tests.oracle.telemetry import Event, read_event
from tests.oracle.terms import Terms, read_terms, stretches_in_force
from tests.properties.generate import Month, months

Json = dict[str, Any]
quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def settled(month: Month, events: list[dict[str, str]] | None = None, voids: list[tuple[str, str]] | None = None) -> Json:
    return settle(month.contract_texts, month.events if events is None else events, month.intervals, month.period, voids=voids)


def amounts(settlement: Json, *kinds: str) -> Decimal:
    return sum((Decimal(line["amount"]) for line in settlement["lines"] if line["kind"] in kinds), Decimal(0))


def covered_events(month: Month, settlement: Json) -> list[tuple[Event, Terms]]:
    """The events of the period that a version covers, each with that version."""
    stretches = stretches_in_force([read_terms(text) for text in month.contract_texts])
    events = [read_event(row) for row in month.events]
    return [
        (event, stretch.terms)
        for event in events
        for stretch in stretches
        if settlement["start"] <= event.received_at.strftime("%Y-%m-%dT%H:%M:%SZ") < settlement["end"]
        and stretch.start <= event.received_at < stretch.end
        and event.account in stretch.terms.accounts
    ]


@quick
@given(months(), st.randoms(use_true_random=False))
def test_the_order_of_events_and_their_duplicates_do_not_matter(month: Month, random: Any) -> None:
    again = month.events + random.sample(month.events, len(month.events) // 2)
    random.shuffle(again)
    assert settled(month, again) == settled(month)


@quick
@given(months(), st.data())
def test_a_void_and_its_event_cancel(month: Month, data: st.DataObject) -> None:
    withdrawn = data.draw(st.sampled_from(month.events))
    rest = [row for row in month.events if row is not withdrawn]
    assert settled(month, voids=[(withdrawn["account"], withdrawn["request_id"])]) == settled(month, rest)


@quick
@given(months())
def test_lines_add_up_to_the_totals(month: Month) -> None:
    settlement = settled(month)
    totals = {name: Decimal(amount) for name, amount in settlement["totals"].items()}
    assert totals["charges"] == amounts(settlement, "usage")
    assert totals["true_up"] == amounts(settlement, "true_up")
    assert totals["credits"] == amounts(settlement, "credit", "cap")
    assert totals["net"] == amounts(settlement, "usage", "true_up", "credit", "cap")
    assert totals["total"] == totals["net"] + totals["tax"]
    assert totals["due"] - totals["carried_out"] == totals["total"]
    assert min(totals["due"], totals["carried_out"]) == 0


@quick
@given(months())
def test_every_billed_token_stands_in_exactly_one_usage_line(month: Month) -> None:
    settlement = settled(month)
    billed = [
        event
        for event, terms in covered_events(month, settlement)
        if 200 <= event.status <= 299 or (event.status == 499 and terms.cancelled_bill == "produced")
    ]
    assert settlement["events"]["billed"] == len(billed)
    quantities = {"input": 0, "cached_input": 0, "output": 0}
    for line in settlement["lines"]:
        if line["kind"] == "usage":
            quantities[line["token"]] += line["quantity"]
    assert quantities["input"] + quantities["cached_input"] == sum(event.input_tokens or 0 for event in billed)
    assert quantities["cached_input"] == sum(event.cached_input_tokens for event in billed)
    assert quantities["output"] == sum(event.output_tokens or 0 for event in billed)


@quick
@given(months())
def test_every_covered_event_is_counted_once(month: Month) -> None:
    settlement = settled(month)
    counts, breaches = settlement["events"], settlement["windows"]["breaches"]
    assert counts["total"] == len(covered_events(month, settlement)) == sum(counts["outcomes"].values())
    assert counts["late"] <= counts["in_objective"] <= counts["total"] - sum(counts["exempt"].values())
    assert sum(breach["requests"] for breach in breaches) <= counts["in_objective"]
    assert sum(breach["late"] for breach in breaches) <= counts["late"]


@quick
@given(months())
def test_credits_stay_within_the_cap_and_a_line_is_never_of_the_wrong_sign(month: Month) -> None:
    settlement = settled(month)
    last = next(read_terms(text) for text in month.contract_texts if read_terms(text).version == settlement["version"])
    if last.refund_cap is not None:
        digits = {"JPY": 0, "KWD": 3}.get(last.currency, 2)
        within = Fraction(settlement["totals"]["charges"]) * last.refund_cap + Fraction(1, 2 * 10**digits)
        assert -Fraction(settlement["totals"]["credits"]) <= within
    for line in settlement["lines"]:
        assert (Decimal(line["amount"]) <= 0) if line["kind"] == "credit" else (Decimal(line["amount"]) >= 0)
        assert line["quantity"] is None or line["quantity"] > 0


@quick
@given(months())
def test_a_breach_is_a_percentile_over_the_target_and_the_budget_is_spent_in_order(month: Month) -> None:
    settlement = settled(month)
    versions = [read_terms(text) for text in month.contract_texts]
    breaches, budget = settlement["windows"]["breaches"], settlement["budget"]
    assert budget["used"] + budget["refunded"] == settlement["windows"]["breached"] == len(breaches)
    assert breaches == sorted(breaches, key=lambda breach: (breach["end"], breach["start"], breach["scope"]))
    for breach in breaches:
        assert not (breach["over"] and breach["result"] == "forgiven")
        if len(versions) == 1 and breach["p99_us"] is not None:
            assert breach["p99_us"] > versions[0].target_us
            assert breach["over"] == (breach["p99_us"] > versions[0].target_us * versions[0].up_to)
        if breach["p99_us"] is None:
            assert breach["over"]
    if len(versions) == 1:
        within = [breach["result"] for breach in breaches if not breach["over"]]
        assert within == (["forgiven"] * versions[0].breaches + ["refunded"] * len(breaches))[: len(within)]


@settings(quick, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])  # one month in eight has what it needs
@given(months())
def test_an_amendment_that_changes_nothing_moves_no_window_shorter_than_the_month(month: Month) -> None:
    [first, *others] = month.contracts
    assume(not others and first["objective"]["window"] != "month")
    cut = date(int(month.period[:4]), int(month.period[5:]), 28).isoformat()
    assume(first["effective"]["from"] < cut)
    before = first | {"effective": {"from": first["effective"]["from"], "until": cut}}
    after = first | {"version": "2", "effective": {"from": cut}}
    amended = settled(Month([before, after], month.events, month.intervals, month.period))
    whole = settled(month)
    assert [amended[key] for key in ("events", "windows", "budget")] == [whole[key] for key in ("events", "windows", "budget")]


@quick
@given(months(), st.sampled_from(("model", "queue")))
def test_a_billed_name_that_the_contract_does_not_have_stops_the_settlement(month: Month, what: str) -> None:
    settlement = settled(month)
    assume(settlement["events"]["billed"])
    billed, _ = next(pair for pair in covered_events(month, settlement) if 200 <= pair[0].status <= 299 or pair[0].status == 499)
    assume(billed.status != 499)
    events = [row | {what: "not-in-it"} if row["request_id"] == billed.request_id else row for row in month.events]
    with pytest.raises(Stopped) as stopped:
        settled(month, events)
    assert (stopped.value.what, stopped.value.name, stopped.value.events) == (what, "not-in-it", 1)
