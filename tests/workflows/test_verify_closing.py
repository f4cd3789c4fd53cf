"""`ledger verify MONTH` and `--chain`: what was issued is what the events give that its close saw, and what was sealed.

Whatever came later plays no part, and whatever was altered behind the rules of the database is named.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template

import psycopg
import pytest

from ledger.store.connection import Connection, driver_cursor
from ledger.store.database import Database, open_database
from ledger.store.embedded import Server
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.verify_chain import chains_against_seals
from ledger.workflows.verify_closing import closings_against_events
from tests.conftest import RunLedger, ledger_on, owner_url_of
from tests.workflows.base_contract import OTHER, request, write_contract, write_events

Alter = Callable[[Connection], None]

PROVIDER = "91110000TEST000001"
# Where alterations are made: `$name` in their statements.
PLACES = {
    "may": "(contract_id, period) = ('acme-bank-llm', '2026-05')",
    "first": "number_text = 'INV-2026-000001'",
    "second": "number_text = 'INV-2026-000002'",
    "forged": "convert_to(replace(convert_from(sealed, 'UTF8'), '\"total\":\"7.01\"', '\"total\":\"9.00\"'), 'UTF8')",
}
CORRECTED = (("version: 1\n", "version: 2\nreplaces: 1\n"), ("input: 2.00", "input: 3.00"))
BREAKER = "kind,node,start,end\ncircuit_breaker,,2026-05-05T00:00:00Z,2026-05-07T00:00:00Z\n"


@pytest.fixture(scope="module")
def url(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two contracts that closed May and June, June with adjustments of May; and what came after that, which is in no document."""
    folder, ledger = tmp_path_factory.mktemp("closed"), ledger_on(module_database_url)

    def run(*arguments: str | Path, day: str) -> None:
        result = ledger(*arguments, now=f"2026-{day}T12:00:00Z")
        assert result.exit_code == 0, result.stderr

    def load(*rows: str, day: str) -> None:
        run("ingest", write_events(folder, list(rows), name=f"{day}.csv"), day=day)

    def close(month: str, day: str) -> None:
        run("settle", month, "--output", folder / "out", day=day)
        run("close", month, "--yes", "--output", folder / "out", day=day)

    (folder / "breaker.csv").write_text(BREAKER)
    run("contract", "add", write_contract(folder), write_contract(folder, *OTHER, name="other.yaml"), day="01-01")
    load(
        request(1, "2026-05-04T10:00:00Z", latency_us=90_000),
        request(2, "2026-05-05T10:00:00Z"),
        request(3, "2026-05-06T10:00:00Z", latency_us=350_000),
        request(1, "2026-05-06T10:00:00Z", account="other-account"),
        day="06-01",
    )
    close("2026-05", day="06-03")
    load(
        request(4, "2026-05-07T10:00:00Z", latency_us=90_000),
        request(10, "2026-06-07T10:00:00Z"),
        request(10, "2026-06-07T10:00:00Z", account="other-account"),
        day="07-01",
    )
    run("void", "r000002", "--reason", "a test", day="07-02")
    close("2026-06", day="07-03")
    load(request(5, "2026-05-08T10:00:00Z"), request(11, "2026-06-08T10:00:00Z"), day="07-04")
    run("void", "r000001", "--account", "acme-bank", "--reason", "a test", day="07-04")
    run("interval", "add", folder / "breaker.csv", day="07-04")
    run("contract", "add", write_contract(folder, *CORRECTED, name="corrected.yaml"), day="07-04")
    return module_database_url


@pytest.fixture
def ledger(url: str) -> RunLedger:
    return ledger_on(url)


@pytest.fixture
def closed(server: Server, url: str) -> Iterator[Database]:
    """The database for the owner of its tables, who can alter what nobody else can."""
    with open_database(owner_url_of(server, url)) as opened:
        yield opened


def alter(connection: Connection, *statements: str) -> None:
    """As the owner of the tables may: behind the triggers, each statement one row or more."""
    with driver_cursor(connection) as cursor:
        for table in (
            "issued_document",
            "closing",
            "invoice_line",
            "journal_posting",
            "issued_file",
            "contract_version",
            "event",
            "void",
            "run",
        ):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL".encode())
        for statement in statements:
            assert cursor.execute(Template(statement).substitute(PLACES).encode()).rowcount != 0, statement


def found_in_chain(database: Database, *statements: str) -> list[str]:
    """What following the chain finds after the alterations, which are then taken back."""
    with any_snapshot(database) as connection:
        alter(connection, *statements)
        verified = chains_against_seals(connection)
        connection.rollback()
    found = [f"{one.number_text}: {one.disagreement.words}" for chain in verified.chains for one in chain.found]
    return [*found, *verified.strays]


