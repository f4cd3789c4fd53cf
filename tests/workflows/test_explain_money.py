"""What a request costs and why: its parts of the lines, the window that counts it, and what is said of it after the close."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.store.database import Database
from ledger.workflows.explain_money import NotPriced, WindowResult, explain_money
from tests.cases import NOW
from tests.conftest import RunLedger
from tests.workflows.base_contract import request, write_contract, write_events
from tests.workflows.issued_months import close_month, done, load_months
from tests.workflows.loaded_case import SMALL, load_case

Rows = Callable[[str], list[tuple[Any, ...]]]
STANDING = (
    "SELECT account, request_id, received_at, model, queue, status, queue_us, batch_id FROM event WHERE NOT EXISTS "
    "(SELECT FROM void WHERE (void.account, void.request_id, void.revision) = (event.account, event.request_id, event.revision))"
)


@pytest.mark.parametrize("name", SMALL)
def test_the_parts_of_all_requests_are_the_lines(
    name: str, run_ledger: RunLedger, database: Database, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_NOW", NOW)
    case = load_case(run_ledger, name)
    tokens, amounts, windows = Counter[int](), defaultdict[int, Fraction](Fraction), set()
    for row in rows_of(STANDING):
        event = dict(zip(("account", "request_id", "received_at", "model", "queue", "status", "queue_us"), row[:-1], strict=True))
        try:
            money = explain_money(database, event, row[-1])
        except NotPriced:
            continue
        if money.period.name != case.period:
            continue
        for part in money.parts:
            assert part.position is not None
            tokens[part.position] += part.tokens
            amounts[part.position] += part.amount
        if money.window is not None:
            windows.add((money.window.start, money.window.scope, money.window.result))
    lines, digits = case.expected["lines"], len(case.expected["totals"]["net"].partition(".")[2])
    counted = {place: line for place, line in enumerate(lines, start=1) if line["kind"] in ("usage", "credit")}
    assert tokens == {place: line["quantity"] for place, line in counted.items()}
    for place, line in counted.items():
        assert abs(amounts[place] - Fraction(Decimal(line["amount"]))) <= Fraction(1, 2 * 10**digits), line
    results = Counter(result for _, _, result in windows)
    breaches = Counter(breach["result"] for breach in case.expected["windows"]["breaches"])
    assert {name: results[WindowResult(name)] for name in ("forgiven", "refunded")} == {
        name: breaches[name] for name in ("forgiven", "refunded")
    }


def told(run_ledger: RunLedger, request_id: str, now: str) -> dict[str, Any]:
    """What `explain` says of a request's money, to programs."""
    money: dict[str, Any] = json.loads(done(run_ledger("explain", request_id, "--format", "json", now=now)).stdout)["money"]
    return money


def test_a_request_of_a_closed_month_is_on_the_lines_that_were_issued_and_a_late_one_is_adjusted(
    run_ledger: RunLedger, tmp_path: Path
) -> None:
    load_months(run_ledger, tmp_path)
    before = told(run_ledger, "r000001", "2026-06-03T00:00:00Z")
    assert (before["document"], before["after_close"]) == (None, False)
    close_month(run_ledger, tmp_path, "2026-05")
    issued = told(run_ledger, "r000001", "2026-06-04T00:00:00Z")
    assert issued == before | {"document": "INV-2026-000001"}
    assert [(line["line"], line["token"], line["amount"]) for line in issued["lines"]] == [(1, "input", "2"), (2, "output", "0.004")]
    late = write_events(tmp_path, [request(900, "2026-05-20T10:00:00+08:00", latency_us=50_000)], name="late.csv")
    done(run_ledger("ingest", late, now="2026-06-05T00:00:00Z"))
    adjusted = told(run_ledger, "r000900", "2026-06-06T00:00:00Z")
    assert (adjusted["document"], adjusted["after_close"], adjusted["band"]) == ("INV-2026-000001", True, "fast")
    assert [line["line"] for line in adjusted["lines"]] == [None, None]
    text = run_ledger("explain", "r000900", now="2026-06-06T00:00:00Z").stdout
    assert "it came after the close: what follows from it is adjusted on the document of a later month, not on INV-2026-000001" in text


def test_what_nobody_pays_for_is_said_with_its_reason(run_ledger: RunLedger, tmp_path: Path) -> None:
    done(run_ledger("contract", "add", write_contract(tmp_path)))
    rows = [
        request(1, "2026-05-15T10:00:00+08:00", account="nobody"),
        request(2, "2026-05-15T10:00:00+08:00", model="unheard-of"),
        request(3, "2026-05-15T10:00:00+08:00", status=500),
    ]
    done(run_ledger("ingest", write_events(tmp_path, rows)))
    said = [run_ledger("explain", f"r{number:06}").stdout.splitlines() for number in (1, 2, 3)]
    assert said[0][-1] == "not billed now: no contract covers the account nobody at that time: nothing is billed of it"
    unknown = "the contract does not know what was used in 2026-05: model 'unheard-of' with 1 request, such as r000002"
    assert [said[1][-1], said[2][-1]] == [f"not billed now: {unknown}"] * 2
    assert told(run_ledger, "r000001", NOW) == {"reason": "no contract covers the account nobody at that time: nothing is billed of it"}
    done(run_ledger("void", "r000002", "--yes", "--reason", "no such model"))
    assert (
        run_ledger("explain", "r000003")
        .stdout.splitlines()[-1]
        .startswith("  charge: status 500 is server_error, which is never billed: 0 CNY")
    )
    assert told(run_ledger, "r000002", NOW) is None
