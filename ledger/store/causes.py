"""Why a closed month comes out otherwise than it was posted: the requests, intervals and contract versions that the posting did not see.

Takes a month as it is now in force, gives causes by kind and reference. Source: specification, section 8; decision record adjustments.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import sql

from ledger.settlement.adjustments import MOST_CAUSES
from ledger.settlement.period import Period
from ledger.settlement.statement import Cause, CauseKind
from ledger.store.connection import Connection, fetch
from ledger.store.contracts import StoredVersion
from ledger.store.covered import COVERED, covered_arrays
from ledger.store.seen import EVERYTHING, Seen

# What was known when something was last posted for the month: by the close of the month itself, or one that adjusted it.
_SINCE = """SELECT run.batches, run.voids, run.intervals, run.contracts FROM closing JOIN run USING (run_id)
WHERE closing.contract_id = %(contract_id)s AND closing.period < %(into)s
AND (closing.period = %(period)s OR EXISTS (SELECT FROM invoice_line line
    WHERE (line.contract_id, line.period) = (closing.contract_id, closing.period) AND line.of_period = %(period)s))
ORDER BY closing.period DESC LIMIT 1"""

_CHANGED = sql.SQL(
    "SELECT kind, account, ref, count(*) OVER () FROM ("
    "SELECT 'late' AS kind, account, request_id AS ref FROM event JOIN {covered} USING (account) "
    "WHERE received_at >= starts_at AND received_at < covered.ends_at AND revision = 1 "
    "AND NOT %(batches)s::int8multirange @> batch_id AND %(seen_batches)s::int8multirange @> batch_id "
    "UNION ALL "
    "SELECT kind, account, request_id FROM void JOIN event USING (account, request_id, revision) JOIN {covered} USING (account) "
    "WHERE received_at >= starts_at AND received_at < covered.ends_at "
    "AND NOT %(voids)s::int8multirange @> void_id AND %(seen_voids)s::int8multirange @> void_id "
    "UNION ALL "
    "SELECT 'interval', NULL, interval_id FROM interval WHERE starts_at < %(end)s AND ends_at > %(start)s "
    "AND interval_id <> ALL (%(intervals)s) AND (%(seen_intervals)s::varchar[] IS NULL OR interval_id = ANY (%(seen_intervals)s))"
    ') AS changed ORDER BY kind COLLATE "C", account, ref LIMIT %(most)s'
).format(covered=COVERED)


def causes_since(
    connection: Connection, period: Period, versions: Sequence[StoredVersion], into: str, seen: Seen = EVERYTHING
) -> tuple[tuple[Cause, ...], int]:
    """What changed of a closed month since something was last posted for it, before the month `into` that adjusts it, and as far as it was
    `seen`: at most 100 causes, in order, and how many there are.

    A request is named by its id; with its account before it if the contract covers several in the month.
    """
    contract_id = period.last.id
    [(batches, voids, intervals, contracts)] = fetch(connection, _SINCE, {"contract_id": contract_id, "period": period.name, "into": into})
    known = set(contracts.get(contract_id, {}).values())
    causes = [Cause(kind=CauseKind.CONTRACT, ref=f"version {one.contract.version}") for one in versions if one.content_sha256 not in known]
    arguments: dict[str, Any] = {
        "batches": batches,
        "voids": voids,
        "intervals": intervals,
        "seen_batches": seen.batches,
        "seen_voids": seen.voids,
        "seen_intervals": None if seen.intervals is None else list(seen.intervals),
        "start": period.start,
        "end": period.end,
        "most": MOST_CAUSES,
        **covered_arrays([period]),
    }
    rows = fetch(connection, _CHANGED, arguments)
    names_account = len({account for _, account, _, _ in rows if account is not None}) > 1
    causes += [
        Cause(kind=CauseKind(kind), ref=f"{account}/{ref}" if names_account and account is not None else ref)
        for kind, account, ref, _ in rows
    ]
    total = len(causes) - len(rows) + (rows[0][3] if rows else 0)
    return tuple(sorted(causes)[:MOST_CAUSES]), total
