"""The postings of a document as JSON, for its seal: plain dicts in the order of the postings, exact amounts as text.

Takes postings, gives what `settlement_json.canonical_bytes` takes. Source: specification, section 8, "Reproducible".
"""

from collections.abc import Iterable

from ledger.documents.number import amount_text
from ledger.settlement.journal import Posting


def postings_to_json(postings: Iterable[Posting], minor_digits: int) -> list[dict[str, str]]:
    """One object for each posting; a debit is positive, a credit negative. Empty without postings."""
    return [
        {"account": posting.account, "amount": amount_text(posting.amount_minor, minor_digits), "memo": posting.memo}
        for posting in postings
    ]
