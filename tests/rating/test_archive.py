"""Months settled from archived events: what is refused and with which words, and that an archive settles like the database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import Result
from sqlalchemy import text

from ledger.errors import LedgerError
from ledger.rating.archive import archived_events
from ledger.store.cells import stale_spans
from ledger.store.database import Database
from tests.cases import NOT_IN_CASES, NOW, Case, CaseMissing, read_case

RunLedger = Callable[..., Result]

DURATIONS = ("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us")
NUMBERS = (*DURATIONS, "input_tokens", "cached_input_tokens", "output_tokens", "status")
TYPES = {"received_at": "TIMESTAMPTZ", "async_header": "BOOLEAN", **dict.fromkeys(NUMBERS, "BIGINT")}
# A row that keeps every rule, as SQL.
GOOD = {
    "account": "'acme-bank'",
    "request_id": "'r1'",
    "model": "'deepseek-v4'",
    "received_at": "TIMESTAMPTZ '2026-05-06 10:00:00+08:00'",
    "queue_us": "0::BIGINT",
    "inference_us": "150000::BIGINT",
    "input_tokens": "1000000::BIGINT",
    "cached_input_tokens": "0::BIGINT",
    "output_tokens": "500::BIGINT",
    "status": "200::INTEGER",
    "cold_start": "NULL::VARCHAR",
}


def write_parquet(path: Path, rows: list[dict[str, str]]) -> Path:
    """A Parquet file with these rows, which are SQL by column."""
    selects = [f"SELECT {', '.join(f'{value} AS {name}' for name, value in row.items())}" for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.sql(" UNION ALL BY NAME ".join(selects)).write_parquet(str(path))
    return path


def archive_of(case: Case, path: Path, *, without: tuple[str, ...] = ()) -> Path:
    """The case's events in the canonical types, without some requests."""
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        events = connection.sql("FROM read_csv($file, header = true, all_varchar = true)", params={"file": str(case.folder / "events.csv")})
        stored = {name: f"{name}::{TYPES.get(name, 'VARCHAR')}" for name in events.columns}
        stored["queue_us"] = "CASE WHEN queue_us::BIGINT < 0 THEN 0 ELSE queue_us::BIGINT END"  # clocks that differ a little
        if "cold_start" in stored:
            stored["cold_start"] = "CASE WHEN lower(cold_start) <> 'false' THEN cold_start END"
        columns = ", ".join(f"{value} AS {name}" for name, value in stored.items())
        kept = " AND ".join(["TRUE", *(f"request_id <> '{request_id}'" for request_id in without)])
        events.filter(kept).project(columns).write_parquet(str(path))
    return path


def settled(result: Result) -> list[dict[str, Any]]:
    """What was settled, in its order, but for what an archive cannot know."""
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return [{key: value for key, value in one.items() if key not in NOT_IN_CASES[1:]} for one in found]


@pytest.fixture
def add_case(run_ledger: RunLedger) -> Callable[[str], Case]:
    """Puts the contracts and intervals of a case into the database, and no event."""

    def add(name: str) -> Case:
        try:
            case = read_case(name)
        except CaseMissing as missing:
            pytest.skip(str(missing))
        assert run_ledger("contract", "add", *case.contract_files, now=NOW).exit_code == 0
        if case.intervals:
            assert run_ledger("interval", "add", case.folder / "intervals.csv", now=NOW).exit_code == 0
        return case

    return add


