"""A month closed through the command: what is issued, what is refused and how that is cured, and what never changes afterwards."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result

from ledger.store.database import open_database
from ledger.store.settle_lock import StillSettling, one_settlement_at_a_time
from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, request, write_contract, write_events

AFTER_MAY, AFTER_JUNE, AFTER_JULY = "2026-06-03T00:00:00Z", "2026-07-03T00:00:00Z", "2026-08-03T00:00:00Z"
ACME = "acme-bank-llm"
PROVIDER = "91110000TEST000001"
SLOW = 310_000  # above the target of 300 ms
NO_BUDGET = ("breaches: 3", "breaches: 0")
SECOND = ("version: 1\n", "version: 2\nreplaces: 1\n")
LOCK = "SELECT pg_advisory_lock(hashtext('ledger.settle'))"
Rows = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, kw_only=True)
class Books:
    """The command on a fresh database, and a folder for what it reads and writes."""

    run_ledger: RunLedger
    folder: Path

    def contract(self, *changes: tuple[str, str]) -> None:
        added = self.run_ledger("contract", "add", write_contract(self.folder, *changes), now="2026-01-02T00:00:00Z")
        assert added.exit_code == 0, added.stderr

    def load(self, *rows: str) -> None:
        assert self.run_ledger("ingest", write_events(self.folder, list(rows))).exit_code == 0

    def settle(self, period: str = "2026-05", *options: str, now: str = AFTER_MAY) -> Result:
        return self.run_ledger("settle", period, "--output", self.folder / "out", *options, now=now)

    def close(self, period: str = "2026-05", *options: str, now: str = AFTER_MAY) -> Result:
        return self.run_ledger("close", period, "--yes", "--output", self.folder / "out", *options, now=now)

    def settle_and_close(self, period: str, now: str) -> str:
        """What close says."""
        for result in (self.settle(period, now=now), closed := self.close(period, now=now)):
            assert result.exit_code == 0, result.stderr
        return closed.stdout

    def files(self, period: str = "2026-05") -> dict[str, bytes]:
        folder = self.folder / "out" / period
        return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}

    def issued(self, period: str = "2026-05") -> list[dict[str, Any]]:
        """The documents of a month as they are shown."""
        shown: list[dict[str, Any]] = json.loads(self.settle(period, "--format", "json", now=AFTER_JULY).stdout)
        return [one for one in shown if one["state"] == "closed"]


@pytest.fixture
def books(run_ledger: RunLedger, tmp_path: Path) -> Books:
    return Books(run_ledger=run_ledger, folder=tmp_path)


@pytest.fixture
def settled(books: Books) -> Books:
    """A contract with a request of 2.00 in May, which is settled: 2.12 with tax."""
    books.contract()
    books.load(request(1, "2026-05-06T10:00:00+08:00"))
    assert books.settle().exit_code == 0
    return books


CLOSED = "SELECT contract_id, closing.period, number_text FROM closing JOIN issued_document USING (tax_id, number_text) ORDER BY position"


def test_a_close_issues_an_invoice_with_its_number_seal_and_files(settled: Books, rows_of: Rows) -> None:
    closed = settled.close()
    assert closed.exit_code == 0, closed.stderr
    assert closed.stdout == "closed 2026-05: acme-bank-llm INV-2026-000001, total 2.12 CNY, due 2.12\n"
    [(content, seal, sealed, previous_seal, issued_at, issued_on)] = rows_of(
        "SELECT content, seal, sealed, previous_seal, issued_at::text, issued_on::text FROM issued_document"
    )
    assert (seal, previous_seal) == (sha256(sealed).hexdigest(), None)
    assert (issued_at, issued_on) == ("2026-06-03 00:00:00+00", "2026-06-03")
    said = json.loads(sealed)
    assert sorted(said) == ["contract_hashes", "journal", "number", "previous_seal", "settlement", "tax_id"]
    assert (said["number"], said["tax_id"], said["settlement"]) == ("INV-2026-000001", PROVIDER, json.loads(content))
    assert said["settlement"]["state"] == "closed" and said["settlement"]["totals"]["total"] == "2.12"
    assert sum(Decimal(posting["amount"]) for posting in said["journal"]) == 0 and said["journal"]
    files = settled.files()
    assert sorted(files) == ["acme-bank-llm.csv", "acme-bank-llm.html", "acme-bank-llm.json"]
    assert files["acme-bank-llm.json"] == content.encode()
    page = files["acme-bank-llm.html"].decode()
    assert "INV-2026-000001" in page and seal in page and "DRAFT" not in page
    assert rows_of("SELECT count(*) FROM settlement") == [(0,)]


def test_closing_twice_does_nothing_and_writes_the_same_bytes_again(settled: Books, rows_of: Rows) -> None:
    assert settled.close().exit_code == 0
    files = settled.files()
    (settled.folder / "out" / "2026-05" / "acme-bank-llm.html").write_text("altered")
    (settled.folder / "out" / "2026-05" / "acme-bank-llm.json").unlink()
    again = settled.close(now=AFTER_JUNE)
    assert again.exit_code == 0
    assert again.stdout == "closed before 2026-05: acme-bank-llm INV-2026-000001, total 2.12 CNY, due 2.12\n"
    assert settled.files() == files
    assert rows_of("SELECT count(*) FROM issued_document") == [(1,)]


def test_settling_a_closed_month_shows_what_was_issued_and_keeps_nothing(settled: Books, rows_of: Rows) -> None:
    assert settled.close().exit_code == 0
    files = settled.files()
    settled.load(request(2, "2026-05-07T10:00:00+08:00"))
    counted = "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM settlement)"
    before = rows_of(counted)
    for options in ((), ("--dry-run",), ("--provisional",)):
        shown = settled.settle("2026-05", "--format", "json", *options, now=AFTER_JUNE)
        assert (shown.exit_code, json.loads(shown.stdout)) == (0, [json.loads(files["acme-bank-llm.json"])])
        assert "closed as INV-2026-000001" in shown.stderr
    assert rows_of(counted) == before
    assert settled.files() == files


def test_a_provisional_draft_is_not_closed(books: Books, rows_of: Rows) -> None:
    books.contract()
    assert books.settle("2026-05", "--provisional").exit_code == 0
    refused = books.close()
    assert refused.exit_code == 1 and refused.stdout == ""
    assert f"{ACME} is not closed: its draft of 2026-05 is provisional" in refused.stderr
    assert f"ledger settle 2026-05 --contract {ACME}" in refused.stderr
    assert rows_of(CLOSED) == []


@pytest.mark.parametrize(
    ("change", "total"),
    [
        (("rate: 6%", "rate: 13%"), "2.26"),
        (("minimum_commitment: none", "minimum_commitment: 100"), "106.00"),
        (("name: Acme Bank Co.", "name: Acme Bank Holding"), "2.12"),
    ],
    ids=["tax", "minimum", "party"],
)
def test_a_draft_is_stale_once_its_contract_says_otherwise_of_anything_that_is_issued(
    settled: Books, rows_of: Rows, change: tuple[str, str], total: str
) -> None:
    settled.contract(SECOND, change)
    refused = settled.close()
    assert refused.exit_code == 1
    assert f"{ACME} is not closed: its draft of 2026-05 is older than the data\n  settle again: ledger settle 2026-05" in refused.stderr
    assert rows_of(CLOSED) == []
    assert f"total {total} CNY" in settled.settle_and_close("2026-05", AFTER_MAY)


def test_a_draft_is_stale_after_a_late_request_and_the_other_contracts_are_closed(books: Books, rows_of: Rows) -> None:
    books.contract()
    books.contract(*OTHER)
    books.load(request(1, "2026-05-06T10:00:00+08:00"), request(2, "2026-05-06T10:00:00+08:00", account="other-account"))
    assert books.settle().exit_code == 0
    books.load(request(3, "2026-05-31T23:59:59+08:00"))
    closed = books.close()
    assert closed.exit_code == 1
    assert closed.stdout == "closed 2026-05: other INV-2026-000001, total 2.12 CNY, due 2.12\n"
    assert f"{ACME} is not closed: its draft of 2026-05 is older than the data" in closed.stderr
    assert "INV-2026-000002, total 4.25 CNY" in books.settle_and_close("2026-05", AFTER_MAY)
    assert rows_of(CLOSED) == [("other", "2026-05", "INV-2026-000001"), (ACME, "2026-05", "INV-2026-000002")]


def test_what_waits_in_quarantine_is_issued_as_it_is_and_makes_no_draft_stale(settled: Books) -> None:
    settled.load(request(2, "2026-05-07T10:00:00+08:00").replace(",500,200", ",,200"))
    assert settled.close().exit_code == 0
    [issued] = settled.issued()
    assert (issued["unresolved"]["quarantined"], issued["totals"]["total"]) == (1, "2.12")


def test_months_are_closed_in_order(settled: Books, rows_of: Rows) -> None:
    assert settled.close().exit_code == 0
    settled.load(request(7, "2026-07-06T10:00:00+08:00"))
    july = settled.settle("2026-07", now=AFTER_JULY)
    assert july.exit_code == 0
    assert f"{ACME}: adjustments and the balance of credit are in 2026-07 when 2026-06 is closed" in july.stderr
    refused = settled.close("2026-07", now=AFTER_JULY)
    assert refused.exit_code == 1
    assert f"{ACME} is not closed: 2026-06 is not closed\n  close the months in order: ledger close 2026-06" in refused.stderr
    assert "INV-2026-000002, total 0.00 CNY" in settled.settle_and_close("2026-06", AFTER_JULY)
    assert "INV-2026-000003, total 2.12 CNY" in settled.settle_and_close("2026-07", AFTER_JULY)


def test_months_before_the_first_that_is_closed_are_settled_elsewhere(books: Books, rows_of: Rows) -> None:
    books.contract()
    books.load(request(1, "2026-04-06T10:00:00+08:00"), request(2, "2026-05-06T10:00:00+08:00"))
    assert books.settle("2026-04").exit_code == 0
    assert "INV-2026-000001, total 2.12 CNY" in books.settle_and_close("2026-05", AFTER_MAY)
    books.load(request(3, "2026-05-07T10:00:00+08:00"))
    why = "2026-05 is closed, and no month closes after a later one: 2026-04 counts as settled elsewhere"
    for refused in (books.close("2026-04"), books.settle("2026-04"), books.settle("2026-04", "--provisional")):
        assert refused.exit_code == 1 and why in refused.stderr and f"ledger reopen 2026-04 --contract {ACME}" in refused.stderr
    looked_at = books.settle("2026-04", "--dry-run", "--format", "json")
    assert looked_at.exit_code == 0 and f"{ACME} can only be looked at: {why}" in looked_at.stderr
    assert [line["kind"] for line in json.loads(looked_at.stdout)[0]["lines"]] == ["usage", "usage"]  # nothing of May is adjusted in April
    assert rows_of(CLOSED) == [(ACME, "2026-05", "INV-2026-000001")]


def test_a_version_without_its_approval_is_not_closed(settled: Books) -> None:
    settled.contract(("version: 1\n", "version: 2\nreplaces: 1\nrequire_approvals: [legal]\n"))
    refused = settled.close()
    assert refused.exit_code == 1
    assert (
        "lacks approval: version 2 that of legal" in refused.stderr and f"ledger contract approve {ACME} 2 --role legal" in refused.stderr
    )


def test_without_a_draft_nothing_is_closed_and_the_cure_is_to_settle(books: Books) -> None:
    books.contract()
    refused, of_one = books.close(), books.close("2026-05", "--contract", ACME)
    assert [refused.exit_code, of_one.exit_code] == [1, 1]
    assert "no contract has a draft of 2026-05" in refused.stderr and "ledger settle 2026-05" in refused.stderr
    assert f"contract {ACME} has no draft of 2026-05" in of_one.stderr and f"ledger settle 2026-05 --contract {ACME}" in of_one.stderr


def test_sums_altered_behind_the_back_of_ledger_are_not_issued(settled: Books, owner_url: str, rows_of: Rows) -> None:
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE cell SET tokens_input = tokens_input * 10")
    assert settled.settle().exit_code == 0
    refused = settled.close()
    assert refused.exit_code == 1
    assert "the sums kept of 2026-05-06 are not what its requests give\n  see: ledger verify --cells" in refused.stderr
    assert rows_of(CLOSED) == []


def test_sums_of_a_closed_month_altered_are_not_adjusted_by(settled: Books, owner_url: str, rows_of: Rows) -> None:
    assert settled.close().exit_code == 0
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE cell SET tokens_input = tokens_input * 10")
    assert settled.settle("2026-06", now=AFTER_JUNE).exit_code == 0
    refused = settled.close("2026-06", now=AFTER_JUNE)
    assert refused.exit_code == 1 and "the sums kept of 2026-05-06 are not what its requests give" in refused.stderr


def test_without_yes_and_without_a_terminal_the_preview_is_shown_and_nothing_closed(settled: Books, rows_of: Rows) -> None:
    asked = settled.run_ledger("close", "2026-05", now=AFTER_MAY)
    assert asked.exit_code == 2 and asked.stdout == ""
    assert "closing 2026-05 is final: say --yes" in asked.stderr
    assert [line.split() for line in asked.stderr.splitlines() if "CNY" in line] == [[ACME, "draft", "2.12", "2.12", "CNY"]]
    assert rows_of(CLOSED) == []


@pytest.mark.parametrize(("answer", "count"), [(b"n\n", 0), (b"y\n", 1)])
def test_at_a_terminal_it_is_asked_before_it_is_closed(settled: Books, database_url: str, rows_of: Rows, answer: bytes, count: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "ledger", "close", "2026-05", "--output", str(settled.folder / "out")]
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url, "LEDGER_NOW": AFTER_MAY}
    asked = subprocess.run(command, env=environment, stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    assert "Issue 1 document of 2026-05 for good? [y/N]" in asked.stderr
    assert (asked.returncode, len(rows_of(CLOSED))) == (1 - count, count)
    os.close(ours)
    os.close(theirs)


def test_what_was_settled_again_while_it_was_asked_is_not_issued(settled: Books, database_url: str, rows_of: Rows) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ledger", "close", "2026-05", "--output", str(settled.folder / "out")]
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url, "LEDGER_NOW": AFTER_MAY}
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        assert asking.stderr is not None
        said = b""
        while not said.endswith(b"[y/N]: ") and (character := asking.stderr.read(1)):
            said += character
        settled.load(request(2, "2026-05-07T10:00:00+08:00"))
        assert settled.settle().exit_code == 0
        os.write(ours, b"y\n")
        _, refused = asking.communicate(timeout=60)
    assert asking.returncode == 1
    assert f"{ACME} is not closed: its draft of 2026-05 is not the one that was shown\n  look at it again: ledger close" in refused.decode()
    assert rows_of(CLOSED) == []
    os.close(ours)
    os.close(theirs)


def test_a_dry_run_says_what_would_be_refused(settled: Books, rows_of: Rows) -> None:
    settled.load(request(2, "2026-05-07T10:00:00+08:00"))
    shown = settled.close("2026-05", "--dry-run")
    assert shown.exit_code == 1
    assert f"{ACME} is not closed: its draft of 2026-05 is older than the data" in shown.stderr
    assert "dry run: 0 to close, nothing closed" in shown.stderr
    assert rows_of("SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM settlement), (SELECT count(*) FROM closing)") == [(1, 1, 0)]


def test_a_dry_run_shows_what_would_be_issued_and_closes_nothing(settled: Books, rows_of: Rows) -> None:
    before = settled.files()
    shown = settled.run_ledger("close", "2026-05", "--dry-run", "--output", settled.folder / "out", now=AFTER_MAY)
    assert shown.exit_code == 0 and "dry run: 1 to close, nothing closed" in shown.stderr
    assert [line.split() for line in shown.stderr.splitlines() if "CNY" in line] == [[ACME, "draft", "2.12", "2.12", "CNY"]]
    assert rows_of(CLOSED) == [] and rows_of("SELECT count(*) FROM settlement") == [(1,)] and settled.files() == before


def test_a_month_that_comes_to_less_than_nothing_is_a_credit_note_of_its_own_series(books: Books, rows_of: Rows) -> None:
    books.contract(NO_BUDGET)
    books.contract(*OTHER)
    books.load(
        request(1, "2026-05-06T10:00:00+08:00", latency_us=SLOW),  # 0.60 of usage, 4.01 of credit
        request(2, "2026-05-06T10:00:00+08:00", account="other-account"),
        *(request(n, "2026-06-06T10:00:00+08:00") for n in (3, 4)),
    )
    said = books.settle_and_close("2026-05", AFTER_MAY)
    assert said.splitlines() == [
        "closed 2026-05: acme-bank-llm CN-2026-000001, total -3.61 CNY, due 0.00",
        "closed 2026-05: other INV-2026-000001, total 2.12 CNY, due 2.12",
    ]
    assert "Credit note" in books.files()["acme-bank-llm.html"].decode()
    assert rows_of("SELECT number_text, position FROM issued_document ORDER BY position") == [("CN-2026-000001", 1), ("INV-2026-000001", 2)]
    assert books.settle_and_close("2026-06", AFTER_JUNE).splitlines() == [
        "closed 2026-06: acme-bank-llm INV-2026-000002, total 4.25 CNY, due 0.64",
        "closed 2026-06: other INV-2026-000003, total 0.00 CNY, due 0.00",
    ]


def test_numbers_are_those_of_the_year_in_the_zone_of_the_contract_and_of_each_provider(books: Books, rows_of: Rows) -> None:
    elsewhere = (("id: acme-bank-llm", "id: paris"), ("    - acme-bank\n", "    - paris\n"), ("Asia/Shanghai", "Europe/Paris"))
    another = (("id: acme-bank-llm", "id: rival"), ("    - acme-bank\n", "    - rival\n"), (PROVIDER, "91110000TEST000009"))
    for changes in ((), elsewhere, another):
        books.contract(*changes)
    for month, now in (("2026-11", "2026-12-31T15:30:00Z"), ("2026-12", "2027-01-03T00:00:00Z")):
        books.settle_and_close(month, now)
    numbers = rows_of("SELECT contract_id, number_text, issued_on::text FROM closing JOIN issued_document USING (tax_id, number_text) "
                      "ORDER BY contract_id, closing.period")  # fmt: skip
    assert numbers == [
        (ACME, "INV-2026-000001", "2026-12-31"),
        (ACME, "INV-2027-000001", "2027-01-03"),
        ("paris", "INV-2026-000002", "2026-12-31"),
        ("paris", "INV-2027-000002", "2027-01-03"),
        ("rival", "INV-2026-000001", "2026-12-31"),
        ("rival", "INV-2027-000001", "2027-01-03"),
    ]


def test_half_past_midnight_in_shanghai_is_next_year_and_in_paris_still_this_one(books: Books, rows_of: Rows) -> None:
    books.contract()
    books.contract(("id: acme-bank-llm", "id: paris"), ("    - acme-bank\n", "    - paris\n"), ("Asia/Shanghai", "Europe/Paris"))
    books.settle_and_close("2026-11", "2026-12-31T16:30:00Z")
    assert rows_of(CLOSED) == [(ACME, "2026-11", "INV-2027-000001"), ("paris", "2026-11", "INV-2026-000001")]


def test_a_draft_is_taken_back_and_a_closed_month_is_not(settled: Books, rows_of: Rows) -> None:
    reopen = ("reopen", "2026-05", "--contract", ACME)
    taken = settled.run_ledger(*reopen)
    assert taken.exit_code == 0 and rows_of("SELECT count(*) FROM settlement") == [(0,)]
    again = settled.run_ledger(*reopen)
    assert again.exit_code == 1 and f"contract {ACME} has no draft of 2026-05" in again.stderr
    settled.settle_and_close("2026-05", AFTER_MAY)
    refused = settled.run_ledger(*reopen)
    assert refused.exit_code == 1 and f"2026-05 of {ACME} is closed as INV-2026-000001, and stays so" in refused.stderr
    assert len(rows_of(CLOSED)) == 1


def test_late_requests_of_an_ended_contract_are_adjusted_in_a_later_month_and_nothing_else_is_billed(books: Books, rows_of: Rows) -> None:
    books.contract(("until: 2027-01-01", "until: 2026-06-01"), ("minimum_commitment: none", "minimum_commitment: 2"))
    books.load(request(1, "2026-05-06T10:00:00+08:00"), request(2, "2026-06-06T10:00:00+08:00"))
    assert "total 2.12 CNY" in books.settle_and_close("2026-05", AFTER_MAY)
    nothing = books.settle("2026-06", "--format", "json", now=AFTER_JUNE)
    assert (nothing.exit_code, json.loads(nothing.stdout)) == (0, []), nothing.stderr
    assert nothing.stderr.splitlines()[-2:] == [
        "warning: no contract covers the requests of acme-bank (1); add the accounts to a contract",
        "nothing to settle in 2026-06: no contract is in force, and nothing is adjusted of those that have ended",
    ]
    books.load(request(3, "2026-05-07T10:00:00+08:00"))
    assert "INV-2026-000002, total 2.13 CNY, due 2.13" in books.settle_and_close("2026-06", AFTER_JUNE)  # 2.00 and 0.008
    [issued] = books.issued("2026-06")
    assert [(line["kind"], line["of"]["kind"], line["token"], line["amount"], line["causes"]) for line in issued["lines"]] == [
        ("adjustment", "usage", "input", "2.00", [{"kind": "late", "ref": "r000003"}]),
        ("adjustment", "usage", "output", "0.01", [{"kind": "late", "ref": "r000003"}]),
    ]
    assert issued["events"]["total"] == 0 and issued["totals"]["true_up"] == "0.00"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("within: 365d", "within: 1d"), "the time for corrections has passed"),
        (("may_charge_more: yes", "may_charge_more: no"), "a correction may not charge more"),
    ],
    ids=["within", "may_charge_more"],
)
def test_a_difference_that_is_not_billed_is_named(books: Books, change: tuple[str, str], why: str) -> None:
    books.contract(change)
    books.settle_and_close("2026-05", AFTER_MAY)
    books.load(request(1, "2026-05-06T10:00:00+08:00"))
    settled = books.settle("2026-06", now=AFTER_JUNE)
    assert settled.exit_code == 0
    assert f"{ACME}: 2026-05 (INV-2026-000001) would now differ by CNY 2.12, which is not billed: {why}" in settled.stderr
    assert "INV-2026-000002, total 0.00 CNY" in books.close("2026-06", now=AFTER_JUNE).stdout


def test_settle_waits_for_who_settles_or_closes_and_says_who_it_is(settled: Books, database_url: str) -> None:
    command = [sys.executable, "-m", "ledger", "close", "2026-05", "--yes", "--output", str(settled.folder / "out")]
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url, "LEDGER_NOW": AFTER_MAY}
    with psycopg.connect(database_url, autocommit=True) as holder:
        holder.execute(LOCK)
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
            assert waiting.stderr is not None
            said = waiting.stderr.readline()
            assert f"waiting for another settle or close: process {holder.info.backend_pid} of the server, whose session began at" in said
            assert waiting.poll() is None
            holder.execute("SELECT pg_advisory_unlock_all()")
            closed, _ = waiting.communicate(timeout=60)
            assert (waiting.returncode, closed) == (0, "closed 2026-05: acme-bank-llm INV-2026-000001, total 2.12 CNY, due 2.12\n")


def test_who_waits_too_long_gives_up_and_says_for_whom(database_url: str) -> None:
    told: list[str] = []
    with psycopg.connect(database_url, autocommit=True) as holder, open_database(database_url) as database:
        holder.execute(LOCK)
        who = f"process {holder.info.backend_pid} of the server"
        with pytest.raises(StillSettling) as stopped, one_settlement_at_a_time(database, told.append, patience_seconds=2.5):
            pass
        assert len(told) == 1 and told[0].startswith(who)
        assert stopped.value.exit_code == 4 and who in str(stopped.value)
        holder.execute("SELECT pg_advisory_unlock_all()")
        with one_settlement_at_a_time(database, patience_seconds=0):
            pass
