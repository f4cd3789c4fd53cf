"""`ledger ingest` of each format, and of the same rows a second time, against a plain COPY of the same rows.

usage: python benchmarks/ingest.py [ROWS ...] [--json FILE] [--rounds N]   (1,000,000 rows, 5 rounds)
The COPY goes into a table with the same columns, constraints and indexes. Every load starts in a database of its own with 20 contracts,
whose cells it keeps up to date; the second load has the same rows in another file, the last one first.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import psycopg
from bench import CONTRACTS, TABLES, Bench, Contender, Entry, Run, Subject, main, memory_of, seconds_of
from figures import Cell, Table

COPY = "COPY"
FORMATS = {"Parquet": "parquet", "CSV": "csv", "JSON Lines": "jsonl"}  # the ending of their files, which _write_files makes
# A span of an engine a line, as a collector's file exporter writes them one by one. They are halves of requests, and no events.
OTLP = "OTLP JSON"
_SPANS = """
SELECT json_object('resourceSpans', json_array(json_object(
    'resource', json_object('attributes', json_array(json_object('key', 'host.name', 'value', json_object('stringValue', account)))),
    'scopeSpans', json_array(json_object('scope', json_object('name', 'vllm'), 'spans', json_array(json_object(
        'traceId', md5(request_id), 'spanId', md5(request_id)[:16], 'name', 'llm_request', 'kind', 2,
        'startTimeUnixNano', (epoch_us(received_at) * 1000)::VARCHAR,
        'endTimeUnixNano', ((epoch_us(received_at) + queue_us + prefill_us + decode_us) * 1000)::VARCHAR,
        'attributes', json_array(
            json_object('key', 'gen_ai.request.id', 'value', json_object('stringValue', 'chatcmpl-' || request_id)),
            json_object('key', 'gen_ai.response.model', 'value', json_object('stringValue', model)),
            json_object('key', 'gen_ai.usage.prompt_tokens', 'value', json_object('intValue', input_tokens::VARCHAR)),
            json_object('key', 'gen_ai.usage.completion_tokens', 'value', json_object('intValue', output_tokens::VARCHAR)),
            json_object('key', 'gen_ai.latency.time_in_queue', 'value', json_object('doubleValue', queue_us / 1e6)),
            json_object('key', 'gen_ai.latency.time_in_model_prefill', 'value', json_object('doubleValue', prefill_us / 1e6)),
            json_object('key', 'gen_ai.latency.time_in_model_decode', 'value', json_object('doubleValue', decode_us / 1e6))
        )
    ))))
)))::VARCHAR FROM texts
"""
OTLP_MOST_ROWS = 1_000_000  # a span is 1.2 kB
PATIENCE_SECONDS = 60  # of a load that is measured in each round
PIECE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """A load of a file and, in the same database, of its rows in reverse; the runs of that one are in `second_runs`."""

    bench: Bench
    template: str
    first: Path
    second: Path | None
    rows: int
    table: str = "event"
    second_runs: list[Run] = field(default_factory=list)

    def run(self) -> Run:
        """Both loads; gives what the first one took."""
        with self.bench.database(self.template) as url:
            run = self.bench.ingest(url, self.first, self.rows, table=self.table)
            if self.second is not None:
                with psycopg.connect(self.bench.owner_url(url), autocommit=True) as connection:
                    connection.execute("CHECKPOINT")
                self.second_runs.append(self.bench.ingest(url, self.second, self.rows))
            return run


def measure(bench: Bench, sizes: Sequence[int]) -> Iterator[Table]:
    """Each load at each size in turn, COPY among them."""
    contenders: dict[Entry, Contender] = {}
    loads: dict[Entry, _Load] = {}
    for rows in sizes:
        folder = bench.month(rows)
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as apart:  # DuckDB makes a process large: see Bench.run
            apart.submit(_write_files, folder, spans=rows <= OTLP_MOST_ROWS).result()
        _store(bench, folder, rows)
        contenders[rows, COPY] = Contender(run=partial(_copy, bench, folder / "stored.csv"), patience_seconds=PATIENCE_SECONDS)
        for name, ending in FORMATS.items():
            files = {"first": folder / f"events.{ending}", "second": folder / f"reversed.{ending}"}
            loads[rows, name] = _Load(bench=bench, template=CONTRACTS, rows=rows, **files)
        plain = _Load(bench=bench, template=TABLES, rows=rows, first=folder / "events.parquet", second=None)
        loads[rows, "Parquet, no contracts"] = plain
        if rows <= OTLP_MOST_ROWS:
            spans = _Load(bench=bench, template=TABLES, rows=rows, first=folder / "events.otlp.jsonl", second=None, table="observation")
            loads[rows, OTLP] = spans
    contenders |= {entry: Contender(run=load.run, patience_seconds=PATIENCE_SECONDS) for entry, load in loads.items()}
    runs = bench.race(contenders)
    table: list[tuple[Cell, ...]] = []
    for rows in sizes:
        copied = seconds_of(runs[rows, COPY])
        table.append((rows, COPY, copied, None, None, None))
        for (of_rows, name), load in loads.items():
            if of_rows == rows:
                first = seconds_of(runs[rows, name])
                table.append((rows, name, first, first.ratio_to(copied), None, memory_of(runs[rows, name])))
                if load.second_runs:
                    second = seconds_of(load.second_runs)
                    again = (second.ratio_to(copied), second.ratio_to(first), memory_of(load.second_runs))
                    table.append((rows, f"{name}, again, reversed", second, *again))
    yield Table(
        title="ingest: whole commands, cells kept up to date; COPY without the start of a process",
        columns=("events", "load", "seconds", "it / COPY", "it / first", "memory MB"),
        rows=tuple(table),
        notes=(
            "20 contracts were registered before, or none; all rows of a second load are duplicates",
            f"{OTLP} is of at most {OTLP_MOST_ROWS:,} events",
            f"{OTLP}: spans of an engine, kept with the keys by which they join a gateway's rows; COPY is of events",
        ),
    )


def _copy(bench: Bench, stored: Path) -> Run:
    """COPY into a table like `event`, with its constraints and indexes."""
    with bench.database(TABLES) as url, psycopg.connect(bench.owner_url(url)) as connection:
        connection.execute("CREATE TABLE copied (LIKE event INCLUDING ALL)")
        connection.commit()
        started = perf_counter()
        with stored.open("rb") as file, connection.cursor().copy("COPY copied FROM STDIN (FORMAT csv)") as copy:
            while piece := file.read(PIECE_BYTES):
                copy.write(piece)
        connection.commit()
        return Run(seconds=perf_counter() - started)


def _store(bench: Bench, folder: Path, rows: int) -> None:
    """Writes the rows as ledger stores them, for COPY."""
    with bench.database(TABLES) as url:
        bench.ingest(url, folder / "events.parquet", rows)
        with (
            psycopg.connect(url) as connection,
            (folder / "stored.csv").open("wb") as file,
            connection.cursor().copy("COPY event TO STDOUT (FORMAT csv)") as copy,
        ):
            for piece in copy:
                file.write(piece)


def _write_files(folder: Path, *, spans: bool) -> None:
    """The month's events in every format, in their order and reversed; as spans only if they are asked for."""
    import duckdb

    duckdb.execute("SET threads = 2")
    in_order = duckdb.read_parquet(str(folder / "events.parquet"))
    reverse = in_order.order("received_at DESC, request_id DESC")
    reverse.write_parquet(str(folder / "reversed.parquet"), row_group_size=122_880)
    for name in ("events", "reversed"):
        instant = "strftime(make_timestamp(epoch_us(received_at)), '%Y-%m-%dT%H:%M:%S.%fZ')"
        texts = duckdb.read_parquet(str(folder / f"{name}.parquet")).project(f"* REPLACE ({instant} AS received_at)")
        texts.write_csv(str(folder / f"{name}.csv"))
        texts.create_view("texts")
        duckdb.execute(f"COPY texts TO '{folder / name}.jsonl' (FORMAT json)")
    if spans:
        in_order.create_view("texts", replace=True)
        plain = "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')"
        duckdb.execute(f"COPY ({_SPANS}) TO '{folder / 'events.otlp.jsonl'}' {plain}")


SUBJECT = Subject(sizes=(1_000_000,), measure=measure, file_bytes=2_500)

if __name__ == "__main__":
    main(SUBJECT)
