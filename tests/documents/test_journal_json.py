"""The postings of a document as what its seal is over."""

from ledger.documents.journal_json import postings_to_json
from ledger.documents.settlement_json import canonical_bytes
from tests.documents.journal_entries import entry


def test_the_seal_has_each_posting_in_order_with_its_exact_amount() -> None:
    postings = entry(("receivable", 1_060), ("revenue:fast", -1_000), ("tax", -60)).postings
    assert canonical_bytes({"journal": postings_to_json(postings, 3)}) == (
        b'{"journal":[{"account":"receivable","amount":"1.060","memo":"2026-05"},'
        b'{"account":"revenue:fast","amount":"-1.000","memo":"2026-05"},{"account":"tax","amount":"-0.060","memo":"2026-05"}]}'
    )
