"""Loading files, by value: what others met, real telemetry, repeats and splits, kills in the middle."""

import csv
import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tests.ingest.sample_rows import HEADER, MAPPINGS, counts, row, totals, write_rows

Run = Callable[..., Any]
Query = Callable[[str], list[dict[str, Any]]]
ALL_EVENTS = "SELECT * FROM event ORDER BY account, request_id, revision"
CONTENT = "SELECT to_jsonb(event) - 'batch_id' AS event FROM event ORDER BY account, request_id"


def test_the_case_of_refused_rows(shared: Path, run_ledger: Run, query: Query) -> None:
    file = shared / "cases" / "refused-rows" / "events.csv"
    reasons = {
        "bad_instant": 3, "bad_number": 3, "bad_text": 1, "cached_exceeds_input": 1, "future": 1, "inconsistent_timing": 1,
        "missing_field": 1, "negative_duration": 2, "negative_tokens": 1, "too_large": 1, "usage_missing": 1,
    }  # fmt: skip
    result = run_ledger("ingest", file, "--format", "json", "--strict")
    assert (result.exit_code, totals(result.stdout)) == (1, counts(read=25, new=6, duplicate=2, conflict=1, **reasons))
    result = run_ledger("ingest", file, "--format", "json")
    assert (result.exit_code, totals(result.stdout)) == (0, counts(read=25, duplicate=8, conflict=1, **reasons))
    assert query("SELECT count(*) FROM event") == [{"count": 6}]
    assert query("SELECT count(*) FROM quarantine") == [{"count": 17}]


def test_real_benchmark_rows_become_exactly_the_events_of_the_cases(shared: Path, run_ledger: Run, query: Query) -> None:
    data = shared / "data" / "aibrix-multiround" / "combined.csv.gz"
    result = run_ledger("ingest", "--mapping", MAPPINGS / "aibrix.yaml", data, "--format", "json")
    assert totals(result.stdout) == counts(read=29_494, new=29_494)
    assert "ignored the columns question_id, user_id" in result.stderr
    expected = {}
    for case in ("real-aibrix-2025-03", "real-aibrix-2025-05"):
        with (shared / "cases" / case / "events.csv").open() as file:
            for event in csv.DictReader(file):
                received_at = datetime.fromisoformat(event.pop("received_at"))
                key = (event.pop("account"), event.pop("request_id"))
                expected[key] = {"received_at": received_at, "model": event.pop("model")} | {k: int(v) for k, v in event.items()}
    rows = query("SELECT account, request_id, received_at, model, decode_us, ttft_us, e2e_us, input_tokens, output_tokens FROM event")
    assert {(event.pop("account"), event.pop("request_id")): event for event in rows} == expected
    others = query("SELECT DISTINCT queue_us, prefill_us, inference_us, status, cached_input_tokens, queue, node FROM event")
    assert [list(found.values()) for found in others] == [[None, None, None, 200, 0, "standard", None]]


def test_failed_benchmark_calls_are_not_fast_successes(shared: Path, run_ledger: Run, query: Query) -> None:
    folder = shared / "data" / "llmperf-leaderboard" / "individual"
    result = run_ledger("ingest", "--mapping", MAPPINGS / "llmperf.yaml", folder, "--format", "json")
    assert totals(result.stdout) == counts(read=2_845, new=2_845)
    statuses = Counter({event["status"]: event["count"] for event in query("SELECT status, count(*) FROM event GROUP BY status")})
    assert (statuses[200], statuses[429], statuses[-100] + statuses[-1]) == (2_306, 392, 147)
    assert query("SELECT count(*) FROM event WHERE status = 200 AND e2e_us = 0") == [{"count": 0}]
    assert query("SELECT DISTINCT request_id FROM event WHERE model = 'groq_70b' AND received_at = '2023-12-19 00:01:00+00'") == [
        {"request_id": "groq_70b/61"}
    ]


