"""The journal as CSV: debits and credits that add up, names as they are, and no formula that a spreadsheet runs."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest

from ledger.documents.chart_of_accounts import Chart, default_chart, read_chart
from ledger.documents.journal_csv import write_journal_csv
from ledger.settlement.journal import JournalEntry
from ledger.spreadsheet import restored
from tests.documents.journal_entries import entry


def csv_text(*entries: JournalEntry, chart: Chart | None = None) -> str:
    stream = io.StringIO()
    write_journal_csv(entries, chart or default_chart(), stream)
    return stream.getvalue()


def test_a_posting_is_a_row_with_a_debit_or_a_credit() -> None:
    invoice = entry(("receivable", 3708_26), ("revenue:fast", -3498_36), ("tax", -209_90))
    assert csv_text(invoice).splitlines() == [
        "date,number,contract,customer,currency,account,debit,credit,memo,symbol",
        "2026-06-03,INV-2026-000001,acme-bank-llm,Acme Bank,CNY,Assets:Receivable:acme-bank-llm,3708.26,,2026-05,receivable",
        "2026-06-03,INV-2026-000001,acme-bank-llm,Acme Bank,CNY,Income:Usage:fast,,3498.36,2026-05,revenue:fast",
        "2026-06-03,INV-2026-000001,acme-bank-llm,Acme Bank,CNY,Liabilities:Tax,,209.90,2026-05,tax",
    ]


def test_a_document_that_posts_nothing_has_no_row() -> None:
    assert csv_text(entry()).splitlines() == ["date,number,contract,customer,currency,account,debit,credit,memo,symbol"]


@pytest.mark.parametrize(("currency", "digits", "amount"), [("JPY", 0, "1234567"), ("CNY", 2, "12345.67"), ("KWD", 3, "1234.567")])
def test_amounts_have_the_digits_of_their_currency(currency: str, digits: int, amount: str) -> None:
    text = csv_text(entry(("receivable", 1_234_567), ("revenue:fast", -1_234_567), currency=currency, minor_digits=digits))
    debit, credit = csv.DictReader(io.StringIO(text))
    assert (debit["debit"], debit["credit"], credit["debit"], credit["credit"]) == (amount, "", "", amount)


def test_a_formula_in_a_name_is_text_and_the_name_comes_back(tmp_path: Path) -> None:
    hostile = '=HYPERLINK("https://example.com";"x")'
    chart = tmp_path / "chart.yaml"
    chart.write_text("schema: ledger/chart/v1\naccounts:\n  r*: '@{customer}'\n  b*: b\n  t*: t\n  s*: s\n  a*: '*'\n  c*: c\n", "utf-8")
    text = csv_text(
        entry(("receivable", 12_34), ("revenue:fast", -12_34), customer=hostile, number="+1", contract="@x"), chart=read_chart(chart)
    )
    for row in csv.DictReader(io.StringIO(text)):
        assert [row[name] for name in ("number", "contract", "customer", "account")] == ["'+1", "'@x", f"'{hostile}", f"'@{hostile}"]
        assert restored(row["customer"]) == hostile
        assert Decimal(row["debit"] or row["credit"]) == Decimal("12.34")
