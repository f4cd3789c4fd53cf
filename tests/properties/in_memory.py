"""The product as one function of files, without a server: the same event rules, plan and settlement that settle a real month."""

import csv
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from ledger.contract.reader import read_contract
from ledger.contract.scalar import currency_digits
from ledger.documents.settlement_json import statement_to_json
from ledger.ingest.chunk import Judge
from ledger.ingest.mapping_file import built_in_mappings
from ledger.ingest.reading.opening import open_records
from ledger.rating.cells import Cells
from ledger.rating.duckdb import all_of
from ledger.rating.rated_period import rate_periods
from ledger.settlement.period import Period, contract_period
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import ChangedAfterwards, Unresolved
from ledger.store.intervals import Interval
from ledger.workflows.rate_archive import computed_cells

Row = dict[str, str]
NOW_US = (datetime(2040, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
# The columns that the event rules give under other names or in another type than the plan reads.
EVENTS = """CREATE TABLE event AS SELECT received_us AS received_at, 1 AS revision,
    event_account AS account, event_request_id AS request_id, event_model AS model, event_queue AS queue, event_status AS status,
    event_cold_start AS cold_start, event_async_header AS async_header, event_node AS node, event_queue_us AS queue_us,
    event_prefill_us AS prefill_us, event_decode_us AS decode_us, event_inference_us AS inference_us, event_ttft_us AS ttft_us,
    event_e2e_us AS e2e_us, event_input_tokens AS input_tokens, event_cached_input_tokens AS cached_input_tokens,
    event_output_tokens AS output_tokens FROM judged WHERE reason IS NULL"""


def settle_in_memory(contract_texts: Sequence[str], events: Sequence[Row], intervals: Sequence[Row], period: str) -> dict[str, Any]:
    """The settlement of one contract's month as the JSON of the settle command. Every event must be a good one."""
    contracts = []
    for text in contract_texts:
        result = read_contract(text.encode(), "contract.yaml")
        assert result.contract is not None, [str(diagnostic) for diagnostic in result.diagnostics]
        contracts.append(result.contract)
    terms = contract_period(contracts, period)
    assert terms is not None
    with tempfile.TemporaryDirectory() as folder:
        connection = load(events, Path(folder))
        recorded_intervals = [recorded(number, row) for number, row in enumerate(intervals)]
        return settle_cells(terms, computed_cells(connection, [terms], recorded_intervals, all_of("event")))


def settle_cells(terms: Period, cells: Cells) -> dict[str, Any]:
    """What the cells come to."""
    rated = rate_periods(cells, {terms.last.id: terms}, terms.end)[terms.last.id]
    surroundings = Surroundings(
        state="draft",
        contract_hashes={},
        minor_digits=currency_digits(terms.last.money.currency),
        unresolved=Unresolved(),
        changed_afterwards=ChangedAfterwards(),
    )
    judged = rated.judged
    return statement_to_json(settle(terms, judged.cells, judged.judgement, rated.refunded, rated.percentiles_us, surroundings))


def load(events: Sequence[Row], folder: Path) -> duckdb.DuckDBPyConnection:
    """The events in memory, through the rules that judge every row of a file."""
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    path = folder / "events.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(events[0]))
        writer.writeheader()
        writer.writerows(events)
    with open_records(path, (built_in_mappings()["canonical"],)) as records:
        chunk = Judge(records, now_us=NOW_US).first_chunk(records.records)
        assert chunk.events == len(events), chunk.refused
        chunk.connection.execute(EVENTS.replace("TABLE event", "TEMP TABLE event"))
        chunk.connection.execute(f"COPY event TO '{folder / 'events.parquet'}' (FORMAT parquet)")
        chunk.close()
    connection.execute(f"CREATE TABLE event AS FROM read_parquet('{folder / 'events.parquet'}')")
    return connection


def recorded(number: int, row: Row) -> Interval:
    """A row of intervals.csv as the store keeps it."""
    return Interval(
        interval_id=row.get("id") or f"interval-{number}",
        kind=row["kind"],
        node=row["node"] or None,
        model=row.get("model") or None,
        starts_at=datetime.fromisoformat(row["start"]),
        ends_at=datetime.fromisoformat(row["end"]),
    )
