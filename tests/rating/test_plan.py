"""How a plan is compiled: what may differ in its SQL without a difference in its cells."""

from collections.abc import Iterator
from datetime import datetime

import duckdb
import pytest
from sqlglot import exp

from ledger.contract.model import Contract
from ledger.instant import since_1970_us
from ledger.rating import sql
from ledger.rating.code import Code
from ledger.rating.duckdb import Microseconds, all_of
from ledger.rating.plan import SUMS, Plan
from ledger.rating.plans import plans_of
from ledger.rating.recorded import Coverage
from tests.settlement.months import hour, month

ACCOUNT, OTHER = "acme-bank", "no-customer"
EVENT = """CREATE TABLE event (account VARCHAR, request_id VARCHAR, revision SMALLINT, model VARCHAR, received_at BIGINT, queue VARCHAR,
status INT, cold_start VARCHAR, async_header BOOLEAN, node VARCHAR, queue_us BIGINT, prefill_us BIGINT, decode_us BIGINT,
inference_us BIGINT, ttft_us BIGINT, e2e_us BIGINT, input_tokens BIGINT, cached_input_tokens BIGINT, output_tokens BIGINT)"""


@pytest.fixture
def memory() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with a request of a covered account, one of another, and two cancelled ones of which one came without usage."""
    with duckdb.connect() as connection:
        connection.execute(EVENT)
        for number, (account, status, output_tokens) in enumerate(
            ((ACCOUNT, 200, 7), (OTHER, 200, 7), (ACCOUNT, 499, 3), (ACCOUNT, 499, None))
        ):
            row = [account, f"r{number}", 1, "deepseek-v4", _us(hour(1)), "standard", status, None, False, None]
            connection.execute(
                "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, NULL, NULL, 400000, 10, 4, ?)", [*row, output_tokens]
            )
        yield connection


def _us(instant: datetime) -> int:
    return since_1970_us(instant)


def _plan(traffic: dict[str, int] | None) -> Plan:
    contract: Contract = month().last
    key = contract.id, contract.version
    covered = Coverage(account=ACCOUNT, contract_id=contract.id, version=contract.version, start=hour(0), end=hour(24))
    (plan,) = plans_of({key: contract}, [covered], [], [], all_of("event"), traffic)
    return plan


@pytest.mark.parametrize(
    ("traffic", "asked"),
    [
        (None, True),
        ({}, True),
        ({ACCOUNT: 9, OTHER: 1}, False),
        ({ACCOUNT: 89, OTHER: 11}, True),
        ({OTHER: 1}, True),
        ({ACCOUNT: 1}, False),
    ],
)
def test_events_are_asked_for_their_account_where_more_than_a_tenth_are_of_others(
    memory: duckdb.DuckDBPyConnection, traffic: dict[str, int] | None, asked: bool
) -> None:
    plan = _plan(traffic)
    assert (
        any(isinstance(node.parent, exp.Where | exp.And) for node in plan.summed().find_all(exp.In) if node.this.name == "account") == asked
    )
    assert _cells(memory, plan) == _cells(memory, _plan(None))


def test_a_cancelled_request_without_usage_is_counted(memory: duckdb.DuckDBPyConnection) -> None:
    # By outcome: requests, without usage, uncached input, cached input, output; an unknown number of tokens counts as none.
    assert _cells(memory, _plan(None)) == [("cancelled", 2, 1, 12, 8, 3), ("success", 1, 0, 6, 4, 7)]


def _cells(memory: duckdb.DuckDBPyConnection, plan: Plan) -> list[tuple[object, ...]]:
    """The sums by outcome, in order."""
    totals = [exp.cast(exp.Sum(this=sql.column(name)), "bigint") for name in SUMS]
    outcome = sql.column("outcome")
    query = exp.select(outcome, *totals).from_(plan.summed().subquery("cell")).group_by(outcome).order_by(outcome)
    return memory.execute(query.sql(Microseconds)).fetchall()


def test_the_parts_of_a_code_come_back() -> None:
    sizes = {"first": 5, "flag": 2, "alone": 1, "last": 9}
    code = Code("code", sizes.items())
    for values in ({name: size - 1 for name, size in sizes.items()}, {"first": 1, "flag": 0, "alone": 0, "last": 6}):
        summands = [code.summand(name, value) for name, value in values.items()]
        assert summands[0] == sql.number(values["first"])
        coded = exp.select(sql.named(sql.added(*summands), "code"))
        query = exp.select(*map(code.part, sizes)).from_(coded.subquery("coded"))
        assert duckdb.sql(query.sql(Microseconds)).fetchone() == tuple(values.values())
