"""DuckDB as the engine of the plan: events in memory or in files, without a server.

An instant is a BIGINT of microseconds since 1970 throughout: DuckDB steps through integers many times faster than through timestamps, and
gives timestamps to Python only with the help of a time zone library. The dialect prints the plan so, and a source gives `received_at` so.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar

import duckdb
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from ledger.instant import instant_of, since_1970_us
from ledger.rating import sql
from ledger.settlement.cell import CELL_COLUMNS


class Microseconds(DuckDB):
    """DuckDB whose instants are whole microseconds since 1970."""

    class Generator(DuckDBGenerator):
        """Prints what the plan builds of instants as integer arithmetic."""

        TRANSFORMS: ClassVar = {node: transform for node, transform in DuckDBGenerator.TRANSFORMS.items() if node is not exp.DateBin}

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """A constant instant is its number; a number of 38 digits is an integer, since the quotient of decimals is none."""
            if expression.to.this is exp.DataType.Type.TIMESTAMPTZ:
                value = expression.this
                if isinstance(value, exp.Literal):
                    return str(since_1970_us(datetime.fromisoformat(value.name)))
                return f"CAST({self.sql(value)} AS BIGINT)"
            if expression.to.this is exp.DataType.Type.DECIMAL:
                return f"CAST({self.sql(expression.this)} AS HUGEINT)"
            return str(super().cast_sql(expression, safe_prefix))

        def interval_sql(self, expression: exp.Interval) -> str:
            """A span is its number of microseconds."""
            assert expression.unit is not None and expression.unit.name == "MICROSECOND"
            return str(expression.this.name)

        def datebin_sql(self, expression: exp.DateBin) -> str:
            """The start of the step, counted from the origin, which is not later than the instant."""
            step, instant, origin = (self.sql(expression, key) for key in ("this", "expression", "unit"))
            return f"(({instant} - {origin}) // {step} * {step} + {origin})"


def all_of(relation: str) -> exp.Select:
    """Every row of a relation that holds standing events with the canonical columns, `received_at` in microseconds since 1970."""
    return exp.select(exp.Star()).from_(exp.to_table(relation, quoted=True))


class ComputedCells:
    """Cells that plans make of events on a DuckDB connection, computed once and ready to be read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, queries: Sequence[exp.Query]) -> None:
        self._connection = connection
        for number, query in enumerate(queries):
            table = exp.Create(this=exp.to_table(f"computed_cell_{number}"), kind="TEMPORARY TABLE", expression=query.copy())
            self._connection.execute(table.sql(Microseconds))
        each = sql.all_of_each([sql.everything(f"computed_cell_{number}", CELL_COLUMNS) for number in range(len(queries))])
        self._connection.execute(exp.Create(this=exp.to_table("period_cell"), kind="TEMPORARY VIEW", expression=each).sql(Microseconds))

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query of the program's own over `period_cell`."""
        result = self._connection.execute(query)
        while rows := result.fetchmany(10_000):
            yield from rows

    def instant(self, value: int) -> datetime:
        """The instant of a value in a row."""
        return instant_of(value)

    def keep_rows(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Make a temporary table of these rows; columns are (name, type), instants are given as such."""
        # As one JSON text, and that as a constant: for a parameter the driver imports pandas, which takes longer than all the rest.
        shape = json.dumps([{column: "bigint" if kind == "timestamptz" else kind for column, kind in columns}])
        values = [[since_1970_us(one) if isinstance(one, datetime) else one for one in row] for row in rows]
        named = json.dumps([dict(zip([column for column, _ in columns], row, strict=True)) for row in values])
        constants = ", ".join(sql.text(one).sql(Microseconds) for one in (named, shape))
        self._connection.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT unnest(from_json({constants}), recursive := true)")
