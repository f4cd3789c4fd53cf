"""Approvals of contract versions: who has approved which content in which role. Rows that never change.

Source: specification, section 3 (`require_approvals`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.store.connection import Connection, driver_cursor, fetch_as
from ledger.store.contracts import StoredVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A role's approval of the bytes that have this hash."""

    content_sha256: str
    role: str
    author: str
    reason: str | None
    approved_at: datetime


def approvals_of(connection: Connection, versions: Collection[StoredVersion]) -> dict[str, list[Approval]]:
    """The approvals of versions by the hash of their content, in order of time; empty for a version that has none. One query at most: none
    if no version needs an approval."""
    needed = [version.content_sha256 for version in versions if version.contract.require_approvals]
    given: dict[str, list[Approval]] = {version.content_sha256: [] for version in versions}
    if needed:
        query = (
            "SELECT content_sha256, role, author, reason, approved_at FROM approval "
            "WHERE content_sha256 = ANY (%(needed)s::varchar[]) ORDER BY approved_at, role"
        )
        for approval in fetch_as(connection, Approval, query, {"needed": needed}):
            given[approval.content_sha256].append(approval)
    return given


def missing_roles(version: StoredVersion, given: Sequence[Approval]) -> tuple[str, ...]:
    """The roles that the version needs and none of these approvals is of, in the order of its file."""
    approved = {approval.role for approval in given}
    return tuple(role for role in version.contract.require_approvals if role not in approved)


def add_approval(connection: Connection, approval: Approval) -> bool:
    """Keeps the approval; False, and nothing changes, if the role has approved this content before."""
    with driver_cursor(connection) as cursor:
        cursor.execute(
            "INSERT INTO approval (content_sha256, role, author, reason, approved_at) "
            "VALUES (%(content_sha256)s, %(role)s, %(author)s, %(reason)s, %(approved_at)s) ON CONFLICT DO NOTHING",
            {name: getattr(approval, name) for name in Approval.__slots__},
        )
        return cursor.rowcount == 1
