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

from psycopg.types.json import Json
from psycopg.types.range import TimestamptzRange

from ledger.contract.model import Contract
from ledger.contract.schedule import stretches
from ledger.contract.texts import contract_of_texts
from ledger.settlement.calendar import day_start
from ledger.store.connection import Connection, driver_cursor, execute, fetch


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
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.contracts'))")


def stored_versions(
    connection: Connection,
    contract_id: str | Collection[str] | None = None,
    *,
    in_force: tuple[datetime, datetime] | None = None,
    read_again: bool = False,
) -> list[StoredVersion]:
    """All stored versions by id and version; or those of one contract or of some, or of contracts with a version in force in a span. What
    the files say is kept; `read_again` reads them nevertheless."""
    contract_ids = [contract_id] if isinstance(contract_id, str) else contract_id
    rows = fetch(
        connection,
        "SELECT content, texts, content_sha256, file, added_at, author "
        "FROM contract_version LEFT JOIN (SELECT * FROM contract_reading WHERE reader_sha256 = %(reader)s) reading USING (content_sha256) "
        "WHERE (%(contract_ids)s::varchar[] IS NULL OR contract_id = ANY (%(contract_ids)s::varchar[])) "
        "AND (%(span)s::tstzrange IS NULL "
        "OR contract_id IN (SELECT contract_id FROM version_in_force WHERE in_force && %(span)s::tstzrange)) "
        "ORDER BY contract_id, version",
        {
            "reader": None if read_again else reader_sha256(),
            "contract_ids": None if contract_ids is None else list(contract_ids),
            "span": None if in_force is None else TimestamptzRange(*in_force),
        },
    )
    return [_stored(*row) for row in rows]


def altered_versions(connection: Connection) -> list[tuple[str, int]]:
    """The versions whose content is not what was added, by contract and version: somebody wrote to the table behind its rules."""
    query = "SELECT contract_id, version FROM contract_version WHERE content_sha256 <> encode(sha256(content), 'hex') ORDER BY 1, 2"
    return [(contract_id, version) for contract_id, version in fetch(connection, query)]


def contract_ids(connection: Connection) -> list[str]:
    """The ids of all contracts that have a version, in order."""
    return [contract_id for (contract_id,) in fetch(connection, "SELECT DISTINCT contract_id FROM contract_version ORDER BY contract_id")]


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
    unread = fetch(
        connection,
        "SELECT content_sha256, content FROM contract_version version WHERE NOT EXISTS (SELECT FROM contract_reading reading "
        "WHERE reading.content_sha256 = version.content_sha256 AND reader_sha256 = %(reader)s)",
        {"reader": reader_sha256()},
    )
    with driver_cursor(connection) as cursor:
        cursor.executemany(  # another command may have kept them at the same moment
            "INSERT INTO contract_reading (content_sha256, reader_sha256, texts) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [(content_sha256, reader_sha256(), Json(_read(content))) for content_sha256, content in unread],
        )


def add_versions(connection: Connection, added: Iterable[StoredVersion]) -> None:
    """Stores versions and puts them into force; the caller has checked them together with all that are stored."""
    contract_ids = set()
    for version in added:
        contract_ids.add(version.contract.id)
        execute(
            connection,
            "INSERT INTO contract_version (contract_id, version, content_sha256, content, file, added_at, author) "
            "VALUES (%(id)s, %(version)s, %(content_sha256)s, %(content)s, %(file)s, %(added_at)s, %(author)s)",
            {
                "id": version.contract.id,
                "version": version.contract.version,
                **{name: getattr(version, name) for name in ("content_sha256", "content", "file", "added_at", "author")},
            },
        )
    # All spans go before any comes back: an account may move from one contract of this run to another.
    for contract_id in contract_ids:
        execute(connection, "DELETE FROM version_in_force WHERE contract_id = %(id)s", {"id": contract_id})
        execute(connection, "DELETE FROM account_covered WHERE contract_id = %(id)s", {"id": contract_id})
    keep_readings(connection)
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
        span = {"id": contract_id, "version": contract.version, "in_force": TimestamptzRange(start, end)}
        execute(
            connection,
            "INSERT INTO version_in_force (contract_id, version, in_force) VALUES (%(id)s, %(version)s, %(in_force)s)",
            span,
        )
        for account in contract.parties.customer.accounts:
            execute(
                connection,
                "INSERT INTO account_covered (account, contract_id, version, in_force) "
                "VALUES (%(account)s, %(id)s, %(version)s, %(in_force)s)",
                {"account": account, **span},
            )