@pytest.mark.parametrize(
    "name",
    [
        *("amendment", "breaker-two-models", "clocks-forward-paris", "cold-starts", "edges", "expression-ratio"),
        *("failures-and-overload", "month-window-cut", "no-such-day-apia", "outcomes-and-breaker"),
    ],
)
def test_an_archive_settles_to_the_bytes_that_the_database_does(
    name: str, run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    case = add_case(name)
    archive = archive_of(case, tmp_path / "events.parquet")
    settle = ("settle", case.period, "--dry-run", "--format", "json")
    from_archive = settled(run_ledger(*settle, "--events", archive, now=NOW))
    assert run_ledger("ingest", case.folder / "events.csv", now=NOW).exit_code == 0
    assert json.dumps(from_archive) == json.dumps(settled(run_ledger(*settle, now=NOW)))
    assert sum(one["events"]["total"] for one in from_archive) > 0


def test_what_was_voided_is_not_in_the_archive_and_counts_in_neither(
    run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    case = add_case("cold-starts")
    voided = tuple(row["request_id"] for row in case.events[:3])
    assert run_ledger("ingest", case.folder / "events.csv", now=NOW).exit_code == 0
    for request_id in voided:
        assert run_ledger("void", request_id, "--reason", "load test", now=NOW).exit_code == 0
    settle = ("settle", case.period, "--dry-run", "--format", "json")
    stored = settled(run_ledger(*settle, now=NOW))
    with_all, without = (archive_of(case, tmp_path / f"{len(some)}.parquet", without=some) for some in ((), voided))
    assert settled(run_ledger(*settle, "--events", without, now=NOW)) == stored
    assert settled(run_ledger(*settle, "--events", with_all, now=NOW)) != stored


def test_a_folder_is_all_parquet_files_below_it_and_each_counts_once(
    run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    """Also if a name has characters that would be a pattern, or a folder is called like a column."""
    case = add_case("edges")
    whole = archive_of(case, tmp_path / "whole.parquet")
    folder = tmp_path / "archive"
    requests = [row["request_id"] for row in case.events]
    names = ["*.parquet", "[a-z].parquet", "a.parquet", "queue=vip/b.parquet"]
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        archive_of(case, folder / name, without=tuple(r for position, r in enumerate(requests) if position % len(names) != number))
    (folder / "README.txt").write_text("not an archive")
    settle = ("settle", case.period, "--dry-run", "--format", "json")
    assert settled(run_ledger(*settle, "--events", folder, now=NOW)) == settled(run_ledger(*settle, "--events", whole, now=NOW))
    starred = run_ledger(*settle, "--events", folder / "*.parquet", now=NOW)
    in_starred = settled(starred)[0]["events"]["total"]
    assert 0 < in_starred <= len(requests[:: len(names)])


def test_columns_that_may_be_missing_have_the_values_of_events(
    run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    case = add_case("edges")
    written = GOOD | {"queue": "'standard'", "async_header": "false", "revision": "1", "node": "NULL::VARCHAR"}
    bare = {name: GOOD[name] for name in GOOD if name not in ("cached_input_tokens", "status", "cold_start")}
    empty = {**written, **{name: f"NULL::{TYPES[name]}" for name in ("async_header", "cached_input_tokens", "status")}}
    files = [write_parquet(tmp_path / f"{n}.parquet", [row]) for n, row in enumerate((written, bare, empty))]
    first, *others = [
        settled(run_ledger("settle", case.period, "--dry-run", "--format", "json", "--events", file, now=NOW)) for file in files
    ]
    assert first[0]["events"]["billed"] == 1 and others == [first, first]


def test_an_archive_without_rows_is_a_month_without_traffic(run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path) -> None:
    add_case("edges")
    archive = tmp_path / "empty.parquet"
    with duckdb.connect() as connection:
        good = connection.read_parquet(str(write_parquet(tmp_path / "good.parquet", [GOOD])))
        good.filter("FALSE").write_parquet(str(archive))
    (one,) = settled(run_ledger("settle", "2026-05", "--dry-run", "--format", "json", "--events", archive, now=NOW))
    assert (one["events"]["total"], one["lines"]) == (0, [])


def test_an_archive_is_for_a_dry_run_alone(run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path) -> None:
    add_case("edges")
    archive = write_parquet(tmp_path / "may.parquet", [GOOD])
    result = run_ledger("settle", "2026-05", "--events", archive, "--output", tmp_path / "out", now=NOW)
    assert result.exit_code == 2 and "--events needs --dry-run" in result.stderr
    assert not (tmp_path / "out").exists()
    missing = run_ledger("settle", "2026-05", "--dry-run", "--events", tmp_path / "june.parquet", now=NOW)
    assert missing.exit_code == 2 and "does not exist" in missing.stderr


def test_a_model_that_no_contract_claims_is_named_without_requests_of_the_database(
    run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    add_case("edges")
    other = tmp_path / "other.csv"
    other.write_text(
        "account,request_id,model,received_at,input_tokens,output_tokens\nacme-bank,other,mystery,2026-05-06T10:00:00+08:00,1,1\n"
    )
    assert run_ledger("ingest", other, now=NOW).exit_code == 0
    rows = [GOOD, GOOD | {"request_id": "'r2'", "model": "'mystery'"}]
    result = run_ledger("settle", "2026-05", "--dry-run", "--events", write_parquet(tmp_path / "may.parquet", rows), now=NOW)
    assert result.exit_code == 1
    assert "model 'mystery' with 1 request\n" in result.stderr


def test_kept_cells_that_are_stale_stay_so_since_nothing_is_read_of_them(
    run_ledger: RunLedger, add_case: Callable[[str], Case], database: Database, tmp_path: Path
) -> None:
    add_case("edges")
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO stale VALUES ('acme-bank-llm', '{[2026-05-01 00:00Z, 2026-05-02 00:00Z)}')"))
    archive = write_parquet(tmp_path / "may.parquet", [GOOD])
    assert run_ledger("settle", "2026-05", "--dry-run", "--events", archive, now=NOW).exit_code == 0
    with database.engine.connect() as connection:
        assert stale_spans(connection) != {}


# -- refusals


def refused(path: Path) -> str:
    """What an archive is refused with."""
    with duckdb.connect() as connection, pytest.raises(LedgerError) as error:
        archived_events(connection, path)
    assert error.value.exit_code == 1 and error.value.cure
    return str(error.value)


def test_an_archive_with_a_column_that_no_event_has_is_refused_by_its_name(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "may.parquet", [GOOD | {"e2e_ms": "310::BIGINT"}])
    assert refused(path) == f"{path}: no column of an archive: e2e_ms"


def test_a_refusal_is_two_lines_and_settles_nothing(run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path) -> None:
    add_case("edges")
    bad = write_parquet(tmp_path / "may.parquet", [GOOD | {"queue_us": "-1::BIGINT"}])
    result = run_ledger("settle", "2026-05", "--dry-run", "--events", bad, now=NOW)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: {bad}: not every row keeps the rules of events: queue_us is from 0 to 30 days\n"
        "  look for such rows where the archive was written\n"
    )


@pytest.mark.parametrize("column", ["account", "request_id", "received_at", "queue_us"])
def test_a_file_that_is_damaged_inside_is_refused(
    column: str, run_ledger: RunLedger, add_case: Callable[[str], Case], tmp_path: Path
) -> None:
    add_case("edges")
    rows = [GOOD | {"request_id": f"'r{n}'", "queue_us": f"{n}::BIGINT", "cold_start": "'true'"} for n in range(200)]
    path = write_parquet(tmp_path / "damaged.parquet", rows)
    with duckdb.connect() as connection:
        found = connection.sql(
            "SELECT coalesce(dictionary_page_offset, data_page_offset) FROM parquet_metadata($file) WHERE path_in_schema = $column",
            params={"file": str(path), "column": column},
        ).fetchall()
    content, ((start,),) = bytearray(path.read_bytes()), found
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    result = run_ledger("settle", "2026-05", "--dry-run", "--events", path, now=NOW)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {path} cannot be read: ") and len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("account is there", {"account": "NULL::VARCHAR"}),
        ("model is there", {"model": "NULL::VARCHAR"}),
        ("received_at is there", {"received_at": "NULL::TIMESTAMPTZ"}),
        ("received_at is there", {"received_at": "TIMESTAMPTZ 'infinity'"}),
        ("queue_us is from 0 to 30 days", {"queue_us": "-1::BIGINT"}),
        ("inference_us is from 0 to 30 days", {"inference_us": "2592000000001"}),
        ("e2e_us is from 0 to 30 days", {"e2e_us": "-1::TINYINT"}),
        ("input_tokens is from 0 to 10^12", {"input_tokens": "1000000000001"}),
        ("input_tokens is from 0 to 10^12, cached_input_tokens is a part of input_tokens", {"input_tokens": "-1::BIGINT"}),
        ("output_tokens is from 0 to 10^12", {"output_tokens": "-1::BIGINT"}),
        ("cached_input_tokens is from 0 to 10^12", {"cached_input_tokens": "-1::BIGINT"}),
        ("cached_input_tokens is a part of input_tokens", {"cached_input_tokens": "1000001::BIGINT"}),
        ("cached_input_tokens is a part of input_tokens", {"cached_input_tokens": "1::BIGINT", "input_tokens": "NULL::BIGINT"}),
        ("a success has tokens", {"input_tokens": "NULL::BIGINT"}),
        ("a success has tokens", {"output_tokens": "NULL::BIGINT", "status": "NULL::INTEGER"}),
        ("cold_start is an id or 'true'", {"cold_start": "'false'"}),
        ("cold_start is an id or 'true'", {"cold_start": "'False'"}),
        ("cold_start is an id or 'true'", {"cold_start": "''"}),
        ("cold_start is an id or 'true'", {"cold_start": "'TRUE'"}),
    ],
)
def test_an_archive_with_a_row_that_breaks_a_rule_of_events_is_refused_as_a_whole(
    rule: str, changes: dict[str, str], tmp_path: Path
) -> None:
    second = GOOD | {"request_id": "'r2'"}
    message = refused(write_parquet(tmp_path / "may.parquet", [GOOD, second | changes]))
    assert f"not every row keeps the rules of events: {rule}" in message


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("received_at", "TIMESTAMP '2026-05-06 10:00:00'", "TIMESTAMP"),
        ("received_at", "DATE '2026-05-06'", "DATE"),
        ("received_at", "'2026-05-06T10:00:00+08:00'", "VARCHAR"),
        ("received_at", "1778032800000000", "BIGINT"),
        ("account", "'acme-bank'::BLOB", "BLOB"),
        ("account", "['acme-bank']", "VARCHAR[]"),
        ("request_id", "uuid()", "UUID"),
        ("model", "{'name': 'deepseek-v4'}", 'STRUCT("name" VARCHAR)'),
        ("input_tokens", "1000000.0::DOUBLE", "DOUBLE"),
        ("input_tokens", "1000000.0::DECIMAL(18, 1)", "DECIMAL(18,1)"),
        ("output_tokens", "500::UBIGINT", "UBIGINT"),
        ("output_tokens", "'500'", "VARCHAR"),
        ("inference_us", "INTERVAL '150 ms'", "INTERVAL"),
        ("status", "true", "BOOLEAN"),
        ("async_header", "'true'", "VARCHAR"),
    ],
)
def test_a_column_of_another_type_is_refused_not_converted(column: str, value: str, found: str, tmp_path: Path) -> None:
    bad = write_parquet(tmp_path / "bad.parquet", [GOOD | {column: value}])
    assert f"{column} is {found}, expected " in refused(bad)


