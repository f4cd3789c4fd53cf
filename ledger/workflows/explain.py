"""Explain: all that has happened to a request, from the rows that it came of to what stands of it.

Source: specification, section 2, "Corrections", and section 9.
"""

from dataclasses import dataclass

from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.histories import (
    StoredObservation,
    StoredRevision,
    accounts_of_request,
    engine_observations,
    observations_of,
    revisions_of,
)
from ledger.store.kept_apart import KeptApart, kept_apart
from ledger.store.other_ids import requests_by_other_id, spellings
from ledger.store.quarantine import RefusedRow, RowFilter, RowState, each_refused
from ledger.store.unmet import Unmet, unmet_engine
from ledger.workflows.named_account import account_cure
from ledger.workflows.named_request import no_request, several_accounts, several_requests

NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHistory:
    """The revisions of a request in order, the observations that it was formed of, and the refused rows that speak of it. Without
    revisions it is no request yet: its observations or its rows wait. `found_by` is the column of an observation that has the id that was
    asked for, None if that is the request's own; `found_as` is that id as it is stored, without an
    engine's prefix. `apart` tells why its halves are not joined, if both are there and nobody has
    decided about it, `unmet` where an engine's record is that has its ids and was not paired with it."""

    account: str
    request_id: str
    found_by: str | None
    found_as: str
    revisions: tuple[StoredRevision, ...]
    observations: tuple[StoredObservation, ...]
    refused: tuple[RefusedRow, ...]
    apart: KeptApart | None
    unmet: Unmet | None

    @property
    def stands(self) -> StoredRevision | None:
        """The revision that counts; None if the request is withdrawn, or none yet."""
        return self.revisions[-1] if self.revisions and self.revisions[-1].withdrawal is None else None


def explain_request(database: Database, asked_id: str, *, account: str | None) -> RequestHistory:
    """The history of the request of this id; if there is none, of the one that has a row with it. Raises LedgerError if nothing is known
    of it, or several are meant."""
    with database.begin() as connection:
        asked_id, (owner, request_id, found_by) = _first_known(connection, asked_id, account)
        revisions, observations = revisions_of(connection, owner, request_id), observations_of(connection, owner, request_id)
        observations = observations or engine_observations(connection, owner, request_id)
        refused = list(each_refused(connection, RowFilter(account=owner or None, request_id=request_id, state=RowState.ALL)))
        if found_by:  # rows that spoke of it by the id that was asked for; an engine's may say no account
            others = each_refused(connection, RowFilter(request_id=asked_id, state=RowState.ALL))
            refused += [row for row in others if row.account in (None, owner)]
        apart, unmet = kept_apart(connection, owner, request_id), unmet_engine(connection, owner, request_id)
        if not (revisions or observations or refused):
            cure = "check the id and the account; a row whose id cannot be read is found with ledger quarantine list"
            raise no_request(asked_id, account, cure=account_cure(connection, account) or cure)
    return RequestHistory(
        account=owner, request_id=request_id, found_by=found_by, found_as=asked_id,
        revisions=tuple(revisions), observations=tuple(observations), refused=tuple(refused),
        apart=apart if apart is not None and apart.request_id == request_id else None, unmet=unmet,
    )  # fmt: skip


def _first_known(connection: Connection, asked_id: str, account: str | None) -> tuple[str, tuple[str, str, str | None]]:
    """The id under which something is known, and what it means: the one that was asked for, else what an engine has put a prefix before."""
    for one in spellings(asked_id):
        if known := _meant_request(connection, one, account):
            return one, known
    return asked_id, (account or "", asked_id, None)


def _meant_request(connection: Connection, asked_id: str, account: str | None) -> tuple[str, str, str | None] | None:
    """Account ("" if it is not known), id, and by which column it was found if not by its own id: what stands or waits under the id, else
    what has a row with it, else what was refused under it and is resolved. None if there is none of that."""
    accounts = accounts_of_request(connection, asked_id, rows=RowState.OPEN)
    accounts = [one for one in accounts if account in (None, one)]
    if not accounts:
        found = requests_by_other_id(connection, asked_id, account=account, most=NAMED)
        if not found and account is not None:  # an engine may not know it
            found = requests_by_other_id(connection, asked_id, account="", most=NAMED)
        own = [one.account for one in found if one.request_id == asked_id]
        if len(found) == 1 and not own:
            return found[0].account, found[0].request_id, found[0].link
        if found and not own:
            raise several_requests(asked_id, found)
        accounts = [one for one in own if one] or own or accounts_of_request(connection, asked_id, rows=RowState.ALL)
        accounts = [one for one in accounts if account is None or one in (account, "")]
    if len(accounts) > 1:
        raise several_accounts(asked_id, accounts)
    return (accounts[0], asked_id, None) if accounts else None
