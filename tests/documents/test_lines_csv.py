"""The lines as CSV: what the invoice and the JSON say, cell by cell, and nothing that a spreadsheet would run."""

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from ledger.documents.invoice import invoice_html
from ledger.documents.lines_csv import OF_LINE, lines_csv
from ledger.documents.number import amount_text
from ledger.settlement.statement import Statement
from tests.documents.statements import build_statement, read_case


def rows_of(statement: Statement) -> list[dict[str, str]]:
    return list(csv.DictReader(lines_csv(statement).decode().splitlines()))


def test_the_lines_of_every_case_sum_to_its_net_in_csv_json_and_html(cases: Path) -> None:
    shown = 0
    for folder in sorted(path for path in cases.iterdir() if path.is_dir()):
        expected, contracts = read_case(folder)
        statement = build_statement(expected, contracts)
        rows = rows_of(statement)
        net = sum((Decimal(row["amount"]) for row in rows), Decimal(0))
        assert net == Decimal(expected["totals"]["net"]) == sum(Decimal(line["amount"]) for line in expected["lines"]), folder.name
        assert f"{abs(net):,f}" in invoice_html(statement), folder.name
        assert [row["line"] for row in rows] == [str(place + 1) for place in range(len(expected["lines"]))]
        for row, line in zip(rows, expected["lines"], strict=True):
            texts = {name: "" if line[name] is None else str(line[name]) for name in OF_LINE}
            texts["forfeited"] = {"": "", "True": "yes", "False": "no"}[texts["forfeited"]]
            assert {name: row[name] for name in OF_LINE} == texts, (folder.name, line)
        shown += 1
    assert shown >= 46


def test_a_name_that_a_spreadsheet_would_run_is_a_text(cases: Path) -> None:
    statement = build_statement(*read_case(cases / "edges"))
    first, *rest = statement.lines
    hostile = replace(statement, lines=(replace(first, model='=HYPERLINK("//x")'), *rest))
    [row, *_] = rows_of(hostile)
    assert row["model"] == '\'=HYPERLINK("//x")'
    assert row["amount"] == amount_text(first.amount_minor, statement.minor_digits)
