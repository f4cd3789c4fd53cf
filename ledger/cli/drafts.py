"""Which drafts what a command has changed belongs to: for every command that changes what is settled."""

from collections.abc import Collection

from ledger.cli.output import echo
from ledger.printable import printable
from ledger.store.database import Database
from ledger.store.drafts import drafts

SHOWN_DRAFTS = 5


def outdated_texts(database: Database, accounts: Collection[str] | None = None) -> list[str]:
    """Which drafts (None: of all contracts, else of those that have had one of the accounts) are older than what they were settled from."""
    with database.begin() as connection:
        outdated = [draft for draft in drafts(connection, accounts) if draft.is_outdated]
    told = [
        printable(f"{draft.contract} {draft.period} has changed since it was settled: ledger settle {draft.period} settles it again")
        for draft in outdated[:SHOWN_DRAFTS]
    ]
    more = len(outdated) - SHOWN_DRAFTS
    return told if more <= 0 else [*told, f"and {more:,} more, which ledger status lists"]


def tell_outdated(database: Database, accounts: Collection[str] | None = None) -> None:
    """Say it on standard error: the last act of a command that has changed what is settled."""
    for text in outdated_texts(database, accounts):
        echo(text, err=True)
