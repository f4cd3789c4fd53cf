"""Definitions worked out exactly: precedence, nulls, ratios, the sign and the rounding. Source: specification, section 3."""

import pytest

from tests.oracle.expression import evaluate

VALUES = {"queue": 4, "prefill": 3, "decode": 2, "inference": 30, "e2e": 100, "ttft": None, "input_tokens": 0, "output_tokens": None}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("queue + prefill * 2", 10),
        ("(queue + prefill) * 2", 14),
        ("queue / 8", 0),  # 0.5, half even
        ("prefill * 0.5", 2),  # 1.5, half even
        ("decode / 4 - prefill / 4", None),  # -0.25 is negative
        ("queue - queue", 0),
        ("queue + ttft", None),
        ("if(inference / e2e < 0.30, e2e, inference)", 30),  # exactly 0.30 is not below
        ("if(0.30 <= inference / e2e, e2e, inference)", 100),
        ("if(queue / (prefill - prefill) > 1, e2e, queue)", None),
        ("if(queue / (decode - prefill) > 1, e2e, queue)", None),
        ("if(queue < 5us, queue, ttft)", None),  # null in the branch not taken
        ("if(queue < 5us or output_tokens > 1, queue, prefill)", None),
        ("if(not queue < 5us and prefill == 3us or decode != 2us, queue, prefill)", 3),
        ("if((queue + 1us) >= 5us and (input_tokens == 0), max(queue, prefill, 7us), min(queue, prefill))", 7),
    ],
)
def test_a_definition_is_worked_out_exactly(text: str, microseconds: int | None) -> None:
    assert evaluate(text, VALUES) == microseconds