def found_in_month(database: Database, *statements: str, month: str = "2026-05") -> list[str]:
    """The same of verifying the month of acme."""
    with any_snapshot(database) as connection:
        alter(connection, *statements)
        [verified] = closings_against_events(connection, month, "acme-bank-llm")
        connection.rollback()
    return [one.words for one in verified.found]


def test_closed_months_agree_after_late_requests_voids_intervals_and_a_corrected_version(ledger: RunLedger) -> None:
    may, june, chain = (ledger("verify", *arguments) for arguments in (["2026-05"], ["2026-06"], ["--chain"]))
    assert (may.exit_code, june.exit_code, chain.exit_code) == (0, 0, 0)
    assert may.stdout.splitlines() == [
        "2026-05 acme-bank-llm INV-2026-000001: 6 lines agree",
        "2026-05 other INV-2026-000002: 2 lines agree",
    ]
    assert june.stdout.splitlines()[0] == "2026-06 acme-bank-llm INV-2026-000003: 6 lines agree"
    assert chain.stdout == f"{PROVIDER}: 4 documents agree\n"


def test_one_contract_of_a_month_is_verified_and_told_as_json(ledger: RunLedger) -> None:
    result = ledger("verify", "2026-05", "--contract", "other", "--format", "json")
    other = {"period": "2026-05", "contract": "other", "number": "INV-2026-000002", "lines": 2, "differences": []}
    assert (result.exit_code, json.loads(result.stdout)) == (0, [other])
    chain = {"provider": PROVIDER, "documents": 4, "differences": []}
    result = ledger("verify", "--chain", "--provider", PROVIDER, "--format", "json")
    assert json.loads(result.stdout) == {"chains": [chain], "strays": []}


def test_what_cannot_be_verified_is_refused_with_what_to_do(ledger: RunLedger) -> None:
    for arguments, code, said in [
        ([], 2, "say what to verify: a MONTH, --chain or --cells"),
        (["--cells", "2026-13"], 2, "is not a month"),
        (["2026-05", "--chain"], 2, "give no month"),
        (["2026-05", "--provider", PROVIDER], 2, "--provider goes with --chain"),
        (["--cells", "--contract", "other"], 2, "--contract goes with a MONTH alone"),
        (["2026-07"], 1, "no contract has closed 2026-07\n  close it first: ledger close 2026-07"),
        (["2026-05", "--contract", "nobody"], 1, "contract nobody has not closed 2026-05"),
        (["--chain", "--provider", "nobody"], 1, "the provider nobody has issued no document"),
    ]:
        result = ledger("verify", *arguments)
        assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


def test_an_altered_event_is_told_by_the_line_that_it_is_on_and_exits_5(
    owner_database: Database, run_ledger: RunLedger, tmp_path: Path
) -> None:
    assert run_ledger("contract", "add", write_contract(tmp_path)).exit_code == 0
    assert run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-04T10:00:00Z")])).exit_code == 0
    for command in (("settle",), ("close", "--yes")):
        assert run_ledger(*command, "2026-05", "--output", tmp_path / "out", now="2026-06-03T00:00:00Z").exit_code == 0
    with owner_database.begin() as connection:
        alter(connection, "UPDATE event SET input_tokens = 850000")
    result = run_ledger("verify", "2026-05")
    told = "2026-05 acme-bank-llm INV-2026-000001: line 1 (usage deepseek-v4 standard standard input)"
    assert (result.exit_code, result.stdout.splitlines()[0]) == (5, f"{told}: posted 2.00, events give 1.70")
    assert "what was issued is not what the requests give" in result.stderr
    [verified] = json.loads(run_ledger("verify", "2026-05", "--format", "json").stdout)
    place = "line 1 (usage deepseek-v4 standard standard input)"
    assert verified["differences"][0] == {"place": place, "kept": "2.00", "given": "1.70", "by": "events"}
    assert run_ledger("verify", "--chain").exit_code == 0  # of events the seal says nothing


