"""A line of an issued document credited on demand, through the command line: what is issued, what is refused, and who sets it off."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result

from tests.conftest import RunLedger, RunLedgerProcess
from tests.workflows.base_contract import request, write_contract, write_events
from tests.workflows.issued_months import CLOSED_AT, PROVIDER, close_month, close_months, done, load_months

Rows = Callable[[str], list[tuple[Any, ...]]]
MAY = "INV-2026-000001"  # 100 requests: line 1 is 100,000,000 input tokens, 200.00, line 2 50,000 output tokens, 0.40; tax 12.02
JUNE_4 = "2026-06-04T00:00:00Z"


@pytest.fixture
def closed_may(run_ledger: RunLedger, tmp_path: Path) -> None:
    """May of the base contract is closed; June and July are loaded."""
    load_months(run_ledger, tmp_path)
    close_months(run_ledger, tmp_path, ["2026-05"])


@pytest.fixture
def credit(run_ledger: RunLedger, tmp_path: Path) -> Callable[..., Result]:
    """Credits a line of May, without being asked, on 4 June."""

    def run(line: int, *options: str, number: str = MAY, now: str = JUNE_4, reason: str = "as agreed") -> Result:
        where = ("--output", tmp_path / "out", "--reason", reason)
        return run_ledger("credit-note", "create", number, "--line", str(line), "--yes", *options, *where, now=now)

    return run


def carried(run_ledger: RunLedger, month: str) -> tuple[str, str, str, str]:
    """What a closed month says of the balance: total, carried in, due, carried out."""
    [one] = json.loads(done(run_ledger("settle", month, "--format", "json", "--dry-run", now="2026-09-01T00:00:00Z")).stdout)
    assert one["state"] == "closed"
    return tuple(one["totals"][name] for name in ("total", "carried_in", "due", "carried_out"))  # type: ignore[return-value]


def test_a_credit_note_is_a_document_with_number_seal_journal_and_files(
    closed_may: None, credit: Callable[..., Result], rows_of: Rows, tmp_path: Path
) -> None:
    result = done(credit(1, "--amount", "12.50"))
    assert result.stdout == f"issued CN-2026-000001: CNY 13.25 with tax of line 1 of {MAY} (acme-bank-llm)\n"
    [(position, previous, seal, sealed, content, total)] = rows_of(
        "SELECT position, previous_seal, seal, sealed, content, total_minor FROM issued_document WHERE series = 'credit_note'"
    )
    assert [(position, total)] == [(2, -1325)] and sha256(bytes(sealed)).hexdigest() == seal
    assert [(previous,)] == rows_of("SELECT seal FROM issued_document WHERE series = 'invoice'")
    said = json.loads(bytes(sealed))
    assert (said["number"], said["tax_id"], said["previous_seal"]) == ("CN-2026-000001", PROVIDER, previous)
    assert said["settlement"] == json.loads(content)
    assert said["journal"] == [
        {"account": "credit_notes:revenue:standard", "amount": "12.50", "memo": f"credit of {MAY}"},
        {"account": "tax", "amount": "0.75", "memo": f"credit of {MAY}"},
        {"account": "balance", "amount": "-13.25", "memo": f"credit of {MAY}"},
    ]
    line = said["settlement"].pop("line")
    assert (line["position"], line["kind"], line["token"], line["quantity"], line["amount"]) == (1, "usage", "input", 10**8, "200.00")
    assert said["settlement"] == {
        "credit_note": "CN-2026-000001", "issued_on": "2026-06-04", "contract": "acme-bank-llm", "version": 1, "period": "2026-05",
        "invoice": MAY, "timezone": "Asia/Shanghai", "currency": "CNY", "tokens": None, "reason": "as agreed",
        "credit": {"net": "12.50", "tax": "0.75", "total": "13.25"},
    }  # fmt: skip
    folder = tmp_path / "out" / "credit-notes"
    assert (folder / "acme-bank-llm-CN-2026-000001.json").read_text() == content
    page = (folder / "acme-bank-llm-CN-2026-000001.html").read_text()
    for words in (
        "CN-2026-000001",
        "4 June 2026",
        f"{MAY}, line 1",
        "May 2026, issued 3 June 2026",
        "as agreed",
        "CNY\xa013.25",
        seal,
        previous,
    ):
        assert words in page, words


def test_credits_are_set_off_once_by_the_next_month_that_is_closed(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    done(credit(1, "--amount", "100.00"))
    done(credit(2, "--amount", "0.40"))
    close_month(run_ledger, tmp_path, "2026-06")
    assert carried(run_ledger, "2026-06") == ("212.42", "106.42", "106.00", "0.00")
    done(credit(1, "--amount", "1.00", now="2026-07-04T00:00:00Z"))
    close_month(run_ledger, tmp_path, "2026-07")
    assert carried(run_ledger, "2026-07") == ("212.42", "1.06", "211.36", "0.00")
    listed = json.loads(done(run_ledger("credit-note", "list", "--format", "json")).stdout)
    assert [(one["credit_note"], one["line"], one["credit"]["total"], one["carried_into"]) for one in listed] == [
        ("CN-2026-000001", 1, "106.00", "2026-06"),
        ("CN-2026-000002", 2, "0.42", "2026-06"),
        ("CN-2026-000003", 1, "1.06", "2026-07"),
    ]


@pytest.mark.parametrize(
    ("table", "alteration", "first"),
    [
        ("journal_posting", "SET amount_minor = amount_minor + 1 WHERE account = 'balance'", "journal posting"),
        ("issued_document", "SET content = replace(content, 'as agreed', 'as denied') WHERE series = 'credit_note'", "content"),
        (
            "issued_file",
            "SET content = 'x', sha256 = encode(sha256('x'), 'hex') WHERE name LIKE '%CN-%.json'",
            "file acme-bank-llm-CN-2026-000001.json",
        ),
        ("issued_document", "SET sealed = 'x', seal = encode(sha256('x'), 'hex') WHERE series = 'credit_note'", "what is sealed"),
    ],
)
def test_credits_are_verified_in_the_chain_and_in_the_month_that_carried_them_in(
    closed_may: None,
    credit: Callable[..., Result],
    run_ledger: RunLedger,
    tmp_path: Path,
    owner_url: str,
    table: str,
    alteration: str,
    first: str,
) -> None:
    done(credit(1, "--amount", "100.00"))
    close_month(run_ledger, tmp_path, "2026-06")
    for verified in (["verify", "--chain"], ["verify", "2026-05"], ["verify", "2026-06"]):
        done(run_ledger(*verified))
    with psycopg.connect(owner_url) as connection:
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL".encode())
        assert connection.execute(f"UPDATE {table} {alteration}".encode()).rowcount
    altered = run_ledger("verify", "--chain")
    assert altered.exit_code == 5 and f"CN-2026-000001: {first}" in altered.stdout


def test_what_a_month_does_not_set_off_is_carried_on_beside_later_credits(
    run_ledger: RunLedger, credit: Callable[..., Result], tmp_path: Path
) -> None:
    done(run_ledger("contract", "add", write_contract(tmp_path)))
    numbers = {"2026-05": 100, "2026-06": 1, "2026-07": 100}
    rows = [request(1000 * at + n, f"{month}-15T10:00:00+08:00") for at, month in enumerate(numbers) for n in range(numbers[month])]
    done(run_ledger("ingest", write_events(tmp_path, rows)))
    close_month(run_ledger, tmp_path, "2026-05")
    done(credit(1, "--amount", "50.00"))
    close_month(run_ledger, tmp_path, "2026-06")
    assert carried(run_ledger, "2026-06") == ("2.12", "53.00", "0.00", "50.88")
    done(credit(1, "--amount", "1.00"))
    close_month(run_ledger, tmp_path, "2026-07")
    assert carried(run_ledger, "2026-07") == ("212.42", "51.94", "160.48", "0.00")


def test_a_draft_that_was_made_before_a_credit_is_not_closed(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    options, now = ("--output", tmp_path / "out"), CLOSED_AT["2026-06"]
    done(run_ledger("settle", "2026-06", *options, now=now))
    done(credit(1, "--amount", "10.00", now=now))
    refused = run_ledger("close", "2026-06", "--yes", *options, now=now)
    assert refused.exit_code == 1 and "its draft of 2026-06 is older than the data" in refused.stderr
    close_month(run_ledger, tmp_path, "2026-06")
    assert carried(run_ledger, "2026-06")[1] == "10.60"


def test_tokens_credited_in_parts_come_to_the_whole_line_and_no_more(
    closed_may: None, credit: Callable[..., Result], rows_of: Rows
) -> None:
    for tokens in (1, 624, 49_375):
        done(credit(2, "--tokens", str(tokens)))
    notes = rows_of("SELECT tokens::integer, net_minor::integer, tax_minor::integer FROM credit_note ORDER BY number_text")
    assert notes == [(1, 0, 0), (624, 1, 0), (49_375, 39, 2)]
    refused = credit(2, "--tokens", "1")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: line 2 has 50,000 tokens, of which 50,000 are credited; 1 more are too many\n")
    assert credit(2, "--amount", "0.01").exit_code == 1


def test_no_more_is_credited_than_the_document_comes_to_with_its_later_adjustments(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("".join(f"r{number:06}\n" for number in range(60)))
    done(run_ledger("void", "--ids", ids, "--yes", "--reason", "not answered", now="2026-06-05T00:00:00Z"))
    close_month(run_ledger, tmp_path, "2026-06")
    refused = credit(1, "--amount", "80.17", now="2026-07-04T00:00:00Z")
    assert refused.exit_code == 1 and refused.stderr.startswith(
        "error: the document, net of its later adjustments, comes to 80.16, of which 0.00 is credited; 80.17 more is too much\n"
    )
    done(credit(1, "--amount", "80.16", now="2026-07-04T00:00:00Z"))


def test_an_adjustment_below_what_was_credited_on_demand_is_told(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    done(credit(1, "--amount", "80.16"))
    ids, told = tmp_path / "ids.txt", "is credited on demand already"
    for first, last in ((0, 60), (60, 61)):
        ids.write_text("".join(f"r{number:06}\n" for number in range(first, last)))
        done(run_ledger("void", "--ids", ids, "--yes", "--reason", "not answered", now="2026-06-05T00:00:00Z"))
        settled = done(run_ledger("settle", "2026-06", "--dry-run", now="2026-07-04T00:00:00Z"))
        assert (told in settled.stderr) == (last == 61)
    assert (
        f"acme-bank-llm: {MAY} comes to CNY 78.16 with the adjustments of this month, and CNY 80.16 of it is credited on demand already"
        in settled.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("INV-2026-000009", "--line", "1", "--amount", "1"), 1, "error: no document has the number INV-2026-000009\n"),
        ((MAY, "--line", "3", "--amount", "1"), 1, "error: there is no line 3: the document has lines 1 to 2\n"),
        (
            (MAY, "--line", "1", "--amount", "200.01"),
            1,
            "error: line 1 comes to 200.00, of which 0.00 is credited; 200.01 more is too much\n",
        ),
        ((MAY, "--line", "1", "--amount", "0.005"), 1, "error: 0.005 is no amount of CNY\n"),
        ((MAY, "--line", "1", "--amount", "0"), 1, "error: a credit of 0.00 is none\n"),
        ((MAY, "--line", "1", "--tokens", "100000001"), 1, "error: line 1 has 100,000,000 tokens, of which 0 are credited;"),
        ((MAY, "--line", "1", "--amount", "1", "--provider", "other"), 1, f"error: no document of other has the number {MAY}\n"),
        ((MAY, "--line", "1", "--amount", "-1"), 2, "Usage:"),
        ((MAY, "--line", "1", "--amount", "1", "--tokens", "1"), 2, "Usage:"),
        ((MAY, "--line", "1"), 2, "Usage:"),
        ((MAY, "--line", "0", "--amount", "1"), 2, "Usage:"),
    ],
    ids=str,
)
def test_what_cannot_be_credited_is_refused_and_nothing_is_issued(
    closed_may: None, run_ledger: RunLedger, rows_of: Rows, arguments: tuple[str, ...], code: int, message: str
) -> None:
    refused = run_ledger("credit-note", "create", *arguments, "--reason", "x", "--yes")
    assert (refused.exit_code, refused.stdout) == (code, "") and refused.stderr.startswith(message)
    assert rows_of("SELECT number_text FROM issued_document") == [(MAY,)]


def test_a_credit_on_demand_is_not_credited_itself_and_an_invoice_of_two_providers_is_named_by_one(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    done(credit(1, "--amount", "1"))
    refused = credit(1, "--amount", "1", number="CN-2026-000001")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (1, "error: CN-2026-000001 is a credit on demand itself")
    changes = (
        ("id: acme-bank-llm", "id: other"),
        ("    - acme-bank\n", "    - other-account\n"),
        (f"tax_id: {PROVIDER}", "tax_id: ELSEWHERE"),
    )
    done(run_ledger("contract", "add", write_contract(tmp_path, *changes, name="other.yaml")))
    done(run_ledger("ingest", write_events(tmp_path, [request(1, "2026-05-15T10:00:00+08:00", account="other-account")], "other.csv")))
    close_month(run_ledger, tmp_path, "2026-05")
    both = credit(1, "--amount", "1")
    assert both.exit_code == 2 and both.stderr.endswith(f"say whose it is: --provider {PROVIDER} or --provider ELSEWHERE\n")
    assert done(credit(1, "--amount", "1", "--provider", "ELSEWHERE")).stdout.endswith(f"line 1 of {MAY} (other)\n")


def test_nothing_is_issued_by_a_dry_run_or_without_a_yes(closed_may: None, run_ledger: RunLedger, rows_of: Rows) -> None:
    command = ("credit-note", "create", MAY, "--line", "1", "--tokens", "1000000", "--reason", "slow answers")
    shown = done(run_ledger(*command, "--dry-run"))
    assert shown.stdout == ""
    assert shown.stderr.splitlines() == [
        f"document  {MAY} of acme-bank-llm, 2026-05",
        "line      1 (deepseek-v4, standard, standard, Input tokens, not cached): 200.00",
        "tokens    1,000,000",
        "credit    2.00 and tax 0.12",
        "together  2.12 CNY",
        "reason    slow answers",
        "dry run: nothing was issued",
    ]
    unasked = run_ledger(*command)
    assert unasked.exit_code == 2 and "say --yes" in unasked.stderr
    assert rows_of("SELECT number_text FROM issued_document") == [(MAY,)]


def test_files_of_credit_notes_are_written_again_just_as_they_were(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, tmp_path: Path
) -> None:
    done(credit(1, "--amount", "1"))
    issued = {path.name: path.read_bytes() for path in (tmp_path / "out" / "credit-notes").iterdir()}
    result = done(run_ledger("credit-note", "list", "--output", tmp_path / "again"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "again" / "credit-notes").iterdir()} == issued and len(issued) == 2
    assert result.stdout.splitlines()[1].split() == [
        *("CN-2026-000001", "2026-06-04", "acme-bank-llm", MAY, "1", "1.00", "0.06", "1.06", "CNY", "as", "agreed")
    ]


def test_credits_at_once_do_not_come_to_more_than_the_line(
    closed_may: None, run_ledger_process: RunLedgerProcess, rows_of: Rows, tmp_path: Path
) -> None:
    command = ("credit-note", "create", MAY, "--line", "1", "--amount", "90", "--reason", "x", "--yes", "--output", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run_ledger_process(*command, env={"LEDGER_NOW": JUNE_4}), range(4)))
    assert sorted(result.returncode for result in results) == [0, 0, 1, 1]
    assert rows_of("SELECT number, net_minor::integer FROM credit_note JOIN issued_document USING (tax_id, number_text) ORDER BY 1") == [
        (1, 9000),
        (2, 9000),
    ]


@pytest.mark.parametrize(
    ("step", "issued"), [("close.after_number", 0), ("credit.after_keep", 0), ("credit.before_commit", 0), ("credit.after_commit", 1)]
)
def test_a_credit_that_is_killed_is_issued_whole_or_not_at_all(
    step: str,
    issued: int,
    closed_may: None,
    credit: Callable[..., Result],
    run_ledger_process: RunLedgerProcess,
    rows_of: Rows,
    tmp_path: Path,
) -> None:
    command = ("credit-note", "create", MAY, "--line", "1", "--amount", "1", "--reason", "x", "--yes", "--output", tmp_path)
    killed = run_ledger_process(*command, env={"LEDGER_FAULT": step, "LEDGER_NOW": JUNE_4})
    assert killed.returncode == -9
    assert len(rows_of("SELECT FROM credit_note")) == issued
    done(credit(1, "--amount", "1"))
    assert rows_of("SELECT number, position FROM issued_document WHERE series = 'credit_note' ORDER BY 1") == [
        (number, number + 1) for number in range(1, issued + 2)
    ]


def test_a_credit_note_is_in_the_journal_and_all_of_it_sums_to_nothing(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger, rows_of: Rows, tmp_path: Path
) -> None:
    done(credit(1, "--amount", "1.00"))
    close_month(run_ledger, tmp_path, "2026-06")
    text = done(run_ledger("journal", "export", "--to", "csv")).stdout.splitlines()
    common = "2026-06-04,CN-2026-000001,acme-bank-llm,Acme Bank Co.,CNY"
    assert text[4:7] == [
        f"{common},Income:Credit-notes:revenue:standard,1.00,,credit of {MAY},credit_notes:revenue:standard",
        f"{common},Liabilities:Tax,0.06,,credit of {MAY},tax",
        f"{common},Liabilities:Customer-balance:acme-bank-llm,,1.06,credit of {MAY},balance",
    ]
    assert rows_of("SELECT sum(amount_minor) = 0 FROM journal_posting") == [(True,)]
    assert rows_of("SELECT sum(amount_minor)::integer FROM journal_posting WHERE account = 'balance'") == [(0,)]


def test_lines_of_a_document_are_shown_as_they_are_counted_with_what_was_credited(
    closed_may: None, credit: Callable[..., Result], run_ledger: RunLedger
) -> None:
    done(credit(1, "--amount", "1.00"))
    done(credit(1, "--tokens", "1000000"))
    shown = [line.split() for line in done(run_ledger("credit-note", "lines", MAY)).stdout.splitlines()]
    assert [(line[0], line[1], line[-4:]) for line in shown[1:]] == [
        ("1", "usage", ["100,000,000", "200.00", "3.00", "1,000,000"]),
        ("2", "usage", ["tokens", "50,000", "0.40", "0.00"]),
    ]
