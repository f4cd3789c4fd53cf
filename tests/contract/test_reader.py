"""The strict reader: texts mean what they look like, every error is shown, and no file makes it stumble."""

import json
import random
import time
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.contract.diagnostic import Severity
from ledger.contract.model import Async, Corrections
from ledger.contract.reader import ReadResult, read_contract
from ledger.contract.rules import RESERVED_TIERS
from ledger.contract.scalar import parse_duration

from .golden import GOLDEN, QUIET, edited, read

SHARED = Path(__file__).parents[3] / "shared"
FULL = edited(QUIET, ["version: 3", "version: 3\nreplaces: 2", "accept: []", "accept: [{code: x, reason: y}]"])
WINDOWS = """
  - it: one forgiven, one refunded
    windows:
      - {at: 2026-05-03T10:00:00+08:00, p99: 310ms}
      - {at: 2026-05-07T14:00:00.000001+08:00, p99: 361ms}
    expect: {results: [forgiven, refunded]}
"""


def errors(content: str | bytes) -> list[str]:
    """The errors of a file, as `code line`."""
    result = read_contract(content if isinstance(content, bytes) else content.encode(), "contract.yaml")
    return [f"{each.code} {each.line}" for each in result.diagnostics if each.severity is Severity.ERROR]


def test_texts_that_look_like_something_else_are_read_as_they_stand() -> None:
    contract = read(base=(GOLDEN / "good" / "texts-that-look-like-something-else.yaml").read_text("utf-8"))
    customer = contract.parties.customer
    assert (contract.title, customer.name, customer.tax_id) == ("NO", "22:30", "0100")
    assert customer.accounts == ("NO", "on", "1_000", "0x1F", "1e3", "0o17", ".inf", "2026-01-01", "null", "~")
    rates = contract.models["deepseek-v4"].per_million_tokens
    assert (str(rates.input), str(rates.cached_input)) == ("1.10", "0.0015")
    assert contract.objective.percentile == Decimal("0.99")


@pytest.mark.parametrize("text", ["NO", "22:30", "0100", "1.10", "010", "0.0015", "yes", "1e3"])
def test_quotes_change_nothing(text: str) -> None:
    plain, single, double = (
        read("title: Inference services, Acme Bank", f"title: {text}", "accept: []", "accept: []").title
        for text in (text, f"'{text}'", f'"{text}"')
    )
    assert plain == single == double == text


def test_the_lines_of_a_key_given_twice_are_both_shown() -> None:
    result = read_contract(edited(QUIET, ["refund:\n", "money: {currency: USD, rounding: half_up}\nrefund:\n"]).encode(), "contract.yaml")
    (twice,) = result.diagnostics
    assert (
        (twice.code, twice.line) == ("duplicate_key", 58)
        and "first in line 11" in twice.found
        and twice.cure == "remove line 11 or line 58"
    )


def test_nine_levels_of_aliases_are_refused_in_under_a_second() -> None:
    result = read_in_under_a_second((GOLDEN / "bad" / "nine-levels-of-aliases.yaml").read_bytes())
    found = {f"{each.code} {each.line}" for each in result.diagnostics}
    assert {"anchor 1", "alias 2", "anchor 2", "alias 10"} <= found


HURTING = {
    "bytes": b"a: " + b"x" * 50_000_000,
    "keys": "".join(f"key{number}: value\n" for number in range(9_000)).encode(),
    "one key": b"a: b\n" * 25_000,
    "brackets": b"[" * 120_000,
    "braces": b"{a: " * 30_000,
    "dashes": b"- " * 60_000,
    "words": b"a: " + b"x " * 60_000,
    "lines": b"a: x\n" + b"  x\n" * 30_000,
    "quote": b"a: '" + b"x\n" * 60_000,
    "colons": b":" * 120_000,
    "question marks": b"? " * 60_000,
    "anchors": b"&a " * 40_000,
    "tags": b"!a " * 40_000,
    "accounts": QUIET.replace("[acme-bank]", "[" + ", ".join(f"account-{number}" for number in range(6_000)) + "]").encode(),
    "comments": b"#" * 120_000,
    "queues": QUIET.replace("  batch: {}\n", "  batch: {}\n" + "".join(f"  queue{number}: {{}}\n" for number in range(2_000)))
    .replace("[standard, vip]", "[" + ", ".join(f"quewe{number}" for number in range(5_000)) + "]")
    .encode(),
    "unknown keys": QUIET.replace("  target: 300ms\n", "".join(f"  targett{number}: 300ms\n" for number in range(4_000))).encode(),
    "examples": QUIET.replace("{queue_ms: 10,", "".join(f"{{model: x{number}}}, " for number in range(100)) + "{queue_ms: 10,").encode(),
    "tiers": QUIET.replace(
        "    - {name: fast,",
        "".join(f"    - {{name: t{n}, latency: '>= {n}s', multiplier: 1}}\n" for n in range(1_200)) + "    - {name: fast,",
    ).encode(),
    "zeros": b"\x00" * 120_000,
    "random": random.Random(1).randbytes(120_000),
}


