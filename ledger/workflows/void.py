"""Void: withdraw the current revision of a request. Nothing is deleted; withdrawing twice is harmless.

Source: specification, section 2, "Corrections".
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.errors import LedgerError
from ledger.store.cells import change_events
from ledger.store.database import Database
from ledger.store.events import Revision, add_void, latest_revisions, lock_request


@dataclass(frozen=True, slots=True, kw_only=True)
class Voided:
    """The revision that is withdrawn; `now` is False if it was before."""

    account: str
    request_id: str
    revision: int
    now: bool


def void_request(database: Database, request_id: str, *, account: str | None, reason: str, author: str) -> Voided:
    """Withdraw the request. Raises LedgerError if there is none, or more than one account has it."""
    with database.engine.begin() as connection:
        current = the_request(connection, request_id, account)
        done = add_void(connection, current, kind="void", reason=reason, author=author, voided_at=database.now())
        change_events(connection, [(current.account, current.fields["received_at"], -1)] if done else [])
        return Voided(account=current.account, request_id=request_id, revision=current.revision, now=done)


def the_request(connection: Connection, request_id: str, account: str | None) -> Revision:
    """The latest revision of the request, locked until the transaction ends."""
    found = latest_revisions(connection, request_id, account)
    if not found:
        raise LedgerError(
            f"there is no request {request_id}" + (f" of the account {account}" if account else ""), cure="check the id and the account"
        )
    if len(found) > 1:
        accounts = ", ".join(revision.account for revision in found)
        raise LedgerError(f"several accounts have a request {request_id}: {accounts}", cure="name one with --account", exit_code=2)
    lock_request(connection, found[0].account, request_id)
    return latest_revisions(connection, request_id, found[0].account)[0]
