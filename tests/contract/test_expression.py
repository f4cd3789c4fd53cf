"""Latency definitions: what the grammar reads and what it refuses. What they compute is proved with the plan that runs them."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.contract.diagnostic import Refusal
from ledger.contract.expression import (
    MAX_SYMBOLS,
    Arithmetic,
    Choice,
    Comparison,
    Extreme,
    Literal_,
    Logic,
    Name,
    Node,
    Not,
    RatioComparison,
    parse_definition,
)

E2E, QUEUE, INFERENCE, PREFILL = Name(name="e2e"), Name(name="queue"), Name(name="inference"), Name(name="prefill")
INPUT, OUTPUT = Name(name="input_tokens"), Name(name="output_tokens")


def number(value: int | str) -> Literal_:
    return Literal_(value=Fraction(value))


READ: dict[str, Node] = {
    "e2e": E2E,
    " ( ( e2e ) ) ": E2E,
    "e2e - queue - 50ms": Arithmetic(op="-", left=Arithmetic(op="-", left=E2E, right=QUEUE), right=number(50_000)),
    "e2e - (queue + 1us)": Arithmetic(op="-", left=E2E, right=Arithmetic(op="+", left=QUEUE, right=number(1))),
    "e2e + queue * 1.5": Arithmetic(op="+", left=E2E, right=Arithmetic(op="*", left=QUEUE, right=number("1.5"))),
    "2 * input_tokens * 1ms": Arithmetic(op="*", left=Arithmetic(op="*", left=number(2), right=INPUT), right=number(1000)),
    "e2e / 3": Arithmetic(op="*", left=E2E, right=number("1/3")),
    "e2e / 100ms * 1s": Arithmetic(op="*", left=Arithmetic(op="*", left=E2E, right=number("1/100000")), right=number(1_000_000)),
    "min(e2e, queue)": Extreme(op="min", operands=(E2E, QUEUE)),
    "max(e2e, queue, 8.3s)": Extreme(op="max", operands=(E2E, QUEUE, number(8_300_000))),
    "if(inference / e2e < 0.30, e2e, inference)": Choice(
        condition=RatioComparison(op="<", dividend=INFERENCE, divisor=E2E, literal=Fraction(3, 10)), then=E2E, otherwise=INFERENCE
    ),
    "if(0.30 >= inference / e2e, e2e, inference)": Choice(
        condition=RatioComparison(op="<=", dividend=INFERENCE, divisor=E2E, literal=Fraction(3, 10)), then=E2E, otherwise=INFERENCE
    ),
    "if(e2e / output_tokens > 20ms, e2e, queue)": Choice(
        condition=RatioComparison(op=">", dividend=E2E, divisor=OUTPUT, literal=Fraction(20_000)), then=E2E, otherwise=QUEUE
    ),
    "if(2 * e2e - queue == e2e, e2e, queue)": Choice(
        condition=Comparison(op="==", left=Arithmetic(op="-", left=Arithmetic(op="*", left=number(2), right=E2E), right=QUEUE), right=E2E),
        then=E2E,
        otherwise=QUEUE,
    ),
    "if(not e2e > 1s and input_tokens != 0 and queue <= 1s or queue >= 2s, e2e, queue)": Choice(
        condition=Logic(
            op="or",
            operands=(
                Logic(
                    op="and",
                    operands=(
                        Not(operand=Comparison(op=">", left=E2E, right=number(1_000_000))),
                        Comparison(op="!=", left=INPUT, right=number(0)),
                        Comparison(op="<=", left=QUEUE, right=number(1_000_000)),
                    ),
                ),
                Comparison(op=">=", left=QUEUE, right=number(2_000_000)),
            ),
        ),
        then=E2E,
        otherwise=QUEUE,
    ),
}


@pytest.mark.parametrize("text", READ)
def test_the_grammar_reads_every_construct(text: str) -> None:
    definition = parse_definition(text)
    assert definition.tree == READ[text]
    assert definition.text == text


REFUSED = {
    "": 0,
    "e2e +": 5,
    "e2e e2e": 4,
    "(e2e": 4,
    "e2e)": 3,
    "-e2e": 0,
    "+e2e": 0,
    "e2e; drop table event": 3,
    "e2e -- comment": 5,
    "e2e /* comment */": 5,
    "'e2e'": 0,
    '"e2e"': 0,
    "e2e.x": 3,
    "E2E": 0,
    "pg_sleep(10)": 0,
    "hybrid": 0,
    "latency": 0,
    "e2e < 1s": 0,
    "input_tokens": 0,
    "300": 0,
    "1e3ms": 0,
    "0.5us + e2e": 0,
    "e2e - 16k": 6,
    "e2e * e2e": 4,
    "e2e + 1": 6,
    "input_tokens / 1ms * e2e": 13,
    "e2e / queue": 0,
    "e2e / queue * e2e": 0,
    "if(e2e / queue < input_tokens, e2e, queue)": 17,
    "if(e2e / queue < 1s, e2e, queue)": 17,
    "if(e2e / queue < e2e / inference, e2e, queue)": 17,
    "if(input_tokens / e2e < 1, e2e, queue)": 16,
    "if(e2e < 1s < 2s, e2e, queue)": 3,
    "if(e2e, e2e, queue)": 3,
    "if(e2e < 1s, e2e)": 0,
    "if(e2e < 1s, e2e, input_tokens)": 18,
    "if(e2e < 1s and queue, e2e, queue)": 16,
    "if(e2e = 1s, e2e, queue)": 7,
    "if(e2e <> 1s, e2e, queue)": 8,
    "if(e2e is null, e2e, queue)": 7,
    "min()": 4,
    "min(e2e, 1)": 9,
    "min(e2e < 1s, queue < 1s)": 4,
    "not e2e": 4,
    "e2e ^ 2": 4,
    "e2e ** 2": 5,
    "e2e % 2": 4,
    "e2e || queue": 4,
    "case when true then e2e end": 0,
    "e2e / 0": 6,
    "e2e / (1 - 1)": 0,
    "ｅ2e": 0,
    "e2e - ５0ms": 6,
    "e2e\x00": 3,
    "__import__": 0,
    "e2e.__class__": 3,
}


@pytest.mark.parametrize("text", REFUSED)
def test_nothing_but_the_grammar_is_accepted(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        parse_definition(text)
    assert refusal.value.code == "bad_expression"
    assert refusal.value.offset == REFUSED[text], refusal.value
    assert refusal.value.found and refusal.value.expected and refusal.value.cure


HURTING = ["(" * 100_000, "not " * 100_000, "e2e" + " + e2e" * 100_000, "if(" * 50_000, "9" * 100_000 + "ms", "a" * 100_000]


@pytest.mark.parametrize("text", HURTING, ids=lambda text: text[:6])
def test_a_definition_made_to_hurt_is_refused_quickly(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(Refusal):
        parse_definition(text)
    assert time.perf_counter() - started < 0.5


def test_the_longest_definition_is_read() -> None:
    parse_definition("e2e" + " + e2e" * (MAX_SYMBOLS // 2 - 1))
    with pytest.raises(Refusal):
        parse_definition("e2e" + " + e2e" * (MAX_SYMBOLS // 2))


WORDS = [*"()+-*/<,", "e2e", "input_tokens", "1ms", "2", "if", "min", "and", "not", "=="]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join))
def test_any_words_and_signs_are_read_or_refused(text: str) -> None:
    try:
        parse_definition(text)
    except Refusal as refusal:
        assert 0 <= refusal.offset <= len(text)
