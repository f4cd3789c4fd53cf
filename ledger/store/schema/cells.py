"""Tables of sums over events that are kept up while events arrive, and of what they do not yet hold.

Source: decision record kept-cells.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, SmallInteger, Table
from sqlalchemy.dialects.postgresql import ARRAY, TSTZMULTIRANGE

from ledger.store.schema.common import Instant, Name, metadata


def _cell_columns() -> list[Column[Any]]:
    """Sums over the events of a contract day that are alike."""
    return [
        Column("contract_id", Name, nullable=False),
        Column("version", Integer, nullable=False),
        Column("day_start", Instant, nullable=False, comment="of the contract's local day"),
        Column("window_start", Instant, nullable=False),
        Column("model", Name, nullable=False),
        Column("queue", Name, nullable=False),
        Column("forfeited", Boolean, nullable=False),
        Column("outcome", Name, nullable=False),
        Column("exemption", SmallInteger),
        Column("tier", SmallInteger),
        Column("in_objective", Boolean, nullable=False),
        Column("late", Boolean, nullable=False),
        Column("over", Boolean, nullable=False),
        Column("requests", BigInteger, nullable=False),
        Column("requests_without_usage", BigInteger, nullable=False),
        Column("tokens_input", BigInteger, nullable=False),
        Column("tokens_cached_input", BigInteger, nullable=False),
        Column("tokens_output", BigInteger, nullable=False),
        Column("late_latencies_us", ARRAY(BigInteger), comment="of late requests that have one, in no order"),
    ]


# Sums over the events of a contract day that are alike, kept up while events arrive: settlements read these. A bag of deltas: several rows
# may have one key, and what holds is their sum. It equals the events wherever `stale` does not say otherwise (decision record kept-cells).
cell = Table("cell", metadata, *_cell_columns(), Index("ix_cell_day_start", "day_start", "contract_id"))

# Events that may be cold starts under their contract. Which of them are exempt needs an order over their day, so that no delta is known.
cold_start_event = Table(
    "cold_start_event",
    metadata,
    Column("contract_id", Name, nullable=False),
    Column("version", Integer, nullable=False),
    Column("day_start", Instant, nullable=False, comment="of the contract's local day"),
    Column("account", Name, nullable=False),
    Column("request_id", Name, nullable=False),
    Column("revision", SmallInteger, nullable=False),
    Index("ix_cold_start_event_day_start", "day_start", "contract_id"),
)

# The cells of those events, ranked. A day's are up to date when they sum up to as many requests as are listed of it; if not, they are put
# anew before they are used.
delayed_cell = Table("delayed_cell", metadata, *_cell_columns(), Index("ix_delayed_cell_day_start", "day_start", "contract_id"))

# How many standing events an account has in a quarter of an hour, whoever covers it; before 1980, at the instant itself. A bag of deltas.
traffic = Table(
    "traffic",
    metadata,
    Column("account", Name, nullable=False),
    Column("quarter_start", Instant, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Index("ix_traffic_quarter_start", "quarter_start"),
)

# The local days of a contract that these spans touch are computed from the events again before their cells are used.
stale = Table(
    "stale",
    metadata,
    Column("contract_id", Name, primary_key=True),
    Column("spans", TSTZMULTIRANGE, nullable=False),
)
