"""Which contracts share a plan: those that classify events alike, whatever they cost and whoever they bind."""

from collections.abc import Sequence
from dataclasses import fields

import pytest
from sqlglot import exp

from ledger.rating.plan import Plan
from ledger.rating.recorded import Breaker, Coverage, ModelLoad
from ledger.rating.terms import Terms, terms_of
from tests.settlement.months import hour, month

Changes = Sequence[tuple[str, str]]

DEFINED = ("default: end_to_end\n", 'default: answered\n  define: {answered: "e2e - queue", waited: "queue"}\n')
DEFAULT_TIERS = """    - {name: fast,     latency: "< 100ms",        multiplier: 2.0}
    - {name: standard, latency: "100ms .. 300ms", multiplier: 1.0}
"""
TIERS_SWAPPED = "\n".join(reversed(DEFAULT_TIERS.rstrip("\n").split("\n"))) + "\n"
BREAKER = '  - {kind: circuit_breaker, clause: "3.1", queues: [batch], multiplier: 1.0}\n'
ASYNC = '  - {kind: async,           clause: "3.1", input_tokens: "> 16000", evidence: header, multiplier: 1.0}\n'


def terms(*changes: tuple[str, str]) -> Terms:
    return terms_of(month(*changes).last)


def compiled(terms: Terms) -> str:
    """The SQL for one account and month, with a circuit breaker and a load of a model in it."""
    coverage = Coverage(account="acme-bank", contract_id="acme-bank-llm", version=1, start=hour(0), end=hour(31 * 24))
    breaker = Breaker(node="node-1", start=hour(5), end=hour(6))
    load = ModelLoad(interval_id="load-1", node="node-1", model="deepseek-v4", start=hour(7), end=hour(8))
    events = exp.select(exp.Star()).from_("event")
    return Plan(terms=terms, coverage=[coverage], breakers=[breaker], loads=[load], source=events).cells().sql("postgres")


# What may differ between contracts that share a plan.
ALIKE: dict[str, Changes] = {
    "rates": [("input: 20.00", "input: 21.50"), ("output: 16.00", "output: 1.00")],
    "multiplier of a tier": [("multiplier: 2.0", "multiplier: 1.5"), ("multiplier: 30%", "multiplier: 0%")],
    "multiplier of a missing latency": [("missing_latency: {multiplier: 1.0", "missing_latency: {multiplier: 0.5")],
    "multiplier of a queue": [("vip: {multiplier: 3.0, combine: multiply", "vip: {multiplier: 2.0, combine: highest")],
    "no multiplier of a queue": [("vip: {multiplier: 3.0, combine: multiply, ", "vip: {")],
    "multiplier of an exemption": [
        ("queues: [batch], multiplier: 1.0", "queues: [batch], multiplier: 0.5"),
        ("evidence: header, multiplier: 1.0", "evidence: header, multiplier: 0"),
        ("max_duration: 60s, multiplier: 1.0", "max_duration: 60s, multiplier: 2"),
    ],
    "multiplier of a variant": [("max_multiplier: 1.0", "max_multiplier: 0.5")],
    "clauses": [('clause: "3.1"', 'clause: "9.1"'), ('clause: "3.2"', 'clause: "9.2"'), ('clause: "1.1"', 'clause: "9.3"')],
    "no clause of an exemption": [('clause: "3.1", ', "")],
    "parties": [("Acme Bank Co.", "Other Bank"), ("accounts: [acme-bank]", "accounts: [other, another]")],
    "title": [("title: Inference services, Acme Bank", "title: Another")],
    "id": [("id: acme-bank-llm", "id: other-bank")],
    "version": [("\nversion: 1", "\nversion: 2")],
    "days": [("from: 2026-01-01, until: 2027-01-01", "from: 2026-05-10")],
    "grace and corrections": [("grace: 24h, corrections: {within: 365d, may_charge_more: yes}", "grace: 1h")],
    "money": [("currency: CNY, rounding: half_up, tax: {name: VAT, rate: 6%}", "currency: EUR, rounding: half_even")],
    "payment": [("due: 30d", "due: 10d")],
    "minimum": [("minimum_commitment: none", "minimum_commitment: 100.00")],
    "refund": [
        ("of: late_requests", "of: window"),
        ("tokens: 2x", "tokens: 1x"),
        ("valued_at: charged_rate", "valued_at: base_rate"),
        ("failed: none", "failed: input_tokens"),
        ("tax: reduces_base", "tax: outside_scope"),
        ("cap: 100%", "cap: none"),
    ],
    "breaches of the budget": [("breaches: 3", "breaches: 0"), ("alert_at: 80%", "alert_at: 100%")],
    "another notation of the limit": [("up_to: 120%", "up_to: 120.0%")],
    "another notation of durations": [("target: 300ms", "target: 0.3s"), ("max_duration: 60s", "max_duration: 1m")],
    "how windows are judged": [
        ("percentile: 99", "percentile: 90"),
        ("scope: model", "scope: contract"),
        ("min_requests: 100", "min_requests: 5\n  max_requests: 50"),
        ("small_windows: pool_day", "small_windows: skip"),
    ],
    "names of tiers": [("name: fast", "name: quick"), ("name: slow", "name: late")],
    "names of models": [("deepseek-v4", "llama"), ("deepseek-moe-4bit", "llama-small")],
    "order of queues": [
        ("queues: [standard, vip]", "queues: [vip, standard]"),
        ("  standard: {}\n  batch: {}\n", "  batch: {}\n  standard: {}\n"),
    ],
    "a wait that is only reported": [("  batch: {}", "  batch: {max_queue: 1s, over_limit: report}")],
    "a queue that is not judged": [("  batch: {}", "  batch: {}\n  extra: {multiplier: 2.0}")],
}


