"""The page of a credit on demand: it names the document and the line that it corrects, and prints what people wrote literally."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ledger.documents.credit_note import CreditNote, credit_note_html, credit_note_to_json
from ledger.documents.invoice import Issue
from ledger.settlement.partial_credit import LineCredit
from tests.documents.statements import build_statement, read_case
from tests.settlement.lines import adjustment, usage

ISSUE = Issue(number="CN-2026-000001", issued_on=date(2026, 6, 4), seal="c" * 64, previous_seal="b" * 64)


@pytest.fixture
def note(cases: Path) -> CreditNote:
    """12 cents and tax of 1 of a line of 5.00, in a contract with a tax of 6 %."""
    contract = build_statement(*read_case(cases / "edges")).contract
    return CreditNote(
        contract=contract,
        content_sha256="a" * 64,
        period="2026-05",
        invoice="INV-2026-000007",
        invoice_issued_on=date(2026, 6, 3),
        line=usage(5_00),
        credit=LineCredit(position=3, tokens=24, net_minor=12, tax_minor=1),
        reason="as agreed",
        minor_digits=2,
        is_test=False,
    )


def test_the_page_names_the_document_the_line_and_the_reason_and_adds_up(note: CreditNote) -> None:
    page = credit_note_html(note, ISSUE)
    for words in ("INV-2026-000007, line 3", "issued 3 June 2026", "as agreed", "CNY\xa00.13", "VAT", "6%", "5.00", "0.12", "0.01", "24"):
        assert words in page, words
    assert "TEST</strong>" not in page and "TEST</strong>" in credit_note_html(replace(note, is_test=True), ISSUE)


def test_what_people_wrote_is_printed_literally(note: CreditNote) -> None:
    page = credit_note_html(replace(note, reason="<script>alert(1)</script>\u202e", line=usage(5_00, model="<b>")), ISSUE)
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page and "&lt;b&gt;" in page and "\u202e" not in page


def test_a_credit_of_an_adjustment_says_which_document_that_adjusts(note: CreditNote) -> None:
    page = credit_note_html(replace(note, line=adjustment(usage(5_00), "2026-04")), ISSUE)
    assert "adjustment of usage, INV-2026-04" in page and "6%" not in page


def test_the_json_has_exact_amounts_as_text_and_the_line_as_it_was_issued(note: CreditNote) -> None:
    found = credit_note_to_json(note, "CN-2026-000001", date(2026, 6, 4))
    assert found["credit"] == {"net": "0.12", "tax": "0.01", "total": "0.13"}
    assert (found["line"]["position"], found["line"]["amount"], found["tokens"]) == (3, "5.00", 24)
