"""Puts contract files into force: files in, stored versions out, or everything that is wrong with them.

Source: specification, section 3 ("Adding the same file again does nothing; a version number that is taken by other content is refused").
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.errors import ExclusionViolation

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.versions import check_versions
from ledger.errors import LedgerError
from ledger.store.approvals import approvals_of, missing_roles
from ledger.store.cells import lock_cells, mark_changed_coverage, remember_coverage
from ledger.store.contracts import StoredVersion, add_versions, content_hash, lock_contracts, stored_versions
from ledger.store.database import Database
from ledger.workflows.contract import CheckedFile, check_contracts
from ledger.workflows.unproved import Unproved, unproved_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What adding did; nothing was added if it failed. `together` is what is wrong beside the versions that are already stored, `missing`
    the roles that have yet to approve a version, by the hash of its content; `unproved` are files that were refused for their examples."""

    files: tuple[CheckedFile, ...]
    together: tuple[Diagnostic, ...]
    added: tuple[StoredVersion, ...]
    already_there: tuple[StoredVersion, ...]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unproved: tuple[Unproved, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the files were refused."""
        findings = [*self.together, *(diagnostic for file in self.files for diagnostic in file.diagnostics)]
        return bool(self.unproved) or any(finding.severity is Severity.ERROR for finding in findings)


def register_contracts(database: Database, paths: Sequence[Path], *, author: str, examples_may_fail: bool = False) -> Registered:
    """Adds the versions that the files hold, all or none, in order of contract and version whatever the order of the files.

    What is stored never changes, so the examples of a new version have to hold, unless they may fail.
    """
    files = check_contracts(paths)
    refused = Registered(files=files, together=(), added=(), already_there=())
    if refused.failed:
        return refused
    offered = {content_hash(file.content): _version(database, file, author) for file in files}
    try:
        with database.begin() as connection:
            lock_contracts(connection)
            stored = {version.content_sha256: version for version in stored_versions(connection)}
            new = sorted(
                (version for content_sha256, version in offered.items() if content_sha256 not in stored),
                key=lambda version: (version.contract.id, version.contract.version),
            )
            together = _check_together(stored.values(), new, files) if new else ()
            if any(finding.severity is Severity.ERROR for finding in together):
                return Registered(files=files, together=together, added=(), already_there=())
            unstored = [file for file in files if content_hash(file.content) not in stored]
            unproved = () if examples_may_fail else tuple(unproved_files(unstored))
            if unproved:
                return Registered(files=files, together=together, added=(), already_there=(), unproved=unproved)
            remember_coverage(connection)
            add_versions(connection, new)
            lock_cells(connection)
            mark_changed_coverage(connection)
            there = tuple(version for content_sha256, version in stored.items() if content_sha256 in offered)
            given = approvals_of(connection, [*new, *there])
    except ExclusionViolation as error:
        # Days of contracts in different zones overlap by hours, which only instants show.
        if "ex_account_covered_in_force" not in str(error):
            raise
        raise LedgerError(
            "an account would belong to two contracts for some hours, since their time zones differ",
            cure="let the second contract begin a day later, or end the first a day earlier",
        ) from error
    missing = {version.content_sha256: missing_roles(version, given[version.content_sha256]) for version in (*new, *there)}
    return Registered(files=files, together=together, added=tuple(new), already_there=there, missing=missing)


def _check_together(stored: Iterable[StoredVersion], new: Sequence[StoredVersion], files: Sequence[CheckedFile]) -> tuple[Diagnostic, ...]:
    """What is wrong between these versions; of the new ones with the place in their file."""
    given = {content_hash(file.content): file for file in files}
    before = [(f"{version.file} (stored)", version.contract) for version in stored]  # which another file of that name is not
    offered = [(given[version.content_sha256].file, version.contract) for version in new]
    return check_versions(offered, {file.file: file.places for file in files}, stored=before)


def _version(database: Database, file: CheckedFile, author: str) -> StoredVersion:
    assert file.contract is not None, "a file without errors has a contract"
    return StoredVersion(
        contract=file.contract,
        content=file.content,
        content_sha256=content_hash(file.content),
        file=Path(file.file).name,
        added_at=database.now(),
        author=author,
    )
