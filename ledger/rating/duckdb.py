"""DuckDB as the engine of the plan: events in memory or in files, without a server."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
from sqlglot import exp

from ledger.rating import sql

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def all_of(relation: str) -> exp.Select:
    """Every row of a relation that holds standing events with the canonical columns."""
    return exp.select(exp.Star()).from_(exp.to_table(relation, quoted=True))


class DuckDbEngine:
    """The plan's engine on a DuckDB connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, query: exp.Query) -> Iterator[Mapping[str, Any]]:
        """The rows of the query by column name."""
        # Instants leave as microseconds: DuckDB gives them to Python only through a time zone library.
        described = self._connection.sql(query.sql("duckdb"))
        instants = {name for name, kind in zip(described.columns, described.types, strict=True) if "TIMESTAMP" in str(kind)}
        shown = [exp.func("epoch_us", sql.column(name)) if name in instants else sql.column(name) for name in described.columns]
        result = self._connection.execute(exp.select(*shown).from_(query.subquery("result")).sql("duckdb"))
        return _named(result, described.columns, instants)


def _named(result: duckdb.DuckDBPyConnection, names: list[str], instants: set[str]) -> Iterator[dict[str, Any]]:
    while rows := result.fetchmany(10_000):
        for row in rows:
            yield {
                name: EPOCH + timedelta(microseconds=value) if name in instants and value is not None else value
                for name, value in zip(names, row, strict=True)
            }
