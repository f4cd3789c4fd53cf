"""The journal exported: that of every case balances and passes bean-check; a document stands in the month of its issue alone."""

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from beancount import loader
from beancount.core import data

from tests.cases import NAMES, NOW, CaseMissing, read_case
from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, request, write_contract, write_events
from tests.workflows.issued_months import close_month, close_months, done, load_months


@pytest.mark.parametrize("name", NAMES)
def test_the_journal_of_every_case_balances_and_beancount_finds_nothing_in_it(name: str, run_ledger: RunLedger, tmp_path: Path) -> None:
    try:
        case = read_case(name)
    except CaseMissing as missing:
        pytest.skip(str(missing))
    done(run_ledger("contract", "add", *case.contract_files))
    if case.intervals:
        done(run_ledger("interval", "add", case.folder / "intervals.csv"))
    done(run_ledger("ingest", case.folder / "events.csv"))
    options = ("--output", tmp_path / "out")
    done(run_ledger("settle", case.period, *options, now=NOW))
    [issued] = json.loads(done(run_ledger("close", case.period, "--yes", "--format", "json", *options, now=NOW)).stdout)
    file = tmp_path / "journal.beancount"
    done(run_ledger("journal", "export", "--to", "beancount", "--output", file))

    checked = subprocess.run([Path(sys.executable).with_name("bean-check"), file], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    [entry] = [one for one in loader.load_file(str(file))[0] if isinstance(one, data.Transaction)]
    amounts = [posting.units.number for posting in entry.postings]
    assert sum(amounts) == 0
    by_symbol = {posting.meta["symbol"]: posting.units.number for posting in entry.postings}
    assert by_symbol.get("receivable", 0) == Decimal(issued["totals"]["due"])
    assert by_symbol.get("tax", 0) == -Decimal(issued["totals"]["tax"])
    rows = list(csv.DictReader(io.StringIO(done(run_ledger("journal", "export", "--to", "csv")).stdout)))
    assert [Decimal(row["debit"] or 0) - Decimal(row["credit"] or 0) for row in rows] == amounts


def test_the_journal_as_a_table_by_value(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_months(run_ledger, tmp_path, ["2026-05"])
    result = done(run_ledger("journal", "export", "--to", "csv"))
    common = "2026-06-03,INV-2026-000001,acme-bank-llm,Acme Bank Co.,CNY"
    assert result.stdout.splitlines() == [
        "date,number,contract,customer,currency,account,debit,credit,memo,symbol",
        f"{common},Assets:Receivable:acme-bank-llm,212.42,,due for 2026-05,receivable",
        f"{common},Income:Usage:standard,,200.40,2026-05,revenue:standard",
        f"{common},Liabilities:Tax,,12.02,VAT,tax",
    ]
    assert result.stderr == "1 document\n"


def test_a_document_stands_in_the_month_of_its_issue_alone(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_months(run_ledger, tmp_path)

    def numbers(*options: str) -> list[str]:
        rows = list(csv.DictReader(io.StringIO(done(run_ledger("journal", "export", "--to", "csv", *options)).stdout)))
        return list(dict.fromkeys(row["number"] for row in rows))

    june, july, august = (f"INV-2026-00000{number}" for number in (1, 2, 3))
    assert numbers() == [june, july, august]
    assert numbers("2026-06") == [june]
    assert numbers("--from", "2026-07") == [july, august]
    assert numbers("--until", "2026-07") == [june, july]
    assert numbers("--from", "2026-07", "--until", "2026-07") == [july]
    nothing = done(run_ledger("journal", "export", "--to", "csv", "2026-05"))
    assert "0 documents\na document stands in the month in which it was issued" in nothing.stderr


def test_each_provider_has_a_journal_of_its_own(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    changes = (*OTHER, ("tax_id: 91110000TEST000001", "tax_id: ELSEWHERE"))
    done(run_ledger("contract", "add", write_contract(tmp_path, *changes, name="other.yaml")))
    done(run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-15T10:00:00+08:00", account="other-account")], "other.csv")))
    close_month(run_ledger, tmp_path, "2026-05")
    refused = run_ledger("journal", "export", "--to", "csv")
    assert refused.exit_code == 2
    assert refused.stderr.endswith("several providers\n  say whose it is: --provider 91110000TEST000001 or --provider ELSEWHERE\n")
    rows = list(csv.DictReader(io.StringIO(done(run_ledger("journal", "export", "--to", "csv", "--provider", "ELSEWHERE")).stdout)))
    assert {(row["number"], row["contract"]) for row in rows} == {("INV-2026-000001", "other")}
    unknown = run_ledger("journal", "export", "--to", "csv", "--provider", "nobody")
    assert (unknown.exit_code, unknown.stderr.splitlines()[0]) == (1, "error: provider nobody has issued nothing")


def test_accounts_are_called_as_a_chart_says_that_began_with_the_printed_one(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_months(run_ledger, tmp_path, ["2026-05"])
    chart = tmp_path / "accounts.yaml"
    chart.write_text(done(run_ledger("journal", "chart")).stdout.replace("Assets:Receivable:{contract}", "Assets:1200"))
    text = done(run_ledger("journal", "export", "--to", "beancount", "--chart", chart)).stdout
    assert "2026-06-03 open Assets:1200 CNY\n" in text and "  Assets:1200  212.42 CNY\n" in text
    later = done(run_ledger("journal", "export", "--to", "beancount", "--chart", chart, "--no-open")).stdout
    assert text.endswith(later) and " open " not in later
    chart.write_text(chart.read_text().replace("tax:", "taxes:"))
    refused = run_ledger("journal", "export", "--to", "csv", "--chart", chart)
    assert (refused.exit_code, refused.stdout) == (1, "") and f"{chart}:7:3: error chart-unknown" in refused.stderr


@pytest.mark.parametrize(
    "options", [("2026-05", "--from", "2026-04"), ("--from", "2026-06", "--until", "2026-05"), ("2026-5",)], ids=" ".join
)
def test_months_that_are_no_span_are_wrong_usage(run_ledger: RunLedger, options: tuple[str, ...]) -> None:
    assert run_ledger("journal", "export", "--to", "csv", *options).exit_code == 2
