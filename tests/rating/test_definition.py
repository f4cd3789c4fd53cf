"""A latency definition gives the same microsecond in PostgreSQL, in DuckDB and by rational arithmetic."""

from collections.abc import Iterator
from fractions import Fraction
from typing import assert_never

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, make_url

from ledger.contract.expression import (
    NAMES,
    Arithmetic,
    Choice,
    Comparison,
    Condition,
    Definition,
    Extreme,
    Literal_,
    Logic,
    Name,
    Node,
    Not,
    RatioComparison,
    parse_definition,
)
from ledger.contract.whole_numbers import LARGEST_RESULT_US, MOST_DIGITS, size_of
from ledger.rating import sql
from ledger.rating.definition import DefinitionTooLarge, latency_us
from ledger.rating.duckdb import Microseconds
from ledger.store.embedded import Server
from ledger.store.limits import LARGEST_TOKENS, LONGEST_US

DURATIONS = sorted(name for name, unit in NAMES.items() if unit == "duration")
Measured = dict[str, int | None]


class Unknown(Exception):
    """The expression is null."""


def value_of(node: Node, measured: Measured) -> Fraction:
    match node:
        case Name(name=name):
            if (value := measured[name]) is None:
                raise Unknown
            return Fraction(value)
        case Literal_(value=value):
            return value
        case Arithmetic(op=op, left=left, right=right):
            a, b = value_of(left, measured), value_of(right, measured)
            return {"+": a + b, "-": a - b, "*": a * b}[op]
        case Extreme(op=op, operands=operands):
            values = [value_of(operand, measured) for operand in operands]
            return min(values) if op == "min" else max(values)
        case Choice(condition=condition, then=then, otherwise=otherwise):
            # All three, so that an unknown part makes the whole unknown.
            test, a, b = holds(condition, measured), value_of(then, measured), value_of(otherwise, measured)
            return a if test else b
        case _:
            assert_never(node)


def holds(node: Condition, measured: Measured) -> bool:
    match node:
        case Comparison(op=op, left=left, right=right):
            return compare(op, value_of(left, measured), value_of(right, measured))
        case RatioComparison(op=op, dividend=dividend, divisor=divisor, literal=literal):
            a, b = value_of(dividend, measured), value_of(divisor, measured)
            if b <= 0:
                raise Unknown
            return compare(op, a / b, literal)
        case Logic(op=op, operands=operands):
            tests = [holds(operand, measured) for operand in operands]
            return all(tests) if op == "and" else any(tests)
        case Not(operand=operand):
            return not holds(operand, measured)
        case _:
            assert_never(node)


def compare(op: str, a: Fraction, b: Fraction) -> bool:
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]


def by_hand(definition: Definition, measured: Measured) -> int | None:
    try:
        exact = value_of(definition.tree, measured)
    except Unknown:
        return None
    return None if exact < 0 else round(exact)


# Those of many digits need numbers of more than 64 bits.
factors = st.fractions(min_value=-9, max_value=9, max_denominator=16) | st.decimals(min_value=-9, max_value=9, places=8).map(Fraction)
literals = st.one_of(st.integers(0, 400_000).map(Fraction), factors).map(lambda value: Literal_(value=value))
comparators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def nodes(depth: int) -> st.SearchStrategy[Node]:
    leaf: st.SearchStrategy[Node] = st.one_of(st.sampled_from(DURATIONS).map(lambda name: Name(name=name)), literals)
    if depth == 0:
        return leaf
    inner = nodes(depth - 1)
    return st.one_of(
        leaf,
        st.builds(Arithmetic, op=st.sampled_from(["+", "-"]), left=inner, right=inner),
        st.builds(lambda a, f: Arithmetic(op="*", left=a, right=Literal_(value=f)), inner, factors),
        st.builds(Extreme, op=st.sampled_from(["min", "max"]), operands=st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Choice, condition=conditions(depth - 1), then=inner, otherwise=inner),
    )


def conditions(depth: int) -> st.SearchStrategy[Condition]:
    inner = nodes(depth)
    simple: st.SearchStrategy[Condition] = st.one_of(
        st.builds(Comparison, op=comparators, left=inner, right=inner),
        st.builds(RatioComparison, op=comparators, dividend=inner, divisor=inner, literal=factors),
    )
    if depth == 0:
        return simple
    return st.one_of(
        simple,
        st.builds(Not, operand=conditions(depth - 1)),
        st.builds(Logic, op=st.sampled_from(["and", "or"]), operands=st.lists(simple, min_size=2, max_size=3).map(tuple)),
    )


events = st.fixed_dictionaries({name: st.one_of(st.none(), st.integers(0, 900_000)) for name in DURATIONS})


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[Connection]:
    """A connection for expressions that need no table."""
    engine = create_engine(make_url(server.url("postgres")).set(drivername="postgresql+psycopg"))
    with engine.connect().execution_options(no_parameters=True) as opened:
        yield opened
    engine.dispose()


