"""Explain: all that has happened to a request, from the rows that it came of to what stands of it.

Source: specification, section 2, "Corrections", and section 9.
"""

from dataclasses import dataclass

from ledger.store.database import Database
from ledger.store.histories import (
    StoredObservation,
    StoredRevision,
    accounts_of_request,
    engine_observations,
    observations_of,
    revisions_of,
)
from ledger.store.quarantine import RefusedRow, RowFilter, RowState, each_refused
from ledger.workflows.named_request import no_request, several_accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHistory:
    """The revisions of a request in order, the observations that it was formed of, and the refused rows that speak of it. Without
    revisions it is no request yet: its observations or its rows wait."""

    account: str
    request_id: str
    revisions: tuple[StoredRevision, ...]
    observations: tuple[StoredObservation, ...]
    refused: tuple[RefusedRow, ...]

    @property
    def stands(self) -> StoredRevision | None:
        """The revision that counts; None if the request is withdrawn, or none yet."""
        return self.revisions[-1] if self.revisions and self.revisions[-1].withdrawal is None else None


def explain_request(database: Database, request_id: str, *, account: str | None) -> RequestHistory:
    """The history of the request. Raises LedgerError if nothing is known of it, or more than one account has it."""
    with database.begin() as connection:
        accounts = [account] if account is not None else accounts_of_request(connection, request_id)
        if len(accounts) > 1:
            raise several_accounts(request_id, accounts)
        owner = accounts[0] if accounts else ""
        revisions, observations = revisions_of(connection, owner, request_id), observations_of(connection, owner, request_id)
        refused = list(each_refused(connection, RowFilter(account=owner or None, request_id=request_id, state=RowState.ALL)))
        observations = observations or engine_observations(connection, owner, request_id)
    if not (revisions or observations or refused):
        cure = "check the id and the account; a row whose id cannot be read is found with ledger quarantine list"
        raise no_request(request_id, account, cure=cure)
    return RequestHistory(
        account=owner, request_id=request_id, revisions=tuple(revisions), observations=tuple(observations), refused=tuple(refused)
    )
