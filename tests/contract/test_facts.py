"""Facts: equal for equal meaning, in the order of the file, each with an identity."""

from decimal import Decimal

import pytest

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.contract.facts import facts_of
from ledger.contract.reader import contract_texts

from .golden import GOLDEN, QUIET, edited, read

SMALLEST = (GOLDEN / "good" / "smallest.yaml").read_text("utf-8")


def facts(*edit: str, base: str = QUIET) -> tuple[Fact, ...]:
    return facts_of(read(*edit, base=base), contract_texts(edited(base, list(edit)).encode()))


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ("multiplier: 30%", "multiplier: 0.3"),
        ("grace: 24h", "grace: 1d"),
        ('"> 20000"', '">= 20001"'),
        ('"< 100ms"', '"0ms ..< 0.1s"'),
        ('"< 100ms"', '"<= 99.999ms"'),
        ("queues: [standard, vip]", "queues: [vip, standard]"),
        ("batch: first_token", "batch: first_token, vip: first_token"),
        ("inference / e2e < 0.30", "inference/e2e < 0.3"),
        ("combine: multiply, ", ""),
        ("  batch: {}", "  batch: {combine: highest, over_limit: forfeit}"),
        ("  max_requests: none\n", ""),
        ("  failed: none\n", ""),
        ("  tax: reduces_base\n", ""),
        ("accept: []\n", ""),
        (", corrections: {within: 365d, may_charge_more: yes}", ""),
    ],
)
def test_equal_meaning_gives_equal_facts_however_it_is_written(written: str, otherwise: str) -> None:
    assert facts(written, otherwise) == facts()


def test_a_served_name_that_is_the_key_of_the_model_may_be_left_out() -> None:
    written = facts("  small:\n", "  small:\n    served_as: [small]\n", base=SMALLEST)
    assert written == facts(base=SMALLEST)


def test_facts_stand_in_the_order_of_the_file_and_a_section_left_out_behind_the_one_before_it() -> None:
    assert list(dict.fromkeys(fact.section for fact in facts()))[-3:] == ["refund", "accept", "examples"]
    moved = edited(QUIET, ["minimum_commitment: none\n", ""]) + "minimum_commitment: none\n"
    assert [fact.section for fact in facts_of(read(base=moved), contract_texts(moved.encode()))][-1] == "minimum_commitment"
    smallest = list(dict.fromkeys(fact.section for fact in facts(base=SMALLEST)))
    assert smallest[:6] == ["schema", "id", "version", "replaces", "title", "governing_text"]
    assert smallest.index("payment") == smallest.index("money") + 1


def test_a_value_is_exact_and_keeps_how_the_file_writes_it() -> None:
    slow = Facts(facts()).of(FactCode.TIER, "slow")
    assert (slow["multiplier"].value, slow["multiplier"].text) == (Decimal("0.3"), "30%")
    assert (slow["latency"].value, slow["latency"].text, slow.clause) == ((300_001, None), "> 300ms", "3.2")


def test_facts_of_a_kind_and_of_one_statement_are_told_apart() -> None:
    again = facts(
        "  - {kind: cold_start,",
        '  - {kind: async, clause: "3.1", input_tokens: "> 9", multiplier: 1.0}\n  - {kind: cold_start,',
        "accept: []",
        "accept: [{code: no_cap, reason: one}, {code: no_cap, reason: two}]",
    )
    subjects = [fact.subject for fact in again if fact.code in (FactCode.ASYNC, FactCode.ACCEPTED)]
    assert subjects == [("1",), ("2",), ("no_cap",), ("no_cap", "2")]
    assert len({fact.identity for fact in again}) == len(again)
