"""Which accounts belong to which contracts of periods, and when, as a relation of a query.

A statement may have 65,535 parameters, and a provider more accounts: what is asked of many comes as an array for each column.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import sql

from ledger.settlement.period import Period

COVERED = sql.SQL(
    "unnest(%(contract_ids)s::varchar[], %(covered_accounts)s::varchar[], %(covered_starts)s::timestamptz[], "
    "%(covered_ends)s::timestamptz[], %(period_ends)s::timestamptz[]) AS covered (contract_id, account, starts_at, ends_at, period_end)"
)


def covered_arrays(periods: Sequence[Period]) -> dict[str, list[Any]]:
    """What COVERED is made of: which account belongs to which contract of the periods, and when, be it for a part of the period."""
    rows = [
        (period.last.id, account, piece.days.starts[0], piece.days.end, period.end)
        for period in periods
        for piece in period.pieces
        for account in piece.contract.parties.customer.accounts
    ]
    return arrays(("contract_ids", "covered_accounts", "covered_starts", "covered_ends", "period_ends"), rows)


def arrays(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """The rows as an array for each column, by name."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
