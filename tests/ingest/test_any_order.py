"""However rows are split into files, ordered and repeated, the same events stand and the same rows are in quarantine."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.store.database import Database
from ledger.workflows.ingest import IngestOptions, ingest
from tests.ingest import halves
from tests.ingest.sample_rows import MAPPINGS, row, write_rows
from tests.oracle.halves import requests_of

Rows = list[Any]
CUSTOMER = "customer-{}"  # of an example; all examples share one database
STORED = "SELECT request_id, input_tokens FROM event WHERE account = '{}'"
QUARANTINED = "SELECT DISTINCT reason, fields->>'request_id' AS id, fields->>'input_tokens' AS tokens FROM quarantine WHERE account = '{}'"
WAITING = "SELECT fields->>'id' AS id FROM quarantine WHERE account = '{}' AND resolution IS NULL ORDER BY 1"
UNJOINED = "SELECT request_id FROM engine_request WHERE NOT merged AND request_id LIKE '%/{}-%' ORDER BY 1"
SETTINGS = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@st.composite
def loads(draw: st.DrawFn, rows: st.SearchStrategy[Any], most: int) -> list[Rows]:
    """Rows in files: each row in one of them or more, in any order."""
    drawn = draw(st.lists(rows, min_size=1, max_size=most))
    again = draw(st.lists(st.sampled_from(drawn), max_size=4))
    shuffled = draw(st.permutations(drawn + again))
    cuts = sorted(draw(st.lists(st.integers(1, len(shuffled)), max_size=3)))
    parts = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]
    return [part for part in parts if part]


@SETTINGS
@given(
    files=loads(st.tuples(st.sampled_from(["a", "b", "c", "", "d"]), st.sampled_from([1, 2, -1])), most=14),
    chunk_rows=st.integers(1, 5),
)
def test_the_same_rows_are_stored_or_in_quarantine(
    files: list[list[tuple[str, int]]], chunk_rows: int, database: Database, tmp_path: Path, query: Callable[[str], Rows]
) -> None:
    customer = CUSTOMER.format(uuid4())
    load(database, [write_rows(tmp_path / f"{n}.csv", [row(customer, *one) for one in file]) for n, file in enumerate(files)], chunk_rows)
    stored = {(one["request_id"], str(one["input_tokens"])) for one in query(STORED.format(customer))}
    kept = {(one["reason"], one["id"], one["tokens"]) for one in query(QUARANTINED.format(customer))}
    given_rows = {(id_, str(tokens)) for file in files for id_, tokens in file}
    good = {(id_, tokens) for id_, tokens in given_rows if id_ and tokens != "-1"}
    assert len(query(STORED.format(customer))) == len({id_ for id_, _ in good})
    assert stored | {(id_, tokens) for reason, id_, tokens in kept if reason == "conflict"} == good
    assert {(id_ or "", tokens) for reason, id_, tokens in kept if reason != "conflict"} == given_rows - good


@st.composite
def calls(draw: st.DrawFn) -> list[halves.Row]:
    """Rows of a few calls and their engines', with `{}` for what makes the example's ids its own."""
    rows: list[halves.Row] = []
    for call in range(draw(st.integers(1, 3))):
        start = len(rows)
        for n in range(draw(st.integers(1, 4))):
            id_ = f"{{}}-g{draw(st.integers(0, 9))}{call}{n}"  # ids in another order than the instants
            more: halves.Row = draw(st.sampled_from([{}, {"in": 7, "out": 8}, {"in": 7, "out": 8, "first_ms": 90}, {"in": 9, "out": 8}]))
            if draw(st.booleans()):
                more |= {"trace": f"{{}}-t{call}"}
            seconds, ms = draw(st.sampled_from([0, 0, 1, 2, 40, 61, 200])), draw(st.sampled_from([500, 900, 30_000]))
            code = draw(st.sampled_from([200, 200, 200, 429, 500, 400, 499]))
            # Of two answers without tokens the engine's figures stay with the one that had them first.
            if code == 200 and any(one["code"] == 200 and "in" not in one for one in rows[start:]):
                more = {"in": 7, "out": 8} | more
            rows.append(halves.gateway(id_, seconds, ms=ms, code=code, customer=CUSTOMER, call=f"{{}}-c{call}", **more))
            rows[-1]["header"] = f"{{}}-h{call}"
        by_trace, header = draw(st.sampled_from([True, False])), draw(st.sampled_from(["h", "x"]))
        for n in range(draw(st.integers(0, 3))):
            trace = {"trace": f"{{}}-t{call}"} if by_trace else {"trace": f"{{}}-e{call}"}
            waited, ran = draw(st.sampled_from([0, 10, 20])), draw(st.sampled_from([100, 200, 400]))
            rows.append(halves.engine(f"{{}}-s{call}{n}", f"{{}}-{header}{call}", wait_ms=waited, run_ms=ran, out=n, **trace))
    return rows


@SETTINGS
@given(rows=calls(), seed=st.integers(0, 2**32), chunk_rows=st.integers(1, 7))
def test_halves_in_any_order_make_the_requests_of_all_of_them(
    rows: list[halves.Row], seed: int, chunk_rows: int, database: Database, tmp_path: Path, query: Callable[[str], Rows]
) -> None:
    number = uuid4()
    rows = json.loads(json.dumps(rows).replace("{}", str(number)))
    chance = random.Random(seed)
    loaded = rows + chance.sample(rows, len(rows) // 3)
    chance.shuffle(loaded)
    middle = chance.randrange(len(loaded))
    for part in (loaded[:middle], loaded[middle:]):
        for role, key in chance.sample([("gateway", "id"), ("engine", "span")], 2):
            if mine := [row for row in part if key in row]:
                file = halves.written(tmp_path / f"{role}.jsonl", mine)
                load(database, [file], chunk_rows, MAPPINGS / f"{role}-half.yaml")
    requests, unjoined = requests_of([row for row in rows if "id" in row], [row for row in rows if "span" in row])
    customer = CUSTOMER.format(number)
    stands = {
        one["request_id"]: tuple(one[name] for name in halves.FIELDS)
        for one in query(halves.CURRENT)
        if one["account"] == customer
    }  # fmt: skip
    assert stands == {name: request.event for name, request in requests.items() if request.complete}
    assert [one["request_id"] for one in query(UNJOINED.format(number))] == unjoined
    incomplete = [row for request in requests.values() if not request.complete for row in request.rows]
    waiting = sorted(row["id"] for row in incomplete if row["code"] == 200)
    assert [one["id"] for one in query(WAITING.format(customer))] == waiting


def load(database: Database, files: list[Path], chunk_rows: int, mapping: Path | None = None) -> None:
    with mock.patch.dict(os.environ, {"LEDGER_CHUNK_ROWS": str(chunk_rows)}):
        reports = ingest(database, [str(file) for file in files], IngestOptions(mapping=mapping), author="test")
    assert [report.error for report in reports] == [None] * len(files)
