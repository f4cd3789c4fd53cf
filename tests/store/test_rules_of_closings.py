"""What the database holds of what is issued, whoever writes: nothing changes, no number or seal is missing, nothing is half issued."""

from dataclasses import replace
from typing import Any, LiteralString

import pytest
from psycopg import IntegrityError, sql
from psycopg.errors import CheckViolation, ForeignKeyViolation, RestrictViolation
from psycopg.types.json import Jsonb

from ledger.settlement.journal import Posting
from ledger.settlement.numbering import Series
from ledger.settlement.statement import Adjusted, LineKind, PostedLine
from ledger.store.closings import Closing, IssuedDocument, keep_closing
from ledger.store.connection import Query, execute, fetch
from ledger.store.credit_notes import IssuedCredit, keep_credit_note
from ledger.store.database import Database
from ledger.store.numbering import set_numbering
from tests.store.sample_closings import ISSUED_AT, TAX, TAX_ID, USAGE, kept_run, whole_closing, whole_credit

TABLES = ("issued_document", "closing", "invoice_line", "credit_note", "journal_posting", "issued_file", "numbering", "run")
# The issued document once more, as the one after it but for what is changed.
COPY = """INSERT INTO issued_document SELECT (jsonb_populate_record(one, jsonb_build_object(
    'number_text', 'INV-2027-000002', 'number', 2, 'position', 2, 'previous_seal', seal,
    'seal', encode(sha256('next'), 'hex'), 'sealed', 'next'::bytea) || %(changes)s)).* FROM issued_document one"""
DRAFT = """INSERT INTO settlement SELECT 'acme', '2026-05', max(run_id), 'draft', '', '{}', '' FROM run
ON CONFLICT (contract_id, period) DO UPDATE SET state = 'draft'"""


def close(database: Database, period: str, **given: Any) -> Closing:
    """A period that is closed."""
    with database.begin() as connection:
        closing = whole_closing(connection, period, **given)
        keep_closing(connection, closing)
    return closing


def refused(database: Database, match: str, statement: Query, parameters: dict[str, Any] | None = None) -> None:
    """The statement, or the end of its transaction, is refused in these words."""
    with pytest.raises(IntegrityError, match=match), database.begin() as connection:
        execute(connection, statement, parameters)


@pytest.mark.parametrize("table", TABLES)
def test_what_is_issued_never_changes(owner_database: Database, table: LiteralString) -> None:
    may = close(owner_database, "2026-05")
    with owner_database.begin() as connection:
        keep_credit_note(connection, whole_credit(connection, may, 1))
        set_numbering(connection, TAX_ID, Series.INVOICE, "{year}-{number}", set_at=ISSUED_AT, author="test")
        [(column,)] = fetch(
            connection,
            "SELECT column_name FROM information_schema.columns WHERE table_name = %(table)s AND is_identity = 'NO' LIMIT 1",
            {"table": table},
        )
        names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        assert fetch(connection, sql.SQL("SELECT count(*) FROM {table}").format(**names))[0][0] > 0
    for change in ("UPDATE {table} SET {column} = {column}", "DELETE FROM {table}", "TRUNCATE {table} CASCADE"):
        refused(owner_database, "never change", sql.SQL(change).format(**names))


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"number": 3}, "number 3 of .* does not follow on 1"),
        ({"number": 1}, "number 1 of .* does not follow on 1"),
        ({"series": "credit_note", "total_minor": -1}, "number 2 of .* does not follow on 0"),
        ({"year": 2028, "issued_on": "2028-01-01"}, "number 2 of .* does not follow on 0"),
        ({"position": 3}, "chain of seals"),
        ({"position": 1, "previous_seal": None}, "chain of seals"),
        ({"previous_seal": "0" * 64}, "chain of seals"),
        ({"tax_id": "elsewhere", "number": 1}, "chain of seals"),
        ({"seal": "0" * 64}, "ck_issued_document_seal"),
        ({"total_minor": -1}, "ck_issued_document_series"),
        ({"series": "credit_note", "number": 1}, "ck_issued_document_series"),
        ({"issued_on": "2026-12-31"}, "ck_issued_document_number"),
        ({"number_text": "INV-2027-000001"}, "pk_issued_document"),
        ({}, "does not either close a period or credit a line"),
    ],
    ids=str,
)
def test_a_document_that_does_not_follow_on_the_last_is_refused(database: Database, changes: dict[str, Any], refusal: str) -> None:
    close(database, "2026-05")
    refused(database, refusal, COPY, {"changes": Jsonb(changes)})