def test_a_type_is_refused_in_any_file_of_a_folder_also_where_both_have_a_type_in_common(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    write_parquet(folder / "a.parquet", [GOOD])
    naive = write_parquet(folder / "b.parquet", [GOOD | {"received_at": "TIMESTAMP '2026-05-06 10:00:00'"}])
    assert f"{naive}: received_at is TIMESTAMP, expected" in refused(folder)


@pytest.mark.parametrize("column", ["account", "request_id", "model", "received_at"])
def test_a_file_without_a_needed_column_is_refused_also_beside_one_that_has_it(column: str, tmp_path: Path) -> None:
    bad = write_parquet(tmp_path / "archive" / "b.parquet", [{name: value for name, value in GOOD.items() if name != column}])
    assert f"{bad}: no column {column}" in refused(bad)
    write_parquet(tmp_path / "archive" / "a.parquet", [GOOD])
    assert f"{bad}: no column {column}" in refused(tmp_path / "archive")


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert "no Parquet file" in refused(tmp_path / "nothing")
    text = tmp_path / "events.csv"
    text.write_text("account,request_id\nacme-bank,r1\n")
    assert f"{text} cannot be read: " in refused(text)
    empty = tmp_path / "empty.parquet"
    empty.touch()
    assert f"{empty} cannot be read: " in refused(empty)
    half = tmp_path / "half.parquet"
    half.write_bytes(write_parquet(tmp_path / "whole.parquet", [GOOD]).read_bytes()[:-20])
    assert f"{half} cannot be read: " in refused(half)
