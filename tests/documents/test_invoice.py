"""The invoice: complete, self-contained, in plain words, and deaf to hostile names."""

import html
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from ledger.documents.invoice import invoice_html
from ledger.settlement.statement import Statement
from tests.documents.statements import build_statement, read_case


def renamed(statement: Statement, **names: object) -> Statement:
    """The statement with another customer."""
    parties = statement.contract.parties
    customer = parties.customer.model_copy(update=names)
    contract = statement.contract.model_copy(update={"parties": parties.model_copy(update={"customer": customer})})
    return replace(statement, contract=contract, contracts=statement.contracts | {contract.version: contract})


def words_of(page: str) -> str:
    """The visible text of a page, blanks folded."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split())).replace("\xa0", " ")


def test_every_line_of_every_case_is_on_its_invoice(cases: Path) -> None:
    shown = 0
    for folder in sorted(path for path in cases.iterdir() if path.is_dir()):
        expected, contracts = read_case(folder)
        text = words_of(invoice_html(build_statement(expected, contracts)))
        for line in expected["lines"]:
            if line["kind"] in ("usage", "credit"):
                row = f"{line['quantity']:,} {line['rate']} × {line['multiplier']} {Decimal(line['amount']):,f}"
                assert row in text, (folder.name, line)
        assert f"{expected['windows']['breached']:,}" in text
        shown += 1
    assert shown >= 46


def test_a_band_is_told_in_words_with_its_clause(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "edges"))))
    for words in (
        "fast: below 100 ms at × 2 clause 3.2",
        "standard: 100 ms to 300 ms clause 3.2",
        "slow: above 300 ms at 30%; vip queue × 3 clause 3.2, 5.2",
        "async: input over 16,000 tokens, answered asynchronously clause 3.1",
        "fast: below 100 ms at × 2; vip queue, wait not within 500 ms: its price factor is waived clause 3.2, 5.2",
        "fast: below 100 ms at × 2; reduced variant deepseek-moe-4bit: never above × 1 clause 3.2",
        "late requests: 2 × their tokens, at the base rate clause 3.2",
    ):
        assert words in text


def test_a_price_of_an_exemption_or_of_another_measure_is_told_too(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "unusual-multipliers"))))
    assert "async: input at least 16,000 tokens, answered asynchronously, at 80%; batch queue clause 3.1" in text
    assert "no latency: nobody measured it, at × 1.2; gold queue, wait not within 10 ms: its price factor is waived clause 3.2, 5.2" in text
    assert "measured end to end in the standard, vip and gold queues, by inference time in the batch queue." in text


def test_the_promise_and_what_became_of_it_are_told(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "month-charged-rate-cap"))))
    assert (
        "In every hour, 99% of the requests to each model in the standard and vip queues are answered within 300 ms, measured end to end."
        in text
    )
    assert "Mon 4 May, 11:00–12:00 deepseek-v4 130 33 1,023.674 Credited beyond 120% of the target 3.2" in text
    assert "Thu 21 May, 17:00–18:00 deepseek-v4 130 3 330.086 Forgiven within the error budget 3.2" in text
    assert "for no. 1–3 of the missed hours" in text


@pytest.mark.parametrize(
    "name",
    [
        '<img src="http://169.254.169.254/x">',
        "file:///etc/passwd",
        '"><script>alert(1)</script>',
        "{{ 7 * 7 }}",
        "=HYPERLINK(1)",
        "</style><b>",
    ],
)
def test_a_hostile_name_is_printed_literally(cases: Path, name: str) -> None:
    statement = build_statement(*read_case(cases / "edges"))
    page = invoice_html(renamed(statement, name=name, address=(name,), accounts=(name,)))
    assert page.count("<") == invoice_html(renamed(statement, name="n", address=("n",), accounts=("n",))).count("<")
    assert words_of(page).count(name) >= 3


def test_a_name_cannot_turn_the_direction_of_the_text(cases: Path) -> None:
    page = invoice_html(renamed(build_statement(*read_case(cases / "edges")), name="Acme\u202ednuf"))
    assert "\u202e" not in page and "Acme\\u202ednuf" in page


def test_the_page_loads_nothing_and_forbids_itself_to(cases: Path) -> None:
    page = invoice_html(build_statement(*read_case(cases / "edges")))
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img|src=|href=", page)


def test_a_month_without_requests_says_so(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "no-traffic"), state="provisional")))
    assert "No requests were received in this period." in text
    assert "No data: without requests there is nothing to judge." in text
    assert "PROVISIONAL" in text and "Amount due 0.00" in text
    assert "nan" not in text.lower() and "kept throughout" not in text


def test_a_negative_total_makes_a_credit_note_that_shows_no_negative_amount_due(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "credit-exceeds-charge"))))
    assert "Credit note" in text and "Set off against your next invoice." in text
    assert re.search(r"In your favour CNY [\d.]+ ", text)
    assert "Amount due 0.00" in text


@pytest.mark.parametrize(("case", "amount"), [("money-jpy", "JPY 1,295"), ("money-kwd", "KWD 1,295.453")])
def test_amounts_have_the_digits_of_their_currency(cases: Path, case: str, amount: str) -> None:
    assert f"Amount due {amount} For review" in words_of(invoice_html(build_statement(*read_case(cases / case))))


def test_a_changing_clock_is_shown_with_the_offset_of_each_window(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "clocks-back-paris"))))
    assert "Europe/Paris, UTC+02:00 and UTC+01:00" in text
    assert "Sat 24 Oct, 04:00–06:00 (UTC+02:00)" in text


def test_a_true_up_and_a_cap_are_explained(cases: Path) -> None:
    text = words_of(invoice_html(build_statement(*read_case(cases / "cap-reached"))))
    assert "Limit: credits are limited to 33.3% of the period's charges clause 3.2 250.05" in text
    assert "Difference to the minimum commitment of 1,000.00 a month 850.00" in text


def test_only_a_test_database_says_test(cases: Path) -> None:
    case = read_case(cases / "edges")
    assert "TEST From a test database." in words_of(invoice_html(build_statement(*case, is_test=True)))
    assert "From a test database" not in words_of(invoice_html(build_statement(*case)))


def test_the_same_statement_gives_the_same_bytes(cases: Path) -> None:
    statement = build_statement(*read_case(cases / "edges"))
    assert invoice_html(statement) == invoice_html(statement)
