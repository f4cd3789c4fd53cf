"""Contract versions in the database: stored by content, never changed, with the spans in which they are in force.

Source: specification, section 3 ("stored by content", "the database refuses it too").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.dialects.postgresql import Range

from ledger.contract.model import Contract
from ledger.contract.reader import read_contract
from ledger.contract.schedule import stretches
from ledger.settlement.calendar import day_start
from ledger.store.schema import account_covered, contract_version, version_in_force


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVersion:
    """A version as it was added: the file's bytes, their hash, and what they mean."""

    contract: Contract
    content: bytes
    content_sha256: str
    file: str
    added_at: datetime
    author: str


def content_hash(content: bytes) -> str:
    """The identity of a contract file: SHA-256 of its bytes, in hex."""
    return sha256(content).hexdigest()


def lock_contracts(connection: Connection) -> None:
    """Lets one transaction at a time add versions, so that each checks against all that are in force."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('ledger.contracts'))"))


def stored_versions(connection: Connection, contract_id: str | None = None) -> list[StoredVersion]:
    """All stored versions, or those of one contract, by id and version."""
    query = select(contract_version).order_by(contract_version.c.contract_id, contract_version.c.version)
    if contract_id is not None:
        query = query.where(contract_version.c.contract_id == contract_id)
    return [_stored(row.content, row.content_sha256, row.file, row.added_at, row.author) for row in connection.execute(query)]


def _stored(content: bytes, content_sha256: str, file: str, added_at: datetime, author: str) -> StoredVersion:
    contract = read_contract(content, file).contract
    assert contract is not None, f"{file} was valid when it was added"
    assert content_hash(content) == content_sha256, f"the stored bytes of {file} are those that were added"
    return StoredVersion(contract=contract, content=content, content_sha256=content_sha256, file=file, added_at=added_at, author=author)


def add_versions(connection: Connection, added: Iterable[StoredVersion]) -> None:
    """Stores versions and puts them into force; the caller has checked them together with all that are stored."""
    contract_ids = set()
    for version in added:
        contract_ids.add(version.contract.id)
        connection.execute(
            insert(contract_version).values(
                contract_id=version.contract.id,
                version=version.contract.version,
                content_sha256=version.content_sha256,
                content=version.content,
                file=version.file,
                added_at=version.added_at,
                author=version.author,
            )
        )
    # All spans go before any comes back: an account may move from one contract of this run to another.
    for contract_id in contract_ids:
        connection.execute(delete(version_in_force).where(version_in_force.c.contract_id == contract_id))
        connection.execute(delete(account_covered).where(account_covered.c.contract_id == contract_id))
    for contract_id in sorted(contract_ids):
        _put_into_force(connection, contract_id, [stored.contract for stored in stored_versions(connection, contract_id)])


def _put_into_force(connection: Connection, contract_id: str, versions: Sequence[Contract]) -> None:
    by_number = {contract.version: contract for contract in versions}
    for stretch in stretches(versions):
        contract = by_number[stretch.version]
        timezone = contract.calendar.timezone
        start, end = day_start(timezone, stretch.from_on), None if stretch.until_on is None else day_start(timezone, stretch.until_on)
        if start == end:  # the clocks skipped its only day
            continue
        in_force = Range(start, end, bounds="[)")
        span = {"contract_id": contract_id, "version": contract.version, "in_force": in_force}
        connection.execute(insert(version_in_force).values(span))
        for account in contract.parties.customer.accounts:
            connection.execute(insert(account_covered).values(account=account, **span))
