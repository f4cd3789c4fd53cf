"""What is stored of contracts: each version with when it is in force and what it lacks, and what happened in order.

Takes an open database, changes nothing. Source: specification, sections 3 and 9.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from ledger.contract.schedule import Stretch, stretches
from ledger.store.approvals import Approval, approvals_of, missing_roles
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, stored_versions
from ledger.store.database import Database
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.named_contract import version_of, versions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A version, the stretches of local days on which it is in force (none if others stand for it on all its days), the approvals that were
    given, and the roles whose approval is missing."""

    stored: StoredVersion
    in_force: tuple[Stretch, ...]
    approvals: tuple[Approval, ...]
    missing: tuple[str, ...]

    @property
    def holds_up(self) -> bool:
        """Whether a settlement of days on which it is in force waits for an approval."""
        return bool(self.missing and self.in_force)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """That a version was added or, with an approval, that a role has approved it."""

    at: datetime
    version: StoredVersion
    approval: Approval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractHistory:
    """What happened to the versions of a contract in order of time, and which of them hold up a settlement."""

    steps: tuple[Step, ...]
    holding_up: tuple[ListedVersion, ...]


def list_versions(database: Database) -> list[ListedVersion]:
    """All stored versions, by contract and number."""
    with any_snapshot(database) as connection:
        return listed_versions(connection)


def listed_versions(connection: Connection) -> list[ListedVersion]:
    """The same, of the state that the connection sees."""
    versions = stored_versions(connection)
    return _listed(versions, approvals_of(connection, versions))


def stored_version(database: Database, contract_id: str, number: int | None) -> StoredVersion:
    """The version of this number or, without one, the highest. Raises LedgerError."""
    with database.begin() as connection:
        return version_of(connection, contract_id, number)


def contract_history(database: Database, contract_id: str) -> ContractHistory:
    """Who added and approved the versions of a contract. Raises LedgerError if there is none of this id."""
    with any_snapshot(database) as connection:
        versions = versions_of(connection, contract_id)
        given = approvals_of(connection, versions)
    steps = [Step(at=version.added_at, version=version) for version in versions]
    steps += [
        Step(at=approval.approved_at, version=version, approval=approval)
        for version in versions
        for approval in given[version.content_sha256]
    ]
    steps.sort(key=lambda step: step.at)  # which leaves the adding first where both are of one instant
    return ContractHistory(steps=tuple(steps), holding_up=tuple(one for one in _listed(versions, given) if one.holds_up))


def _listed(versions: list[StoredVersion], given: dict[str, list[Approval]]) -> list[ListedVersion]:
    listed = []
    for _, group in groupby(versions, key=lambda version: version.contract.id):
        of_contract = list(group)
        in_force = stretches([version.contract for version in of_contract])
        listed += [
            ListedVersion(
                stored=version,
                in_force=tuple(stretch for stretch in in_force if stretch.version == version.contract.version),
                approvals=tuple(given[version.content_sha256]),
                missing=missing_roles(version, given[version.content_sha256]),
            )
            for version in of_contract
        ]
    return listed
