"""What to do about the name of an account of which nothing was found: it may be misspelt.

Takes the name and gives the cure, for its caller to tell.
"""

from ledger.printable import brief
from ledger.store.accounts import accounts_like
from ledger.store.connection import Connection
from ledger.store.database import Database


def account_cure(connection: Connection, account: str | None) -> str:
    """The accounts whose names come near it, or where to see them; "" if no account was named or it is known."""
    near = None if account is None else accounts_like(connection, account)
    if near is None:
        return ""
    return f"did you mean {' or '.join(map(brief, near))}?" if near else "ledger status shows the accounts that there are"


def unknown_account(database: Database, account: str | None) -> str:
    """That nothing is known of it, and the cure; "" if no account was named or it is known."""
    with database.begin() as connection:
        cure = account_cure(connection, account)
    return f"nothing is known of the account {brief(account or '')}: {cure}" if cure else ""