def test_ids_belong_to_their_account_and_none_is_an_ordinary_id(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    rows = [row("X", "a", 10), row("Y", "a", 20), row("X", "a", 30), row("X", ""), row("X", "None"), row("X", "None")]
    result = run_ledger("ingest", write_rows(tmp_path / "rows.csv", rows), "--format", "json")
    assert totals(result.stdout) == counts(read=6, new=3, duplicate=1, conflict=1, missing_field=1)
    stored = [(event["account"], event["request_id"], event["input_tokens"]) for event in query(ALL_EVENTS)]
    assert stored == [("X", "None", 10), ("X", "a", 10), ("Y", "a", 20)]
    (conflict,) = query("SELECT detail, line FROM quarantine WHERE reason = 'conflict'")
    assert conflict == {"detail": "differs from the stored row in input_tokens", "line": 4}


def test_a_client_that_resends_old_rows_adds_only_the_new_ones(tmp_path: Path, run_ledger: Run) -> None:
    run_ledger("ingest", write_rows(tmp_path / "old.csv", [row(request_id=f"r{n}") for n in range(60)]))
    result = run_ledger("ingest", write_rows(tmp_path / "new.csv", [row(request_id=f"r{n}") for n in range(100)]), "--format", "json")
    assert (result.exit_code, totals(result.stdout)) == (0, counts(read=100, new=40, duplicate=60))


def test_twenty_loads_at_once_insert_the_same_request_once(tmp_path: Path, database_url: str, query: Query) -> None:
    """Twenty loads at once, each in a connection of its own: four processes of five threads."""
    file = write_rows(tmp_path / "rows.csv", [row(request_id="same")])
    script = (
        "import sys, threading, json\n"
        "from pathlib import Path\n"
        "from ledger.store.database import open_database\n"
        "from ledger.workflows.ingest import ingest, IngestOptions\n"
        "found = []\n"
        "def load():\n"
        "    with open_database(sys.argv[1]) as database:\n"
        "        (report,) = ingest(database, [sys.argv[2]], IngestOptions(), author='test')\n"
        "    assert report.error is None, report.error\n"
        "    found.append([report.summary.new, report.summary.duplicate])\n"
        "threads = [threading.Thread(target=load) for _ in range(5)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(json.dumps(found))\n"
    )
    command = [sys.executable, "-c", script, database_url, str(file)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outcomes = [outcome for process in processes for outcome in json.loads(process.communicate(timeout=100)[0])]
    assert sorted(outcomes) == [[0, 1]] * 19 + [[1, 0]]
    assert query("SELECT count(*) FROM event") == [{"count": 1}]
    assert query("SELECT count(*), sum(rows_new) AS new FROM batch") == [{"count": 20, "new": 1}]


def test_one_nul_and_half_a_surrogate_leave_their_neighbours_alone(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    lines = [
        json.dumps({"account": "a", "request_id": f"r{n}", "model": "m", "received_at": "2026-05-06T10:00:00Z", "input_tokens": 1,
                    "output_tokens": 1}) for n in range(1_000)
    ]  # fmt: skip
    lines[16] = lines[16].replace('"r16"', '"r\\u0000"')
    lines[732] = lines[732].replace('"r732"', '"r\\ud800"')
    for name, text in (("rows.jsonl", "\n".join(lines)), ("rows.json", "[" + ",\n".join(lines) + "]")):
        file = tmp_path / name
        file.write_text(text)
        result = run_ledger("ingest", file, "--format", "json")
        assert totals(result.stdout)["reasons"] == {"bad_text": 2}
    assert query("SELECT count(*) FROM event") == [{"count": 998}]
    assert sorted(entry["line"] for entry in query("SELECT line FROM quarantine")) == [17, 733]


def test_a_line_with_other_cells_or_bytes_is_refused_with_its_number(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    good = [row(request_id=f"r{n}").encode() for n in range(4)]
    bad_bytes, bad_quote = b"acme,\xff,m,2026-05-06T10:00:00Z,1,1,1", b'a,"b"c,d,e,f,g,h'
    lines = [HEADER.encode(), good[0], b"a,b", b"", good[1], bad_bytes, good[2], bad_quote, good[3]]
    file = tmp_path / "rows.csv"
    file.write_bytes(b"\r\n".join(lines))
    result = run_ledger("ingest", file, "--format", "json")
    assert totals(result.stdout) == counts(read=7, new=4, bad_text=3)
    assert query("SELECT line, detail FROM quarantine ORDER BY line") == [
        {"line": 3, "detail": "the line has 2 cells, the header has 7"},
        {"line": 6, "detail": "the line is not UTF-8"},
        {"line": 8, "detail": "a quote is not closed, or stands inside a cell"},
    ]


def test_quoted_cells_may_hold_delimiters_quotes_and_line_breaks(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    rows = ['acme,"a,b",m,2026-05-06T10:00:00Z,1,1,1', 'acme,"say ""hi""",m,2026-05-06T10:00:00Z,1,1,1']
    rows += ['acme,"two\nlines",m,2026-05-06T10:00:00Z,1,1,1', row(request_id="")]
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", rows))
    assert [event["request_id"] for event in query(ALL_EVENTS)] == ["a,b", 'say "hi"', "two\nlines"]
    assert query("SELECT line FROM quarantine") == [{"line": 6}]


def test_end_before_start_is_quarantined_and_never_clamped(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    mapping = tmp_path / "proxy.yaml"
    mapping.write_text(
        "schema: ledger/mapping/v1\nname: proxy\nidentify: [began]\ncolumns:\n  account: {constant: a}\n  request_id: id\n  model: id\n"
        "  received_at: {value: began, unit: epoch_ms}\n  e2e_us: {value: ended - began, unit: ms}\n  status: '503'\n"
    )
    file = tmp_path / "rows.csv"
    file.write_text(
        "id,began,ended\n1,1778033730118,1778033729918\n2,1778033730118,1778033730318.0005\n3,1778033730118,x\n4,1778033730118,\n"
    )
    result = run_ledger("ingest", "--mapping", mapping, file, "--format", "json")
    assert totals(result.stdout) == counts(read=4, new=2, negative_duration=1, bad_number=1)
    assert [(event["request_id"], event["e2e_us"]) for event in query(ALL_EVENTS)] == [("2", 200_000), ("4", None)]


def test_a_bom_a_semicolon_and_a_comma_decimal(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = tmp_path / "rows.csv"
    header = HEADER.replace("inference_us", "inference_ms").replace(",", ";")
    good, bad = (f"acme;{name};m;2026-05-06T10:00:00Z;{value};1;1" for name, value in (("r1", "99.5"), ("r2", "99,5")))
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([header, good, bad]).encode())
    result = run_ledger("ingest", file, "--format", "json")
    assert totals(result.stdout) == counts(read=2, new=1, bad_number=1)
    assert [(event["account"], event["inference_us"]) for event in query(ALL_EVENTS)] == [("acme", 99_500)]


def test_the_same_rows_from_every_format_are_the_same_events(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    csv_file = write_rows(tmp_path / "rows.csv", [row(request_id=f"r{n}", tokens=10**11 + n) for n in range(50)])
    duckdb.read_csv(str(csv_file)).write_parquet(str(tmp_path / "rows.parquet"))
    duckdb.read_csv(str(csv_file), dtype={"received_at": "VARCHAR"}).create_view("loaded_rows")
    for name, options in (("rows.jsonl", "json"), ("rows.json", "json, ARRAY true"), ("rows.csv.zst", "csv, COMPRESSION zstd")):
        duckdb.execute(f"COPY (FROM loaded_rows) TO '{tmp_path}/{name}' (FORMAT {options})")
    (tmp_path / "again.csv.gz").write_bytes(gzip.compress(csv_file.read_bytes() + b"\n"))
    result = run_ledger("ingest", tmp_path, "--format", "json")
    assert totals(result.stdout) == counts(read=300, new=50, duplicate=250), result.stderr
    assert query("SELECT count(*) FROM quarantine") == [{"count": 0}]


def test_names_that_look_like_patterns_are_names(tmp_path: Path, run_ledger: Run) -> None:
    write_rows(tmp_path / "a.csv", [row(request_id="other")])
    file = write_rows(tmp_path / "*'; [a].csv", [row()])
    result = run_ledger("ingest", file, "--format", "json")
    assert totals(result.stdout) == counts(read=1, new=1)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path, run_ledger: Run) -> None:
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    (tmp_path / "broken.json").write_text('[{"request_id": 1}, {')
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "fake.parquet").write_bytes(b"PAR1nothing")
    write_rows(tmp_path / "good.csv", [row()])
    result = run_ledger("ingest", tmp_path, "--format", "json")
    assert (result.exit_code, totals(result.stdout)) == (1, counts(read=1, new=1))
    assert len(re.findall("^error: ", result.stderr, flags=re.MULTILINE)) == 4


def test_standard_input_and_a_missing_account(tmp_path: Path, database_url: str, query: Query) -> None:
    text = "request_id,model,received_at,input_tokens,output_tokens\nr,m,2026-05-06T10:00:00Z,1,1\n"
    command = [sys.executable, "-m", "ledger", "ingest", "-", "--account", "acme"]
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("- (canonical): 1 read = 1 new + 0 duplicate + 0 conflict + 0 refused; 2026-05-06T10:00:00Z to ")
    assert query("SELECT account, source FROM event JOIN batch USING (batch_id)") == [{"account": "acme", "source": "stdin"}]


def test_content_loaded_with_other_options_is_refused_without_again(tmp_path: Path, run_ledger: Run) -> None:
    file = write_rows(tmp_path / "rows.csv", [row()])
    assert run_ledger("ingest", file).exit_code == 0
    refused = run_ledger("ingest", "--account", "b", file)
    assert refused.exit_code == 1
    assert "was loaded with other options: no --account then, b now" in refused.stderr
    again = run_ledger("ingest", "--account", "b", "--again", file, "--format", "json")
    assert (again.exit_code, totals(again.stdout)) == (0, counts(read=1, duplicate=1))


def _many_rows(rows: int) -> list[str]:
    lines = [row(account=f"a{n % 3}", request_id=f"r{n}", tokens=n) for n in range(rows)]
    lines[7], lines[rows // 2] = row(request_id=""), row(request_id="", tokens=3)
    return lines


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_CHUNK_ROWS", "40")


def test_twice_shuffled_and_split_in_ten_is_the_same_table(tmp_path: Path, run_ledger: Run, query: Query, small_chunks: None) -> None:
    rows = _many_rows(200)
    whole = write_rows(tmp_path / "whole.csv", rows)
    assert totals(run_ledger("ingest", whole, "--format", "json").stdout) == counts(read=200, new=198, missing_field=2)
    before = query(CONTENT), query("SELECT count(*) FROM quarantine")
    assert totals(run_ledger("ingest", whole, "--format", "json").stdout) == counts(read=200, duplicate=198, missing_field=2)
    random.Random(1).shuffle(rows)
    parts = tmp_path / "parts"
    parts.mkdir()
    for n in range(10):
        write_rows(parts / f"{n}.csv", rows[n::10])
    shuffled = write_rows(tmp_path / "shuffled.csv", rows)
    result = run_ledger("ingest", parts, shuffled, "--format", "json")
    assert totals(result.stdout) == counts(read=400, duplicate=396, missing_field=4)
    assert (query(CONTENT), query("SELECT count(*) FROM quarantine")) == before


def test_many_new_events_are_analysed_at_once_so_that_a_settlement_is_planned_well(
    tmp_path: Path, run_ledger: Run, query: Query, owner_url: str
) -> None:
    analysed = "SELECT analyze_count FROM pg_stat_user_tables WHERE relname = 'event'"  # those of autovacuum count elsewhere
    rows = [row(request_id=f"r{number}") for number in range(50_100)]
    run_ledger("ingest", write_rows(tmp_path / "few.csv", rows[:100]))
    assert query(analysed) == [{"analyze_count": 0}]
    result = run_ledger("ingest", write_rows(tmp_path / "many.csv", [*rows, row(request_id="r0", tokens=11)]), "--format", "json")
    assert totals(result.stdout) == counts(read=50_101, new=50_000, duplicate=100, conflict=1)
    assert query(analysed) == [{"analyze_count": 1}]
    with psycopg.connect(owner_url) as owner:
        assert owner.execute("SELECT brin_summarize_new_values('ix_event_received_at')").fetchall() == [(0,)]  # none was left
