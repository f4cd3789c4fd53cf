"""Which contracts are in force in a month. Takes a connection and a month, gives the stored versions and the period of each contract."""

from itertools import groupby

from ledger.settlement.calendar import month_anywhere
from ledger.settlement.period import Period, contract_period
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, stored_versions


def contracts_in_force(connection: Connection, period: str, contract_id: str | None = None) -> list[tuple[list[StoredVersion], Period]]:
    """Each contract in force in the month `period` (`2026-05`), or the one, by id: all its versions, and its period."""
    found = []
    stored = stored_versions(connection, contract_id, in_force=month_anywhere(period))
    for _, group in groupby(stored, key=lambda one: one.contract.id):
        versions = list(group)
        terms = contract_period([one.contract for one in versions], period)
        if terms is not None:
            found.append((versions, terms))
    return found
