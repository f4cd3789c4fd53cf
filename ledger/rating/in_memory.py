"""A few requests classified in memory, without a server: the plan that settles real months, over rows made for it.

Takes contracts with the requests that each is asked about, gives what becomes of each. Source: specification, sections 4 and 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import duckdb
from sqlglot import exp

from ledger.contract.model import Contract
from ledger.rating import sql
from ledger.rating.classified import ClassifiedRequest, classify_requests
from ledger.rating.duckdb import Microseconds
from ledger.rating.plans import plans_of
from ledger.rating.recorded import Breaker, Coverage
from ledger.settlement.calendar import DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as events are stored, the defaults filled; what is not known of it is None."""

    received_at: datetime
    model: str  # as served
    queue: str
    status: int = 200
    cold_start: str | None = None
    async_header: bool = False
    node: str | None = None
    queue_us: int | None = None
    prefill_us: int | None = None
    decode_us: int | None = None
    inference_us: int | None = None
    ttft_us: int | None = None
    e2e_us: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int = 0
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Requests that only know of each other, and the contract that they are judged by, with the breakers that were open."""

    contract: Contract
    requests: tuple[Request, ...]
    breakers: tuple[Breaker, ...] = ()


Answer = tuple[ClassifiedRequest, ...]  # in the order of the requests


def classify(questions: Sequence[Question]) -> list[Answer]:
    """What becomes of the requests of each question."""
    classified: dict[str, ClassifiedRequest] = {}
    # Each question has an account and a contract of its own. Contracts with equal terms share a plan all the same.
    numbered = {str(number): one for number, one in enumerate(questions)}
    contracts = {(number, one.contract.version): one.contract for number, one in numbered.items()}
    with duckdb.connect() as memory:
        # Kept once: there is a plan for each distinct terms, and it names its source more than once.
        kept = exp.Create(this=exp.to_table(_REQUESTS), kind="TABLE", expression=_rows(numbered))
        memory.execute(kept.sql(Microseconds, copy=False))
        source = sql.everything(_REQUESTS, [name for name, _ in _COLUMNS])
        # Breakers belong to a plan and not to an account, so questions with other breakers need plans of their own.
        for breakers in dict.fromkeys(question.breakers for question in questions):
            coverage = [_coverage(number, one) for number, one in numbered.items() if one.breakers == breakers]
            classified |= classify_requests(memory, plans_of(contracts, coverage, breakers, (), source, by_request=True))
    return [
        tuple(classified[_request_id(str(number), place)] for place in range(len(question.requests)))
        for number, question in enumerate(questions)
    ]


def _coverage(number: str, question: Question) -> Coverage:
    instants = [request.received_at for request in question.requests]
    start, end = min(instants) - 2 * DAY, max(instants) + 2 * DAY
    return Coverage(account=number, contract_id=number, version=question.contract.version, start=start, end=end)


_REQUESTS = "made_up_request"
_COLUMNS = [
    *(("account", "text"), ("request_id", "text"), ("revision", "int"), ("received_at", "timestamptz")),
    *((one.name, "bigint") for one in fields(Request) if one.name.endswith(("_us", "_tokens"))),
    *(("model", "text"), ("queue", "text"), ("cold_start", "text"), ("node", "text"), ("async_header", "boolean"), ("status", "int")),
]


def _rows(questions: dict[str, Question]) -> exp.Query:
    return sql.rows(
        _COLUMNS,
        [
            [_constant(identity.get(name, getattr(request, name, None))) for name, _ in _COLUMNS]
            for number, question in questions.items()
            for place, request in enumerate(question.requests)
            for identity in [{"account": number, "request_id": _request_id(number, place), "revision": 1}]
        ],
    )


def _request_id(number: str, place: int) -> str:
    return f"{number} {place:09}"


def _constant(value: Any) -> exp.Expr:
    match value:
        case None:
            return sql.null()
        case bool():
            return sql.boolean(value)
        case int():
            return sql.number(value)
        case datetime():
            return sql.instant(value)
        case _:
            return sql.text(value)
