"""Months closed one after another through the command line: what each close issues, held against the cases and against the oracle."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cases import differences
from tests.cases_months import NAMES, play, without_origin
from tests.conftest import RunLedger
from tests.oracle.posted import Closing, Known, close_months, load, of_accounts, read_rows, void
from tests.oracle.settle import settle_month, settlement
from tests.oracle.steps import AddContracts, AddIntervals, LoadEvents, Step, VoidRequests, read_steps
from tests.oracle.terms import Terms, read_terms
from tests.workflows.scripted_year import ENDED, MONTHS, scripted_year

Json = dict[str, Any]


def assert_verified(run_ledger: RunLedger, found: Sequence[Sequence[Json]]) -> None:
    """Every document that was issued is what the events give that its close saw, after all that came since; and so are their seals."""
    for issued in found:
        verified = json.loads(run_ledger("verify", issued[0]["period"], "--format", "json").stdout)
        assert [(one["contract"], one["lines"], one["differences"]) for one in verified] == [
            (document["contract"], len(document["lines"]), []) for document in issued
        ]
    [chain] = json.loads(run_ledger("verify", "--chain", "--format", "json").stdout)["chains"]
    assert (chain["documents"], chain["differences"]) == (sum(map(len, found)), [])


def disagreements(expected: Sequence[Json], actual: Sequence[Json]) -> list[str]:
    """Where what a close issued differs from what it should have."""
    names = [[one["contract"] for one in issued] for issued in (expected, actual)]
    if names[0] != names[1]:
        return [f"expected contracts {names[0]}, found {names[1]}"]
    return [
        f"{right['contract']} {right['period']}: {line}"
        for right, found in zip(expected, actual, strict=True)
        for line in differences(right, without_origin(found))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_months_closes_as_it_expects(name: str, shared: Path, run_ledger: RunLedger, tmp_path: Path) -> None:
    folder = shared / "cases-months" / name
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    found = play(read_steps(folder), run_ledger, tmp_path)
    assert [disagreements([right], issued) for right, issued in zip(expected, found, strict=True)] == [[]] * len(expected)
    assert_verified(run_ledger, found)


def test_an_adjustment_names_the_document_and_the_requests_that_it_is_about(shared: Path, run_ledger: RunLedger, tmp_path: Path) -> None:
    folder = shared / "cases-months" / "late-and-void"
    steps = read_steps(folder)
    late = sorted(row["request_id"] for row in read_rows(folder / "late-may.csv"))
    [withdrawn] = [sorted(step.request_ids) for step in steps if isinstance(step, VoidRequests)]
    of_may, of_june = ([name for name in withdrawn if name.startswith(month)] for month in ("r00", "r10"))
    assert (len(late), len(of_may) + len(of_june)) == (120, 25)

    [_, [june], [july]] = play(steps, run_ledger, tmp_path)
    told = {
        (document["period"], line["of"]["period"], line["of"]["invoice"], line["causes_total"], tuple(map(named, line["causes"])))
        for document in (june, july)
        for line in document["lines"]
        if line["kind"] == "adjustment"
    }
    assert {(carried, of, total, causes) for carried, of, _, total, causes in told} == {
        ("2026-06", "2026-05", 120, tuple(("late", name) for name in late[:100])),
        ("2026-07", "2026-05", len(of_may), tuple(("void", name) for name in of_may)),
        ("2026-07", "2026-06", len(of_june), tuple(("void", name) for name in of_june)),
    }
    documents = {(of, invoice) for _, of, invoice, _, _ in told}
    assert len(documents) == len({invoice for _, invoice in documents}) == 2 and all(invoice for _, invoice in documents)


def named(cause: Json) -> tuple[str, str]:
    assert cause.keys() == {"kind", "ref"}
    return cause["kind"], cause["ref"]


def test_a_year_of_three_customers_closes_as_the_oracle_says(run_ledger: RunLedger, tmp_path: Path) -> None:
    steps = scripted_year(tmp_path)
    expected = [[closing.settlement for closing in closings] for closings in close_months(steps)]
    found = play(steps, run_ledger, tmp_path)
    assert [disagreements(right, issued) for right, issued in zip(expected, found, strict=True)] == [[]] * len(MONTHS)
    assert_verified(run_ledger, found)


def test_what_the_oracle_posts_in_a_year_adds_up_to_what_is_known_at_its_end(tmp_path: Path) -> None:
    steps = scripted_year(tmp_path)
    closes = close_months(steps)
    withheld = {closing.settlement["contract"]: {one.period for one in closing.withheld} for closings in closes for closing in closings}
    known, contracts = known_at_the_end(steps)
    checked = 0
    for contract, versions in contracts.items():
        posted: dict[str, dict[object, Decimal]] = {}
        for document in documents_of(closes, contract):
            for line in document["lines"]:
                of = line.get("of", {"period": document["period"], "kind": line["kind"]})
                add(posted.setdefault(of["period"], {}), of["kind"], line)
        for period in MONTHS:
            month = settle_month(versions, of_accounts(known.standing(), versions), known.intervals, period)
            assert month is not None
            now: dict[object, Decimal] = {}
            for line in settlement(month, [], 0)["lines"]:
                add(now, line["kind"], line)
            if period not in withheld[contract]:
                assert without_zeros(posted.get(period, {})) == without_zeros(now), f"{contract} {period}"
                checked += 1
    assert checked == 24  # of 36; the others are withheld: ten months of borealis, two of acme


def test_the_year_has_all_that_it_is_to_show(tmp_path: Path) -> None:
    closes = close_months(scripted_year(tmp_path))
    acme, borealis, cirrus = (documents_of(closes, name) for name in ("acme", "borealis", "cirrus"))
    assert [document["period"] for document in cirrus] == MONTHS[: MONTHS.index(ENDED) + 3]  # two late, one withdrawn, and no more
    assert all(document["events"]["total"] == 0 for document in cirrus if document["period"] >= ENDED)
    totals = {document["period"]: {name: int(amount) for name, amount in document["totals"].items()} for document in cirrus}
    assert totals["2026-04"]["total"] < 0 < totals["2026-05"]["carried_in"] < totals["2026-05"]["total"]
    assert totals["2026-11"]["total"] < 0
    adjusted = {line["of"]["kind"] for document in borealis for line in document["lines"] if "of" in line}
    assert adjusted == {"usage", "credit", "cap", "true_up"}
    assert {line["version"] for line in acme[6]["lines"] if "of" in line} == {2, 3}
    reasons = {closing.settlement["contract"]: {one.reason for one in closing.withheld} for closings in closes[6:] for closing in closings}
    assert reasons == {"acme": {"charges_more"}, "borealis": {"too_late"}, "cirrus": set()}
    # February of acme may not charge more: its late requests are in no document until it comes to less, and then all of it.
    february = [document["period"] for document in acme if any(line.get("of", {}).get("period") == "2026-02" for line in document["lines"])]
    assert february == ["2026-08"]


def known_at_the_end(steps: Sequence[Step]) -> tuple[Known, dict[str, list[Terms]]]:
    known, contracts = Known(), dict[str, list[Terms]]()
    for step in steps:
        if isinstance(step, LoadEvents):
            load(known, read_rows(step.file))
        elif isinstance(step, VoidRequests):
            void(known, step.request_ids)
        elif isinstance(step, AddIntervals):
            known.intervals += read_rows(step.file)
        elif isinstance(step, AddContracts):
            for file in step.files:
                terms = read_terms(file.read_text(encoding="utf-8"))
                contracts.setdefault(terms.contract, []).append(terms)
    return known, contracts


def documents_of(closes: list[list[Closing]], contract: str) -> list[Json]:
    return [closing.settlement for closings in closes for closing in closings if closing.settlement["contract"] == contract]


def add(sums: dict[object, Decimal], kind: str, line: Json) -> None:
    """Adds the line's amount and tokens to those of its key."""
    fields = ("version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier")
    for what in ("amount", "quantity"):
        key = (what, kind, *(line[field] for field in fields))
        sums[key] = sums.get(key, Decimal(0)) + Decimal(line[what] or 0)


def without_zeros(sums: dict[object, Decimal]) -> dict[object, Decimal]:
    return {key: value for key, value in sums.items() if value}
