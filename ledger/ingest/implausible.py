"""Instants at which nobody can be billed: before the year 2000, or days ahead. Takes judged rows, gives the first and how many there are.

No row is refused for its age, so a mapping that reads seconds as milliseconds would load without a word: people are told, and that is all.
Source: specification, section 2.
"""

from dataclasses import dataclass

import duckdb

from ledger.ingest.event_rules import Reason

EARLIEST_US = 946_684_800_000_000  # 2000-01-01T00:00:00Z, since 1970
AHEAD_US = 24 * 60 * 60 * 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Implausible:
    """The first row with such an instant (microseconds since 1970), and how many have one."""

    line: int
    received_us: int
    rows: int

    def with_later(self, later: "Implausible | None") -> "Implausible":
        """With those of rows that come behind these."""
        return self if later is None else Implausible(line=self.line, received_us=self.received_us, rows=self.rows + later.rows)


def find_implausible(
    connection: duckdb.DuckDBPyConnection, *, stored: str, earliest_us: int | None, has_future: bool, now_us: int
) -> Implausible | None:
    """Those of the table `judged`; None if there are none. `stored` is the condition of rows that are stored, `earliest_us` the first
    instant of them, `has_future` whether rows were refused as future: without either, no row is looked at."""
    conditions = []
    if earliest_us is not None and earliest_us < EARLIEST_US:
        conditions.append(f"({stored} AND received_us < {EARLIEST_US})")
    if has_future:
        conditions.append(f"(reason = '{Reason.FUTURE}' AND received_us > {now_us + AHEAD_US:d})")
    if not conditions:
        return None
    query = f"SELECT arg_min(line, record), arg_min(received_us, record), count(*) FROM judged WHERE {' OR '.join(conditions)}"  # noqa: S608
    [(line, received_us, rows)] = connection.execute(query).fetchall()
    return Implausible(line=line, received_us=received_us, rows=rows) if rows else None