@pytest.mark.parametrize("what", ALIKE)
def test_contracts_that_classify_alike_share_their_terms_and_their_sql(what: str) -> None:
    before, after = terms(), terms(*ALIKE[what])
    assert before == after and hash(before) == hash(after)
    assert compiled(before) == compiled(after)


def test_the_order_of_definitions_and_of_queues_with_a_latency_does_not_matter() -> None:
    one = terms(DEFINED, ("by_queue: {batch: inference}", "by_queue: {batch: inference, vip: waited}"))
    another = terms(
        ("default: end_to_end\n", 'default: answered\n  define: {waited: "queue", answered: "e2e - queue"}\n'),
        ("by_queue: {batch: inference}", "by_queue: {vip: waited, batch: inference}"),
    )
    assert one == another and hash(one) == hash(another)
    assert compiled(one) == compiled(another)


# What may not: for each field of the terms, changes that give an event another cell.
DIFFERENT: dict[str, list[Changes]] = {
    "timezone": [[("timezone: Asia/Shanghai", "timezone: Asia/Kolkata")]],
    "latency_default": [[("default: end_to_end", "default: inference")], [("default: end_to_end", "default: first_token")]],
    "latency_by_queue": [
        [("  by_queue: {batch: inference}\n", "")],
        [("by_queue: {batch: inference}", "by_queue: {vip: inference}")],
        [("by_queue: {batch: inference}", "by_queue: {batch: first_token}")],
    ],
    "definitions": [[DEFINED, ('"e2e - queue"', '"e2e - queue * 0.5"')]],
    "window": [[("window: 1h", "window: 30m")], [("window: 1h", "window: 1d")], [("window: 1h", "window: month")]],
    "target_us": [[("target: 300ms", "target: 301ms")]],
    "up_to": [[("up_to: 120%", "up_to: 121%")]],
    "queues_judged": [[("queues: [standard, vip]", "queues: [standard]")], [("queues: [standard, vip]", "queues: [standard, batch]")]],
    "tiers_from_us": [
        [('"< 100ms"', '"< 99ms"'), ('"100ms .. 300ms"', '"99ms .. 300ms"')],
        [('"100ms .. 300ms"', '"100ms .. 301ms"'), ('"> 300ms"', '"> 301ms"')],
        [(DEFAULT_TIERS, TIERS_SWAPPED)],  # cells name a tier by its place
    ],
    "missing_latency": [
        [("missing_latency: {multiplier: 1.0, objective: late}", "missing_latency: {multiplier: 1.0, objective: exclude}")]
    ],
    "waits_us": [
        [("max_queue: 500ms", "max_queue: 501ms")],
        [("over_limit: forfeit", "over_limit: report")],
        [("  batch: {}", "  batch: {multiplier: 0.5, max_queue: 1s, over_limit: forfeit}")],
    ],
    "exemptions": [
        [("queues: [batch], multiplier: 1.0", "queues: [batch, vip], multiplier: 1.0")],
        [('"> 16000"', '"> 16384"')],
        [('"> 16000"', '">= 16000"')],
        [("evidence: header, ", "")],
        [("limit: 2, per: day", "limit: 3, per: day")],
        [("max_duration: 60s", "max_duration: 61s")],
        [(BREAKER + ASYNC, ASYNC + BREAKER)],  # the first that fits decides
        [(BREAKER, "")],
        [(ASYNC, "")],
    ],
    "outcomes": [
        [("server_error: {objective: late}", "server_error: {objective: exclude}")],
        [("rate_limited: {objective: exclude}", "rate_limited: {objective: late}")],
        [("client_error: {objective: exclude}", "client_error: {objective: late}")],
        [("bill: produced", "bill: nothing")],
        [("objective: late_if_over_target", "objective: exclude")],
    ],
}


@pytest.mark.parametrize(("field", "changes"), [(field, changes) for field, cases in DIFFERENT.items() for changes in cases])
def test_contracts_that_classify_differently_share_neither_terms_nor_sql(field: str, changes: Changes) -> None:
    shared = [DEFINED] if DEFINED in changes else []
    before, after = terms(*shared), terms(*changes)
    assert [each.name for each in fields(Terms) if getattr(before, each.name) != getattr(after, each.name)] == [field]
    assert before != after
    assert compiled(before) != compiled(after)


def test_every_field_of_the_terms_is_changed_by_a_test() -> None:
    assert set(DIFFERENT) == {each.name for each in fields(Terms)}
