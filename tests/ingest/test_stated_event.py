"""Events that are stated and not measured are judged like a row of telemetry."""

import duckdb

from ledger.ingest.stated_event import state_events

EVENT: dict[str, object] = {
    "account": "acme-bank",
    "request_id": "r",
    "model": "deepseek-v4",
    "received_at": 1_777_777_777_000_001,
    "input_tokens": 10,
    "output_tokens": 5,
}


def test_an_event_has_the_columns_of_a_plan_and_what_is_not_stated_is_as_in_telemetry() -> None:
    with duckdb.connect() as memory:
        assert state_events(memory, [EVENT]) == {}
        (row,) = memory.sql(
            "SELECT received_at, revision, queue, status, cold_start, cached_input_tokens, e2e_us FROM stated_event"
        ).fetchall()
    assert row == (1_777_777_777_000_001, 1, "standard", 200, None, 0, None)


def test_an_event_that_cannot_be_is_left_out_and_told_by_its_place() -> None:
    wrong = [
        EVENT | {"cached_input_tokens": 11},
        EVENT | {"output_tokens": None},
        EVENT | {"ttft_us": 31 * 86_400 * 1_000_000},
        EVENT | {"queue_us": 1000, "inference_us": 20_000, "e2e_us": 10_999},
    ]
    with duckdb.connect() as memory:
        told = state_events(memory, [EVENT, *wrong, EVENT | {"request_id": "it's"}])
        kept = memory.sql("SELECT request_id FROM stated_event ORDER BY 1").fetchall()
    assert kept == [("it's",), ("r",)]
    assert told == {
        1: "cached_input_tokens is 11 of 10 input_tokens",
        2: "output_tokens is empty, with status 200",
        3: "ttft_us is '2678400000000', more than 30 days",
        4: "queue and inference take 21000 us, e2e is 10999 us",
    }


def test_an_instant_in_the_future_is_no_fault() -> None:
    with duckdb.connect() as memory:
        assert state_events(memory, [EVENT | {"received_at": 32_000_000_000_000_000}]) == {}  # in 2984


def test_no_event_is_no_row() -> None:
    with duckdb.connect() as memory:
        assert state_events(memory, []) == {}
        assert memory.sql("FROM stated_event").fetchall() == []
