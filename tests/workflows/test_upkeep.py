"""What is kept equals what the events say after every kind of change, and what is stale is computed again when it is needed."""

import csv
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result
from sqlalchemy import text

from ledger.ingest.loader import load_file
from ledger.ingest.mapping_file import built_in_mappings
from ledger.ingest.reading.opening import open_records
from ledger.settlement.calendar import day_start, days_touched
from ledger.store import schema
from ledger.store.cells import DELTA_COLUMNS, KEPT, ContractDay, lock_cells, stale_spans, unranked_days
from ledger.store.database import Database
from ledger.workflows.freshen import fresh_snapshot, freshen
from ledger.workflows.upkeep import LoadUpkeep
from ledger.workflows.verify_cells import verify_cells

CONTRACT = Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml"
COLUMNS = (
    "account",
    "request_id",
    "model",
    "received_at",
    "queue",
    "node",
    "cold_start",
    "queue_us",
    "inference_us",
    "input_tokens",
    "output_tokens",
)
START, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)

Row = dict[str, str]
RunLedger = Callable[..., Result]


def request(number: int, at: str, **fields: str) -> Row:
    plain = {"account": "acme-bank", "model": "deepseek-v4", "queue_us": "1000", "inference_us": str(90_000 + number % 7 * 60_000)}
    return plain | {"request_id": f"r{number:04}", "received_at": at, "input_tokens": "1000", "output_tokens": "50"} | fields


def month(count: int = 60) -> list[Row]:
    """Requests all over May, of the contract's account and of nobody's; some in batch queues, on nodes, and of cold starts."""
    return [
        request(
            number,
            f"2026-05-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:00+08:00",
            account="nobody" if number % 10 == 9 else "acme-bank",
            queue="batch" if number % 3 == 0 else "",
            node=f"n{number % 2}",
            cold_start="true" if number % 11 == 10 else "",
        )
        for number in range(count)
    ]


def write(path: Path, rows: Sequence[Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def version(folder: Path, number: int, *changes: tuple[str, str], name: str = "acme-bank-llm") -> Path:
    source = CONTRACT.read_text()
    for old, new in (("version: 1\n", f"version: {number}\n"), ("id: acme-bank-llm", f"id: {name}"), *changes):
        assert old in source
        source = source.replace(old, new)
    path = folder / f"{name}-{number}.yaml"
    path.write_text(source)
    return path


@pytest.fixture
def done(run_ledger: RunLedger) -> Callable[..., str]:
    def run(*arguments: str | Path) -> str:
        result = run_ledger(*arguments)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    return run


def agreed(database: Database, *, stale: int = 0) -> int:
    """How many contract days agree; none differs, and so many are stale."""
    found = verify_cells(database)
    assert (found.differing, found.accounts, found.stale) == ((), (), stale)
    return found.agree


def counted(database: Database) -> list[tuple[object, ...]]:
    with psycopg.connect(database.url) as connection:
        return connection.execute(
            "SELECT contract_id, version, sum(requests) FROM cell GROUP BY 1, 2 UNION ALL "
            "SELECT contract_id, version, count(*) FROM cold_start_event GROUP BY 1, 2 ORDER BY 1, 2, 3"
        ).fetchall()


def test_a_load_adds_the_cells_of_its_events(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "month.csv", month()))
    assert agreed(database) == 28
    assert [(row[0], row[2]) for row in counted(database)] == [("acme-bank-llm", 5), ("acme-bank-llm", 49)]


def test_events_of_any_age_are_counted_in_the_same_quarter_by_loads_and_by_the_database(
    database: Database, done: Callable[..., str], tmp_path: Path
) -> None:
    instants = ("1900-05-05T04:44:29.999999Z", "1969-12-31T23:59:59.999999Z", "1979-12-31T23:59:59.999999Z", "1980-01-01T00:00:00Z")
    instants = (*instants, "1980-01-01T00:14:59.999999Z", "2026-05-01T00:15:00Z", "2026-05-01T00:29:59.999999Z")
    done("ingest", write(tmp_path / "old.csv", [request(number, at, account="nobody") for number, at in enumerate(instants)]))
    assert agreed(database) == 0
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT count(*), sum(requests) FROM traffic").fetchone() == (5, 7)


def test_the_first_instant_that_can_be_written_is_loaded(done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "first.csv", [request(1, "0001-01-01T00:00:00Z"), request(2, "2026-05-01T00:00:00Z")]))