@pytest.mark.parametrize("name", HURTING)
def test_files_made_to_hurt_are_refused_in_under_a_second(name: str) -> None:
    result = read_in_under_a_second(HURTING[name])
    assert result.contract is None or name == "accounts"
    assert len(result.diagnostics) <= 500


OTHER_FILES = {
    "UTF-8 with a mark": (QUIET.encode("utf-8-sig"), "byte_order_mark"),
    "UTF-16": (QUIET.encode("utf-16"), "bad_encoding"),
    "UTF-16, the other way": (b"\xfe\xff" + QUIET.encode("utf-16-be"), "bad_encoding"),
    "UTF-16 without a mark": (QUIET.encode("utf-16-le"), "bad_encoding"),
    "UTF-16 without a mark, the other way": (QUIET.encode("utf-16-be"), "bad_encoding"),
    "UTF-32": (QUIET.encode("utf-32"), "bad_encoding"),
    "UTF-32, the other way": (b"\x00\x00\xfe\xff" + QUIET.encode("utf-32-be"), "bad_encoding"),
    "UTF-32 without a mark": (QUIET.encode("utf-32-le"), "bad_encoding"),
    "UTF-32 without a mark, the other way": (QUIET.encode("utf-32-be"), "bad_encoding"),
    "Latin-1": (QUIET.replace("Acme", "Café").encode("latin-1"), "bad_encoding"),
    "Shift JIS": (QUIET.replace("Acme", "アクメ").encode("shift_jis"), "bad_encoding"),
    "GB 18030": (QUIET.replace("Acme", "推理").encode("gb18030"), "bad_encoding"),
    "a surrogate": (QUIET.replace("Acme", "\ud800").encode("utf-8", "surrogatepass"), "bad_encoding"),
    "a long zero": (QUIET.encode().replace(b"Acme", b"\xc0\x80"), "bad_encoding"),
    "PDF": (b"%PDF-1.7\n", "bad_encoding"),
    "Word": (b"PK\x03\x04" + bytes(100), "bad_encoding"),
    "gzip": (b"\x1f\x8b\x08", "bad_encoding"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_of_another_encoding_is_refused_with_its_reason(name: str) -> None:
    content, code = OTHER_FILES[name]
    result = read_in_under_a_second(content)
    assert result.contract is None
    (found,) = result.diagnostics
    assert found.code == code
    assert found.found.startswith("a text in UTF") == name.startswith(("UTF-16", "UTF-32"))


def read_in_under_a_second(content: bytes) -> ReadResult:
    for _ in range(4):  # a busy machine may need another try
        started = time.process_time()
        result = read_contract(content, "contract.yaml")
        if time.process_time() - started < 1:
            return result
    raise AssertionError("reading took more than a second")


def test_all_errors_are_shown_in_one_run_in_the_order_of_the_file() -> None:
    edits = [
        "version: 3",
        "version: three",
        "tax_id: 91110000TEST000001, ",
        "",
        "grace: 24h",
        "grace: 24",
        "currency: CNY",
        "currency: Yuan",
    ]
    edits += ["e2e, inference)", "e2e, x)", "queues: [standard, vip]", "queues: [standard, vip, vip]", "< 100ms", "< 100"]
    edits += ["  vip: {multi", "  clause: {}\n  vip: {multi", "kind: cold_start", "kind: warm_start", "tokens: 2x", "tokens: 2"]
    assert errors(edited(QUIET, edits)) == [
        "bad_version 3",
        "missing_key 7",
        "bad_duration 10",
        "bad_currency 11",
        "bad_expression 25",
        "repeated_entry 35",
        "bad_duration 39",
        "duplicate_key 47",
        "bad_choice 52",
        "bad_factor 62",
    ]


def test_a_rule_is_asked_although_another_section_cannot_be_read() -> None:
    assert errors(edited(QUIET, ["currency: CNY", "currency: Yuan", "< 100ms", "< 99ms", "by_queue: {batch", "by_queue: {bach"])) == [
        "bad_currency 11",
        "undeclared_queue 23",
        "tier_gap 40",
    ]


def test_a_part_that_is_no_yaml_does_not_hide_what_is_wrong_in_the_others() -> None:
    edits = ["grace: 24h", "grace: a: b", "currency: CNY", "currency: Yuan", "  queues: [standard, vip]", "  queues: [standard, vip"]
    edits += ["by_queue: {batch", "by_queue: {bach", "tokens: 2x", "tokens: 2"]
    assert errors(edited(QUIET, edits)) == ["bad_syntax 10", "bad_currency 11", "undeclared_queue 23", "bad_syntax 35", "bad_factor 61"]


def test_a_file_of_which_no_part_is_yaml_says_so_of_each() -> None:
    assert errors("title: a: b\nid: [c\n") == ["bad_syntax 1", "bad_syntax 2"]


def test_a_tier_gap_is_shown_with_a_latency_that_has_no_price() -> None:
    result = read_contract(edited(QUIET, ["< 100ms", "0ms .. 99ms"]).encode(), "contract.yaml")
    (gap,) = result.diagnostics
    assert (gap.code, gap.line) == ("tier_gap", 40)
    assert gap.cure == "write `< 100ms` for `fast`, or let `standard` begin sooner"
    assert gap.found == "no price for 99.001ms: `fast` (0ms .. 99ms) ends below it and `standard` (100ms .. 300ms) begins above it"


@pytest.mark.parametrize(("latency", "multiplier"), [("99.999ms", "2.0"), ("100ms", "1.0"), ("300ms", "1.0"), ("300.001ms", "0.3")])
def test_a_latency_at_an_edge_has_the_multiplier_of_its_tier(latency: str, multiplier: str) -> None:
    latency_us = parse_duration(latency)
    tiers = [tier for tier in read().pricing.tiers if tier.latency.from_us <= latency_us < (tier.latency.until_us or 10**15)]
    assert [tier.multiplier for tier in tiers] == [Decimal(multiplier)]


def test_line_ends_and_block_texts_change_nothing() -> None:
    assert read(base=QUIET.replace("\n", "\r\n")) == read()
    folded = "    hybrid: >-\n      if(inference / e2e < 0.30,\n      e2e, inference)\n"
    assert read('    hybrid: "if(inference / e2e < 0.30, e2e, inference)"\n', folded) == read()


def test_a_contract_in_json_is_read_too() -> None:
    assert read(base=json.dumps(yaml.load(QUIET, Loader=yaml.BaseLoader))) == read()
    assert read(base=json.dumps(yaml.load(QUIET, Loader=yaml.BaseLoader), indent=2)) == read()


edges = st.integers(0, 12)
tiers = st.one_of(
    edges.map(lambda a: f"< {a + 1}us"),
    edges.map(lambda a: f"<= {a}us"),
    edges.map(lambda a: f"> {a}us"),
    edges.map(lambda a: f">= {a}us"),
    st.tuples(edges, edges).map(lambda two: f"{min(two)}us .. {max(two)}us"),
    st.tuples(edges, edges).map(lambda two: f"{min(two)}us ..< {max(two) + 1}us"),
)


def holds(tier: str, latency: int) -> bool:
    """Whether a tier as written holds a latency, by the words of the specification."""
    words = tier.replace("us", "").split()
    if len(words) == 2:
        edge = int(words[1])
        return {"<": latency < edge, "<=": latency <= edge, ">": latency > edge, ">=": latency >= edge}[words[0]]
    return int(words[0]) <= latency and (latency < int(words[2]) if words[1] == "..<" else latency <= int(words[2]))


@settings(max_examples=60, deadline=None)
@given(st.lists(tiers, min_size=1, max_size=4))
def test_tiers_are_proved_for_every_latency(texts: list[str]) -> None:
    written = "".join(f'    - {{name: t{number}, latency: "{text}", multiplier: 1}}\n' for number, text in enumerate(texts))
    start, end = QUIET.index("    - {name: fast"), QUIET.index("  missing_latency")
    result = read_contract((QUIET[:start] + written + QUIET[end:]).encode(), "contract.yaml")
    codes = {each.code for each in result.diagnostics if each.severity is Severity.ERROR}
    prices = [sum(holds(text, latency) for text in texts) for latency in range(20)]
    assert ("tier_gap" in codes) == (0 in prices)
    assert ("tier_overlap" in codes) == any(count > 1 for count in prices)
    for each in result.diagnostics:
        if each.code in ("tier_gap", "tier_overlap"):
            shown = each.found.split(" for ")[1].split(":")[0]
            latency = 0 if shown == "0ms" else int(shown.removesuffix("us"))
            assert (prices[latency] == 0) if each.code == "tier_gap" else (prices[latency] > 1)


@pytest.mark.parametrize("name", RESERVED_TIERS)
def test_no_tier_takes_the_name_of_another_band(name: str) -> None:
    assert errors(edited(QUIET, ["name: slow", f"name: {name}"])) == ["reserved_tier 41"]


OPTIONAL = {
    *("replaces", "title", "governing_text", "payment", "require_approvals", "accept", "examples"),
    *("tax", "until", "corrections", "within", "may_charge_more", "served_as", "degraded", "by_queue", "define", "clause"),
    *("max_requests", "failed", "combine", "max_queue", "over_limit", "evidence"),
}
OPTIONAL_IN_A_QUEUE = {"multiplier"}
FREE = ("models", "define", "degraded")  # whose keys are names that the contract chooses


def key_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*path, key)
            yield from key_paths(part, (*path, key))
    if isinstance(value, list):
        for at, part in enumerate(value):
            yield from key_paths(part, (*path, at))


def chosen_by_the_contract(path: tuple[Any, ...]) -> bool:
    return path[0] == "examples" or path[-2:-1] in [(name,) for name in (*FREE, "by_queue", "queues")]


WHOLE = yaml.load(FULL, Loader=yaml.BaseLoader)


@pytest.mark.parametrize(
    "path", [path for path in key_paths(WHOLE) if not chosen_by_the_contract(path)], ids=lambda path: ".".join(map(str, path))
)
def test_every_key_is_required_except_those_that_the_specification_names(path: tuple[Any, ...]) -> None:
    changed = deepcopy(WHOLE)
    around = changed
    for part in path[:-1]:
        around = around[part]
    del around[path[-1]]
    found = {error.split()[0] for error in errors(yaml.dump(changed))}
    optional = path[-1] in OPTIONAL or (path[0] == "queues" and path[-1] in OPTIONAL_IN_A_QUEUE)
    if path == ("latency", "define"):
        optional = True
    assert found == (set() if optional else {"missing_key"})


def test_a_key_left_out_has_the_value_that_the_specification_gives_it() -> None:
    contract = read(base=(GOLDEN / "good" / "smallest.yaml").read_text("utf-8"))
    assert (contract.title, contract.governing_text, contract.payment, contract.money.tax, contract.effective.until) == (None,) * 5
    assert (contract.examples, contract.accept, contract.require_approvals) == ((), (), ())
    assert (contract.latency.by_queue, contract.latency.define, contract.models["small"].degraded) == ({}, {}, {})
    assert contract.served_names() == {"small": ("small", None)}
    assert contract.calendar.corrections == Corrections(within="365d", may_charge_more="yes")
    assert contract.calendar.corrections.within_us == 365 * 86_400_000_000
    assert (contract.objective.max_requests, contract.refund.failed, contract.refund.tax) == (None, "none", "reduces_base")
    queue = contract.queues.by_name["standard"]
    assert (queue.multiplier, queue.combine, queue.max_queue_us, queue.over_limit) == (None, "multiply", None, "report")
    asynchronous = read(", evidence: header", "").exemptions[1]
    assert isinstance(asynchronous, Async) and asynchronous.evidence is None


def test_none_may_be_written_where_it_is_meant() -> None:
    contract = read("  batch: {}", "  batch: {multiplier: none, max_queue: none}", "cap: 100%", "cap: none")
    assert contract.queues.by_name["batch"].multiplier is None and contract.queues.by_name["batch"].max_queue_us is None
    assert (contract.minimum_commitment, contract.objective.max_requests, contract.refund.cap) == (None, None, None)


def test_examples_take_durations_in_any_unit_and_exact_charges() -> None:
    event = "{queue_us: 7, prefill_ms: 0.0005, decode_s: 0.0000015, input_tokens: 1000, output_tokens: 500}"
    (first, second) = read(
        "{queue_ms: 10, prefill_ms: 90, input_tokens: 1000, output_tokens: 500}",
        event,
        "charge: 0.006}\n",
        "charge: 0.000000000000000000000000006}" + WINDOWS,
    ).examples
    assert (first.events[0].queue_us, first.events[0].prefill_us, first.events[0].decode_us) == (7, 0, 2)
    assert first.expect.charge == Decimal("0.000000000000000000000000006")
    assert [window.at for window in second.windows] == [datetime(2026, 5, 3, 2, tzinfo=UTC), datetime(2026, 5, 7, 6, 0, 0, 1, tzinfo=UTC)]
    assert second.windows[0].p99_us == 310_000


def test_a_queue_may_have_any_name_but_clause() -> None:
    contract = read("  batch: {}", "  batch: {}\n  by_name: {multiplier: 2.0}")
    assert contract.queues.by_name["by_name"].multiplier == Decimal("2.0")
    assert set(contract.queues.by_name) == {"standard", "batch", "by_name", "vip"}


def test_a_contract_is_not_changed_after_reading() -> None:
    contract = read()
    with pytest.raises(ValueError, match="frozen"):
        contract.effective.until = date(2030, 1, 1)


BROKEN = [
    *("a: [", "a: [b, c}", "a: {", "a: {b: c]", "a: 'x", 'a: "x', 'a: "\\q"', 'a: "\\x4"', "a: 'b' c", "a: b: c", "a\nb: c", "- a\nb"),
    *("\ta", "a: b\n\tc: d", "a: |\n\tb", "a: @x", "a: `x", "a: |x", "a: >99\n x", "}", "]", ",", "a: &", "a: *", "a: !<", "a: !e!x y"),
    *("%", "%YAML 1.2\n%YAML 1.2\n---\na", "%YAML 2.0\n---\na", "a:\n  b: c\n d: e", "a: b\n- c", "a: %b"),
    *("a: - b", "a: [x] - b", "a: ? b", "{a: b}}", "{a: b}]", "{a: b},"),
]


def test_the_words_of_the_yaml_library_are_never_shown() -> None:
    words = ("while ", "expected <", "could not", "scanning", "parsing", "flow ", "token", "mapping values", "stream", "node", "scalar")
    for text in BROKEN:
        found = [each for each in read_contract(text.encode(), "contract.yaml").diagnostics if each.code == "bad_syntax"]
        assert len(found) == 1, text
        assert not any(word in str(found[0]) for word in words), found
        assert found[0].found != "text that is not YAML", text


def test_every_contract_of_the_shared_cases_has_no_error() -> None:
    if not SHARED.is_dir():
        pytest.skip("../shared is missing")
    files = [*SHARED.glob("cases*/*/contract*.yaml"), SHARED / "bench" / "contract.yaml"]
    assert len(files) > 40
    assert {str(file): found for file in files if (found := errors(file.read_bytes()))} == {}


@pytest.mark.parametrize(
    ("edit", "cure"),
    [
        (["input: 2.00, ca", "input: 3,50, ca"], "write a decimal point: `3.50`"),
        (["input: 2.00, ca", "input: 1,000, ca"], "write `1000`, or `1.000` if the comma is to be a decimal point"),
        (["rate: 6%", "rate: 6,5%"], "write a decimal point: `6.5%`"),
        (["minimum_commitment: none", "minimum_commitment: 10,000"], "write `10000`"),
        (["percentile: 99", "percentile: 99,9"], "write a decimal point: `99.9`"),
        (["percentile: 99", "percentile: 99，9"], "write a decimal point: `99.9`"),
        (["target: 300ms", "target: 300ms，"], "remove it"),
        (["  queues: [standard, vip]", "  queues:\n    - standard，vip"], "write `,` and a space in its place"),
    ],
)
def test_a_comma_within_a_value_is_told_once_with_what_is_meant(edit: list[str], cure: str) -> None:
    assert [found.cure for found in read_contract(edited(QUIET, edit).encode(), "contract.yaml").diagnostics] == [cure]


@pytest.mark.parametrize(
    ("edit", "code", "cure"),
    [
        (["cap: 100%", "cap: 1"], "bad_percentage", "write 100%, or 1% if that is meant"),
        (["minimum_commitment: none", "minimum_commitment: 10.000"], "too_many_digits", "parts thousands, leave it out: `10000`"),
        (["accept: []", "accept: []\ncustomer: Acme"], "unknown_key", "indent it, if it is part of `parties`, or remove it"),
        (["  - it: exactly", "  -it: exactly"], "bad_syntax", "write `- it: exactly 100 ms is the standard tier`"),
        (["{name: VAT,", "{name:VAT,"], "bad_syntax", "write `name: VAT`"),
        (["  target: 300ms", "  target:300ms"], "bad_syntax", "write `target: 300ms`"),
    ],
)
def test_a_cure_is_of_what_was_probably_meant(edit: list[str], code: str, cure: str) -> None:
    (found,) = read_contract(edited(QUIET, edit).encode(), "contract.yaml").diagnostics
    assert (found.code, found.cure.endswith(cure)) == (code, True), found