def in_engine(definition: Definition, measured: Measured, dialect: str | type[Microseconds]) -> str:
    def constant(name: str) -> sql.exp.Expr:
        value = measured[name]
        return sql.exp.cast(sql.null() if value is None else sql.number(value), "bigint")

    return sql.exp.select(latency_us(definition, constant)).sql(dialect)


@given(tree=nodes(2), measured=events)
@settings(max_examples=300, deadline=None)
def test_engines_and_rational_arithmetic_agree(connection: Connection, tree: Node, measured: Measured) -> None:
    definition = Definition(text="generated", tree=tree)
    expected = by_hand(definition, measured)
    assert connection.exec_driver_sql(in_engine(definition, measured, "postgres")).scalar() == expected
    assert duckdb.sql(in_engine(definition, measured, Microseconds)).fetchall() == [(expected,)]


@pytest.mark.parametrize(
    ("text", "measured", "expected"),
    [
        ("e2e * 0.5", {"e2e": 1}, 0),  # half to even
        ("e2e * 0.5", {"e2e": 3}, 2),
        ("e2e / 3", {"e2e": 100}, 33),
        ("e2e - queue", {"e2e": 1, "queue": 2}, None),  # negative
        ("if(inference / e2e < 0.30, e2e, inference)", {"inference": 30, "e2e": 100}, 30),  # exactly 0.30
        ("if(inference / e2e < 0.30, e2e, inference)", {"inference": 29, "e2e": 100}, 100),
        ("if(inference / e2e < 0.30, e2e, inference)", {"inference": 0, "e2e": 0}, None),  # division by zero
        ("if(queue > 10ms, prefill, e2e)", {"queue": 1, "prefill": None, "e2e": 5}, None),  # null in the branch not taken
    ],
)
def test_edges_of_the_rules(connection: Connection, text: str, measured: Measured, expected: int | None) -> None:
    definition = parse_definition(text)
    assert by_hand(definition, measured) == expected
    assert connection.exec_driver_sql(in_engine(definition, measured, "postgres")).scalar() == expected


@pytest.mark.parametrize(
    ("text", "e2e_us"), [("max(e2e * 123456789.000000001, e2e) - e2e * 123456788", 2_592_000_000_000), ("0.333333 * e2e", 900_000)]
)
def test_numbers_beyond_64_bits_stay_exact(connection: Connection, text: str, e2e_us: int) -> None:
    definition = parse_definition(text)
    expected = by_hand(definition, {"e2e": e2e_us})
    assert connection.exec_driver_sql(in_engine(definition, {"e2e": e2e_us}, "postgres")).scalar() == expected
    assert duckdb.sql(in_engine(definition, {"e2e": e2e_us}, Microseconds)).fetchall() == [(expected,)]


def test_a_definition_beyond_38_digits_is_refused() -> None:
    huge = Literal_(value=Fraction(10**20))
    tree = Arithmetic(op="*", left=Arithmetic(op="*", left=Name(name="e2e"), right=huge), right=huge)
    with pytest.raises(DefinitionTooLarge, match="38 digits"):
        latency_us(Definition(text="e2e * ...", tree=tree), sql.column)


LARGEST = dict.fromkeys(DURATIONS, LONGEST_US) | {name: LARGEST_TOKENS for name in NAMES if name not in DURATIONS}
AT_THE_LIMIT = (
    f"e2e * {'0.00000001 * ' * 3}10",  # 26 digits, of which one stands before the point
    "e2e * 123456789012345 * 0.000000000001 * 0.0000000001",  # 38 digits
    "min(e2e, 0s) + 2147483648 * 1us * 4294967295",
    "queue * 0.000000000001 * 0.000000000001 * 0.000000000001",  # a denominator of 37 digits
    "input_tokens * 9000000 * 1us",
)


@pytest.mark.parametrize("text", AT_THE_LIMIT)
def test_what_is_just_not_too_large_is_computed_of_the_largest_measurements(connection: Connection, text: str) -> None:
    definition, measured = parse_definition(text), dict[str, int | None](LARGEST)
    size = size_of(definition.tree)
    assert size.step < 10**MOST_DIGITS and size.result_us <= LARGEST_RESULT_US
    expected = by_hand(definition, measured)
    assert connection.exec_driver_sql(in_engine(definition, measured, "postgres")).scalar() == expected
    assert duckdb.sql(in_engine(definition, measured, Microseconds)).fetchall() == [(expected,)]


@given(tree=nodes(2), measured=st.fixed_dictionaries({name: st.integers(0, LONGEST_US) | st.just(LONGEST_US) for name in DURATIONS}))
@settings(max_examples=300, deadline=None)
def test_no_result_is_larger_than_its_size_says(tree: Node, measured: dict[str, int | None]) -> None:
    assert (by_hand(Definition(text="generated", tree=tree), measured) or 0) <= size_of(tree).result_us
