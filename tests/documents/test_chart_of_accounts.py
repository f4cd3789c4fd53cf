"""A chart of accounts names every account that a document can post to, or is refused where it is wrong."""

from pathlib import Path

import pytest

from ledger.documents.chart_of_accounts import Chart, ChartRefused, account_name, chart_account, default_chart, read_chart
from ledger.errors import LedgerError

SOUND = """\
schema: ledger/chart/v1
accounts:
  receivable: 1122 {customer}
  balance: "2203"
  tax: "2221"
  revenue:*: 6001.*
  revenue:cold_*: 6002
  revenue:cold_start: 6003
  true_up: "6004"
  sla_credits: "6005"
  adjustments:*: 6100.*
  credit_notes:*: 6200.*
"""


def read_text(tmp_path: Path, text: str) -> Chart:
    file = tmp_path / "chart.yaml"
    file.write_text(text, "utf-8")
    return read_chart(file)


def name_of(chart: Chart, account: str) -> str:
    return account_name(chart_account(chart, account), account, contract="acme-llm", customer="Acme {contract}*")


@pytest.mark.parametrize(
    ("account", "name"),
    [
        ("receivable", "1122 Acme {contract}*"),
        ("revenue:fast", "6001.fast"),
        ("revenue:cold_storage", "6002"),
        ("revenue:cold_start", "6003"),
        ("adjustments:revenue:fast", "6100.revenue:fast"),
        ("adjustments:sla_credits", "6100.sla_credits"),
        ("credit_notes:true_up", "6200.true_up"),
    ],
)
def test_an_account_has_the_name_of_its_own_line_or_of_the_one_most_like_it(tmp_path: Path, account: str, name: str) -> None:
    assert name_of(read_text(tmp_path, SOUND), account) == name


def test_the_chart_that_ledger_brings_names_every_account() -> None:
    accounts = ["receivable", "balance", "tax", "true_up", "revenue:fast", "adjustments:revenue:fast", "credit_notes:sla_credits"]
    assert [name_of(default_chart(), account) for account in accounts] == [
        "Assets:Receivable:acme-llm",
        "Liabilities:Customer-balance:acme-llm",
        "Liabilities:Tax",
        "Income:Minimum-commitment",
        "Income:Usage:fast",
        "Income:Adjustments:revenue:fast",
        "Income:Credit-notes:sla_credits",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ledger/chart/v1", "v2", "1:9: error chart-schema: found `v2`; expected ledger/chart/v1; write schema: ledger/chart/v1"),
        ("schema:", "scheme:", "1:1: error chart-missing: found no schema; "),
        ("  tax:", "  taxes:", "5:3: error chart-unknown: found `taxes`; expected one of receivable, balance, tax, revenue:*, "),
        ("revenue:cold_*", "rev*enue", "7:3: error chart-unknown: found `rev*enue`; "),
        ("revenue:cold_*", "revenue:", "7:3: error chart-unknown: found `revenue:`; "),
        ('  tax: "2221"\n', "", "3:3: error chart-missing: found no name for tax; expected a name for every account; add tax: NAME"),
        (
            "adjustments:*: 6100.*",
            "adjustments:revenue:*: x",
            "3:3: error chart-missing: found no name for adjustments:true_up, adjustments:sla_credits; "
            "expected a name for every account; add adjustments:true_up: NAME; add adjustments:sla_credits: NAME",
        ),
        ('tax: "2221"', "tax: 22*", "5:8: error chart-value: found `22*`; expected a name without *; remove the *: nothing varies in tax"),
        ("{customer}", "{client}", "3:15: error chart-value: found `1122 {client}`; expected no braces but those of {contract} and "),
        ('tax: "2221"', 'tax: " "', "5:8: error chart-value: found ` `; expected the name of an account; write it on one line"),
        ('tax: "2221"', "tax: [a]", "5:8: error chart-value: found a list; "),
        ('tax: "2221"', "tax:", "5:7: error empty_value: found nothing; expected a value; write the value"),
        ('  balance: "2203"', "  tax: 1", "5:3: error duplicate_key: "),
        ('tax: "2221"', "tax: &a 1", "5:8: error anchor: "),
    ],
)
def test_a_chart_that_is_wrong_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SOUND
    with pytest.raises(ChartRefused) as refused:
        read_text(tmp_path, SOUND.replace(old, new, 1))
    assert f"{tmp_path}/chart.yaml:{message}" in refused.value.message


@pytest.mark.parametrize("text", ["", "a", "- a", "accounts: {a: b}", "schema: ledger/chart/v1", "a: [", "\ufeffa: b", "a:\n\tb: c"])
def test_no_file_that_is_no_chart_ends_otherwise_than_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ChartRefused) as refused:
        read_text(tmp_path, text)
    assert refused.value.message.startswith(f"{tmp_path}/chart.yaml") and "contract" not in refused.value.message.replace("{contract}", "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"none\.yaml: No such file or directory"):
        read_chart(tmp_path / "none.yaml")
