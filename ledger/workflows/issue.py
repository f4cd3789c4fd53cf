"""What every issued document gets, whatever it is: the next number, its place in the provider's chain, its seal and its files.

Takes a transaction that nobody else issues in, and what the document says; gives the document, not yet kept. Source: specification,
section 8; decision record issued-documents.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from ledger.contract.model import Contract
from ledger.documents.invoice import Issue
from ledger.documents.journal_json import postings_to_json
from ledger.documents.seal import sealed_bytes
from ledger.documents.settlement_json import canonical_bytes
from ledger.fault_point import fault_point
from ledger.settlement.calendar import zone
from ledger.settlement.journal import Posting
from ledger.settlement.numbering import Series, number_text
from ledger.store.closings import IssuedDocument, chain_head, issued_file, next_number
from ledger.store.connection import Connection
from ledger.store.numbering import numbering_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A place that a document takes: the number of its series and year, as it is printed, and its position after the seal before it."""

    tax_id: str
    series: Series
    number: int
    text: str
    issued_on: date
    position: int
    previous_seal: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What a document says: JSON, the hash of each contract version that it follows from, what it posts, and its total in minor units,
    below 0 in the customer's favour. `name` is that of its files; `lines` are its lines as CSV, if it has any."""

    name: str
    content: Mapping[str, Any]
    contract_hashes: Mapping[int, str]
    postings: Sequence[Posting]
    total_minor: int
    minor_digits: int
    lines: bytes | None = None


def take_number(connection: Connection, contract: Contract, series: Series, now: datetime) -> Numbered:
    """The next number of the contract's provider, on the local day. It is given again if the transaction is undone."""
    tax_id, issued_on = contract.parties.provider.tax_id, now.astimezone(zone(contract.calendar.timezone)).date()
    number = next_number(connection, tax_id, series, issued_on.year)
    fault_point("close.after_number")
    position, previous_seal = chain_head(connection, tax_id) or (0, None)
    return Numbered(
        tax_id=tax_id,
        series=series,
        number=number,
        text=number_text(numbering_format(connection, tax_id, series), issued_on.year, number),
        issued_on=issued_on,
        position=position + 1,
        previous_seal=previous_seal,
    )


def sealed_document(
    numbered: Numbered, issued: Issued, contract: Contract, now: datetime, author: str, html: Callable[[Issue], str]
) -> IssuedDocument:
    """The document with its seal, and its files: the page that `html` makes, which shows number and seal, the JSON, and the lines."""
    sealed = sealed_bytes(
        previous_seal=numbered.previous_seal,
        tax_id=numbered.tax_id,
        number=numbered.text,
        settlement=issued.content,
        journal=postings_to_json(issued.postings, issued.minor_digits),
        contract_hashes=issued.contract_hashes,
    )
    content = canonical_bytes(issued.content)
    seal, name = sha256(sealed).hexdigest(), quote(issued.name, safe="")
    issue = Issue(number=numbered.text, issued_on=numbered.issued_on, seal=seal, previous_seal=numbered.previous_seal)
    contents = {"html": html(issue).encode(), "json": content} | ({} if issued.lines is None else {"csv": issued.lines})
    return IssuedDocument(
        tax_id=numbered.tax_id,
        series=numbered.series,
        year=numbered.issued_on.year,
        number=numbered.number,
        number_text=numbered.text,
        position=numbered.position,
        currency=contract.money.currency,
        minor_digits=issued.minor_digits,
        total_minor=issued.total_minor,
        issued_at=now,
        issued_on=numbered.issued_on,
        author=author,
        content=content.decode(),
        previous_seal=numbered.previous_seal,
        seal=seal,
        sealed=sealed,
        postings=tuple(issued.postings),
        files=tuple(issued_file(f"{name}.{ending}", written) for ending, written in contents.items()),
    )
