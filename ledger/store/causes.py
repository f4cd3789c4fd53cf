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
WHERE closing.contract_id = %(contract_id)s AND (%(into)s::varchar IS NULL OR closing.period < %(into)s)
AND (closing.period = %(period)s OR EXISTS (SELECT FROM invoice_line line
    WHERE (line.contract_id, line.period) = (closing.contract_id, closing.period) AND line.of_period = %(period)s))
ORDER BY closing.period DESC LIMIT 1"""

_CHANGED = sql.SQL(
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
).format(covered=COVERED)
_FIRST_CAUSES = sql.SQL(
    'SELECT kind, account, ref, count(*) OVER () FROM ({changed}) AS changed ORDER BY kind COLLATE "C", account, ref LIMIT %(most)s'
).format(changed=_CHANGED)
_CAUSES_BY_KIND = sql.SQL("SELECT kind, count(*) FROM ({changed}) AS changed GROUP BY kind").format(changed=_CHANGED)

# What the events of a month need not be read for: nothing was loaded or withdrawn since.
_IS_ALL_KNOWN = """SELECT NOT EXISTS (SELECT FROM batch
    WHERE rows_new + requests_joined > 0 AND NOT %(batches)s::int8multirange @> batch_id)
AND NOT EXISTS (SELECT FROM void WHERE NOT %(voids)s::int8multirange @> void_id)
AND NOT EXISTS (SELECT FROM interval WHERE interval_id <> ALL (%(intervals)s))"""


def causes_since(
    connection: Connection, period: Period, versions: Sequence[StoredVersion], into: str, seen: Seen = EVERYTHING
) -> tuple[tuple[Cause, ...], int]:
    """What changed of a closed month since something was last posted for it, before the month `into` that adjusts it, and as far as it was
    `seen`: at most 100 causes, in order, and how many there are.

    A request is named by its id; with its account before it if the contract covers several in the month.
    """
    posted, known = _last_posted(connection, period, into)
    causes = [Cause(kind=CauseKind.CONTRACT, ref=f"version {number}") for number in _unknown_versions(versions, known)]
    rows = fetch(connection, _FIRST_CAUSES, {**posted, **_since(period, seen), "most": MOST_CAUSES})
    names_account = len({account for _, account, _, _ in rows if account is not None}) > 1
    causes += [
        Cause(kind=CauseKind(kind), ref=f"{account}/{ref}" if names_account and account is not None else ref)
        for kind, account, ref, _ in rows
    ]
    total = len(causes) - len(rows) + (rows[0][3] if rows else 0)
    return tuple(sorted(causes)[:MOST_CAUSES]), total


def count_causes(connection: Connection, period: Period, versions: Sequence[StoredVersion]) -> dict[CauseKind, int]:
    """How many causes of each kind there are since something was last posted for a closed month, versions only that are in force in it;
    kinds without any are left out. Events of the month are read only if anything at all was loaded or withdrawn since."""
    posted, known = _last_posted(connection, period, None)
    in_force = [one for one in versions if one.contract.version in period.by_version]
    found = {CauseKind.CONTRACT: len(_unknown_versions(in_force, known))}
    [(is_all_known,)] = fetch(connection, _IS_ALL_KNOWN, posted)
    if not is_all_known:
        found |= {CauseKind(kind): number for kind, number in fetch(connection, _CAUSES_BY_KIND, {**posted, **_since(period, EVERYTHING)})}
    return {kind: number for kind, number in sorted(found.items()) if number}


def _last_posted(connection: Connection, period: Period, into: str | None) -> tuple[dict[str, Any], set[str]]:
    """What was known when something was last posted for a closed month (before the month `into`), and the hashes of the contract's versions
    among it."""
    contract_id = period.last.id
    [(batches, voids, intervals, contracts)] = fetch(connection, _SINCE, {"contract_id": contract_id, "period": period.name, "into": into})
    return {"batches": batches, "voids": voids, "intervals": intervals}, set(contracts.get(contract_id, {}).values())


def _unknown_versions(versions: Sequence[StoredVersion], known: set[str]) -> list[int]:
    return [one.contract.version for one in versions if one.content_sha256 not in known]


def _since(period: Period, seen: Seen) -> dict[str, Any]:
    """The month, and what of the changes since was seen, as arguments."""
    return {
        "seen_batches": seen.batches,
        "seen_voids": seen.voids,
        "seen_intervals": None if seen.intervals is None else list(seen.intervals),
        "start": period.start,
        "end": period.end,
        **covered_arrays([period]),
    }