def test_a_temporary_table_does_not_hide_what_is_issued(database: Database) -> None:
    close(database, "2026-05")
    with database.begin() as connection:
        execute(connection, "CREATE TEMPORARY TABLE issued_document (LIKE public.issued_document)")
        with pytest.raises(RestrictViolation, match="number 3"):
            execute(connection, COPY.replace(" issued_document", " public.issued_document"), {"changes": Jsonb({"number": 3})})
        connection.rollback()


def test_no_period_closes_after_a_later_one_or_twice_and_each_names_the_one_before(database: Database) -> None:
    close(database, "2026-05")
    close(database, "2026-08")
    close(database, "2026-06", contract_id="other")
    for period in ("2026-04", "2026-07", "2026-08"):
        with pytest.raises(RestrictViolation, match=f"{period} of acme cannot be closed: 2026-08 is closed"):
            close(database, period)
    raw = """INSERT INTO closing SELECT (jsonb_populate_record(one, %(changes)s)).* FROM closing one
    WHERE (contract_id, period) = ('acme', '2026-08')"""
    for previous in ("2026-05", None):
        changes = {"period": "2026-09", "previous_period": previous}
        refused(database, "2026-08 of acme was closed last", raw, {"changes": Jsonb(changes)})
    for period in ("2026-13", "2026-00", "2026-9", "26-09"):
        with pytest.raises(CheckViolation, match="ck_closing_period"):
            close(database, period, contract_id="third", run_id=1)
    with database.begin() as connection:
        found = fetch(connection, "SELECT period, previous_period FROM closing WHERE contract_id = 'acme' ORDER BY period")
    assert found == [("2026-05", None), ("2026-08", "2026-05")]


def test_a_run_that_does_not_know_what_it_saw_closes_nothing(database: Database) -> None:
    with database.begin() as connection:
        execute(
            connection,
            "INSERT INTO run (settled_at, author, period, batches, intervals, contracts, timezone_data) "
            "SELECT settled_at, author, period, batches, intervals, contracts, timezone_data FROM run WHERE run_id = %(run_id)s",
            {"run_id": kept_run(connection)},
        )
        [(run_id,)] = fetch(connection, "SELECT run_id FROM run WHERE voids IS NULL")
    with pytest.raises(RestrictViolation, match="not known what it saw"):
        close(database, "2026-05", run_id=run_id)


def test_a_closed_period_has_no_draft(database: Database) -> None:
    with database.begin() as connection:
        kept_run(connection)
        execute(connection, DRAFT)
    close(database, "2026-05")
    refused(database, "2026-05 of acme is closed: it has no draft", DRAFT)


def test_a_draft_that_came_while_its_period_was_closed_undoes_the_close(database: Database) -> None:
    with database.begin() as other:
        kept_run(other)
    with pytest.raises(RestrictViolation, match="still has a draft"), database.begin() as connection:
        keep_closing(connection, whole_closing(connection, "2026-05"))
        with database.begin() as other:
            execute(other, DRAFT)


def changed(closing: Closing, **changes: Any) -> Closing:
    """The closing with another document."""
    return replace(closing, document=replace(closing.document, **changes))


def content_with(document: IssuedDocument, old: str, new: str) -> str:
    assert old in document.content
    return document.content.replace(old, new)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda one: replace(one, lines=()), "lines do not sum to its net"),
        (lambda one: replace(one, lines=one.lines * 2), "lines do not sum to its net"),
        (lambda one: replace(one, carried_out_minor=1), "other totals"),
        (lambda one: changed(one, total_minor=401), "other totals"),
        (lambda one: changed(one, minor_digits=3), "other totals"),
        (lambda one: changed(one, content=content_with(one.document, "acme", "other")), "another contract"),
        (lambda one: changed(one, content=content_with(one.document, "2026-05", "2026-06")), "another contract"),
        (lambda one: changed(one, content=content_with(one.document, "closed", "draft")), "another contract"),
        (lambda one: changed(one, content="{}"), "another contract"),
        (lambda one: changed(one, currency="EUR"), "another contract"),
        (lambda one: changed(one, files=()), "no files"),
        (lambda one: changed(one, postings=()), "no postings"),
        (lambda one: changed(one, postings=one.document.postings[:1]), "do not sum to 0"),
        (lambda one: changed(one, postings=(*one.document.postings, Posting(account="tax", amount_minor=1, memo=""))), "do not sum to 0"),
    ],
)
def test_what_is_not_whole_is_undone_at_the_end_of_its_transaction(database: Database, make: Any, refusal: str) -> None:
    with pytest.raises(RestrictViolation, match=refusal), database.begin() as connection:
        keep_closing(connection, make(whole_closing(connection, "2026-05")))
        assert fetch(connection, "SELECT count(*) FROM closing") == [(1,)]
    with database.begin() as connection:
        assert fetch(connection, "SELECT count(*) FROM issued_document") == [(0,)]