def test_duplicates_and_conflicts_add_nothing(
    database: Database, done: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_CHUNK_ROWS", "25")
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "first.csv", month()[:40]))
    changed = [row | {"output_tokens": "77"} for row in month()[3:9]]
    twice = [*month()[45:], month()[50], month()[50] | {"output_tokens": "78"}]
    done("ingest", write(tmp_path / "second.csv", [*month()[20:45], *changed, *twice, *month()]))
    assert agreed(database) == 28
    assert [(row[0], row[2]) for row in counted(database)] == [("acme-bank-llm", 5), ("acme-bank-llm", 49)]
    for path in ("first.csv", "second.csv"):
        done("ingest", tmp_path / path)
    assert agreed(database) == 28


def test_loads_of_the_same_events_at_once_add_them_once(
    database: Database, done: Callable[..., str], run_ledger_process: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    done("contract", "add", CONTRACT)
    rows = month(120)
    files = [write(tmp_path / f"{number}.csv", rows[start:] + rows[:start]) for number, start in enumerate((0, 40, 80))]
    with ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(lambda file: run_ledger_process("ingest", file, env={"LEDGER_CHUNK_ROWS": "12"}), files))
    assert [one.returncode for one in ended] == [0, 0, 0], [one.stderr for one in ended]
    assert agreed(database) == 28
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT (SELECT sum(requests) FROM traffic), (SELECT count(*) FROM event)").fetchone() == (120, 120)


def test_a_void_makes_its_day_stale_and_settling_computes_it(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "month.csv", month()))
    for request_id in ("r0000", "r0028", "r0009"):  # two of three of one day, hours apart; one of nobody
        done("void", request_id, "--reason", "test")
        done("void", request_id, "--reason", "test")
    assert agreed(database, stale=1) == 27
    freshen(database, START, END)
    assert agreed(database) == 28
    assert sum(int(str(row[2])) for row in counted(database)) == 52
    done("void", "r0056", "--reason", "test")
    freshen(database, START, END)
    assert agreed(database) == 27  # nothing is left of the day
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT count(*) FROM stale").fetchone() == (0,)


