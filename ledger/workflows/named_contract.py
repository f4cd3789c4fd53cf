"""The stored version that somebody names by its contract's id and its number, or what comes near if there is none.

Takes the name, gives the version. Raises LedgerError.
"""

from difflib import get_close_matches

from ledger.errors import LedgerError
from ledger.printable import brief
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, contract_ids, stored_versions

SHOWN_NEAR = 3


def versions_of(connection: Connection, contract_id: str) -> list[StoredVersion]:
    """The versions of the contract, by number; at least one."""
    if versions := stored_versions(connection, contract_id):
        return versions
    known = contract_ids(connection)
    near = get_close_matches(contract_id, known) or [one for one in known if one.startswith(contract_id)][:SHOWN_NEAR]
    cure = f"did you mean {' or '.join(near)}?" if near else "see: ledger contract list"
    raise LedgerError(f"there is no contract {brief(contract_id)}", cure=cure)


def version_of(connection: Connection, contract_id: str, number: int | None) -> StoredVersion:
    """The version of this number; of none, the highest."""
    versions = versions_of(connection, contract_id)
    for version in versions:
        if version.contract.version == number:
            return version
    if number is None:
        return versions[-1]
    numbers = [str(version.contract.version) for version in versions]
    there = f"version {numbers[0]} alone" if len(numbers) == 1 else f"versions {', '.join(numbers[:-1])} and {numbers[-1]}"
    raise LedgerError(
        f"the contract {contract_id} has no version {number}", cure=f"it has {there}; see: ledger contract history {contract_id}"
    )
