"""How large the numbers of a latency definition become, of the largest measurements that an event can have."""

import pytest

from ledger.contract.expression import NAMES, parse_definition
from ledger.contract.whole_numbers import LARGEST, LONGEST_MEASURED_US, MOST_TOKENS, Size, size_of
from ledger.store.limits import LARGEST_TOKENS, LONGEST_US

D = LONGEST_US  # 30 days


def test_the_largest_measurements_are_those_of_events() -> None:
    assert (LONGEST_MEASURED_US, MOST_TOKENS) == (LONGEST_US, LARGEST_TOKENS)
    assert set(LARGEST) == {name for name, unit in NAMES.items() if unit == "duration"}


@pytest.mark.parametrize(
    ("text", "step", "result_us"),
    [
        ("e2e", 3 * D, 3 * D),  # queue, prefill and decode, each of 30 days
        ("e2e - queue", 3 * D, 3 * D),
        ("0s - e2e", 3 * D, 0),  # never known
        ("min(e2e * input_tokens, 1s)", 3 * D * 10**12, 1_000_000),
        ("max(queue, decode) * 2", 2 * D, 2 * D),
        ("queue * 0.25", D, D // 4),
        ("if(e2e * 10 < queue, 1s, queue)", 30 * D, D),
        ("if(inference / e2e < 0.0001, queue, 1s)", 2 * D * 10_000, D),
        ("min(e2e, 1s) * 0.000000000001 * 0.000000000001", 2 * 10**24, 0),  # the denominator, twice
    ],
)
def test_sizes_are_those_of_the_steps(text: str, step: int, result_us: int) -> None:
    assert size_of(parse_definition(text).tree) == Size(step=step, result_us=result_us)