@pytest.mark.parametrize(
    ("month", "alteration", "first"),
    [
        (
            "2026-05",
            "UPDATE event SET inference_us = 150000 WHERE (account, request_id) = ('acme-bank', 'r000001')",
            "line 1 (usage deepseek-v4 standard fast input): posted 4.00, events give nothing",
        ),
        (
            "2026-05",
            "UPDATE event SET inference_us = 400000 WHERE (account, request_id) = ('acme-bank', 'r000003')",
            "line (credit deepseek-v4 refund input): posted nothing, events give -4.00",
        ),
        (
            "2026-06",
            "DELETE FROM void WHERE request_id = 'r000002'",
            "line 3 (adjustment of 2026-05 usage deepseek-v4 standard fast input), causes: posted ",
        ),
        (
            "2026-05",
            "UPDATE run SET batches = '{[1,100)}' WHERE run_id = (SELECT run_id FROM closing WHERE $may)",
            "line 1 (usage deepseek-v4 standard fast input): posted 4.00, events give 8.00",
        ),
        (
            "2026-05",
            "UPDATE invoice_line SET amount_minor = 230 WHERE $may AND (band, token) = ('standard', 'input')",
            "line 5 (usage deepseek-v4 standard standard input): posted 2.30, events give 2.00",
        ),
        (
            "2026-05",
            "UPDATE invoice_line SET tax_rate = 0.13 WHERE $may AND (band, token) = ('standard', 'input')",
            "line 5 (usage deepseek-v4 standard standard input), tax rate: posted 0.13, events give 0.06",
        ),
        (
            "2026-05",
            "UPDATE journal_posting SET amount_minor = amount_minor + 1 WHERE $first AND account = 'receivable'",
            "journal posting 1 amount: posted 7.02, events give 7.01",
        ),
        (
            "2026-05",
            "UPDATE closing SET digest = repeat('0', 64) WHERE $may",
            "digest of the events: posted 0000000000000000000000000000000000000000000000000000000000000000, events give ",
        ),
        ("2026-05", "UPDATE closing SET basis = '{}' WHERE $may", "days: posted other days than those of the contract, "),
        (
            "2026-05",
            "UPDATE contract_version SET content = content || '#' WHERE (contract_id, version) = ('acme-bank-llm', 1)",
            "contract version 1: posted by the text that was added, events give nothing: its text was altered",
        ),
        (
            "2026-05",
            "DELETE FROM contract_version WHERE (contract_id, version) = ('acme-bank-llm', 1)",
            "contract version 1: posted by the text with hash ",
        ),
    ],
)
def test_what_a_month_follows_from_is_named_where_it_was_altered(closed: Database, month: str, alteration: str, first: str) -> None:
    found = found_in_month(closed, alteration, month=month)
    assert found[:1] == [one for one in found[:1] if one.startswith(first)] != [], found


def test_kept_cells_play_no_part_in_what_is_verified(closed: Database) -> None:
    assert found_in_month(closed, "UPDATE cell SET tokens_output = tokens_output * 10, requests = requests + 1") == []


def test_the_days_that_were_recorded_hold_and_not_those_of_the_zone_data(closed: Database) -> None:
    moved = "replace(basis::text, '2026-05-05T16:00:00Z', '2026-05-05T17:30:00Z')::jsonb"
    found = found_in_month(closed, "UPDATE closing SET basis = $moved WHERE $may".replace("$moved", moved))
    breach = "breach (deepseek-v4 from 2026-05-06T09:30:00Z to 2026-05-06T10:30:00Z): posted nothing, events give forgiven"
    assert breach in found, found


