"""Compares three physical forms of the event table: loading, a month's aggregate, sizes. docs/decisions/event-identity.md has the figures.

    .venv/bin/python benchmarks/event_table.py [ROWS]

Takes a number of rows (default 2,000,000, over six months, random identities, in order of arrival) and gives a table of figures.
Runs on a server of its own in a temporary folder, which it removes.
"""

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from ledger.store.embedded import running_server, stop_server

COLUMNS = """
    received_at timestamptz not null, queue_us bigint, prefill_us bigint, decode_us bigint, inference_us bigint, ttft_us bigint,
    e2e_us bigint, input_tokens bigint, cached_input_tokens bigint not null, output_tokens bigint, batch_id bigint not null,
    status integer not null, revision smallint not null, async_header boolean not null, clock_clamped boolean not null,
    account varchar collate "C" not null, request_id varchar collate "C" not null, model varchar collate "C" not null,
    queue varchar collate "C" not null, cold_start varchar collate "C", node varchar collate "C" """

ROWS = """
    SELECT timestamptz '2026-01-01Z' + i * (interval '181 days' / {rows}), 8000, 40000, 150000, null::bigint, null::bigint, null::bigint,
        1200 + i % 700, i % 300, 200 + i % 90, 1, 200, 1::smallint, false, false, 'account-' || i % 20, gen_random_uuid()::text,
        'deepseek-v4', 'standard', CASE WHEN i % 1000 = 0 THEN 'cold-' || i END, 'node-' || i % 16
    FROM generate_series(0, {rows} - 1) AS i"""

IDENTITY = "primary key (account, request_id, revision)"
BRIN = "CREATE INDEX ON event USING brin (received_at)"
CHECKS = """
    check (length(account) between 1 and 200 and length(request_id) between 1 and 200),
    check (input_tokens between 0 and 1000000000000 and cached_input_tokens between 0 and coalesce(input_tokens, 0)
        and output_tokens between 0 and 1000000000000),
    check (queue_us between 0 and 2592000000000 and prefill_us between 0 and 2592000000000 and decode_us between 0 and 2592000000000
        and inference_us between 0 and 2592000000000 and ttft_us between 0 and 2592000000000 and e2e_us between 0 and 2592000000000)"""


def hashed(count: int) -> list[str]:
    """A table in `count` partitions by identity."""
    parts = [f"CREATE TABLE event_{i} PARTITION OF event FOR VALUES WITH (modulus {count}, remainder {i})" for i in range(count)]
    return [f"CREATE TABLE event ({COLUMNS}, {IDENTITY}) PARTITION BY HASH (account, request_id)", *parts, BRIN]


def monthly() -> list[str]:
    """A table in months, whose identities stand in a second table that a trigger fills."""
    days = [f"2026-{month:02}-01" for month in range(1, 8)]
    parts = [
        f"CREATE TABLE event_{i} PARTITION OF event FOR VALUES FROM ('{start}Z') TO ('{end}Z')"
        for i, (start, end) in enumerate(itertools.pairwise(days))
    ]
    return [
        f"CREATE TABLE event ({COLUMNS}) PARTITION BY RANGE (received_at)",
        *parts,
        f'CREATE TABLE identity (account varchar collate "C", request_id varchar collate "C", revision smallint, {IDENTITY})',
        "CREATE FUNCTION claim() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO identity SELECT account, request_id, revision FROM added; RETURN null; END'",
        "CREATE TRIGGER claim AFTER INSERT ON event REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION claim()",
    ]


FORMS = {
    "heap without index": [f"CREATE TABLE event ({COLUMNS})"],
    "plain, key, brin": [f"CREATE TABLE event ({COLUMNS}, {IDENTITY})", BRIN],
    "plain, key, brin, checks": [f"CREATE TABLE event ({COLUMNS}, {IDENTITY}, {CHECKS})", BRIN],
    "hash 8, key, brin": hashed(8),
    "hash 16, key, brin": hashed(16),
    "months + identity": monthly(),
}

MONTH = """
    SELECT date_bin('1 hour', received_at, '2026-05-01Z'), model, queue, count(*), sum(input_tokens), sum(output_tokens)
    FROM event WHERE received_at >= '2026-05-01Z' AND received_at < '2026-06-01Z' GROUP BY 1, 2, 3"""

LOOKUP = "SELECT * FROM event WHERE account = 'account-3' AND request_id = 'x'"

SIZES = """
    SELECT coalesce(sum(pg_table_size(c.oid)) / 1e6, 0), coalesce(sum(pg_indexes_size(c.oid)) / 1e6, 0)
    FROM pg_class c WHERE c.relkind = 'r' AND (c.relname LIKE 'event%' OR c.relname = 'identity')"""


def seconds(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> float:
    """How long a statement takes."""
    start = time.perf_counter()
    connection.execute(statement.encode())
    return time.perf_counter() - start


def main() -> None:
    """Measure every form and print one row each."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        os.chmod(folder, 0o711)
        home = Path(folder) / "home"
        server = running_server(home)
        try:
            with psycopg.connect(server.owner_url("postgres"), autocommit=True) as connection:
                file = f"{home}/postgres/rows"
                connection.execute(f"COPY ({ROWS.format(rows=rows)}) TO '{file}'".encode())
                print(f"{rows:,} rows{'':24} load s  month s    lookup ms  table MB  index MB")
                for name, statements in FORMS.items():
                    for statement in (*statements, "CHECKPOINT"):
                        connection.execute(statement.encode())
                    load = seconds(connection, f"COPY event FROM '{file}'")
                    connection.execute("VACUUM (ANALYZE) event")
                    month = min(seconds(connection, MONTH) for _ in range(3))
                    lookup = min(seconds(connection, LOOKUP) for _ in range(5))
                    sizes = connection.execute(SIZES.encode()).fetchone()
                    assert sizes is not None
                    print(f"{name:36} {load:6.1f} {month:8.2f} {lookup * 1e3:12.2f} {sizes[0]:9.0f} {sizes[1]:9.0f}", flush=True)
                    connection.execute("DROP TABLE event CASCADE; DROP TABLE IF EXISTS identity; DROP FUNCTION IF EXISTS claim()")
        finally:
            stop_server(home)


if __name__ == "__main__":
    main()
