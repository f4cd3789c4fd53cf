"""Contract versions in the database: stored by content, never changed, with the spans in which they are in force.

Source: specification, section 3 ("stored by content", "the database refuses it too").
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib import metadata
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, Select, and_, any_, cast, delete, insert, select, text
from sqlalchemy.dialects.postgresql import ARRAY, Range
from sqlalchemy.dialects.postgresql import insert as upsert

from ledger.contract.model import Contract
from ledger.contract.schedule import stretches
from ledger.contract.texts import contract_of_texts
from ledger.settlement.calendar import day_start
from ledger.store.schema import Name, account_covered, contract_reading, contract_version, version_in_force


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


def stored_versions(
    connection: Connection, contract_id: str | Collection[str] | None = None, *, in_force: tuple[datetime, datetime] | None = None
) -> list[StoredVersion]:
    """All stored versions by id and version; or those of one contract or of some, or of contracts with a version in force in a span."""
    query = _versions_and_readings().order_by(contract_version.c.contract_id, contract_version.c.version)
    if contract_id is not None:
        contract_ids = [contract_id] if isinstance(contract_id, str) else list(contract_id)
        query = query.where(contract_version.c.contract_id == any_(cast(contract_ids, ARRAY(Name))))
    if in_force is not None:
        overlapping = version_in_force.c.in_force.overlaps(Range(*in_force))
        query = query.where(contract_version.c.contract_id.in_(select(version_in_force.c.contract_id).where(overlapping)))
    return [_stored(row.content, row.texts, row.content_sha256, row.file, row.added_at, row.author) for row in connection.execute(query)]


def _versions_and_readings() -> Select[Any]:
    """The stored versions, each with what its file says if this reader has read it before."""
    same = and_(contract_reading.c.content_sha256 == contract_version.c.content_sha256, contract_reading.c.reader_sha256 == reader_sha256())
    return select(contract_version, contract_reading.c.texts).outerjoin(contract_reading, same)


def _stored(content: bytes, texts: object, content_sha256: str, file: str, added_at: datetime, author: str) -> StoredVersion:
    assert content_hash(content) == content_sha256, f"the stored bytes of {file} are those that were added"
    contract = contract_of_texts(_read(content) if texts is None else texts)
    return StoredVersion(contract=contract, content=content, content_sha256=content_sha256, file=file, added_at=added_at, author=author)


def _read(content: bytes) -> object:
    """What the file says. The reader is imported here alone: what it says is kept, so that hardly any command reads it again."""
    from ledger.contract.reader import contract_texts

    return contract_texts(content)


@cache
def reader_sha256() -> str:
    """Identifies what decides how a file is read: every module of `ledger.contract`, and the YAML library."""
    modules = sorted(
        (module for module in files("ledger.contract").iterdir() if module.name.endswith(".py")), key=lambda module: module.name
    )
    code = [metadata.version("PyYAML").encode(), *(part for module in modules for part in (module.name.encode(), module.read_bytes()))]
    return sha256(b"\0".join(code)).hexdigest()


def keep_readings(connection: Connection) -> None:
    """Keeps what the files say that this reader has not read yet: new ones, or all of them after a change of the reader."""
    unread = _versions_and_readings().where(contract_reading.c.texts.is_(None))
    readings = [
        {"content_sha256": row.content_sha256, "reader_sha256": reader_sha256(), "texts": _read(row.content)}
        for row in connection.execute(unread)
    ]
    if readings:  # another command may have kept them at the same moment
        connection.execute(upsert(contract_reading).on_conflict_do_nothing(), readings)


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
