"""Quarantine: list and count refused rows, show one with its history, dismiss some.

Source: specification, section 2.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ledger.errors import LedgerError
from ledger.ingest.event_rules import Reason
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.events import latest_revisions
from ledger.store.kept_apart import KeptApart, apart_of_waiting
from ledger.store.quarantine import RefusedRow, RowFilter, RowState, Share, count_refused, each_refused, known_ids, resolve
from ledger.store.resubmissions import Resubmission, resubmissions_of
from ledger.store.unmet import Unmet, unmet_of_waiting

NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHistory:
    """A row in quarantine, and each time it was sent in again. `apart`: it is a gateway's that waits, has the engine's half beside it, and
    is not joined with it; `unmet`: an engine's record with its ids is elsewhere. `stored_for` are accounts of which a request of its id is
    stored, by another load than this one; of a row in conflict it is not looked for."""

    row: RefusedRow
    resubmissions: tuple[Resubmission, ...]
    apart: KeptApart | None
    unmet: Unmet | None
    stored_for: tuple[str, ...]


def list_quarantine(database: Database, wanted: RowFilter, *, most: int | None = None) -> Iterator[RefusedRow]:
    """The rows, by load and line, at most `most`; they are read while they are looked at."""
    with database.begin() as connection:
        yield from each_refused(connection, wanted, most=most)


def count_quarantine(database: Database, wanted: RowFilter) -> dict[str, int]:
    """How many rows by reason, the most first."""
    with database.begin() as connection:
        return count_refused(connection, wanted)


def contract_share(database: Database, contract_id: str, month: str) -> Share:
    """The rows that the contract's settlement of the month counts. Raises LedgerError if none of its versions is in force then."""
    from ledger.workflows.in_force import contracts_in_force  # what contracts need takes longer to import than rows to list

    with database.begin() as connection:
        found = contracts_in_force(connection, month, contract_id)
    if not found:
        raise LedgerError(f"no version of the contract {contract_id} is in force in {month}", cure="see: ledger contract list")
    ((_, period),) = found
    accounts = {account for piece in period.pieces for account in piece.contract.parties.customer.accounts}
    return Share(accounts=tuple(sorted(accounts)), start=period.start, end=period.end)


def row_history(database: Database, quarantine_id: int) -> RowHistory:
    """The row, resolved or not. Raises LedgerError if there is none."""
    with database.begin() as connection:
        check_ids(connection, [quarantine_id])
        (row,) = each_refused(connection, RowFilter(ids=[quarantine_id], state=RowState.ALL))
        return RowHistory(
            row=row,
            resubmissions=tuple(resubmissions_of(connection, quarantine_id)),
            apart=apart_of_waiting(connection, row.row_sha256),
            unmet=unmet_of_waiting(connection, row.row_sha256),
            stored_for=_stored_for(connection, row),
        )


def _stored_for(connection: Connection, row: RefusedRow) -> tuple[str, ...]:
    if row.request_id is None or row.resolution is not None or row.reason == Reason.CONFLICT:
        return ()
    return tuple(one.account for one in latest_revisions(connection, row.request_id, row.account))


def dismiss_rows(database: Database, wanted: RowFilter, *, reason: str, author: str, dry_run: bool = False) -> list[int]:
    """Mark the rows that wait as dismissed; gives their ids. Raises LedgerError if one of the ids is none."""
    with database.begin() as connection:
        check_ids(connection, wanted.ids or ())
        done = resolve(connection, wanted, resolution="dismissed", reason=reason, author=author, at=database.now())
        if dry_run:
            connection.rollback()
        return done


def check_ids(connection: Connection, ids: Collection[int]) -> None:
    """Raises LedgerError if no row, resolved or not, has one of the ids."""
    lacking = sorted(set(ids) - known_ids(connection, ids))
    if lacking:
        more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        named = ", ".join(map(str, lacking[:NAMED])) + more
        raise LedgerError(f"there is no row {named} in quarantine; nothing was done", cure="ledger quarantine list shows their ids")
