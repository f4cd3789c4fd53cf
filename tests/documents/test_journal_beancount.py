"""The journal as a beancount file: beancount's own check finds nothing in it, and its sums are the postings."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from beancount import loader
from beancount.core import data
from hypothesis import given
from hypothesis import strategies as st

from ledger.documents.chart_of_accounts import Chart, ChartRefused, default_chart, read_chart
from ledger.documents.journal_beancount import beancount_text
from ledger.settlement.journal import JournalEntry, Posting, statement_postings
from ledger.settlement.statement import Statement
from tests.documents.journal_entries import entry
from tests.documents.statements import build_statement, read_case, read_months


def checked(entries: list[JournalEntry], chart: Chart | None = None) -> tuple[list[data.Open], list[data.Transaction]]:
    """What beancount reads of the file: accounts and transactions. It must find no error."""
    directives, errors, _ = loader.load_string(beancount_text(entries, chart or default_chart()))
    assert [error.message for error in errors] == []
    opened = [directive for directive in directives if isinstance(directive, data.Open)]
    return opened, [directive for directive in directives if isinstance(directive, data.Transaction)]


def entry_of(statement: Statement, number: int) -> JournalEntry:
    contract = statement.contract
    return entry(
        booked_on=date(2026, 8, 1),
        number=f"INV-2026-{number:06}",
        contract=contract.id,
        customer=contract.parties.customer.name,
        currency=contract.money.currency,
        minor_digits=statement.minor_digits,
        postings=statement_postings(statement),
    )


def test_bean_check_finds_nothing_in_the_journal_of_all_cases(shared: Path, tmp_path: Path) -> None:
    cases = sorted(path.parent for path in (shared / "cases").glob("*/expected.json"))
    months = [month for path in sorted((shared / "cases-months").glob("*/expected.json")) for month in read_months(path.parent)]
    statements = [*(build_statement(*read_case(folder)) for folder in cases), *months]
    assert len(statements) >= 46 + 6
    entries = [entry_of(statement, number) for number, statement in enumerate(statements, 1)]
    file = tmp_path / "journal.beancount"
    file.write_text(beancount_text(entries, default_chart()), "utf-8")
    result = subprocess.run([Path(sys.executable).with_name("bean-check"), file], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    opened, transactions = checked(entries)
    assert len(transactions) == len(statements)
    for transaction, posted in zip(transactions, entries, strict=True):
        amounts = [posting.units.number.scaleb(posted.minor_digits) for posting in transaction.postings]
        assert amounts == [posting.amount_minor for posting in posted.postings]
    sums: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for transaction in transactions:
        for posting in transaction.postings:
            sums[posting.account, posting.units.currency] += posting.units.number
    due = {currency: Decimal(0) for currency in ("CNY", "JPY", "KWD")}
    for statement in statements:
        if (currency := statement.contract.money.currency) in due:
            due[currency] += Decimal(statement.totals.due).scaleb(-statement.minor_digits)
    for currency, amount in due.items():
        assert sum(units for (account, of), units in sums.items() if account.startswith("Assets:") and of == currency) == amount > 0
    assert {account.account for account in opened} == {account for account, _ in sums}


def test_a_document_is_a_transaction_that_says_what_it_was() -> None:
    invoice = entry(("receivable", 3708_26), ("revenue:cold_start", -3498_36), ("tax", -209_90))
    assert (
        beancount_text([invoice], default_chart())
        == """\
2026-06-03 open Assets:Receivable:Acme-bank-llm CNY
  name: "Assets:Receivable:acme-bank-llm"

2026-06-03 open Income:Usage:Cold-start CNY
  name: "Income:Usage:cold_start"

2026-06-03 open Liabilities:Tax CNY

2026-06-03 * "Acme Bank" "INV-2026-000001"
  number: "INV-2026-000001"
  contract: "acme-bank-llm"
  Assets:Receivable:Acme-bank-llm  3708.26 CNY
    symbol: "receivable"
    memo: "2026-05"
  Income:Usage:Cold-start  -3498.36 CNY
    symbol: "revenue:cold_start"
    memo: "2026-05"
  Liabilities:Tax  -209.90 CNY
    symbol: "tax"
    memo: "2026-05"
