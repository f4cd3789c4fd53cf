"""Examples of contracts, run: by the plan that settles months, each by itself, all in one run."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.contract.example import Example, ExampleExpectation
from ledger.contract.model import Contract
from ledger.contract.reader import Places
from ledger.settlement.example import ExampleFound
from ledger.settlement.stated_rules import stated_rules
from ledger.workflows.contract import CheckedFile, check_contracts
from ledger.workflows.contract_examples import RunFile, run_examples
from tests.cases import NAMES, CaseMissing, read_case
from tests.properties.in_memory import settle_in_memory

ROOT = Path(__file__).parents[2]
READY_MADE = sorted((ROOT / "contracts").glob("*.yaml"))
GOOD = [*READY_MADE, *sorted((ROOT / "tests" / "golden" / "contracts" / "good").glob("*.yaml"))]
ACME = (ROOT / "contracts" / "acme-bank.yaml").read_text("utf-8")
# What an example measures under a definition of the contract's own cannot be told from the definition.
DEFINED = ("expression-negative", "expression-null-branch")


def read(path: Path) -> Contract:
    (checked,) = check_contracts([path])
    assert checked.contract is not None, [str(one) for one in checked.diagnostics]
    return checked.contract


def of(contract: Contract, *examples: dict[str, Any]) -> CheckedFile:
    """The contract with these examples, as the file would write them, instead of its own."""
    stated = tuple(Example.model_validate({"it": "it is so", **example}, by_alias=True, by_name=False) for example in examples)
    return with_examples(contract, stated)


def with_examples(contract: Contract, examples: tuple[Example, ...]) -> CheckedFile:
    changed = contract.model_copy(update={"examples": examples})
    return CheckedFile(file="contract.yaml", content=b"", contract=changed, places=Places(None), diagnostics=())


def run(contract: Contract, *examples: dict[str, Any]) -> list[ExampleFound]:
    """What the examples come to; all can run."""
    (result,) = run_examples([of(contract, *examples)])
    assert result.wrong == (), [str(one) for one in result.wrong]
    return [one.found for one in result.run]


@pytest.fixture(scope="module")
def acme() -> Contract:
    return read(READY_MADE[0])


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_the_examples_of_a_good_contract_hold(path: Path) -> None:
    (result,) = run_examples(check_contracts([path]))
    assert [one.differences for one in result.run if one.differences] == [] and result.wrong == ()
    assert result.checked.contract is not None and len(result.run) == len(result.checked.contract.examples)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_case_hold(name: str) -> None:
    try:
        case = read_case(name)
    except CaseMissing as missing:
        pytest.skip(str(missing))
    for result in run_examples(check_contracts(case.contract_files)):
        assert result.checked.contract is not None and result.wrong == ()
        assert [one for one in result.run if one.differences] == [] and len(result.run) == len(result.checked.contract.examples)


@pytest.mark.parametrize("path", READY_MADE, ids=lambda path: path.stem)
def test_the_examples_of_a_ready_made_contract_reach_every_rule(path: Path) -> None:
    (result,) = run_examples(check_contracts([path]))
    assert [rule.name for rule in result.not_reached] == [] and len(result.rules) > 20


def all_contracts() -> Iterator[Path]:
    yield from GOOD
    for name in NAMES:
        if name in DEFINED:
            continue
        try:
            yield from read_case(name).contract_files
        except CaseMissing:
            continue


def test_the_example_that_is_shown_for_a_rule_holds_and_reaches_it() -> None:
    contracts = [read(path) for path in all_contracts()]
    sketched = [of(contract, *({"it": rule.name, **rule.sketch} for rule in stated_rules(contract))) for contract in contracts]
    for result in run_examples(sketched):
        assert result.wrong == () and len(result.run) == len(result.rules)
        for (rule, _), one in zip(result.rules, result.run, strict=True):
            assert one.differences == () and rule.is_reached_by(one.found), (rule.name, rule.sketch, one.differences)


# -- an expectation that is changed fails


OTHER = {
    "band": lambda value: f"not-{value}",
    "multiplier": lambda value: Decimal(7) if value is None else value + 1,
    "objective": lambda value: "exclude" if value == "late" else "late",
    "results": lambda value: "met" if value == "refunded" else "refunded",
}


def changed_expectations(expect: ExampleExpectation) -> Iterator[tuple[str, int | None, ExampleExpectation]]:
    for key, other in OTHER.items():
        for place, value in enumerate(getattr(expect, key) or ()):
            values = list(getattr(expect, key))
            values[place] = other(value)  # type: ignore[no-untyped-call]
            yield key, place, expect.model_copy(update={key: tuple(values)})
    if expect.charge is not None:
        yield "charge", None, expect.model_copy(update={"charge": expect.charge + Decimal("1E-20")})


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_any_expected_value_that_is_changed_fails_and_is_named(path: Path) -> None:
    contract = read(path)
    changes = [(example, *change) for example in contract.examples for change in changed_expectations(example.expect)]
    assert len(changes) >= len(contract.examples)
    files = [with_examples(contract, (example.model_copy(update={"expect": expect}),)) for example, _, _, expect in changes]
    for (_, key, place, _), result in zip(changes, run_examples(files), strict=True):
        assert [(one.key, one.place) for one in result.run[0].differences] == [(key, place)]


# A term of the contract, and another one: some example must notice.
TERMS = [
    ("input: 20.00", "input: 20.01"),
    ("cached_input: 5.00", "cached_input: 5.01"),
    ("output: 80.00", "output: 80.01"),
    ("input: 4.00", "input: 4.01"),
    ("cached_input: 1.00", "cached_input: 1.01"),
    ("output: 16.00", "output: 16.01"),
    ("max_multiplier: 1.0", "max_multiplier: 1.1"),
    ("default: end_to_end", "default: first_token"),
    ("{batch: inference}", "{batch: end_to_end}"),
    ("target: 300ms", "target: 299ms"),
    ("target: 300ms", "target: 301ms"),
    ("min_requests: 100", "min_requests: 99"),
    ("min_requests: 100", "min_requests: 101"),
    ("window: 1h", "window: 1d"),
    ("small_windows: pool_day", "small_windows: skip"),
    ("small_windows: pool_day", "small_windows: evaluate"),
    ("queues: [standard, vip]", "queues: [standard]"),
    ("queues: [standard, vip]", "queues: [standard, vip, batch]"),
    ('"< 100ms",        multiplier: 2.0', '"< 100ms",        multiplier: 2.1'),
    ('"100ms .. 300ms", multiplier: 1.0', '"100ms .. 300ms", multiplier: 1.1'),
    ("multiplier: 30%}", "multiplier: 31%}"),
    ("missing_latency: {multiplier: 1.0", "missing_latency: {multiplier: 1.1"),
    ('"< 100ms"', '"<= 100ms"', '"100ms .. 300ms"', '"100.001ms .. 300ms"'),
    ('"100ms .. 300ms"', '"100ms ..< 300ms"', '"> 300ms"', '">= 300ms"'),
    ("multiplier: 1.0, objective: late}", "multiplier: 1.0, objective: exclude}"),
    ("combine: multiply", "combine: highest"),
    ("vip: {multiplier: 3.0", "vip: {multiplier: 3.1"),
    ("standard: {}", "standard: {multiplier: 1.1}"),
    ("batch: {}", "batch: {multiplier: 1.1}"),
    ("max_queue: 500ms", "max_queue: 499.999ms"),
    ("max_queue: 500ms", "max_queue: 500.001ms"),
    ("over_limit: forfeit", "over_limit: report"),
    ("queues: [batch], multiplier: 1.0", "queues: [batch], multiplier: 1.1"),
    ("queues: [batch], ", "queues: [batch, standard], "),
    ("queues: [batch], ", "queues: [standard], "),
    ('"> 16000"', '"> 15999"'),
    ('"> 16000"', '"> 16001"'),
    ("evidence: header, ", ""),
    ("evidence: header, multiplier: 1.0", "evidence: header, multiplier: 1.1"),
    ("limit: 2", "limit: 1"),
    ("limit: 2", "limit: 3"),
    ("max_duration: 60s", "max_duration: 59.999999s"),
    ("max_duration: 60s", "max_duration: 60.000001s"),
    ("max_duration: 60s, multiplier: 1.0", "max_duration: 60s, multiplier: 1.1"),
    ("server_error: {objective: late}", "server_error: {objective: exclude}"),
    ("rate_limited: {objective: exclude}", "rate_limited: {objective: late}"),
    ("client_error: {objective: exclude}", "client_error: {objective: late}"),
    ("bill: produced", "bill: nothing"),
    ("objective: late_if_over_target}", "objective: exclude}"),
    ("breaches: 3", "breaches: 2"),
    ("breaches: 3", "breaches: 4"),
    ("up_to: 120%", "up_to: 119.9999%"),
    ("up_to: 120%", "up_to: 120.5%"),
]


def test_examples_that_reach_every_rule_notice_every_term_that_is_changed(tmp_path: Path) -> None:
    terms, examples = ACME.split("\nexamples:\n")
    paths = []
    for number, edit in enumerate(TERMS):
        text = terms
        for old, new in zip(edit[::2], edit[1::2], strict=True):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        paths.append(tmp_path / f"{number:02}.yaml")
        paths[-1].write_text(f"{text}\nexamples:\n{examples}".replace("id: acme-bank-llm", f"id: other-{number}"))
    checked = [check_contracts([path])[0] for path in paths]
    assert [str(one) for file in checked if file.contract is None for one in file.diagnostics] == []
    results = run_examples(checked)
    unnoticed = [
        edit for edit, result in zip(TERMS, results, strict=True) if not result.wrong and not any(one.differences for one in result.run)
    ]
    assert unnoticed == []


# -- what an example says nothing about


def test_an_event_that_says_nothing_is_a_success_of_the_first_account_and_model_in_the_standard_queue(acme: Contract) -> None:
    ((request,),) = (found.requests for found in run(acme, {"events": [{}], "expect": {"band": ["missing_latency"]}}))
    assert request.event.model_dump(exclude_none=True) == {
        "account": "acme-bank",
        "model": "deepseek-v4",
        "queue": "standard",
        "status": 200,
        "received_at": datetime(2026, 1, 1, 4, tzinfo=UTC),  # noon of the first day in Shanghai
        "input_tokens": 0,
        "output_tokens": 0,
        "async_header": False,
    }
    assert (request.band, request.charge) == ("missing_latency", 0)


def test_a_contract_without_a_standard_queue_takes_its_first(tmp_path: Path) -> None:
    text = ACME.partition("\naccept:")[0].replace("standard: {}", "plain: {}").replace("[standard, vip]", "[vip]")
    (tmp_path / "contract.yaml").write_text(text)
    (found,) = run(read(tmp_path / "contract.yaml"), {"events": [{"e2e_ms": "50"}], "expect": {"band": ["fast"]}})
    assert found.requests[0].cell.queue == "plain"


def test_the_quiet_instant_lies_in_no_interval_of_the_example(acme: Contract) -> None:
    interval = {"kind": "circuit_breaker", "start": "2025-12-31T00:00:00Z", "end": "2026-01-02T04:00:00.000001Z"}
    (found,) = run(acme, {"intervals": [interval], "events": [{"queue": "batch", "inference_ms": "50"}], "expect": {"band": ["fast"]}})
    assert found.requests[0].event.received_at == datetime(2026, 1, 3, 4, tzinfo=UTC) and found.requests[0].band == "fast"


def test_events_without_an_instant_come_in_the_order_of_the_list(acme: Contract) -> None:
    events = [{"cold_start": name, "e2e_s": "20"} for name in ("z", "y", "x")]
    (found,) = run(acme, {"events": events, "expect": {"charge": "0"}})
    assert [request.band for request in found.requests] == ["cold_start", "cold_start", "slow"]


def test_a_failed_request_is_not_billed(acme: Contract) -> None:
    (found,) = run(acme, {"events": [{"status": "503", "input_tokens": "9"}, {"status": "499"}], "expect": {"charge": "0"}})
    assert [(one.band, one.multiplier, one.objective) for one in found.requests] == [
        ("none", None, "late"),
        ("cancelled", Decimal(1), "exclude"),
    ]


def test_a_charge_is_exact(acme: Contract) -> None:
    event = {"queue": "vip", "queue_ms": "600", "e2e_ms": "700", "input_tokens": "7", "cached_input_tokens": "3", "output_tokens": "1"}
    (found,) = run(acme, {"events": [event, event], "expect": {"charge": "0"}})
    # (4 x 20 + 3 x 5 + 1 x 80) / 1,000,000 at 30 %, twice: no digit is lost.
    assert found.charge == 2 * Fraction(175, 10**6) * Fraction(3, 10)


# -- each example by itself


def test_examples_do_not_disturb_one_another(acme: Contract) -> None:
    at = "2026-05-07T10:00:00+08:00"
    cold = {"events": [{"received_at": at, "cold_start": "true", "e2e_s": "20"}] * 2, "expect": {"band": ["cold_start"] * 2}}
    batch = {"received_at": at, "queue": "batch", "inference_ms": "50"}
    open_breaker = {"kind": "circuit_breaker", "start": at, "end": "2026-05-07T10:05:00+08:00"}
    taken = {"intervals": [open_breaker], "events": [batch], "expect": {"band": ["circuit_breaker"]}}
    elsewhere = {"intervals": [open_breaker | {"node": "gpu-1"}], "events": [batch | {"node": "gpu-2"}], "expect": {"band": ["fast"]}}
    free = {"events": [batch], "expect": {"band": ["fast"]}}
    spent = {
        "windows": [{"at": f"2026-05-0{day}T10:00:00+08:00", "p99": "310ms"} for day in range(1, 5)],
        "expect": {"results": ["met"] * 4},
    }
    found = run(acme, cold, taken, cold, free, elsewhere, taken, spent, spent)
    assert [[one.band for one in example.requests] for example in found[:6]] == [
        ["cold_start", "cold_start"],
        ["circuit_breaker"],
        ["cold_start", "cold_start"],
        ["fast"],
        ["fast"],
        ["circuit_breaker"],
    ]
    assert [[one.result for one in example.windows] for example in found[6:]] == [["forgiven", "forgiven", "forgiven", "refunded"]] * 2


def test_a_load_of_a_model_is_the_cold_start_of_who_waited_for_it(acme: Contract) -> None:
    load = {"kind": "model_load", "node": "gpu-1", "model": "deepseek-v4", "start": "2026-05-07T10:00:00Z", "end": "2026-05-07T10:00:30Z"}
    event = {"received_at": "2026-05-07T10:00:29Z", "queue_s": "2", "e2e_s": "3"}
    (found,) = run(acme, {"intervals": [load], "events": [event | {"node": "gpu-1"}, event | {"node": "gpu-2"}], "expect": {"charge": "0"}})
    assert [request.band for request in found.requests] == ["cold_start", "slow"]


def test_contracts_are_run_together_and_by_themselves(acme: Contract) -> None:
    other = read(READY_MADE[1])
    event = {"events": [{"e2e_ms": "50", "ttft_ms": "1001"}], "expect": {"charge": "0"}}
    one, two, three = run_examples([of(acme, event), of(other, event), of(acme)])
    assert [result.run[0].found.requests[0].band for result in (one, two)] == ["fast", "late"] and three.run == ()


# -- windows


def requests_with_p99(at: datetime, p99_us: int, requests: int) -> Iterator[dict[str, str]]:
    """As many requests in one hour, whose P99 is this and whose others are quick."""
    slow = requests - -(-99 * requests // 100) + 1  # the one at the rank, and those above it
    for number in range(requests):
        latency_us = p99_us if number < slow else 50_000
        yield {
            "account": "acme-bank",
            "request_id": f"{at:%d%H}-{number}",
            "model": "deepseek-v4",
            "received_at": (at + timedelta(seconds=number)).isoformat(),
            "queue": "standard",
            "e2e_us": str(latency_us),
            "input_tokens": "10",
            "output_tokens": "10",
        }


def test_a_window_of_an_example_is_judged_like_one_of_requests_with_that_percentile(acme: Contract) -> None:
    measured = [300_000, 300_001, 360_000, 360_001, 299_999, 320_000, 359_999, 500_000]
    hours = [datetime(2026, 5, 3, 2, tzinfo=UTC) + number * timedelta(hours=7) for number in range(len(measured))]
    events = [row for at, p99_us in zip(hours, measured, strict=True) for row in requests_with_p99(at, p99_us, 150)]
    settled = settle_in_memory([ACME], events, [], "2026-05")
    breaches = {breach["start"]: breach["result"] for breach in settled["windows"]["breaches"]}
    windows = [
        {"at": (at + timedelta(minutes=17)).isoformat(), "p99": f"{p99_us}us", "requests": "150"}
        for at, p99_us in zip(hours, measured, strict=True)
    ]
    (found,) = run(acme, {"windows": windows, "expect": {"results": ["met"] * len(windows)}})
    results = [one.result for one in found.windows]
    assert results == [breaches.get(f"{at:%Y-%m-%dT%H:%M:%SZ}", "met") for at in hours]
    assert results == ["met", "forgiven", "forgiven", "refunded", "met", "forgiven", "refunded", "refunded"]


def test_a_definition_of_the_contract_does_not_change_a_percentile_that_is_given(tmp_path: Path) -> None:
    text = ACME.partition("\naccept:")[0].replace("default: end_to_end", 'default: half\n  define: {half: "max(queue, 0.5 * ttft)"}')
    (tmp_path / "contract.yaml").write_text(text)
    window = {"at": "2026-05-03T10:00:00+08:00", "p99": "310ms"}
    (found,) = run(read(tmp_path / "contract.yaml"), {"windows": [window], "expect": {"results": ["forgiven"]}})
    assert (found.windows[0].result, found.windows[0].requests) == ("forgiven", 100)


@pytest.mark.parametrize(
    ("change", "requests", "result"),
    [
        (("small_windows: pool_day", "small_windows: evaluate"), "5", "forgiven"),
        (("small_windows: pool_day", "small_windows: skip"), "99", "insufficient"),
        (("small_windows: pool_day", "small_windows: pool_day"), "99", "insufficient"),
        (("small_windows: pool_day", "small_windows: pool_day\n  max_requests: 200"), "201", "overload"),
        (("small_windows: pool_day", "small_windows: pool_day\n  max_requests: 200"), "200", "forgiven"),
        (("window: 1h", "window: month"), "99", "insufficient"),
        (("window: 1h", "window: month"), "100", "forgiven"),
        (("window: 1h", "window: 1d"), "100", "forgiven"),
    ],
)
def test_a_window_may_say_how_many_requests_it_had(change: tuple[str, str], requests: str, result: str, tmp_path: Path) -> None:
    text = ACME.partition("\naccept:")[0]
    assert change[0] in text
    (tmp_path / "contract.yaml").write_text(text.replace(*change))
    window = {"at": "2026-05-03T10:00:00+08:00", "p99": "310ms", "requests": requests}
    (found,) = run(read(tmp_path / "contract.yaml"), {"windows": [window], "expect": {"results": ["met"]}})
    assert found.windows[0].result == result


# -- examples that cannot be


def wrong(contract: Contract, example: dict[str, Any]) -> str:
    (result,) = run_examples([of(contract, example)])
    assert result.run == ()
    (diagnostic,) = result.wrong
    assert diagnostic.code == "bad_example"
    return diagnostic.found


def test_an_event_that_telemetry_could_not_have_is_no_example(acme: Contract) -> None:
    cached = {"events": [{"input_tokens": "10", "cached_input_tokens": "11"}], "expect": {"charge": "0"}}
    assert wrong(acme, cached) == "cached_input_tokens is 11 of 10 input_tokens"
    timing = {"events": [{"queue_ms": "100", "inference_ms": "100", "e2e_ms": "100"}], "expect": {"charge": "0"}}
    assert wrong(acme, timing) == "queue and inference take 200000 us, e2e is 100000 us"


def test_an_example_with_an_instant_outside_the_version_does_not_run(acme: Contract) -> None:
    late = {"events": [{"received_at": "2026-12-31T16:00:00Z"}], "expect": {"charge": "0"}}
    early = {"windows": [{"at": "2025-12-31T15:59:59Z", "p99": "1s"}], "expect": {"results": ["met"]}}
    inside = {"windows": [{"at": "2025-12-31T16:00:00Z", "p99": "1s"}], "expect": {"results": ["refunded"]}}
    (result,) = run_examples([of(acme, late, early, inside)])
    assert [one.place for one in result.run] == [2] and result.wrong == ()  # `contract check` has told it


def test_one_window_has_one_percentile(acme: Contract) -> None:
    windows = [{"at": f"2026-05-03T10:{minute}:00+08:00", "p99": "310ms"} for minute in ("00", "59")]
    assert wrong(acme, {"windows": windows, "expect": {"results": ["met", "met"]}}) == "a second percentile of the window of entry 1"


def test_the_other_examples_run_beside_one_that_cannot_be(acme: Contract) -> None:
    good = {"events": [{"e2e_ms": "50"}], "expect": {"band": ["fast"]}}
    bad = {"events": [{"e2e_ms": "50", "cached_input_tokens": "11"}], "expect": {"band": ["fast"]}}
    (result,) = run_examples([of(acme, bad, good)])
    assert [one.place for one in result.run] == [1] and len(result.wrong) == 1


# -- what is reached


def reached(result: RunFile) -> set[str]:
    return {rule.name for rule, is_reached in result.rules if is_reached}


def test_an_example_that_fails_reaches_nothing(acme: Contract) -> None:
    holding = {"events": [{"e2e_ms": "100"}], "expect": {"band": ["standard"]}}
    failing = {"events": [{"e2e_ms": "100"}], "expect": {"band": ["fast"]}}
    one, two = run_examples([of(acme, holding), of(acme, failing)])
    assert (reached(one), reached(two)) == ({"tier edge: a latency of exactly 100ms"}, set())


def test_an_example_reaches_only_what_it_says_something_about(acme: Contract) -> None:
    event = {"e2e_ms": "300", "input_tokens": "10", "output_tokens": "10"}
    edge, tier = "tier edge: a latency of exactly 300ms", "tier standard: 100ms .. 300ms"
    objective = {"objective: a latency of exactly 300ms, the target, is met", "objective: the queue standard is judged"}
    says = [
        ({"band": ["standard"]}, {edge}),
        ({"multiplier": ["1.0"]}, {edge, tier, "queue standard: without a multiplier"}),
        ({"charge": "0.001"}, {edge, tier, "queue standard: without a multiplier"}),
        ({"objective": ["met"]}, objective),
    ]
    results = run_examples([of(acme, {"events": [event], "expect": expect}) for expect, _ in says])
    assert [reached(result) for result in results] == [rules for _, rules in says]


def test_a_rule_that_no_example_could_reach_is_not_asked_for(acme: Contract) -> None:
    def names(*changes: tuple[str, str]) -> str:
        text = ACME.partition("\naccept:")[0]
        for change in changes:
            assert change[0] in text
            text = text.replace(*change)
        (checked,) = _checked(text)
        assert checked.contract is not None, [str(one) for one in checked.diagnostics]
        return "\n".join(rule.name for rule in stated_rules(checked.contract))

    def _checked(text: str) -> tuple[CheckedFile, ...]:
        from ledger.contract.reader import read_contract

        result = read_contract(text.encode(), "contract.yaml")
        return (
            CheckedFile(file="contract.yaml", content=b"", contract=result.contract, places=result.places, diagnostics=result.diagnostics),
        )

    assert "forgiven" in names() and "after 3 forgiven ones" in names() and "small windows" in names()
    assert "forgiven" not in names(("up_to: 120%", "up_to: 100%"))
    assert "after 3 forgiven ones" not in names(("window: 1h", "window: month"))
    assert "small windows" not in names(("min_requests: 100", "min_requests: 1"))
    assert "over the target: priced" not in names(("bill: produced", "bill: nothing"))
    assert "forfeits" not in names(("over_limit: forfeit", "over_limit: report"))
    assert "without the header" not in names(("evidence: header, ", ""))


def test_a_file_that_is_no_contract_has_nothing_to_run(tmp_path: Path, acme: Contract) -> None:
    (tmp_path / "bad.yaml").write_text("id: x\n")
    bad, good = run_examples([*check_contracts([tmp_path / "bad.yaml"]), replace(of(acme), file="good.yaml")])
    assert (bad.run, bad.rules, bad.wrong) == ((), (), ()) and good.rules
