"""The journal for bookkeepers: the entries of what a provider has issued, for accounting software.

Takes days of issue, gives entries. A document stands in the journal on the day of its issue alone, so that who takes over month after month
misses none and has none twice. Source: specification, section 8, "Journal"; decision record journal.
"""

from collections.abc import Sequence
from datetime import date

from ledger.errors import LedgerError
from ledger.settlement.calendar import month_days
from ledger.settlement.journal import JournalEntry
from ledger.store.connection import Connection
from ledger.store.contracts import stored_versions
from ledger.store.database import Database
from ledger.store.journal import issuing_providers, posted_documents


def journal_entries(
    database: Database, *, from_month: str | None = None, until_month: str | None = None, tax_id: str | None = None
) -> Sequence[JournalEntry]:
    """The entries of the documents that were issued from the first month to the last, both among them, in order; without an end where none
    is given. Raises LedgerError if several providers have issued and none is named, or the one that is named has not."""
    first_on = None if from_month is None else month_days(from_month)[0]
    until_on = None if until_month is None else month_days(until_month)[1]
    with database.begin() as connection:
        provider = _provider(connection, tax_id)
        return [] if provider is None else _entries(connection, provider, first_on, until_on)


def _provider(connection: Connection, tax_id: str | None) -> str | None:
    """The provider whose journal it is; None if nobody has issued anything. Providers are companies, each with books of its own."""
    known = issuing_providers(connection)
    if tax_id is not None and tax_id not in known:
        cure = f"those that have are {', '.join(known)}" if known else "close a month first: ledger close MONTH"
        raise LedgerError(f"provider {tax_id} has issued nothing", cure=cure)
    if tax_id is None and len(known) > 1:
        cure = f"say whose it is: {' or '.join(f'--provider {one}' for one in known)}"
        raise LedgerError("there is a journal for each of several providers", cure=cure, exit_code=2)
    return tax_id or next(iter(known), None)


def _entries(connection: Connection, tax_id: str, first_on: date | None, until_on: date | None) -> list[JournalEntry]:
    documents = posted_documents(connection, tax_id, first_on, until_on)
    versions = stored_versions(connection, {document.contract_id for document in documents})
    customers = {(one.contract.id, one.contract.version): one.contract.parties.customer.name for one in versions}
    return [
        JournalEntry(
            booked_on=document.issued_on,
            number=document.number_text,
            contract=document.contract_id,
            customer=customers[document.contract_id, document.version],
            currency=document.currency,
            minor_digits=document.minor_digits,
            postings=document.postings,
        )
        for document in documents
    ]
