"""PostgreSQL as the engine of the plan: the events of the database that one transaction sees."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection
from sqlglot import exp

from ledger.rating import sql

EVENT_COLUMNS = (
    *("account", "request_id", "revision", "model", "received_at", "queue", "status", "cold_start", "async_header", "node"),
    *("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us"),
    *("input_tokens", "cached_input_tokens", "output_tokens"),
)


def current_events() -> exp.Select:
    """The events that stand: those whose revision was not withdrawn."""
    same = [exp.EQ(this=sql.column(name, "v"), expression=sql.column(name, "e")) for name in ("account", "request_id", "revision")]
    withdrawn = exp.select(sql.number(1)).from_(exp.to_table("void", alias="v")).where(*same)
    return (
        exp.select(*(sql.column(name, "e") for name in EVENT_COLUMNS))
        .from_(exp.to_table("event", alias="e"))
        .where(exp.Not(this=exp.Exists(this=withdrawn)))
    )


class PostgresEngine:
    """The plan's engine on a connection, whose transaction is the snapshot."""

    def __init__(self, connection: Connection) -> None:
        # Without parameters no driver looks for placeholders in the constants.
        self._connection = connection.execution_options(no_parameters=True)

    def rows(self, query: exp.Query) -> Iterator[Mapping[str, Any]]:
        """The rows of the query by column name."""
        result = self._connection.exec_driver_sql(query.sql("postgres"))
        return (dict(row) for row in result.mappings())