def test_a_correction_marks_where_the_request_was_and_where_it_is(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "month.csv", month()))
    done("correct", "r0003", "--set", "received_at=2026-04-02T10:00:00+08:00", "--reason", "test")
    done("correct", "r0004", "--set", "output_tokens=51", "--reason", "test")
    done("void", "r0005", "--reason", "test")
    done("correct", "r0005", "--set", "output_tokens=51", "--revive", "--reason", "test")
    assert agreed(database, stale=4) == 25
    freshen(database, datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    assert agreed(database, stale=1) == 28
    freshen(database, START, END, ["another-contract"])
    assert agreed(database, stale=1) == 28
    freshen(database, START, END)
    assert agreed(database) == 29


def test_rows_that_are_sent_in_again_mark_their_days(
    database: Database, done: Callable[..., str], run_ledger: RunLedger, tmp_path: Path
) -> None:
    done("contract", "add", CONTRACT)
    assert run_ledger("ingest", write(tmp_path / "month.csv", month()), now="2026-05-10T00:00:00Z").exit_code == 0
    assert agreed(database) == 9
    done("ingest", write(tmp_path / "some.csv", month()[20:22]))  # duplicates by the time of the requeue
    assert agreed(database) == 11
    done("quarantine", "requeue", "--reason", "the clock was wrong")
    assert agreed(database, stale=18) == 10  # what is sent in again for the 22nd was there, or is nobody's
    freshen(database, START, END)
    assert agreed(database) == 28
    assert sum(int(str(row[2])) for row in counted(database)) == 54


def test_a_breaker_that_is_recorded_later_marks_the_days_with_traffic(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    intervals = tmp_path / "intervals.csv"
    intervals.write_text("kind,node,start,end\ncircuit_breaker,,2026-04-01T00:00:00+08:00,2026-07-01T00:00:00+08:00\n")
    done("interval", "add", intervals)  # nothing has happened yet
    with database.engine.connect() as connection:
        assert stale_spans(connection) == {}
    done("ingest", write(tmp_path / "month.csv", month()))
    assert agreed(database) == 28
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT sum(requests) FROM cell WHERE exemption = 0").fetchone() == (16,)
    intervals.write_text(
        "kind,node,start,end\ncircuit_breaker,n1,2026-05-03T00:00:00+08:00,2026-05-05T00:00:00+08:00\n"
        "circuit_breaker,n1,2026-05-05T00:00:00+08:00,2026-05-05T00:00:00+08:00\n"
    )
    done("interval", "add", intervals)
    assert agreed(database, stale=2) == 26
    done("interval", "add", intervals)
    freshen(database, START, END)
    assert agreed(database) == 28


def test_a_model_load_marks_the_days_of_requests_that_waited_for_it(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    waited = [
        request(100, "2026-05-06T23:50:00+08:00", node="n0", queue_us="1200000000"),  # until ten past midnight
        request(101, "2026-05-08T10:00:00+08:00", node="n0", queue_us="7200000000"),
        request(102, "2026-05-08T10:00:00+08:00", node="n1", queue_us="7200000000"),
    ]
    done("ingest", write(tmp_path / "month.csv", [*month(), *waited]))
    intervals = tmp_path / "intervals.csv"
    intervals.write_text(
        "kind,node,model,start,end\nmodel_load,n0,deepseek-v4,2026-05-07T00:00:00+08:00,2026-05-07T00:20:00+08:00\n"
        "model_load,n0,another,2026-05-01T00:00:00+08:00,2026-06-01T00:00:00+08:00\n"
        "model_load,n0,deepseek-v4,2026-05-08T11:59:59.999999+08:00,2026-05-08T12:00:00+08:00\n"
    )
    done("interval", "add", intervals)
    assert agreed(database, stale=2) == 26
    freshen(database, START, END)
    assert agreed(database) == 28
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT count(*) FROM cold_start_event").fetchone() == (7,)


def test_versions_mark_what_they_change_and_nothing_before_there_is_traffic(
    database: Database, done: Callable[..., str], tmp_path: Path
) -> None:
    first = version(tmp_path, 1, ("until: 2027-01-01", "until: 2026-05-20"))
    done("contract", "add", first)
    assert agreed(database) == 0
    done("ingest", write(tmp_path / "month.csv", month()))
    assert agreed(database) == 19
    second = version(tmp_path, 2, ("from: 2026-01-01", "from: 2026-05-20"), ("target: 300ms", "target: 200ms"))
    done("contract", "add", second)
    assert agreed(database, stale=9) == 19
    freshen(database, START, END)
    assert agreed(database) == 28
    replacing = version(tmp_path, 3, ("from: 2026-01-01", "from: 2026-05-10"), ("until: 2027-01-01", "until: 2026-05-15\nreplaces: 1"))
    done("contract", "add", replacing)
    assert agreed(database, stale=5) == 23
    freshen(database, START, END)
    assert agreed(database) == 28
    assert {row[1] for row in counted(database)} == {1, 2, 3}
    done("contract", "add", replacing)
    assert agreed(database) == 28


def test_an_account_that_moves_is_taken_from_one_contract_and_given_to_the_other(
    database: Database, done: Callable[..., str], tmp_path: Path
) -> None:
    both = ("    - acme-bank\n", "    - acme-bank\n    - nobody\n")
    done("contract", "add", version(tmp_path, 1, both))
    done("ingest", write(tmp_path / "month.csv", month()))
    assert agreed(database) == 28
    left = version(tmp_path, 2, ("from: 2026-01-01", "from: 2026-05-11"), ("until: 2027-01-01", "until: 2027-01-01\nreplaces: 1"))
    other = version(tmp_path, 1, ("    - acme-bank\n", "    - nobody\n"), ("from: 2026-01-01", "from: 2026-05-11"), name="other")
    done("contract", "add", left, other)
    with database.engine.connect() as connection:
        assert set(stale_spans(connection)) == {"acme-bank-llm", "other"}
    freshen(database, START, END, ["other"])
    freshen(database, START, END)
    assert agreed(database) > 28
    assert sum(int(str(row[2])) for row in counted(database)) == 60


def test_a_version_that_is_added_while_a_chunk_is_on_its_way_is_taken_into_account(
    database: Database, done: Callable[..., str], tmp_path: Path
) -> None:
    done("contract", "add", version(tmp_path, 1, ("until: 2027-01-01", "until: 2026-05-10")))
    shared = LoadUpkeep(database)
    added = iter([version(tmp_path, 2, ("from: 2026-01-01", "from: 2026-05-10"), ("target: 300ms", "target: 100ms"))])

    class Meanwhile:
        """Adds a version when the first chunk's deltas are computed and its events are copied."""

        def __init__(self, kept: object) -> None:
            self.kept = kept

        def ahead(self) -> None:
            self.kept.ahead()  # type: ignore[attr-defined]

        def follow(self, connection: object, new: object) -> None:
            for path in added:
                done("contract", "add", path)
            self.kept.follow(connection, new)  # type: ignore[attr-defined]

    with open_records(write(tmp_path / "month.csv", month()), tuple(built_in_mappings().values())) as records:
        load_file(database, records, author="test", upkeep=lambda chunk: Meanwhile(shared.of(chunk)), chunk_rows=25)
    assert agreed(database, stale=5) == 23  # days with cold starts, which nobody has ranked yet
    shared.finish()
    assert agreed(database) == 28
    assert {row[1] for row in counted(database)} == {1, 2}


def test_a_day_that_reaches_beyond_what_is_settled_is_computed_whole(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    """The second of June begins, in Shanghai, before what settling May has to look at ends; what was withdrawn on it lies behind."""
    done("contract", "add", CONTRACT)
    cold = [request(hour, f"2026-06-02T1{hour}:00:00+08:00", cold_start="true") for hour in range(2)]
    done("ingest", write(tmp_path / "first.csv", cold[:1]))
    done("void", cold[0]["request_id"], "--reason", "test")
    done("ingest", write(tmp_path / "second.csv", cold[1:]))
    done("settle", "2026-05", "--dry-run", "--provisional")
    assert agreed(database) == 1


def test_cold_starts_are_ranked_when_a_load_ends_and_again_when_an_earlier_one_comes(
    database: Database, done: Callable[..., str], tmp_path: Path
) -> None:
    """Two a day are exempt: the first two that are known, until an earlier one is."""
    done("contract", "add", CONTRACT)
    cold = [
        request(number, f"2026-05-06T1{number}:00:00+08:00", cold_start=f"load-{number}", output_tokens=str(10**number))
        for number in range(4)
    ]
    exempt = "SELECT exemption IS NOT NULL, sum(tokens_output) FROM delayed_cell GROUP BY 1 ORDER BY 1"
    with psycopg.connect(database.url, autocommit=True) as connection:
        done("ingest", write(tmp_path / "later.csv", cold[1:]))
        assert connection.execute(exempt).fetchall() == [(False, 1000), (True, 110)]
        done("ingest", write(tmp_path / "first.csv", cold[:1]))
        assert connection.execute(exempt).fetchall() == [(False, 1100), (True, 11)]
        assert agreed(database) == 1
        # However it came that a day is not ranked, it is before anything is read of it.
        settled = done("settle", "2026-05", "--dry-run", "--provisional", "--format", "json")
        connection.execute("DELETE FROM delayed_cell")
        assert agreed(database, stale=1) == 0
        assert done("settle", "2026-05", "--dry-run", "--provisional", "--format", "json") == settled
        assert connection.execute(exempt).fetchall() == [(False, 1100), (True, 11)]


def test_a_snapshot_knows_no_cold_start_that_is_not_ranked_though_loads_go_on(
    database: Database, done: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that commits between the look at what is ranked and the snapshot must not be seen without its cold starts."""
    done("contract", "add", CONTRACT)
    path = write(tmp_path / "month.csv", month())
    looks = []

    def look_and_load(*arguments: Any) -> set[ContractDay]:
        found = unranked_days(*arguments)
        if not looks:
            with open_records(path, tuple(built_in_mappings().values())) as records:
                load_file(database, records, author="test", upkeep=LoadUpkeep(database).of)
        looks.append(found)
        return found

    monkeypatch.setattr("ledger.workflows.freshen.unranked_days", look_and_load)
    with fresh_snapshot(database, START, END) as connection:
        assert unranked_days(connection, None, START, END) == set()
    assert looks and agreed(database, stale=5) == 23  # the load is there, and has not ended


def test_deltas_are_folded_when_that_halves_them(
    database: Database, done: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("contract", "add", CONTRACT)
    late = [request(number, "2026-05-06T10:00:00+08:00", inference_us=str(400_000 + number)) for number in range(40)]
    done("ingest", write(tmp_path / "first.csv", late[:20]))
    rows = "SELECT count(*), sum(requests), sum(cardinality(late_latencies_us)) FROM cell"
    with psycopg.connect(database.url, autocommit=True) as connection:
        assert connection.execute(rows).fetchone() == (1, 20, 20)
        monkeypatch.setenv("LEDGER_CHUNK_ROWS", "5")
        done("ingest", write(tmp_path / "second.csv", late))
        assert connection.execute(rows).fetchone() == (1, 40, 40)
        assert connection.execute("SELECT array_agg(one ORDER BY one) FROM cell, unnest(late_latencies_us) AS one").fetchone() == (
            list(range(401_000, 401_040)),
        )
    assert agreed(database) == 1


@pytest.mark.parametrize(
    ("zone", "instant", "start"),
    [
        ("Asia/Shanghai", datetime(2026, 5, 5, 16, tzinfo=UTC), date(2026, 5, 6)),
        ("Asia/Shanghai", datetime(2026, 5, 5, 15, 59, 59, 999999, tzinfo=UTC), date(2026, 5, 5)),
        ("America/St_Johns", datetime(2009, 11, 1, 2, 31, tzinfo=UTC), date(2009, 11, 1)),  # October 31, 23:01, for the second time
        ("Africa/Cairo", datetime(2026, 4, 23, 22, tzinfo=UTC), date(2026, 4, 24)),
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC), date(2011, 12, 31)),
    ],
)
def test_the_day_of_an_instant_is_the_last_that_began(zone: str, instant: datetime, start: date) -> None:
    found = days_touched(zone, instant, instant + timedelta(microseconds=1))
    assert found.starts == (day_start(zone, start),) and found.starts[0] <= instant < found.end


def test_a_day_whose_evening_comes_twice_is_computed_whole(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    """In St. John's the clocks went back from a minute past midnight: an hour of November 1 bears the date of October 31."""
    done("contract", "add", version(tmp_path, 1, ("Asia/Shanghai", "America/St_Johns"), ("from: 2026-01-01", "from: 2009-01-01")))
    instants = ("2009-11-01T02:00:00Z", "2009-11-01T02:30:30Z", "2009-11-01T02:31:00Z", "2009-11-01T12:00:00Z")
    done("ingest", write(tmp_path / "night.csv", [request(number, at) for number, at in enumerate(instants)]))
    assert agreed(database) == 2
    done("void", "r0002", "--reason", "test")
    assert agreed(database, stale=1) == 1
    freshen(database, datetime(2009, 10, 1, tzinfo=UTC), datetime(2009, 12, 1, tzinfo=UTC))
    assert agreed(database) == 2
    assert sum(int(str(row[2])) for row in counted(database)) == 3


def test_two_who_find_the_same_days_stale_compute_them_once(database: Database, done: Callable[..., str], tmp_path: Path) -> None:
    done("contract", "add", CONTRACT)
    done("ingest", write(tmp_path / "month.csv", month()))
    done("void", "r0003", "--reason", "test")
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database "
    waiting += "WHERE datname = current_database())"
    with ThreadPoolExecutor(2) as threads:
        with database.engine.begin() as connection:
            lock_cells(connection)
            both = [threads.submit(freshen, database, START, END) for _ in range(2)]
            deadline = time.monotonic() + 60
            while connection.scalar(text(waiting)) != 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert [one.result() for one in both] == [None, None]
    assert agreed(database) == 28


def test_the_tables_have_the_columns_of_what_is_kept_in_the_same_order() -> None:
    for table, columns in (KEPT | DELTA_COLUMNS).items():
        assert tuple(schema.metadata.tables[table].columns.keys()) == columns
