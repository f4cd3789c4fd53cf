"""The synthetic month: the same lines every time, and everything that its contract has a rule for."""

import csv
import gzip
import json
from collections import Counter

import pytest

from ledger.workflows.demo_month import ACME_TROUBLE, DemoMonth, Dice, write_demo_month


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoMonth, DemoMonth]:
    """The month, written twice."""
    return write_demo_month(tmp_path_factory.mktemp("one")), write_demo_month(tmp_path_factory.mktemp("two"))


def test_the_month_is_written_the_same_every_time(months: tuple[DemoMonth, DemoMonth]) -> None:
    one, two = months
    assert [path.name for path in one.telemetry] == ["acme-bank-2026-05.csv", "northwind-retail-2026-05.jsonl.gz"]
    for first, second in zip((*one.telemetry, one.intervals), (*two.telemetry, two.intervals), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_the_month_holds_what_its_contract_has_rules_for(months: tuple[DemoMonth, DemoMonth]) -> None:
    month, _ = months
    with month.telemetry[0].open(encoding="utf-8", newline="") as lines:
        acme = list(csv.DictReader(lines))
    with gzip.open(month.telemetry[1], "rt", encoding="utf-8") as lines:
        shop = [json.loads(line) for line in lines]
    assert len(acme) + len(shop) == month.requests
    assert 60_000 <= month.requests <= 100_000
    assert set(Counter(row["status"] for row in acme)) == {"200", "404", "429", "499", "503"}
    assert {row["queue"] for row in acme} == {"standard", "batch", "vip"}
    assert any(row["model"] == "deepseek-moe-4bit" for row in acme)
    assert any(row["cold_start"] for row in acme)
    assert all(int(row["input_tokens"]) > 16_000 for row in acme if row["async_header"])
    assert sum(row["status"] == "503" for row in acme) == sum(trouble.failed for trouble in ACME_TROUBLE.values())
    assert {row["account"] for row in shop} == {"northwind-retail"}


def test_dice_stay_within_their_bounds_and_reach_them() -> None:
    dice = Dice(1)
    assert {dice.roll(3, 5) for _ in range(200)} == {3, 4, 5}
    assert not any(dice.chance(0) for _ in range(200)) and all(dice.chance(1000) for _ in range(200))