"""
    )


@pytest.mark.parametrize(("currency", "digits", "amount"), [("JPY", 0, "1234567"), ("CNY", 2, "12345.67"), ("KWD", 3, "1234.567")])
def test_amounts_have_the_digits_of_their_currency(currency: str, digits: int, amount: str) -> None:
    invoice = entry(("receivable", 1_234_567), ("revenue:fast", -1_234_567), currency=currency, minor_digits=digits)
    assert f"  {amount} {currency}\n" in beancount_text([invoice], default_chart())
    assert checked([invoice])[1][0].postings[1].units.number == -Decimal(amount)


def test_an_account_is_opened_once_on_its_first_day_with_all_its_currencies() -> None:
    later = entry(("receivable", 1), ("tax", -1), booked_on=date(2026, 7, 1))
    earlier = entry(("receivable", 1), ("tax", -1), currency="USD", number="INV-2")
    opened, _ = checked([later, earlier])
    assert [(account.account, account.date, account.currencies) for account in opened] == [
        ("Assets:Receivable:Acme-bank-llm", date(2026, 6, 3), ["CNY", "USD"]),
        ("Liabilities:Tax", date(2026, 6, 3), ["CNY", "USD"]),
    ]


def test_the_accounts_of_another_file_are_not_opened_again() -> None:
    text = beancount_text([entry(("receivable", 1), ("tax", -1))], default_chart(), is_opening=False)
    assert text.startswith('2026-06-03 * "Acme Bank"')


def test_a_document_that_posts_nothing_is_there_without_postings() -> None:
    opened, transactions = checked([entry(number="INV-2026-000007")])
    assert opened == [] and [(found.narration, found.postings) for found in transactions] == [("INV-2026-000007", [])]


def test_chinese_names_stay_readable_and_hostile_ones_are_only_text() -> None:
    invoice = entry(("receivable", 1), ("revenue:快速", -1), customer='北京"银行"\\ \u202e', number="发票-1", contract="c.1")
    opened, (transaction,) = checked([invoice])
    assert [account.account for account in opened] == ["Assets:Receivable:C-1", "Income:Usage:X快速"]
    assert [account.meta["name"] for account in opened] == ["Assets:Receivable:c.1", "Income:Usage:快速"]
    assert (transaction.payee, transaction.narration) == ('北京"银行"\\ \\u202e', "发票-1")
    assert [posting.meta["symbol"] for posting in transaction.postings] == ["receivable", "revenue:快速"]


@given(band=st.text(min_size=1, max_size=8), customer=st.text(max_size=8), memo=st.text(max_size=8))
def test_any_name_gives_a_file_that_beancount_reads(band: str, customer: str, memo: str) -> None:
    postings = (Posting(account="receivable", amount_minor=1, memo=memo), Posting(account=f"revenue:{band}", amount_minor=-1, memo=memo))
    _, (transaction,) = checked([entry(postings=postings, customer=customer, number=band, contract=band)])
    assert [posting.units.number for posting in transaction.postings] == [Decimal("0.01"), Decimal("-0.01")]


def chart_of(tmp_path: Path, receivable: str, revenue: str = "Income:Usage:*") -> Chart:
    file = tmp_path / "chart.yaml"
    names = {"receivable": receivable, "revenue:*": revenue, "balance": "L:B", "tax": "L:T", "true_up": "I:T", "sla_credits": "I:S"}
    lines = [f"  {symbol}: {name}\n" for symbol, name in (names | {"adjustments:*": "I:A", "credit_notes:*": "I:C"}).items()]
    file.write_text("".join(["schema: ledger/chart/v1\naccounts:\n", *lines]), "utf-8")
    return read_chart(file)


@pytest.mark.parametrize("receivable", ["'1122'", "Debitoren:Acme", "Assets"])
def test_a_name_under_none_of_the_five_accounts_is_refused_at_its_place_in_the_chart(tmp_path: Path, receivable: str) -> None:
    with pytest.raises(ChartRefused) as refused:
        beancount_text([entry(("receivable", 1), ("revenue:fast", -1))], chart_of(tmp_path, receivable))
    assert str(refused.value.message) == (
        f"{tmp_path}/chart.yaml:3:15: error chart-name: found `{receivable.strip(chr(39))}`; "
        "expected an account below Assets, Liabilities, Equity, Income, Expenses; begin it with Income: or another of these"
    )


ALIKE: list[tuple[str, Callable[[str], JournalEntry], str]] = [
    ("contracts", lambda name: entry(("receivable", 1), ("revenue:fast", -1), contract=f"acme{name}bank"), "{contract}"),
    ("customers", lambda name: entry(("receivable", 1), ("revenue:fast", -1), customer=f"acme{name}bank"), "{customer}"),
    ("bands", lambda name: entry(("receivable", 1), (f"revenue:acme{name}bank", -1)), "All"),
]


@pytest.mark.parametrize(("entry_named", "varying"), [case[1:] for case in ALIKE], ids=[case[0] for case in ALIKE])
def test_two_accounts_that_beancount_would_call_the_same_are_not_made_one(
    tmp_path: Path, entry_named: Callable[[str], JournalEntry], varying: str
) -> None:
    with pytest.raises(ChartRefused, match=r"which beancount would both call .*Acme-bank"):
        beancount_text([entry_named("."), entry_named("_")], chart_of(tmp_path, f"Assets:Receivable:{varying}"))


def test_accounts_that_the_chart_calls_the_same_are_one(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, "Assets:Receivable", "Income:Usage fees")
    opened, _ = checked([entry(("receivable", 2), ("revenue:a.b", -1), ("revenue:a_b", -1))], chart)
    assert [(account.account, account.meta.get("name")) for account in opened] == [
        ("Assets:Receivable", None),
        ("Income:Usage-fees", "Income:Usage fees"),
    ]
