"""Events that somebody states instead of measuring, such as those of a contract's examples: judged by the rules of events, like a row.

Takes columns of events in DuckDB's own types, gives the relation of those that can be and why the others cannot. Source: specification,
sections 2 and 10.
"""

import json
from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from ledger.ingest.event_rules import EVENT_COLUMNS, define_macros, judge
from ledger.ingest.mapping import DURATIONS, TEXTS, TYPED
from ledger.ingest.reading.scratch import literal

STATED = "stated_event"  # the view of the events
ANY_TIME_US = 2**62  # a clock after every instant: an example may lie in the future

_KINDS = {"record": "BIGINT", **dict.fromkeys(TEXTS, "VARCHAR"), **dict.fromkeys(TYPED, "BIGINT"), "async_header": "BOOLEAN"}
_MAPPED = ", ".join(
    [
        "record AS line, record, NULL::VARCHAR AS malformed, NULL::VARCHAR AS skipped",
        *(name for name in TEXTS if name not in TYPED),
        *(f"NULL::VARCHAR AS {name}_text, {name} AS {name}_value" for name in TYPED),
        *(f"0 AS {name}_power, '{name}' AS {name}_name, false AS {name}_twice" for name in DURATIONS),
        "NULL::INTEGER AS received_at_power, false AS received_at_twice",
    ]
)


def state_events(connection: duckdb.DuckDBPyConnection, events: Sequence[Mapping[str, object]]) -> dict[int, str]:
    """Make the view STATED of these events, columns as a plan reads them; what an event does not name is not known. Durations and
    `received_at` are microseconds. Gives, by the event's place, why it cannot be; such events are not in the view."""
    define_macros(connection)
    rows = [dict.fromkeys(_KINDS) | dict(event) | {"record": place} for place, event in enumerate(events)]
    listed = f"from_json({literal(json.dumps(rows))}::JSON, {literal(json.dumps([_KINDS]))})"
    connection.execute(f"CREATE TEMP VIEW mapped AS SELECT {_MAPPED} FROM (SELECT unnest({listed}, recursive := true))")  # noqa: S608
    judge(connection, now_us=ANY_TIME_US, role=None, skips=False)
    columns = ", ".join(f"event_{name} AS {name}" for name in EVENT_COLUMNS if name != "received_at")
    connection.execute(
        f"CREATE TEMP VIEW {STATED} AS SELECT received_us AS received_at, 1::SMALLINT AS revision, {columns} "  # noqa: S608
        "FROM judged WHERE reason IS NULL"
    )
    refused = connection.execute("SELECT record, detail FROM judged WHERE reason IS NOT NULL ORDER BY record").fetchall()
    return dict(refused)


def stated_events() -> exp.Select:
    """Every event of the view."""
    return exp.select(exp.Star()).from_(exp.to_table(STATED))
