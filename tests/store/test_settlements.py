"""What waits and what was changed afterwards, counted for all contracts at once, as loops over the rows count it for each."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.sql import SQL
from sqlalchemy import insert, text

from ledger.contract.model import Contract
from ledger.contract.reader import read_contract
from ledger.settlement.period import Period, contract_period
from ledger.settlement.statement import ChangedAfterwards, Unresolved
from ledger.store import settlements
from ledger.store.connection import Connection, fetch
from ledger.store.database import Database
from ledger.store.schema import batch, event, interval, quarantine, void
from ledger.store.settlements import Draft, count_changed_afterwards, count_unresolved, keep_drafts
from tests.store.sample_rows import BATCH, EVENT, INTERVAL, VOID

BASE = (Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml").read_text()
START, END = datetime(2026, 4, 29, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC)
ACCOUNTS = ("early", "late", "elsewhere", "nobody's")


def contract(identity: str, version: int, zone: str, accounts: Sequence[str], from_on: str, until_on: str) -> Contract:
    source = BASE
    for old, new in (
        ("id: acme-bank-llm", f"id: {identity}"),
        ("version: 1\n", f"version: {version}\n"),
        ("    - acme-bank\n", "".join(f"    - {account}\n" for account in accounts)),
        ("from: 2026-01-01", f"from: {from_on}"),
        ("until: 2027-01-01", f"until: {until_on}"),
        ("timezone: Asia/Shanghai", f"timezone: {zone}"),
    ):
        assert old in source
        source = source.replace(old, new)
    read = read_contract(source.encode(), "contract.yaml").contract
    assert read is not None
    return read


@pytest.fixture
def periods() -> list[Period]:
    """The account `early` moves within May from the first contract to the second, which is in another zone; `late` joins the first."""
    first = [
        contract("first", 1, "Asia/Shanghai", ["early"], "2026-01-01", "2026-05-12"),
        contract("first", 2, "Asia/Shanghai", ["late"], "2026-05-12", "2027-01-01"),
    ]
    second = [
        contract("second", 1, "America/New_York", ["elsewhere"], "2026-01-01", "2026-05-13"),
        contract("second", 2, "America/New_York", ["elsewhere", "early"], "2026-05-13", "2027-01-01"),
    ]
    found = [contract_period(versions, "2026-05") for versions in (first, second)]
    return [period for period in found if period is not None]


def covers(period: Period, account: str, instant: datetime) -> bool:
    return any(
        account in piece.contract.parties.customer.accounts and piece.days.starts[0] <= instant < piece.days.end for piece in period.pieces
    )


def concerns(period: Period, row: dict[str, Any]) -> bool:
    ours = {account for piece in period.pieces for account in piece.contract.parties.customer.accounts}
    account, instant = row["account"], row["received_at"]
    return (account is None or account in ours) and (instant is None or period.start <= instant < period.end)


def drawn_rows(draw: random.Random, number: int) -> dict[Any, list[dict[str, Any]]]:
    def instant() -> datetime:
        return START + timedelta(minutes=draw.randrange(int((END - START) / timedelta(minutes=1))))

    def later() -> datetime:
        return datetime(2026, 5, 31, tzinfo=UTC) + timedelta(hours=draw.randrange(72))

    events, voids, refused, intervals = [], [], [], []
    for at in range(number):
        account = draw.choice(ACCOUNTS)
        events.append(EVENT | {"account": account, "request_id": f"r{at}", "received_at": instant()})
        if draw.random() < 0.7:
            kind = draw.choice(["void", "correct", "join"])
            entry = {"account": account, "request_id": f"r{at}", "revision": 1, "kind": kind, "reason": "test", "author": "test"}
            voids.append(entry | {"voided_at": later()})
        resolution = draw.choice([None, None, "requeued", "corrected", "dismissed"])
        refused.append(
            {
                "batch_id": 1,
                "line": at,
                "reason": draw.choice(["conflict", "bad_number"]),
                "detail": "",
                "row_sha256": f"{at}",
                "fields": {},
                "account": draw.choice([None, *ACCOUNTS]),
                "received_at": draw.choice([None, instant(), instant()]),
                "resolution": resolution,
                **dict.fromkeys(("resolution_reason", "resolved_by"), "test" if resolution else None),
                "resolved_at": later() if resolution else None,
            }
        )
        begins = instant()
        span = {"starts_at": begins, "ends_at": begins + timedelta(hours=draw.randrange(100)), "added_at": later()}
        intervals.append({"interval_id": f"i{at}", "kind": "circuit_breaker", "author": "test"} | span)
    return {batch: [BATCH], event: events, void: voids, quarantine: refused, interval: intervals}


def unresolved_by_loops(period: Period, rows: dict[Any, list[dict[str, Any]]]) -> Unresolved:
    waiting = [row for row in rows[quarantine] if row["resolution"] is None and concerns(period, row)]
    conflicts = sum(row["reason"] == "conflict" for row in waiting)
    return Unresolved(conflicts=conflicts, quarantined=len(waiting) - conflicts)


def changed_by_loops(period: Period, rows: dict[Any, list[dict[str, Any]]]) -> ChangedAfterwards:
    received = {(row["account"], row["request_id"]): row["received_at"] for row in rows[event]}
    kinds = [
        row["kind"]
        for row in rows[void]
        if row["voided_at"] >= period.end and covers(period, row["account"], received[row["account"], row["request_id"]])
    ]
    repairs = [
        row
        for row in rows[quarantine]
        if row["resolution"] == "requeued" and row["resolved_at"] >= period.end and row["account"] and row["received_at"]
    ]
    touching = [
        row for row in rows[interval] if row["added_at"] >= period.end and row["starts_at"] < period.end and row["ends_at"] > period.start
    ]
    return ChangedAfterwards(
        voids=kinds.count("void"),
        corrections=kinds.count("correct"),
        joins=kinds.count("join"),
        repairs=sum(concerns(period, row) for row in repairs),
        intervals=len(touching),
    )


def test_counts_of_all_contracts_at_once_are_those_of_each(database: Database, periods: list[Period]) -> None:
    rows = drawn_rows(random.Random(5), 600)
    with database.engine.begin() as connection:
        for table, entries in rows.items():
            connection.execute(insert(table), entries)
        assert count_unresolved(connection, periods) == {period.last.id: unresolved_by_loops(period, rows) for period in periods}
        changed = count_changed_afterwards(connection, periods)
        assert changed == {period.last.id: changed_by_loops(period, rows) for period in periods}
        assert all(getattr(counts, name) for counts in changed.values() for name in ChangedAfterwards.__slots__)
        assert changed["first"] != changed["second"]


def test_an_empty_database_counts_nothing(database: Database, periods: list[Period]) -> None:
    with database.engine.begin() as connection:
        assert count_unresolved(connection, periods) == {"first": Unresolved(), "second": Unresolved()}
        assert count_changed_afterwards(connection, periods) == {"first": ChangedAfterwards(), "second": ChangedAfterwards()}


def test_a_withdrawn_event_is_found_by_its_key_however_many_there_are(
    database: Database, periods: list[Period], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    with database.engine.begin() as connection:
        # So many voids that reading all events at once would look cheap to the planner.
        connection.execute(insert(event), [EVENT | {"account": "early", "request_id": f"r{at}"} for at in range(5_000)])
        connection.execute(
            text("INSERT INTO void SELECT account, request_id, revision, 'void', 'test', 'test', :at FROM event"), {"at": periods[1].end}
        )
        connection.execute(text("ANALYZE event, void"))

        def explained(connection: Connection, query: Any, parameters: Any) -> list[tuple[Any, ...]]:
            if "FROM void" in query.as_string():
                plans.append("\n".join(line for (line,) in fetch(connection, SQL("EXPLAIN {}").format(query), parameters)))
            return fetch(connection, query, parameters)

        monkeypatch.setattr(settlements, "fetch", explained)
        assert count_changed_afterwards(connection, periods)["first"] == ChangedAfterwards(voids=5_000)
    (plan,) = plans
    assert "Index Scan using pk_event on event" in plan


def test_a_run_keeps_exactly_the_batches_voids_and_intervals_of_its_snapshot_and_replaces_each_draft(database: Database) -> None:
    def draft(contract_id: str, document: str) -> Draft:
        return Draft(contract_id=contract_id, state="draft", digest="0" * 64, day_starts=(START, END), document=document)

    with database.engine.begin() as connection:
        keep: dict[str, Any] = {"period": "2026-05", "contract_hashes": {}, "timezone_data": "2026a", "settled_at": END, "author": "test"}
        keep_drafts(connection, [draft("first", "old"), draft("second", "kept")], **keep)
        connection.execute(insert(batch), [BATCH | {"chunk": chunk} for chunk in range(4)])
        connection.execute(text("SELECT nextval(pg_get_serial_sequence('batch', 'batch_id'))"))  # a load that was given up
        connection.execute(insert(batch), BATCH | {"chunk": 4})
        connection.execute(insert(interval), [INTERVAL | {"interval_id": name, "node": name} for name in ("b", "a")])
        for numbers in ((1, 2), (4,)):
            connection.execute(insert(void), [VOID | {"request_id": f"r{number}"} for number in numbers])
            connection.execute(text("SELECT nextval(pg_get_serial_sequence('void', 'void_id'))"))  # one that was given up
        keep_drafts(connection, [draft("first", "new")], **keep)
        seen = connection.execute(text("SELECT run_id, batches::text, voids::text, intervals FROM run ORDER BY run_id")).all()
        assert seen == [(1, "{}", "{}", []), (2, "{[1,5),[6,7)}", "{[1,3),[4,5)}", ["a", "b"])]
        kept = connection.execute(text("SELECT contract_id, period, run_id, document, day_starts FROM settlement ORDER BY 1")).all()
        days = [START, END]
        assert kept == [("first", "2026-05", 2, "new", days), ("second", "2026-05", 1, "kept", days)]
