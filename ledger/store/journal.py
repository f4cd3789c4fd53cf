"""The journal as it was posted: issued documents with their postings, of a provider and a span of days.

Takes days of issue, gives documents in the order in which they are booked. Source: specification, section 8, "Journal".
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ledger.settlement.journal import Posting
from ledger.store.connection import Connection, fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedDocument:
    """An issued document with what it posts, in order; `version` is the contract's last of its period."""

    tax_id: str
    number_text: str
    contract_id: str
    version: int
    currency: str
    minor_digits: int
    issued_on: date
    postings: tuple[Posting, ...]


def issuing_providers(connection: Connection) -> list[str]:
    """The tax ids of those who have issued a document, in order."""
    return [tax_id for (tax_id,) in fetch(connection, "SELECT DISTINCT tax_id FROM issued_document ORDER BY tax_id")]


def posted_documents(connection: Connection, tax_id: str, first_on: date | None, until_on: date | None) -> Sequence[PostedDocument]:
    """The provider's documents that were issued from `first_on` on and before `until_on` (None: without that end), by day and then as they
    were issued."""
    of_span = {"tax_id": tax_id, "first_on": first_on, "until_on": until_on}
    postings: defaultdict[str, list[Posting]] = defaultdict(list)
    for number_text, account, amount_minor, memo in fetch(
        connection,
        "SELECT number_text, account, amount_minor, memo FROM journal_posting JOIN issued_document USING (tax_id, number_text) "
        "WHERE tax_id = %(tax_id)s AND issued_on <@ daterange(%(first_on)s, %(until_on)s) ORDER BY journal_posting.position",
        of_span,
    ):
        postings[number_text].append(Posting(account=account, amount_minor=int(amount_minor), memo=memo))
    rows = fetch(
        connection,
        "SELECT number_text, content::jsonb ->> 'contract', (content::jsonb ->> 'version')::integer, currency, minor_digits, issued_on "
        "FROM issued_document WHERE tax_id = %(tax_id)s AND issued_on <@ daterange(%(first_on)s, %(until_on)s) "
        "ORDER BY issued_on, position",
        of_span,
    )
    return [
        PostedDocument(
            tax_id=tax_id,
            number_text=number_text,
            contract_id=contract_id,
            version=version,
            currency=currency,
            minor_digits=minor_digits,
            issued_on=issued_on,
            postings=tuple(postings[number_text]),
        )
        for number_text, contract_id, version, currency, minor_digits, issued_on in rows
    ]
