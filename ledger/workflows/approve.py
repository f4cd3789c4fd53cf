"""Approves a contract version in a role, by the content that was read; once. Says what is still missing.

Takes an open database, the version and the role. Source: specification, sections 3 (`require_approvals`) and 9; decision record approvals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ledger.errors import LedgerError
from ledger.printable import brief
from ledger.store.approvals import Approval, add_approval, approvals_of, missing_roles
from ledger.store.contracts import StoredVersion
from ledger.store.database import Database
from ledger.workflows.named_contract import version_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The version, the role's approval (with `is_new` false, one that was there before), the other roles in which the same author has
    approved it, and the roles whose approval is still missing."""

    version: StoredVersion
    approval: Approval
    is_new: bool
    other_roles: tuple[str, ...]
    missing: tuple[str, ...]


def approve_version(
    database: Database,
    contract_id: str,
    number: int,
    *,
    role: str,
    author: str,
    reason: str | None = None,
    content_sha256: str | None = None,
) -> Approved:
    """Keeps the approval of a role that the version needs; a second one of it changes nothing.

    `content_sha256` is what the approver has read, in hex. Raises LedgerError if the stored version is another, if it does not need the
    role, or if there is no such version.
    """
    with database.begin() as connection:
        version = version_of(connection, contract_id, number)
        _refuse_other_content(version, content_sha256)
        _refuse_other_role(version, role)
        approval = Approval(content_sha256=version.content_sha256, role=role, author=author, reason=reason, approved_at=database.now())
        is_new = add_approval(connection, approval)
        given = approvals_of(connection, [version])[version.content_sha256]
    [standing] = [one for one in given if one.role == role]
    others = tuple(one.role for one in given if one.role != role and one.author == standing.author)
    missing = missing_roles(version, given)
    return Approved(version=version, approval=standing, is_new=is_new, other_roles=others, missing=missing)


def approve_commands(version: StoredVersion, roles: Sequence[str]) -> list[str]:
    """The commands that give the approval of these roles."""
    contract = version.contract
    return [f"ledger contract approve {contract.id} {contract.version} --role {role}" for role in roles]


def _refuse_other_content(version: StoredVersion, content_sha256: str | None) -> None:
    if content_sha256 in (None, version.content_sha256):
        return
    contract = version.contract
    raise LedgerError(
        f"version {contract.version} of {contract.id} is not what was read: its file has the SHA-256 {version.content_sha256}",
        cure=f"read what is stored, and approve that: ledger contract show {contract.id} {contract.version}",
    )


def _refuse_other_role(version: StoredVersion, role: str) -> None:
    contract, needed = version.contract, version.contract.require_approvals
    if role in needed:
        return
    what = f"version {contract.version} of {contract.id} does not need the approval of {brief(role)}"
    if not needed:
        cure = "nor any other: nothing is to be done; what needs approvals says so in its file, by require_approvals"
    else:
        near = get_close_matches(role, needed)
        cure = f"did you mean {' or '.join(near)}?" if near else f"it needs: {', '.join(needed)}"
    raise LedgerError(what, cure=cure)
