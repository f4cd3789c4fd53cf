"""The sums that docs/finance.md does by hand are right, and are those of the contract it names."""

import re
from fractions import Fraction
from pathlib import Path

from ledger.contract.reader import read_contract

ROOT = Path(__file__).parents[2]
PRODUCT = re.compile(r"([\d,]+)(?: tokens)? × ([\d.]+) ÷ 1,000,000 × ([\d.]+) = ([\d.]+)")


def test_every_sum_of_the_page_is_right_and_adds_up() -> None:
    page = (ROOT / "docs" / "finance.md").read_text("utf-8")
    sums = [[Fraction(number.replace(",", "").rstrip(".")) for number in match.groups()] for match in PRODUCT.finditer(page)]
    assert len(sums) == 4
    for tokens, rate, factor, amount in sums:
        assert tokens * rate / 1_000_000 * factor == amount
    assert sum(amount for *_, amount in sums[:3]) == Fraction("0.51")
    assert "Together CNY 0.51" in page


def test_the_page_uses_the_rates_of_the_contract_which_states_the_same_example() -> None:
    path = ROOT / "contracts" / "acme-bank.yaml"
    contract = read_contract(path.read_bytes(), path.name).contract
    assert contract is not None
    rates = contract.models["deepseek-v4"].per_million_tokens
    page = (ROOT / "docs" / "finance.md").read_text("utf-8")
    assert [match[1] for match in PRODUCT.findall(page)] == [str(rates.input), str(rates.cached_input), str(rates.output), str(rates.input)]
    example = next(example for example in contract.examples if str(example.expect.charge) == "0.51")
    (event,) = example.events
    assert (event.input_tokens, event.cached_input_tokens, event.output_tokens) == (4000, 1000, 250)


def test_the_ready_made_contracts_have_neither_errors_nor_warnings() -> None:
    contracts = sorted((ROOT / "contracts").glob("*.yaml"))
    assert len(contracts) >= 2
    for path in contracts:
        assert read_contract(path.read_bytes(), path.name).diagnostics == (), path.name
