"""What commands say of a stored contract version: its name, its days, and the approvals that it lacks."""

from collections.abc import Iterable, Sequence

from ledger.cli.output import echo
from ledger.contract.schedule import Stretch
from ledger.store.contracts import StoredVersion
from ledger.workflows.approve import approve_commands

SHOWN_DIGITS = 12  # of a hash, for people


def short_hash(version: StoredVersion) -> str:
    """The first digits of its hash."""
    return f"sha256 {version.content_sha256[:SHOWN_DIGITS]}"


def version_words(version: StoredVersion) -> str:
    """Which version it is."""
    return f"{version.contract.id} version {version.contract.version}"


def effective_words(version: StoredVersion) -> str:
    """Its days, as its file gives them, and which version it replaces."""
    effective, replaces = version.contract.effective, version.contract.replaces
    days = f"from {effective.start}" + ("" if effective.until is None else f" until {effective.until}")
    return days if replaces is None else f"{days}, replaces version {replaces}"


def in_force_words(in_force: Iterable[Stretch]) -> str:
    """The days on which it is in force after replacement."""
    days = [f"from {one.from_on}" + ("" if one.until_on is None else f" until {one.until_on}") for one in in_force]
    return " and ".join(days) or "never: other versions stand for it"


def show_missing(version: StoredVersion, missing: Sequence[str]) -> None:
    """On standard error, whose approval a version needs before it is settled, and the commands that give it."""
    if missing:
        echo(f"{version_words(version)} needs approval before it is settled: {', '.join(missing)}", err=True)
        for command in approve_commands(version, missing):
            echo(f"  {command}", err=True)
