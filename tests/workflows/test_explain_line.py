"""A line of an invoice explained: its requests, one by one, come to it exactly; of a closed month those that the close saw."""

import csv
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from tests.cases import NOW
from tests.conftest import RunLedger
from tests.workflows.base_contract import request, write_events
from tests.workflows.issued_months import close_month, done, load_months
from tests.workflows.loaded_case import SMALL, load_case

MAY = "INV-2026-000001"  # 100 requests: line 1 is 100,000,000 input tokens, 200.00, line 2 50,000 output tokens, 0.40
LATER = "2026-06-10T00:00:00Z"


def exported(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", SMALL)
def test_the_requests_of_every_line_sum_to_it_exactly(name: str, run_ledger: RunLedger, tmp_path: Path) -> None:
    case = load_case(run_ledger, name)
    contract_id, shown = case.expected["contract"], 0
    for place, line in enumerate(case.expected["lines"], start=1):
        file = tmp_path / f"{place}.csv"
        result = done(run_ledger("explain", f"{contract_id}/{case.period}/{place}", "--export", file, "--format", "json", now=NOW))
        told = json.loads(result.stdout)
        assert (told["kind"], told["amount"]) == (line["kind"], line["amount"])
        if line["kind"] in ("usage", "credit"):
            rows = exported(file)
            exact = sum((Decimal(row["line_amount"]) for row in rows), Decimal(0))
            price = Fraction(line["quantity"]) * Fraction(line["rate"]) * Fraction(line["multiplier"]) / 1_000_000
            assert sum(int(row["line_tokens"]) for row in rows) == line["quantity"]
            assert Fraction(exact) == (-price if line["kind"] == "credit" else price) == Fraction(told["exact"])
            assert told["requests"] == len({(row["account"], row["request_id"]) for row in rows}) == len(rows) > 0
            shown += 1
    assert shown


def test_a_closed_line_has_the_requests_that_the_close_saw_and_an_adjustment_its_causes(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_month(run_ledger, tmp_path, "2026-05")
    late = write_events(tmp_path, [request(900, "2026-05-20T10:00:00+08:00")], name="late.csv")
    done(run_ledger("ingest", late, now="2026-06-05T00:00:00Z"))
    done(run_ledger("void", "r000001", "--yes", "--reason", "sent twice", now="2026-06-05T00:00:00Z"))
    told = done(run_ledger("explain", f"{MAY}/1", "--export", tmp_path / "may.csv", now=LATER))
    assert told.stdout == (
        f"acme-bank-llm, 2026-05, {MAY}, line 1 (usage, deepseek-v4, standard queue, standard, input): CNY 200.00\n"
        "  rule: 100 ms to 300 ms (clause 3.2)\n"
        "  sum: 100,000,000 tokens at 2.00 per 1,000,000 × 1 = 200 CNY, rounded once\n"
        "  requests: 100, whose tokens and exact amounts come to just this\n"
    )
    assert [row["request_id"] for row in exported(tmp_path / "may.csv")] == [f"r{number:06}" for number in range(100)]
    lines = done(run_ledger("explain", MAY, now=LATER)).stdout.splitlines()
    assert lines[0] == f"acme-bank-llm, 2026-05, {MAY}" and [line.split()[0] for line in lines[2:]] == ["1", "2"]
    late = write_events(tmp_path, [request(901, "2026-05-20T10:00:00+08:00")], name="later.csv")
    done(run_ledger("ingest", late, now="2026-06-05T00:00:00Z"))
    june = json.loads(done(run_ledger("explain", "acme-bank-llm/2026-06", "--format", "json", now="2026-07-05T00:00:00Z")).stdout)
    adjustment = next(line["line"] for line in june["lines"] if line["kind"] == "adjustment")
    words = done(run_ledger("explain", f"acme-bank-llm/2026-06/{adjustment}", now="2026-07-05T00:00:00Z")).stdout
    assert f"what the usage line of 2026-05 is now, less what {MAY} and later documents posted for it" in words
    assert "causes (3): late r000900, late r000901, void r000001" in words


def test_what_is_no_line_or_would_replace_a_file_is_refused(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_month(run_ledger, tmp_path, "2026-05")
    kept = tmp_path / "kept.csv"
    kept.write_text("mine")
    for arguments, code, said in (
        ((f"{MAY}/3",), 1, "there is no line 3: the month has 2"),
        ((f"{MAY}/0",), 1, "there is no line 0: the month has 2"),
        (("INV-2026-000009/1",), 1, "there is no request INV-2026-000009/1"),
        (("nobody/2026-05",), 1, "there is no contract nobody"),
        (("acme-bank-llm/2024-05",), 1, "no version of contract acme-bank-llm is in force in 2024-05"),
        (("acme-bank-llm/2026-99",), 1, "there is no request acme-bank-llm/2026-99"),
        ((MAY, "--export", str(kept)), 2, "the requests of one line can be exported"),
        (("r000001", "--export", str(kept)), 2, "r000001 is no line of an invoice"),
        ((f"{MAY}/1", "--export", str(kept)), 2, "is there already"),
        ((f"{MAY}/1", "--export", str(tmp_path / "none" / "x.csv")), 4, "none/x.csv"),
    ):
        refused = run_ledger("explain", *arguments, now=LATER)
        assert refused.exit_code == code and said in refused.stderr, (arguments, refused.exit_code, refused.stderr)
    assert kept.read_text() == "mine"


def test_requests_that_do_not_come_to_the_line_are_told(run_ledger: RunLedger, owner_url: str, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_month(run_ledger, tmp_path, "2026-05")
    with psycopg.connect(owner_url) as owner:
        owner.execute("ALTER TABLE event DISABLE TRIGGER ALL")
        owner.execute("UPDATE event SET input_tokens = 999999 WHERE request_id = 'r000007'")
    refused = run_ledger("explain", f"{MAY}/1", now=LATER)
    assert refused.exit_code == 5
    assert "the requests of line 1 have 99,999,999 tokens, and the line 100,000,000\n  see: ledger verify 2026-05" in refused.stderr