@pytest.mark.parametrize(
    ("alterations", "expected"),
    [
        (
            ["UPDATE invoice_line SET amount_minor = 230 WHERE $may AND (band, token) = ('standard', 'input')"],
            ["INV-2026-000001: row of line 5 (usage deepseek-v4 standard standard input): kept 2.30, sealed 2.00"],
        ),
        (
            ["DELETE FROM invoice_line WHERE $may AND position = 5"],
            ["INV-2026-000001: row of line (usage deepseek-v4 standard standard input): kept nothing, sealed 2.00"],
        ),
        (
            ['UPDATE issued_document SET content = replace(content, \'"total":"7.01"\', \'"total":"9.00"\') WHERE $first'],
            [
                "INV-2026-000001: totals total: kept 9.00, sealed 7.01",
                "INV-2026-000001: file acme-bank-llm.json: found other content, expected the content of the document",
            ],
        ),
        (
            ["UPDATE issued_document SET content = content || ' ' WHERE $first"],
            [
                "INV-2026-000001: content: kept other bytes, sealed its canonical JSON",
                "INV-2026-000001: file acme-bank-llm.json: found other content, expected the content of the document",
            ],
        ),
        (
            ["UPDATE issued_document SET total_minor = 900 WHERE $first"],
            ["INV-2026-000001: total: kept 9.00, sealed 7.01"],
        ),
        (
            ["UPDATE journal_posting SET amount_minor = amount_minor + 1 WHERE $first AND position <= 2"],
            [
                "INV-2026-000001: journal posting 1 amount: kept 7.02, sealed 7.01",
                "INV-2026-000001: journal posting 2 amount: kept -4.00, sealed -4.01",
            ],
        ),
        (
            ["UPDATE issued_document SET sealed = $forged, seal = encode(sha256($forged), 'hex') WHERE $first"],
            [
                "INV-2026-000001: totals total: kept 7.01, sealed 9.00",
                "INV-2026-000001: total: kept 7.01, sealed 9.00",
                "INV-2026-000002: previous seal: found ",
            ],
        ),
        (
            [
                "ALTER TABLE issued_document DROP CONSTRAINT ck_issued_document_seal; "
                "UPDATE issued_document SET sealed = $forged WHERE $first"
            ],
            ["INV-2026-000001: seal: found "],
        ),
        (
            ["UPDATE issued_document SET previous_seal = repeat('0', 64) WHERE $second"],
            [f"INV-2026-000002: previous seal: found {'0' * 64}, expected ", f"INV-2026-000002: previous seal: kept {'0' * 64}, sealed "],
        ),
        (
            ["UPDATE issued_document SET number = 9 WHERE $second"],
            [
                "None: series invoice of 2026, number of INV-2026-000003: found 3, expected 2",
                "None: series invoice of 2026, number of INV-2026-000002: found 9, expected 5",
            ],
        ),
        (
            ['UPDATE closing SET contract_hashes = \'{"1": "0"}\' WHERE $may'],
            ["INV-2026-000001: contract hash of version 1: kept 0, sealed "],
        ),
        (["UPDATE closing SET carried_out_minor = 5 WHERE $may"], ["INV-2026-000001: carried out: kept 0.05, sealed 0.00"]),
        (
            [
                "DROP INDEX uq_closing_previous_period; "
                "UPDATE closing SET previous_period = NULL WHERE (contract_id, period) = ('other', '2026-06')"
            ],
            ["closed period 2026-06 of other: it names nothing as closed before it, and that was 2026-05"],
        ),
        (
            [
                "ALTER TABLE issued_file DROP CONSTRAINT ck_issued_file_sha256; "
                "UPDATE issued_file SET content = content || 'x' WHERE $first AND name LIKE '%.html'"
            ],
            ["INV-2026-000001: file acme-bank-llm.html: found "],
        ),
        (
            ["DELETE FROM issued_file WHERE $first AND name LIKE '%.json'"],
            ["INV-2026-000001: file acme-bank-llm.json: found nothing, expected the content of the document"],
        ),
        (
            ["DELETE FROM issued_document WHERE $second"],
            [
                "INV-2026-000003: position: found 3, expected 2",
                "None: series invoice of 2026, number of INV-2026-000003: found 3, expected 2",
                "closed period 2026-05 of other: its document INV-2026-000002 is missing",
                "file other.csv of INV-2026-000002: its document is missing",
                "file other.html of INV-2026-000002: its document is missing",
                "file other.json of INV-2026-000002: its document is missing",
                "posting 1 of INV-2026-000002: its document is missing",
                "posting 2 of INV-2026-000002: its document is missing",
                "posting 3 of INV-2026-000002: its document is missing",
            ],
        ),
        (
            ["DELETE FROM closing WHERE (contract_id, period) = ('other', '2026-06')"],
            [
                f"INV-2026-000004: closed period: found nothing, expected one that INV-2026-000004 of {PROVIDER} is of",
                "line 1 of 2026-06 of other: its closed period is missing",
                "line 2 of 2026-06 of other: its closed period is missing",
            ],
        ),
        (
            ["UPDATE contract_version SET content = content || '#' WHERE (contract_id, version) = ('other', 1)"],
            ["version 1 of contract other: its text is not the one that was added"],
        ),
    ],
)
def test_what_was_altered_of_an_issued_document_is_named(closed: Database, alterations: Sequence[str], expected: Sequence[str]) -> None:
    found = found_in_chain(closed, *alterations)
    assert len(found) == len(expected) and all(one.startswith(begin) for one, begin in zip(found, expected, strict=True)), found


def test_an_altered_chain_exits_5_once_the_owner_has_switched_off_the_triggers(ledger: RunLedger, server: Server, url: str) -> None:
    owner_url = owner_url_of(server, url)

    def write(amount_minor: int) -> None:
        with psycopg.connect(owner_url) as connection:
            connection.execute("UPDATE invoice_line SET amount_minor = %s WHERE period = '2026-05' AND position = 5", [amount_minor])

    def switch(how: str) -> None:
        with psycopg.connect(owner_url) as connection:
            connection.execute(f"ALTER TABLE invoice_line {how} TRIGGER refuse_change".encode())

    with pytest.raises(psycopg.errors.RestrictViolation):
        write(230)
    switch("DISABLE")
    write(230)
    altered = ledger("verify", "--chain")
    write(200)
    switch("ENABLE")
    told = f"{PROVIDER} INV-2026-000001: row of line 5 (usage deepseek-v4 standard standard input): kept 2.30, sealed 2.00\n"
    assert (altered.exit_code, altered.stdout) == (5, told)
    assert "what is kept is not what was issued" in altered.stderr
    assert ledger("verify", "--chain").exit_code == 0