def test_a_document_of_nothing_needs_no_postings(database: Database) -> None:
    with database.begin() as connection:
        closing = whole_closing(connection, "2026-05", [])
        keep_closing(connection, changed(closing, postings=()))
    assert closing.document.total_minor == 0


@pytest.mark.parametrize(
    "statement",
    [
        'INSERT INTO invoice_line SELECT (jsonb_populate_record(one, \'{"position": 2, "amount_minor": 0}\')).* FROM invoice_line one',
        "INSERT INTO journal_posting SELECT tax_id, number_text, 3, account, 0, memo FROM journal_posting LIMIT 1",
        "INSERT INTO issued_file SELECT tax_id, number_text, 'late.html', content, sha256 FROM issued_file LIMIT 1",
        'INSERT INTO closing SELECT (jsonb_populate_record(one, \'{"contract_id": "other"}\')).* FROM closing one',
        "INSERT INTO credit_note SELECT tax_id, number_text, contract_id, period, 1, NULL, 1, 0, 'why' FROM closing",
        "INSERT INTO journal_posting VALUES (chr(120), chr(120), 1, chr(120), 0, chr(120))",
    ],
)
def test_nothing_is_added_to_what_was_issued(database: Database, statement: LiteralString) -> None:
    close(database, "2026-05")
    refused(database, "in the same transaction", statement)


def test_a_file_has_the_hash_of_its_content(database: Database) -> None:
    with pytest.raises(CheckViolation, match="ck_issued_file_sha256"), database.begin() as connection:
        closing = whole_closing(connection, "2026-05")
        keep_closing(connection, changed(closing, files=(replace(closing.document.files[0], content=b"other"),)))


def test_an_adjustment_is_of_an_earlier_closed_month_and_says_what_and_why(database: Database) -> None:
    close(database, "2026-04")
    good = {"position": 2, "kind": "adjustment", "of_period": "2026-04", "of_kind": "usage", "causes": [], "causes_total": 0}
    raw = """INSERT INTO invoice_line SELECT (jsonb_populate_record(one, %(changes)s)).* FROM invoice_line one
    WHERE period = '2026-05' AND position = 1"""
    for changes, error in (
        ({}, None),
        ({"of_period": "2026-03"}, ForeignKeyViolation),
        ({"of_period": "2026-05"}, CheckViolation),
        ({"of_period": None}, CheckViolation),
        ({"of_kind": None}, CheckViolation),
        ({"of_kind": "adjustment"}, CheckViolation),
        ({"causes": None}, CheckViolation),
        ({"kind": "usage"}, CheckViolation),
        ({"kind": "other"}, CheckViolation),
    ):
        with database.begin() as connection:
            keep_closing(connection, whole_closing(connection, "2026-05"))
            parameters = {"changes": Jsonb(good | {"amount_minor": 0} | changes)}
            if error is None:
                execute(connection, raw, parameters)
            else:
                with pytest.raises(error):
                    execute(connection, raw, parameters)
            connection.rollback()


def test_a_format_of_numbers_has_year_and_number(database: Database) -> None:
    for number_format in ("INV-{year}", "INV-{number:06}", ""):
        parameters = {"format": number_format, "at": ISSUED_AT}
        raw: LiteralString = (
            "INSERT INTO numbering (tax_id, series, format, set_at, author) VALUES ('x', 'invoice', %(format)s, %(at)s, 'me')"
        )
        refused(database, "ck_numbering_format", raw, parameters)


def changed_credit(issued: IssuedCredit, **changes: Any) -> IssuedCredit:
    """The credit note with another document."""
    return replace(issued, document=replace(issued.document, **changes))


