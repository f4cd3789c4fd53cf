"""The table for finance: complete when piped, right-aligned, and with every warning."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.documents.finance_table import outcome_words, warnings_of, write_finance_table
from ledger.settlement.statement import ChangedAfterwards, Statement, Unresolved
from tests.documents.statements import build_statement, read_case


def shown(*statements: Statement) -> str:
    stream = io.StringIO()
    write_finance_table(statements, stream)
    return stream.getvalue()


def test_a_piped_table_has_no_frames_no_colours_no_trailing_blanks_and_nothing_is_cut(cases: Path) -> None:
    text = shown(build_statement(*read_case(cases / "variants-and-queues")))
    assert not set("│┃─━┏┓\x1b…") & set(text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_every_line_is_there_with_its_amount_in_one_right_aligned_column(cases: Path) -> None:
    expected, contracts = read_case(cases / "edges")
    lines = shown(build_statement(expected, contracts)).splitlines()
    table = lines[lines.index(next(line for line in lines if "Per million" in line)) + 1 :]
    rows = [line for line in table[: table.index("")] if line.startswith("    ")]
    assert [row.split()[-1] for row in rows] == [line["amount"] for line in expected["lines"]]
    assert len({len(row) for row in rows}) == 1


def test_a_month_without_requests_says_so(cases: Path) -> None:
    text = shown(build_statement(*read_case(cases / "no-traffic")))
    assert "No billable requests." in text
    assert "no data, nothing was judged" in text
    assert "nan" not in text.lower()


def test_a_month_without_requests_is_warned_of_with_the_minimum_that_it_costs(cases: Path) -> None:
    empty = build_statement(*read_case(cases / "no-traffic"))
    free, charged = (replace(empty, totals=replace(empty.totals, true_up=minor)) for minor in (0, 1_000_000))
    assert warnings_of(free)[0] == "no request in the month: is its telemetry loaded?"
    assert "loaded? The minimum is charged all the same, 10,000.00 " in warnings_of(charged)[0]
    assert not any("no request" in one for one in warnings_of(build_statement(*read_case(cases / "edges"))))


def test_the_summary_counts_what_is_no_contracts_own_once(cases: Path) -> None:
    both = [build_statement(*read_case(cases / case)) for case in ("money-jpy", "money-kwd")]
    waiting = [replace(one, unresolved=Unresolved(conflicts=2, quarantined=1, unassigned=4)) for one in both]
    summary = shown(*waiting).split("All contracts\n")[1]
    assert [line.split()[-1] for line in summary.splitlines()[1:3]] == ["3", "3"]
    assert "Besides, 4 requests are of accounts that no contract covers." in summary
    assert "A row whose account or instant cannot be read counts for every contract." in summary
    clean = shown(*[replace(one, unresolved=Unresolved()) for one in both]).split("All contracts\n")[1]
    assert "Besides" not in clean and "A row" not in clean


def test_several_contracts_end_with_a_summary(cases: Path) -> None:
    yen, dinar = (build_statement(*read_case(cases / case)) for case in ("money-jpy", "money-kwd"))
    summary = shown(yen, dinar).split("All contracts\n")[1]
    assert "JPY" in summary and "KWD" in summary
    assert "All contracts" not in shown(yen)


def test_nobody_in_force_is_said(cases: Path) -> None:
    assert shown() == "No contract is in force in this period.\n"


def test_what_waits_for_somebody_and_what_changed_afterwards_is_a_warning(cases: Path) -> None:
    statement = replace(
        build_statement(*read_case(cases / "no-traffic")),
        unresolved=Unresolved(conflicts=1, quarantined=2, unassigned=3, unjoined=4),
        changed_afterwards=ChangedAfterwards(voids=1, corrections=1, intervals=3),
    )
    without_requests, *others = warnings_of(statement)
    assert without_requests.startswith("no request in the month")
    counts = [warning.rsplit(": ", 1)[1] for warning in others]
    assert counts == ["1", "2", "3", "4", "5"]
    assert all(f"! {warning}" in shown(statement) for warning in warnings_of(statement))
    seen = [line.strip() for line in shown(statement).splitlines() if line.startswith("    see: ")]
    listed = f"see: ledger quarantine list --contract {statement.contract.id} --period {statement.period}"
    assert seen == [listed, "see: ledger status"]
    assert "see: " not in shown(replace(statement, unresolved=Unresolved()))


def test_markup_and_control_characters_in_a_name_are_shown_and_do_nothing(cases: Path) -> None:
    statement = build_statement(*read_case(cases / "edges"))
    parties = statement.contract.parties
    customer = parties.customer.model_copy(update={"name": "[red]Acme[/red] \x9b31m\u202eknaB"})
    contract = statement.contract.model_copy(update={"parties": parties.model_copy(update={"customer": customer})})
    assert "[red]Acme[/red] \\u009b31m\\u202eknaB" in shown(replace(statement, contract=contract))


def test_what_became_of_the_promise_is_told_in_a_few_words(cases: Path) -> None:
    missed = build_statement(*read_case(cases / "month-charged-rate-cap"))
    kept = replace(missed, windows=replace(missed.windows, breached=0), budget=replace(missed.budget, used=0, refunded=0))
    assert outcome_words(missed) == "5 of 40 hours missed: 2 forgiven, 3 refunded"
    assert outcome_words(kept) == "the promise was kept in all of 40 hours"
    assert outcome_words(build_statement(*read_case(cases / "no-traffic"))) == "nothing to judge"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_a_terminal_only_and_change_no_character(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = build_statement(*read_case(cases / "month-charged-rate-cap"))
    coloured, plain = Terminal(), Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    write_finance_table([statement, statement], coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    write_finance_table([statement, statement], plain)
    assert "\x1b[32mforgiven" in coloured.getvalue()
    without = re.sub(r"\x1b\[\d+m", "", coloured.getvalue())
    assert [line.rstrip() for line in without.splitlines()] == plain.getvalue().splitlines()
    assert plain.getvalue() == shown(statement, statement)
