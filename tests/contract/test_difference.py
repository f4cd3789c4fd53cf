"""What changed in meaning: pairs of facts, in the contract's order, and nothing for what is only written otherwise."""

import pytest

from ledger.contract.difference import Change, difference
from ledger.contract.facts import facts_of
from ledger.contract.reader import contract_texts

from .golden import QUIET, edited, read


def changes(*edit: str, of: tuple[str, ...] = ()) -> list[tuple[str, str, tuple[str, ...]]]:
    before, after = (facts_of(read(*one), contract_texts(edited(QUIET, list(one)).encode())) for one in (of, edit))
    return [_told(change) for change in difference(before, after)]


def _told(change: Change) -> tuple[str, str, tuple[str, ...]]:
    return change.kind, change.fact.code.value, change.fact.subject


BREAKER = '  - {kind: circuit_breaker, clause: "3.1", queues: [vip], multiplier: 0.5}\n'


@pytest.mark.parametrize(
    "edit",
    [
        ['"< 100ms"', '"0ms ..< 0.1s"'],
        ["  max_requests: none\n", ""],
        ["target: 300ms", "target: 0.3s"],
        ["queues: [standard, vip]", "queues: [vip, standard]"],
        ["minimum_commitment: none\n", "minimum_commitment:   none   # as agreed\n"],
    ],
    ids=lambda edit: edit[0],
)
def test_what_is_only_written_otherwise_is_no_change(edit: list[str]) -> None:
    assert changes(*edit) == []


def test_the_order_of_keys_and_of_tiers_is_no_change() -> None:
    slow = '    - {name: slow,     latency: "> 300ms",        multiplier: 30%}\n'
    assert changes("minimum_commitment: none\n", "", "accept: []\n", "accept: []\nminimum_commitment: none\n") == []
    assert changes(slow, "", "  tiers:\n", f"  tiers:\n{slow}") == []


def test_a_changed_value_pairs_the_fact_with_itself() -> None:
    assert changes("multiplier: 30%", "multiplier: 35%") == [("changed", "pricing.tier", ("slow",))]


def test_a_changed_clause_alone_is_a_change_of_all_that_stands_under_it() -> None:
    assert changes('clause: "5.2"', 'clause: "5.3"') == [("changed", "queues.queue", (name,)) for name in ("standard", "batch", "vip")]


def test_what_is_added_and_removed_stands_where_it_is_said() -> None:
    edit = ("  batch: {}\n", "  night: {}\n", "queues: [batch]", "queues: [night]", "by_queue: {batch: first_token}", "by_queue: {}")
    assert changes(*edit) == [
        ("removed", "latency.queue", ("batch",)),
        ("added", "latency.queue", ("night",)),
        ("removed", "queues.queue", ("batch",)),
        ("added", "queues.queue", ("night",)),
        ("changed", "exemptions.circuit_breaker", ("1",)),
    ]


def test_an_added_exemption_is_one_change_though_the_others_move() -> None:
    edit = ("exemptions:\n", f"exemptions:\n{BREAKER}")
    added = changes(*edit)
    assert ("added", "exemptions.circuit_breaker", ("2",)) in added
    assert {code for _, code, _ in added} == {"exemptions.circuit_breaker"}


def test_exemptions_in_another_order_have_changed() -> None:
    [cold] = [f"{line}\n" for line in QUIET.splitlines() if "kind: cold_start" in line]
    assert changes(cold, "", "exemptions:\n", f"exemptions:\n{cold}") == [
        ("changed", "exemptions.cold_start", ("1",)),
        ("changed", "exemptions.circuit_breaker", ("1",)),
        ("changed", "exemptions.async", ("1",)),
    ]
