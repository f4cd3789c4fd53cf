"""The drafts that are kept, and whether what they were settled from has changed since, without reading the events of their months.

Source: specification, section 8 ("Life of a period") and 9 (`ledger status`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from ledger.store.connection import Connection, fetch_as


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOfPeriod:
    """A settled period, when that was, and whether its requests, intervals or versions are others by now: settle it again then."""

    contract: str
    period: str
    state: str
    settled_at: datetime
    is_outdated: bool


# Loads and withdrawals change how many requests stand, and what is done to one that stands makes its day stale. A day that was computed
# again without being settled is stale no more: what was corrected since is looked up, which is little.
_DRAFTS: LiteralString = """
WITH draft AS (
    SELECT contract_id, settlement.period, state, settled_at, (said ->> 'start')::timestamptz AS starts_at,
        (said ->> 'end')::timestamptz AS ends_at, (said -> 'events' ->> 'total')::bigint AS total
    FROM settlement JOIN run USING (run_id) CROSS JOIN LATERAL (SELECT document::jsonb AS said) documents
    WHERE %(accounts)s::varchar[] IS NULL OR contract_id IN (SELECT contract_id FROM account_covered WHERE account = ANY (%(accounts)s))),
counted AS (
    SELECT draft.contract_id, draft.period, sum(requests) AS requests
    FROM draft JOIN account_covered covered ON covered.contract_id = draft.contract_id AND in_force && tstzrange(starts_at, ends_at)
    JOIN traffic ON traffic.account = covered.account AND in_force @> quarter_start AND quarter_start >= starts_at
        AND quarter_start < ends_at GROUP BY draft.contract_id, draft.period),
corrected AS MATERIALIZED (
    SELECT void.account, received_at, voided_at FROM void CROSS JOIN LATERAL (SELECT received_at FROM event
        WHERE (event.account, event.request_id, event.revision) = (void.account, void.request_id, void.revision) LIMIT 1) withdrawn
    WHERE kind = 'correct' AND voided_at > (SELECT min(settled_at) FROM draft))
SELECT draft.contract_id AS contract, draft.period, state, settled_at,
    total <> coalesce(requests, 0)
    OR EXISTS (SELECT FROM stale WHERE stale.contract_id = draft.contract_id AND spans && tstzrange(starts_at, ends_at))
    OR EXISTS (SELECT FROM interval WHERE added_at > settled_at
        AND interval.starts_at < draft.ends_at AND interval.ends_at > draft.starts_at)
    OR EXISTS (SELECT FROM contract_version added JOIN version_in_force force USING (contract_id, version)
        WHERE added.contract_id = draft.contract_id AND added_at > settled_at AND force.in_force && tstzrange(starts_at, ends_at))
    OR EXISTS (SELECT FROM corrected JOIN account_covered covered USING (account) WHERE covered.contract_id = draft.contract_id
        AND voided_at > settled_at AND in_force @> received_at AND received_at >= starts_at AND received_at < ends_at) AS is_outdated
FROM draft LEFT JOIN counted USING (contract_id, period) ORDER BY draft.contract_id, draft.period
"""


def drafts(connection: Connection, accounts: Collection[str] | None = None) -> list[DraftOfPeriod]:
    """The settled periods of all contracts, or of those that have had one of the accounts; by contract and period."""
    return fetch_as(connection, DraftOfPeriod, _DRAFTS, {"accounts": None if accounts is None else list(accounts)})
