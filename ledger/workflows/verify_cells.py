"""Verify the kept cells: every day that is not stale holds exactly what its events give, computed anew.

Takes an open database and gives what differs; changes nothing. Source: architecture, "The one idea"; decision record kept-cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from ledger.contract.model import Contract
from ledger.contract.scalar import YEARS
from ledger.rating import sql
from ledger.rating.postgres import PostgresEngine, current_events
from ledger.settlement.calendar import days_touched, month_anywhere, zone
from ledger.store.cell_differences import days_with_cells, differing_accounts, differing_days, kept_span
from ledger.store.cells import KEPT, ContractDay, Covered, Spans, coverage, stale_spans, unranked_days
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.plans import contracts_of, stored_plans, whole_days
from ledger.workflows.recompute import add_cells, add_ranked, listed_events

FIRST_DAY = datetime(YEARS.start, 1, 1, tzinfo=UTC)  # on which a contract may be in force


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCells:
    """How many contract days agree, and how many are stale or unranked; the differing ones by contract and local day; accounts whose
    traffic differs."""

    agree: int
    stale: int
    differing: tuple[tuple[str, date], ...]
    accounts: tuple[str, ...]


def verify_cells(database: Database, period: str | None = None) -> VerifiedCells:
    """Compare all that is kept, or what is kept of a month, with what the events give: in one snapshot, beside running loads."""
    with any_snapshot(database) as connection:
        return kept_against_events(connection, period)


def kept_against_events(connection: Connection, period: str | None = None) -> VerifiedCells:
    """The same in the snapshot of the connection."""
    found = kept_span(connection) if period is None else month_anywhere(period)
    if found is None:
        return VerifiedCells(agree=0, stale=0, differing=(), accounts=())
    # Whole days of any zone; requests may be older than any contract, down to the first day that there is.
    start, end = (max(one, FIRST_DAY) for one in found)
    start, end = start - timedelta(days=2), end + timedelta(days=2)
    covered = coverage(connection)
    contract_ids = {one.contract_id for one in covered}
    contracts = contracts_of(connection, contract_ids)
    zones = {contract.id: contract.calendar.timezone for contract in contracts.values()}
    days = whole_days({contract_id: [(start, end)] for contract_id in contract_ids}, contracts)
    _compute(connection, covered, days, contracts)

    # Beyond the days that were computed nothing is compared.
    first = max((spans[0][0] for spans in days.values()), default=start)
    last = min((spans[-1][1] for spans in days.values()), default=end)
    local = {
        (contract_id, day): day.astimezone(zone(zones[contract_id])).date()
        for contract_id, day in days_with_cells(connection, first, last, contract_ids)
    }
    known = {day for day, on in local.items() if period in (None, f"{on:%Y-%m}")}
    marked = stale_spans(connection)
    stale = {day for day in known if _is_stale(day, marked, zones)}
    differing = differing_days(connection, ("cell", "cold_start_event"), first, last, contract_ids) & known - stale
    # Cold starts that were not ranked yet are no difference, but those that are listed have to be right.
    stale |= known & unranked_days(connection, None, first, last) - differing
    differing |= differing_days(connection, ("delayed_cell",), first, last, contract_ids) & known - stale
    return VerifiedCells(
        agree=len(known) - len(stale) - len(differing),
        stale=len(stale),
        differing=tuple(sorted((contract_id, local[contract_id, day]) for contract_id, day in differing)),
        accounts=tuple(differing_accounts(connection, *((min(found[0], start), end) if period is None else found))),
    )


def _compute(connection: Connection, covered: Sequence[Covered], days: Spans, contracts: dict[tuple[str, int], Contract]) -> None:
    """Make the tables of KEPT, `computed_` before their names, of the events of these days."""
    engine = PostgresEngine(connection)
    engine.prefer_hashing()
    for table, columns in KEPT.items():
        engine.keep(f"computed_{table}", sql.everything(table, columns).limit(0))
    events = current_events(any_withdrawn=engine.any_withdrawn())
    add_cells(engine, stored_plans(connection, covered, days, contracts, events, with_traffic=True), prefix="computed_")
    if days:
        listed = listed_events(days, listed_in="computed_cold_start_event")
        add_ranked(engine, stored_plans(connection, covered, days, contracts, listed), prefix="computed_")


def _is_stale(day: ContractDay, stale: Spans, zones: dict[str, str]) -> bool:
    contract_id, start = day
    end = days_touched(zones[contract_id], start, start + timedelta(microseconds=1)).end
    return any((first is None or first < end) and (last is None or last > start) for first, last in stale.get(contract_id, ()))
