"""Closed periods are kept once and come back by value; numbers are given one at a time, and an unused one again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from time import sleep
from typing import Any

import pytest
from psycopg import IsolationLevel
from psycopg.errors import UniqueViolation

from ledger.settlement.numbering import Series
from ledger.settlement.statement import Adjusted, Cause, CauseKind, InvoiceLine, LineKind, PostedLine, TaxTerms
from ledger.store.closings import (
    ClosedPeriod,
    chain_head,
    closed_periods,
    closing_of,
    issued_files,
    keep_closing,
    next_number,
    posted_lines,
)
from ledger.store.connection import fetch
from ledger.store.database import Database
from ledger.store.numbering import numbering_format, set_numbering
from ledger.store.settlements import Draft, keep_drafts
from tests.store.sample_closings import ISSUED_AT, TAX, TAX_ID, USAGE, kept_run, whole_closing

WAITING = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
LARGEST = 10**38 - 1
DAMAGES = TaxTerms(rate=Decimal("0.1234567890123456789012345678901234567890"), credits_outside_scope=True)


def posted(line: InvoiceLine, tax: TaxTerms = TAX) -> PostedLine:
    return PostedLine(line=line, tax=tax)


def adjustment(kind: LineKind, of_period: str, invoice: str, tax: TaxTerms = TAX, **changes: Any) -> PostedLine:
    causes = (Cause(kind=CauseKind.LATE, ref='a "quoted" 请求'), Cause(kind=CauseKind.VOID, ref="r2"))
    of = Adjusted(period=of_period, invoice=invoice, kind=kind, tax=tax, causes=causes, causes_total=345)
    return posted(replace(USAGE, kind=LineKind.ADJUSTMENT, of=of, **changes), tax)


def test_what_was_posted_for_a_month_comes_back_by_value_its_own_lines_and_adjustments_of_it(database: Database) -> None:
    without_key = dict.fromkeys(("version", "model", "queue", "band", "token", "quantity", "rate", "multiplier"))
    may = [
        posted(
            replace(USAGE, quantity=LARGEST, rate=Decimal("0.000000000000000000000000000001"), multiplier=Decimal("1234567890.123456789"))
        ),
        posted(replace(USAGE, variant="int4", forfeited=True, quantity=0, amount_minor=LARGEST - 400), DAMAGES),
        posted(replace(USAGE, kind=LineKind.TRUE_UP, amount_minor=7, **without_key)),
        posted(replace(USAGE, kind=LineKind.CREDIT, queue=None, band="refund", amount_minor=-(10**20)), DAMAGES),
        posted(replace(USAGE, kind=LineKind.CAP, amount_minor=-7, **without_key)),
    ]
    june = [
        posted(USAGE),
        adjustment(LineKind.CREDIT, "2026-05", "INV-2027-000001", DAMAGES, quantity=-12, amount_minor=-2),
        adjustment(LineKind.USAGE, "2026-05", "INV-2027-000001", quantity=3, amount_minor=0),
    ]
    july = [
        adjustment(LineKind.CAP, "2026-05", "INV-2027-000001", amount_minor=-900, **without_key),
        adjustment(LineKind.USAGE, "2026-06", "INV-2027-000002", amount_minor=1),
    ]
    for period, lines in (("2026-05", may), ("2026-06", june), ("2026-07", july)):
        with database.begin() as connection:
            keep_closing(connection, whole_closing(connection, period, lines))
            keep_closing(connection, whole_closing(connection, period, contract_id="other", tax_id="elsewhere"))
    with database.begin() as connection:
        found = posted_lines(connection, "acme")
        assert found == {"2026-05": (*may, *june[1:], july[0]), "2026-06": (june[0], july[1])}
        assert [str(found["2026-05"][0].line.rate), str(found["2026-06"][0].line.rate)] == ["1E-30", "2.00"]
        assert [one.line.origin for one in found["2026-05"][-3:]] == [LineKind.CREDIT, LineKind.USAGE, LineKind.CAP]
        assert all(type(one.line.amount_minor) is int for lines in found.values() for one in lines)
        assert posted_lines(connection, "nobody") == {}


def test_a_closing_comes_back_as_it_was_kept_and_takes_the_place_of_its_draft(database: Database) -> None:
    with database.begin() as connection:
        drafts = [Draft(contract_id=name, state="draft", digest="", day_starts=(ISSUED_AT,), document="") for name in ("acme", "other")]
        keep_drafts(connection, drafts, period="2026-05", contract_hashes={}, timezone_data="", settled_at=ISSUED_AT, author="test")
    with database.begin() as connection:
        may = whole_closing(connection, "2026-05")
        keep_closing(connection, may)
    with database.begin() as connection:
        june = whole_closing(connection, "2026-06", [posted(replace(USAGE, amount_minor=-250))])
        keep_closing(connection, june)
    with database.begin() as connection:
        assert [closing_of(connection, "acme", period) for period in ("2026-05", "2026-06", "2026-07")] == [may, june, None]
        assert may.document.files == issued_files(connection, TAX_ID, "INV-2027-000001")
        assert issued_files(connection, TAX_ID, "INV-2027-000002") == ()
        assert (june.document.number_text, june.document.previous_seal) == ("CN-2027-000001", may.document.seal)
        assert chain_head(connection, TAX_ID) == (2, june.document.seal)
        assert chain_head(connection, "nobody") is None
        assert fetch(connection, "SELECT contract_id FROM settlement") == [("other",)]
        periods = closed_periods(connection, ["nobody", "acme"])
        assert list(periods) == ["acme"]
        assert [one.period for one in periods["acme"]] == ["2026-05", "2026-06"]
        assert periods["acme"][1] == ClosedPeriod(
            contract_id="acme",
            period="2026-06",
            tax_id=TAX_ID,
            number_text="CN-2027-000001",
            series=Series.CREDIT_NOTE,
            run_id=june.run_id,
            currency="CNY",
            minor_digits=2,
            total_minor=-250,
            carried_out_minor=250,
            issued_at=ISSUED_AT,
            digest="0" * 64,
            contract_hashes={1: "a" * 64, 12: "b" * 64},
        )


def test_two_that_issue_at_once_get_numbers_one_after_the_other_and_a_rollback_leaves_no_gap(database: Database) -> None:
    def issue(period: str, contract_id: str) -> int:
        with database.begin() as connection:
            closing = whole_closing(connection, period, contract_id=contract_id)
            keep_closing(connection, closing)
        return closing.document.number

    with ThreadPoolExecutor(2) as pool:
        with database.begin() as connection:
            keep_closing(connection, whole_closing(connection, "2026-05", contract_id="rolled back"))
            waiting = [pool.submit(issue, "2026-05", name) for name in ("first", "second")]
            while fetch(connection, WAITING) != [(2,)]:
                assert not any(one.done() for one in waiting)
                sleep(0.01)
            connection.rollback()
        assert sorted(one.result(timeout=60) for one in waiting) == [1, 2]
    assert issue("2026-06", "first") == 3


def test_numbers_are_of_a_provider_a_series_and_a_year_and_an_unused_one_is_given_again(database: Database) -> None:
    with database.begin() as connection:
        keep_closing(connection, whole_closing(connection, "2026-05"))
        given = [
            next_number(connection, tax_id, series, year)
            for tax_id, series, year in (
                (TAX_ID, Series.INVOICE, 2027),
                (TAX_ID, Series.INVOICE, 2027),
                (TAX_ID, Series.INVOICE, 2026),
                (TAX_ID, Series.CREDIT_NOTE, 2027),
                ("elsewhere", Series.INVOICE, 2027),
            )
        ]
    assert given == [2, 2, 1, 1, 1]


def test_a_snapshot_older_than_the_last_document_cannot_issue(database: Database) -> None:
    with database.begin(IsolationLevel.REPEATABLE_READ) as old:
        run_id = kept_run(old)
        with database.begin() as connection:
            keep_closing(connection, whole_closing(connection, "2026-05", contract_id="first"))
        closing = whole_closing(old, "2026-05", contract_id="second", run_id=run_id)
        with pytest.raises(UniqueViolation):
            keep_closing(old, closing)
        old.rollback()


def test_two_periods_of_a_contract_closed_at_once_as_its_first_are_not_both_kept(database: Database) -> None:
    with database.begin(IsolationLevel.REPEATABLE_READ) as old:
        closing = whole_closing(old, "2026-05", tax_id="elsewhere")
        with database.begin() as connection:
            keep_closing(connection, whole_closing(connection, "2026-06"))
        with pytest.raises(UniqueViolation, match="uq_closing_previous_period"):
            keep_closing(old, closing)
        old.rollback()


def test_numbers_are_written_as_was_set_last_and_by_default_without_setting(database: Database) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with database.begin() as connection:
        assert [numbering_format(connection, TAX_ID, one) for one in Series] == ["INV-{year}-{number:06}", "CN-{year}-{number:06}"]
        for number_format in ("A{year}-{number}", "B{year}-{number:03}"):
            set_numbering(connection, TAX_ID, Series.INVOICE, number_format, set_at=at, author="test")
        assert [numbering_format(connection, TAX_ID, one) for one in Series] == ["B{year}-{number:03}", "CN-{year}-{number:06}"]
        assert numbering_format(connection, "elsewhere", Series.INVOICE) == "INV-{year}-{number:06}"
        assert whole_closing(connection, "2026-05", issued_on=date(2028, 2, 29)).document.number_text == "B2028-001"