def credited(issued: IssuedCredit, **changes: Any) -> IssuedCredit:
    """The credit note with another row beside the same document."""
    return replace(issued, credit=replace(issued.credit, **changes))


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda one: changed_credit(one, total_minor=-41), "other totals"),
        (lambda one: credited(one, net_minor=39), "other totals"),
        (lambda one: credited(one, tax_minor=1), "other totals"),
        (lambda one: credited(one, tokens=7), "another number, document, line or currency"),
        (lambda one: credited(one, position=2), "another number, document, line or currency"),
        (lambda one: replace(one, period="2026-06"), "another number, document, line or currency"),
        (lambda one: changed_credit(one, content=content_with(one.document, "CN-2027-000001", "CN-2027-000002")), "another number"),
        (lambda one: changed_credit(one, content=content_with(one.document, "INV-2027-000001", "INV-2027-000002")), "another number"),
        (lambda one: changed_credit(one, currency="EUR"), "another series, provider or currency"),
        (lambda one: changed_credit(one, files=()), "no files"),
        (lambda one: changed_credit(one, postings=()), "no postings"),
        (lambda one: changed_credit(one, postings=one.document.postings[:1]), "do not sum to 0"),
        (lambda one: credited(one, net_minor=-40), "ck_credit_note_net_minor"),
        (lambda one: credited(one, net_minor=0), "ck_credit_note_net_minor"),
        (lambda one: credited(one, tokens=0), "ck_credit_note_tokens"),
        (lambda one: credited(one, position=3), "fk_credit_note_contract_id_period_line_position"),
        (lambda one: replace(one, reason=""), "ck_credit_note_reason"),
    ],
)
def test_a_credit_note_is_what_its_document_says(database: Database, make: Any, refusal: str) -> None:
    line = whole_line()
    may = close(database, "2026-05", lines=[line, line])
    close(database, "2026-06", lines=[line, line])
    with pytest.raises(IntegrityError, match=refusal), database.begin() as connection:
        keep_credit_note(connection, make(whole_credit(connection, may, 40)))
    with database.begin() as connection:
        keep_credit_note(connection, whole_credit(connection, may, 40))


def whole_line(amount_minor: int = 400, **changes: Any) -> PostedLine:
    return PostedLine(line=replace(USAGE, amount_minor=amount_minor, **changes), tax=TAX)


def test_no_more_is_credited_than_the_line_has_or_the_document_with_its_later_adjustments(database: Database) -> None:
    def issue(net_minor: int, tokens: int | None = None, position: int = 1) -> None:
        with database.begin() as connection:
            keep_credit_note(connection, whole_credit(connection, may, net_minor, tokens=tokens, position=position))

    may = close(database, "2026-05", lines=[whole_line(), whole_line()])
    issue(1, tokens=999_999)
    issue(399)
    for net_minor, tokens in ((1, None), (0, 2)):
        with pytest.raises(RestrictViolation, match="more is credited than its line has"):
            issue(net_minor, tokens)
    of = Adjusted(period="2026-05", invoice=may.document.number_text, kind=LineKind.USAGE, tax=TAX, causes=(), causes_total=0)
    close(database, "2026-06", lines=[whole_line(-390, kind=LineKind.ADJUSTMENT, of=of)])
    with pytest.raises(RestrictViolation, match="more is credited than its document comes to with the later adjustments"):
        issue(11, position=2)
    issue(10, position=2)


def test_a_period_carries_in_what_was_left_and_each_credit_note_since_once(database: Database) -> None:
    may = close(database, "2026-05", lines=[whole_line(1000)])
    with database.begin() as connection:
        note = whole_credit(connection, may, 500)
        keep_credit_note(connection, note)
    with database.begin() as connection:
        before = whole_closing(connection, "2026-06", [whole_line(400)])
    named = before.basis["credit_notes"]
    assert named == [{"tax_id": TAX_ID, "number": "CN-2027-000001"}] and before.carried_out_minor == 100
    for notes, refusal in (([], "does not carry in what was left"), ([*named, *named], "not credit notes of its contract")):
        with pytest.raises(RestrictViolation, match=refusal), database.begin() as connection:
            june = whole_closing(connection, "2026-06", [whole_line(400)])
            keep_closing(connection, replace(june, basis={**june.basis, "credit_notes": notes}))
    close(database, "2026-06", lines=[whole_line(400)])
    with pytest.raises(RestrictViolation, match="was carried in before"), database.begin() as connection:
        july = whole_closing(connection, "2026-07", [whole_line(400)])
        keep_closing(connection, replace(july, basis={**july.basis, "credit_notes": named}))
    assert close(database, "2026-07", lines=[whole_line(40)]).carried_out_minor == 60
