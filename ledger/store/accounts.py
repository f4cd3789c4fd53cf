"""Which accounts are known: those with requests, refused rows or a contract.

Source: specification, section 2.
"""

from difflib import get_close_matches

from psycopg import sql

from ledger.store.connection import Connection, fetch


def accounts_like(connection: Connection, account: str) -> list[str] | None:
    """The known accounts whose names come near this one, the nearest first; None if it is known itself, be it by withdrawn requests."""
    if fetch(connection, sql.SQL("SELECT FROM event WHERE account = {} LIMIT 1").format(account)):
        return None
    # By the quarters of an hour in which requests are counted: events are many.
    known = [
        name
        for (name,) in fetch(
            connection,
            "SELECT account FROM traffic UNION SELECT account FROM quarantine WHERE account IS NOT NULL "
            "UNION SELECT account FROM account_covered ORDER BY account",
        )
    ]
    return None if account in known else get_close_matches(account, known)
