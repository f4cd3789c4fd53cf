"""Content that was loaded before: under its name it adds nothing, under another name, mapping or option it is refused without --again."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ledger.ingest.mapping_file import built_in_mappings
from tests.ingest.sample_rows import counts, row, totals, write_rows

Run = Callable[..., Any]
Query = Callable[[str], list[dict[str, Any]]]

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"2023-11-16 18:15:{n:02}.000,{n},5\n" for n in range(10))
AZURE = ("--account", "acme", "--model", "m")
NOW = "2026-05-06T10:00:00Z"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Ten requests that have no ids of their own."""
    file = tmp_path / "trace-a.csv"
    file.write_text(TRACE)
    return file


def load(run_ledger: Run, file: Path | str, *options: str) -> dict[str, Any]:
    """The totals of a load that succeeds."""
    done = run_ledger("ingest", *AZURE, *options, file, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return totals(done.stdout)


def test_the_formats_whose_ids_are_the_files_name_and_a_number() -> None:
    found = {name for name, mapping in built_in_mappings().items() if mapping.is_identified_by_file}
    assert found == {"azure-trace", "burstgpt", "llmperf", "mooncake", "vllm-bench"}


def test_content_without_ids_is_refused_under_another_name_and_loaded_with_again(trace: Path, run_ledger: Run, query: Query) -> None:
    assert run_ledger("ingest", *AZURE, "--author", "jane", trace, now=NOW).exit_code == 0
    renamed = trace.rename(trace.with_name("trace-b.csv"))
    refused = run_ledger("ingest", *AZURE, renamed)
    assert (refused.exit_code, refused.stdout) == (1, "")
    [first, cure] = refused.stderr.splitlines()
    [[load_id]] = [found.values() for found in query("SELECT batch_id FROM batch")]
    assert first == (
        "error: trace-b.csv: this content was loaded as trace-a.csv by jane at 2026-05-06T10:00:00Z "
        f"(load {load_id}), and the format azure-trace makes ids of the file's name: each request would be billed twice"
    )
    assert "--again" in cure and "--name trace-a.csv" in cure
    assert query("SELECT count(*) FROM event") == [{"count": 10}]
    assert load(run_ledger, renamed, "--name", "trace-a.csv") == counts(read=10, duplicate=10)
    assert load(run_ledger, renamed, "--again") == counts(read=10, new=10)
    assert load(run_ledger, renamed) == counts(read=10, duplicate=10)  # the name is known now


def test_of_two_loads_under_two_names_that_begin_together_one_is_refused(
    trace: Path, database_url: str, owner_url: str, query: Query
) -> None:
    other = trace.with_name("trace-b.csv")
    other.write_text(TRACE)
    with (
        psycopg.connect(owner_url) as connection,  # both have looked before the first may write
        psycopg.connect(owner_url, autocommit=True) as watching,  # a transaction sees the sessions that there were at its first look
    ):
        connection.execute("LOCK TABLE batch IN EXCLUSIVE MODE")
        environment = os.environ | {"LEDGER_DATABASE_URL": database_url}
        command = [sys.executable, "-m", "ledger", "ingest", *AZURE]
        loads = [subprocess.Popen([*command, file], env=environment, stderr=subprocess.PIPE, text=True) for file in (trace, other)]
        waiting = (
            "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
        )
        while watching.execute(waiting).fetchone() != (2,):
            time.sleep(0.05)
    errors = [load.communicate()[1] for load in loads]
    assert sorted(load.returncode for load in loads) == [0, 1]
    assert sum("each request would be billed twice" in error for error in errors) == 1
    assert query("SELECT count(*) FROM event") == [{"count": 10}]


def test_equal_refused_rows_of_two_traces_are_two_rows(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    for name, first in (("t1.csv", 1), ("t2.csv", 2)):
        (tmp_path / name).write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:0{first},1,5\n2023-11-16 18:15:09,1.7,1\n")
        for _ in range(2):
            assert run_ledger("ingest", *AZURE, tmp_path / name).exit_code == 0
    assert query("SELECT source FROM quarantine JOIN batch USING (batch_id) ORDER BY source") == [
        {"source": "t1.csv"},
        {"source": "t2.csv"},
    ]


def test_a_load_under_one_of_several_known_ways_adds_nothing(trace: Path, run_ledger: Run) -> None:
    load(run_ledger, trace)
    refused = run_ledger("ingest", "--account", "other", "--model", "m", trace)
    assert "--again loads all of it, as new requests that are billed besides those" in refused.stderr
    assert load(run_ledger, trace, "--account", "other", "--again") == counts(read=10, new=10)
    assert load(run_ledger, trace) == counts(read=10, duplicate=10)


def test_a_file_whose_rows_lacked_an_account_is_not_called_billed_and_its_rows_are_sent_in_with_one(
    tmp_path: Path, run_ledger: Run, query: Query
) -> None:
    file = write_rows(tmp_path / "log.csv", [row(account="", request_id="a"), row(account="", request_id="b")])
    first = run_ledger("ingest", file)
    told = "`ledger quarantine requeue --file log.csv --refused-for missing_field --set account=NAME --reason TEXT`"
    assert f"if it is the account that they lack, and all are of one customer: {told}" in first.stdout
    assert "--account NAME" in run_ledger("ingest", "--check", file).stdout
    refused = run_ledger("ingest", "--account", "our bank", file)
    assert (refused.exit_code, "billed besides" in refused.stderr) == (1, False)
    assert "its rows without account were refused, and nothing was billed of them: they wait in quarantine" in refused.stderr
    command = re.findall(r"^  ledger (quarantine requeue .+) --dry-run shows", refused.stderr, re.MULTILINE)[0]
    assert run_ledger(*shlex.split(command)).exit_code == 0
    assert query("SELECT account, request_id FROM event ORDER BY 2") == [
        {"account": "our bank", "request_id": "a"}, {"account": "our bank", "request_id": "b"},
    ]  # fmt: skip


def test_a_row_whose_request_came_by_another_load_says_so_and_what_resolves_it(tmp_path: Path, run_ledger: Run, query: Query) -> None:
    file = write_rows(tmp_path / "log.csv", [row(account="", request_id="a")])
    run_ledger("ingest", file)
    assert "is stored for" not in run_ledger("quarantine", "show", "1").stdout
    run_ledger("ingest", "--account", "our bank", "--again", file)
    shown = run_ledger("quarantine", "show", "1").stdout
    assert "a request of this id is stored for our bank, by another load; if the row says the same, this resolves it:" in shown
    assert json.loads(run_ledger("quarantine", "show", "1", "--format", "json").stdout)["stored_for"] == ["our bank"]
    command = re.findall(r"^    ledger (quarantine requeue .+)$", shown, re.MULTILINE)[0]
    assert run_ledger(*shlex.split(command)).stdout == "1 is stored already\n"
    assert query("SELECT resolution FROM quarantine") == [{"resolution": "requeued"}]
    assert query("SELECT count(*) FROM event") == [{"count": 1}]


def test_folders_and_endings_are_no_part_of_a_name(trace: Path, run_ledger: Run) -> None:
    load(run_ledger, trace)
    (trace.parent / "other").mkdir()
    assert load(run_ledger, trace.rename(trace.parent / "other" / "trace-a.txt")) == counts(read=10, duplicate=10)


def test_rows_with_ids_of_their_own_are_duplicates_under_any_name(tmp_path: Path, run_ledger: Run) -> None:
    file = write_rows(tmp_path / "a.csv", [row()])
    assert run_ledger("ingest", file).exit_code == 0
    assert totals(run_ledger("ingest", file.rename(tmp_path / "b.csv"), "--format", "json").stdout) == counts(read=1, duplicate=1)


@pytest.fixture
def killed(trace: Path, run_ledger_process: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trace, of which a load that was killed has committed the first four requests."""
    monkeypatch.setenv("LEDGER_CHUNK_ROWS", "4")
    assert run_ledger_process("ingest", *AZURE, trace, env={"LEDGER_FAULT": "ingest.after_commit"}).returncode == -signal.SIGKILL
    return trace


def test_what_a_crash_left_of_a_trace_goes_on_under_its_name_alone(killed: Path, run_ledger: Run, query: Query) -> None:
    other = killed.with_name("trace-b.csv")
    other.write_text(TRACE)
    assert "loaded as trace-a.csv" in run_ledger("ingest", *AZURE, other).stderr
    assert load(run_ledger, killed) == counts(read=10, new=10)  # four then, six now
    assert query("SELECT count(*) FROM event") == [{"count": 10}]


def test_the_first_chunk_of_another_name_does_not_count_for_this_one(killed: Path, run_ledger: Run, query: Query) -> None:
    other = killed.rename(killed.with_name("trace-b.csv"))
    assert load(run_ledger, other, "--again") == counts(read=10, new=10)
    assert query("SELECT count(*) FROM event") == [{"count": 14}]


def test_standard_input_without_ids_needs_a_name(trace: Path, run_ledger_process: Run, query: Query) -> None:
    refused = run_ledger_process("ingest", *AZURE, "-", input=TRACE)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "stdin: the format azure-trace makes ids of the file's name, and a stream has none" in refused.stderr
    assert "--name" in refused.stderr
    done = run_ledger_process("ingest", *AZURE, "--name", "trace-a.csv", "-", input=TRACE)
    assert (done.returncode, done.stderr) == (0, "")
    assert query("SELECT DISTINCT source, split_part(request_id, '/', 1) AS stem FROM event JOIN batch USING (batch_id)") == [
        {"source": "trace-a.csv", "stem": "trace-a"}
    ]
    again = run_ledger_process("ingest", *AZURE, trace, "--format", "json")
    assert totals(again.stdout) == counts(read=10, duplicate=10)


def test_an_open_file_by_its_number_has_no_name(trace: Path, run_ledger: Run) -> None:
    with trace.open() as file:
        assert "--name" in run_ledger("ingest", *AZURE, f"/dev/fd/{file.fileno()}").stderr


def test_a_check_of_standard_input_asks_for_the_name_too(run_ledger_process: Run) -> None:
    assert "--name" in run_ledger_process("ingest", "--check", *AZURE, "-", input=TRACE).stderr


@pytest.mark.parametrize("name", ["", " ", "a/b.csv", "..", "a\0b", "n" * 201])
def test_a_name_that_no_file_can_have_is_refused(name: str, trace: Path, run_ledger: Run) -> None:
    refused = run_ledger("ingest", *AZURE, "--name", name, trace)
    assert (refused.exit_code, "--name" in refused.stderr) == (2, True)


def test_a_name_is_that_of_one_file(trace: Path, run_ledger: Run) -> None:
    for paths in ((trace, trace), (trace.parent,)):
        refused = run_ledger("ingest", *AZURE, "--name", "t.csv", *paths)
        assert (refused.exit_code, "--name" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ((), ("--account", "acme"), "with other options: no --account then, acme now"),
        (("--account", "acme"), (), "with other options: --account acme then, none now"),
        (("--account", "acme", "--model", "m"), ("--account", "b", "--model", "m"), "with other options: --account acme then, b now"),
    ],
)  # fmt: skip
def test_the_option_that_differs_is_named(
    before: tuple[str, ...], now: tuple[str, ...], told: str, tmp_path: Path, run_ledger: Run
) -> None:
    file = write_rows(tmp_path / "rows.csv", [row()])
    assert run_ledger("ingest", *before, file).exit_code == 0
    refused = run_ledger("ingest", *now, file)
    assert refused.exit_code == 1 and told in refused.stderr


def test_the_start_that_differs_is_told_as_an_instant(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(json.dumps({"timestamp": 0, "input_length": 1, "output_length": 2, "hash_ids": [1]}) + "\n")
    assert run_ledger("ingest", *AZURE, "--start", "2026-05-01T00:00:00Z", file).exit_code == 0
    refused = run_ledger("ingest", *AZURE, "--start", "2026-05-01T08:00:00Z", file)
    assert "--start 2026-05-01T00:00:00Z then, 2026-05-01T08:00:00Z now" in refused.stderr


def test_another_text_of_the_mapping_is_told_as_such(tmp_path: Path, run_ledger: Run) -> None:
    file = write_rows(tmp_path / "rows.csv", [row()])
    mapping = tmp_path / "ours.yaml"
    mapping.write_text(
        "schema: ledger/mapping/v1\nname: ours\nidentify: [account, request_id]\ncolumns:\n  account: account\n  request_id: request_id\n"
        "  model: model\n  received_at: {value: received_at, unit: rfc3339}\n  input_tokens: input_tokens\n  output_tokens: output_tokens\n"
    )
    assert run_ledger("ingest", "--mapping", mapping, file).exit_code == 0
    mapping.write_text(mapping.read_text().replace("model: model", "model: lower(model)"))
    assert "under another text of the mapping ours" in run_ledger("ingest", "--mapping", mapping, file).stderr
    assert "under another mapping (ours)" in run_ledger("ingest", file).stderr


def test_an_option_that_a_format_can_never_use_is_refused(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "my-model.jsonl"
    fields = {"error_code": None, "ttft_s": 0.1, "end_to_end_latency_s": 0.5, "number_input_tokens": 3, "number_output_tokens": 4}
    file.write_text(json.dumps(fields) + "\n")
    options = ("--account", "acme", "--start", "2026-05-01T00:00:00Z", "--step", "1s")
    refused = run_ledger("ingest", *options, "--model", "m", file)
    assert refused.exit_code == 1 and "the format llmperf gives each row its model itself, and --model is for rows" in refused.stderr
    assert run_ledger("ingest", *options, file).exit_code == 0
