"""What commands say of a stored contract version: its name, its days, and the approvals that it lacks."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ledger.cli.output import echo
from ledger.contract.schedule import Stretch
from ledger.store.contracts import StoredVersion
from ledger.workflows.approve import approve_commands

if TYPE_CHECKING:
    from ledger.workflows.unproved import Unproved

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


def unproved_words(one: "Unproved") -> str:
    """How many of its examples do not hold."""
    from ledger.cli.contract import counted

    return f"{one.not_holding} of {counted(one.examples, 'example')} {'does' if one.not_holding == 1 else 'do'} not hold"


def show_unproved(version: StoredVersion) -> None:
    """On standard error, if examples of the stored version do not hold, and how to see which."""
    if not version.contract.examples:  # nor what runs them is needed
        return
    from ledger.workflows.unproved import unproved_version

    if one := unproved_version(version):
        contract = version.contract
        command = f"ledger contract show {contract.id} {contract.version} > FILE, then ledger contract test FILE"
        echo(f"warning: {unproved_words(one)} in what is stored of {version_words(version)}; see: {command}", err=True)


def show_missing(version: StoredVersion, missing: Sequence[str]) -> None:
    """On standard error, whose approval a version needs before it is settled, and the commands that give it."""
    if missing:
        echo(f"{version_words(version)} needs approval before it is settled: {', '.join(missing)}", err=True)
        for command in approve_commands(version, missing):
            echo(f"  {command}", err=True)
