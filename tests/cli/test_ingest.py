"""What `ledger ingest` and `ledger formats` say: before a load, while it runs, and after it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from ledger.cli.main import cli
from tests.conftest import RunLedger
from tests.ingest.halves import engine, gateway, written
from tests.ingest.sample_rows import GOLDEN, HEADER, MAPPINGS, row, write_rows

ROOT = Path(__file__).parents[2]
FORMATS = GOLDEN / "formats"
NO_DATABASE = {"LEDGER_DATABASE_URL": "postgresql://nobody@localhost:1/none"}


def without_database(*arguments: str | Path) -> Result:
    """The command with a database that cannot be reached."""
    result = CliRunner().invoke(cli, [os.fspath(argument) for argument in arguments], env=NO_DATABASE, prog_name="ledger")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_formats_are_listed_with_what_they_need_and_lack() -> None:
    listed = {entry["name"]: entry for entry in json.loads(without_database("formats", "--format", "json").stdout)}
    assert listed["mooncake"]["needs"] == ["--account", "--model", "--start"]
    assert listed["mooncake"]["lacks"] == [
        "cached input tokens", "status", "any latency", "queue class", "async header", "cold starts", "node",
    ]  # fmt: skip
    assert (listed["canonical"]["needs"], listed["canonical"]["lacks"], listed["canonical"]["refused"]) == ([], [], None)
    assert "queue wait" in listed["burstgpt"]["lacks"] and "time to the last token" not in listed["burstgpt"]["lacks"]
    assert listed["histogram"]["refused"].startswith("A histogram cannot be settled")
    text = without_database("formats").stdout
    assert "mooncake\n  The Mooncake traces." in text and "\n  Needs --account, --model, --start.\n  Lacks cached input tokens, " in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_mapping_of_ones_own_begins_with_the_one_that_is_shown(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(without_database("formats", "show", "langfuse").stdout)
    file = FORMATS / "langfuse.jsonl"
    assert without_database("ingest", "--check", "--mapping", mine, file).stdout == without_database("ingest", "--check", file).stdout


@pytest.mark.parametrize("arguments", [("formats", "show", "langfus"), ("ingest", "--check", "--source", "langfus", "x.csv")])
def test_a_format_that_is_not_there_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = without_database(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no format langfus\n")


def test_a_mapping_that_is_refused_says_once_a_line_that_it_is_an_error(tmp_path: Path) -> None:
    mapping = tmp_path / "mine.yaml"
    mapping.write_text(
        "schema: ledger/mapping/v2\nname: mine\nidentify: [a]\ncolumns: {account: a, request_id: a +, model: m, received_at: a}\n"
    )
    *findings, cure = without_database("ingest", "--check", "--mapping", mapping, "x.csv").stderr.splitlines()
    assert len(findings) > 1 and all(line.startswith(f"{mapping}:") and line.count("error") == 1 for line in findings)
    assert cure == "  docs/operators-ingest.md shows a mapping"


def test_a_word_after_formats_that_is_none_of_its_commands_is_told_what_is_meant() -> None:
    for arguments in (("formats", "nginxx"), ("formats", "show", "nginxx")):
        assert (
            without_database(*arguments).stderr == "error: there is no format nginxx\n  did you mean nginx? `ledger formats` lists them\n"
        )
    assert without_database("formats", "zzz").stderr == "error: there is no format zzz\n  `ledger formats` lists them\n"
    named = without_database("formats", "nginx")
    assert (named.exit_code, named.stderr) == (2, "error: nginx is a format, and no command\n  ledger formats show nginx\n")


def test_check_shows_what_would_happen_and_needs_no_database(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.csv", [row(request_id="r1"), row(request_id="")])
    assert without_database("ingest", "--check", file).stdout == (
        f"{file} (canonical): 2 looked at = 1 fit + 1 refused (1 missing_field); 2026-05-06T10:00:00Z to 2026-05-06T10:00:00Z\n"
        "  line 3: missing_field: request_id is empty\n"
        "  would store: account=acme, request_id=r1, model=m, received_at=2026-05-06T10:00:00Z, status=200,\n"
        "    inference_us=90000, input_tokens=10, cached_input_tokens=0, output_tokens=5, queue=standard\n"
        "not compared with what is loaded: a load counts rows that are known there as duplicate or conflict, or refuses the file\n"
    )
    (checked,) = json.loads(without_database("ingest", "--check", "--format", "json", FORMATS / "langfuse.jsonl").stdout)["files"]
    assert checked["read"] == 15 == checked["new"] + checked["refused"] + sum(checked["skipped"].values())
    assert checked["skipped"] == {"no_generation": 1, "span": 1, "tool": 1}
    assert checked["events"][0]["request_id"] == "t-1/obs-1" and checked["events"][0]["cached_input_tokens"] == 1024
    assert checked["refused_rows"][1] == {
        "line": 11, "reason": "negative_duration", "detail": "elapsed_us(startTime, endTime) is '-200000', which is negative",
    }  # fmt: skip
    assert without_database("ingest", file).exit_code == 4


def test_halves_and_conflicts_say_what_comes_next(tmp_path: Path, run_ledger: RunLedger) -> None:
    gateways = written(tmp_path / "gateway.jsonl", [gateway("g"), gateway("h")])
    engines = written(tmp_path / "engine.jsonl", [engine("s", "g")])
    for role, file, words in (
        ("gateway", gateways, "  2 usage_missing: without tokens; they wait for their engine's rows"),
        ("engine", engines, "  merged: joined with their gateway's rows, or waiting for them"),
        ("gateway", gateways, "= 0 new + 1 duplicate + 0 conflict + 1 refused (1 usage_missing); 2026-05-06T10:00:00"),
    ):
        said = run_ledger("ingest", "--mapping", MAPPINGS / f"{role}-half.yaml", file).stdout
        assert words in said
        assert ("+ 1 merged; 1 request joined with the engine's figures; 2026" in said) == (role == "engine")
    checked = run_ledger("ingest", "--check", "--mapping", MAPPINGS / "engine-half.yaml", engines).stdout
    assert "no requests by themselves" in checked and "  would store as engine's half: " in checked
    rows = write_rows(tmp_path / "rows.csv", [row(request_id="r"), row(request_id="r", tokens=11)])
    assert "1 conflict" in (said := run_ledger("ingest", rows).stdout) and "  conflict: stored with other content" in said
    assert "wait" not in said


def test_a_file_without_latency_says_so() -> None:
    result = without_database("ingest", "--check", "--account", "a", "--model", "m", FORMATS / "azure-trace.csv")
    assert "  a file of the format azure-trace has no latency: its requests are priced as not measured\n" in result.stdout


@pytest.mark.parametrize(
    "arguments", [("--start", "yesterday"), ("--step", "1"), ("--start", "2026-05-01T00:00:00"), ("--mapping", "a", "--source", "b")]
)
def test_options_are_read_strictly(arguments: tuple[str, ...]) -> None:
    assert without_database("ingest", *arguments, "x.csv").exit_code == 2


def test_accounts_and_names_that_no_contract_knows_are_named(tmp_path: Path, run_ledger: RunLedger) -> None:
    assert run_ledger("contract", "add", ROOT / "contracts" / "acme-bank.yaml").exit_code == 0
    header = HEADER + ",status,queue"
    usual = "acme-bank,{id},{model},{at},90000,10,5,{status},{queue}"
    good = {"model": "deepseek-v4", "at": "2026-05-06T10:00:00Z", "status": 200, "queue": "standard"}
    others = [
        {}, {"model": "deepseek-ai/DeepSeek-V4"}, {"model": "deepseek-moe-4bit"}, {"at": "2025-12-31T15:59:59Z"},
        {"at": "2025-12-31T16:00:00Z"},
        {"model": "gpt-9"}, {"model": "gpt-9", "status": 503}, {"model": "no-such-model", "status": 404}, {"queue": "express"},
    ]  # fmt: skip
    rows = [usual.format(id=f"r{n}", **(good | other)) for n, other in enumerate(others)]
    rows += [f"nobody,n{n},m,2026-05-06T10:00:00Z,90000,10,5,200," for n in range(2)]
    file = write_rows(tmp_path / "rows.csv", rows, header)
    assert run_ledger("ingest", file).stdout.splitlines()[1:] == [
        "  no contract covers the requests of nobody (2), acme-bank (1, received when none of its contracts is in force)",
        "  acme-bank-llm version 1 has no model gpt-9 (2)",
        "  acme-bank-llm version 1 has no queue express (1)",
    ]
    for found in (again := json.loads(run_ledger("ingest", file, "--format", "json").stdout), again["files"][0]):
        assert found["unassigned"] == {"nobody": 2, "acme-bank": 1}
        assert [(one["what"], one["name"], one["requests"]) for one in found["unpriced"]] == [
            ("model", "gpt-9", 2),
            ("queue", "express", 1),
        ]
    assert again["total"]["duplicate"] == 11


def test_progress_is_shown_on_a_terminal_alone(tmp_path: Path, database_url: str) -> None:
    file = write_rows(tmp_path / "many.csv", [row(request_id=f"r{n}") for n in range(400)])
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url, "LEDGER_CHUNK_ROWS": "100", "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "ledger", "ingest", str(file)]
    ours, its = pty.openpty()
    shown = bytearray()

    def watch() -> None:
        try:
            while piece := os.read(ours, 65_536):
                shown.extend(piece)
        except OSError:  # the other end was closed
            pass

    watcher = Thread(target=watch)
    watcher.start()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=its, text=True, check=False)
    os.close(its)
    watcher.join(timeout=10)
    os.close(ours)
    assert done.returncode == 0 and done.stdout.startswith(f"{file} (canonical): 400 read = 400 new + ")
    text = shown.decode()
    assert "many.csv" in text and "400/400" in text and "rows/s" in text and "0:00:00" in text and "error" not in text
    quiet = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_a_check_counts_rows_that_have_the_id_of_an_earlier_one(tmp_path: Path) -> None:
    rows = [row(request_id="a"), row(request_id="b"), row(request_id="a"), row("other", "a"), row(request_id="a", tokens=11)]
    file = write_rows(tmp_path / "new.csv", [*rows, row(request_id="b")])
    assert "  3 have the id of an earlier row: 2 identical (duplicates), 1 differing (conflicts)\n" in without_database(
        "ingest", "--check", file
    ).stdout  # fmt: skip
    (checked,) = json.loads(without_database("ingest", "--check", "--format", "json", file).stdout)["files"]
    assert checked["repeated"] == {"identical": 2, "differing": 1}


def test_a_check_says_how_many_rows_it_does_not_show(tmp_path: Path) -> None:
    rows = [*(row(request_id=f"r{n}") for n in range(1_200)), row(request_id="")]
    said = without_database("ingest", "--check", write_rows(tmp_path / "long.csv", [row(request_id="")] * 5 + rows)).stdout
    assert said.count("  line ") == 3
    assert said.splitlines()[-2] == "  more rows: 2 refused, 992 that would be stored, 206 behind them, not looked at"


def test_a_check_of_a_gateways_log_says_which_rows_wait_for_their_engine(tmp_path: Path) -> None:
    log = written(tmp_path / "gateway.jsonl", [gateway("g"), gateway("h"), gateway("")])
    said = without_database("ingest", "--check", "--mapping", MAPPINGS / "gateway-half.yaml", log).stdout
    assert "3 looked at = 0 fit + 2 waiting for their engine + 1 refused (1 missing_field); 2026" in said
    assert "usage_missing" not in said and said.count("  would store as gateway's half: ") == 2
    assert "  2 without tokens: they wait for their engine's rows, so load the engine's log as well\n" in said


def test_a_load_says_where_refused_rows_are_and_which_stand_there_once(tmp_path: Path, run_ledger: RunLedger) -> None:
    file = write_rows(tmp_path / "my rows.csv", [row(request_id=""), row(request_id=""), row(request_id="", tokens=11), row()])
    assert run_ledger("ingest", file).stdout.splitlines()[1:] == [
        "  no contract covers the requests of acme (1)",
        "  2 new in quarantine; `ledger quarantine list --file 'my rows.csv'` shows them",
        "  1 not added to quarantine: a row of which the same is kept stands there already",
    ]
    assert len(run_ledger("quarantine", "list", "--file", "my rows.csv").stdout.splitlines()) == 2
    again = run_ledger("ingest", file)
    assert "new in quarantine" not in again.stdout and "  3 not added to quarantine: " in again.stdout


@pytest.mark.parametrize(
    ("accounts", "told"),
    [
        (["", "b", "", "c"], "filled 2 rows without an account"),
        (["a", "b", "", "c"], "filled 1 row without an account"),
        (["a", "b", "c", "d"], "changed nothing: no row lacks an account"),
    ],
)
def test_a_load_and_a_check_say_how_many_rows_took_the_account_of_the_command_line(
    accounts: list[str], told: str, tmp_path: Path, run_ledger: RunLedger
) -> None:
    rows = [*(row(account, f"r{n}") for n, account in enumerate(accounts)), "a line that is no row"]
    file = write_rows(tmp_path / "rows.csv", rows)
    for command in ("--check", "--strict", "--again"):  # a load, and one of what is known
        said = run_ledger("ingest", command, "--account", "our bank", "--model", "ours", file).stdout
        assert said.splitlines()[1:3] == [f"  --account 'our bank' {told}", "  --model ours changed nothing: no row lacks a model"]
    (report,) = json.loads(run_ledger("ingest", "--account", "our bank", file, "--again", "--format", "json").stdout)["files"]
    assert report["filled"] == {"account": accounts.count("")}


def test_a_format_without_accounts_of_its_own_says_nothing_of_those_that_are_given() -> None:
    said = without_database("ingest", "--check", "--account", "a", "--model", "m", FORMATS / "azure-trace.csv").stdout
    assert "--account" not in said and "--model" not in said


def test_a_column_that_is_ignored_in_some_files_alone_is_told_with_them(tmp_path: Path, run_ledger: RunLedger) -> None:
    for name, more in (("a.csv", "note"), ("b.csv", "note,qeue"), ("c.csv", "note")):
        write_rows(tmp_path / name, [row(request_id=name) + ",x" * len(more.split(","))], header=f"{HEADER},{more}")
    told = run_ledger("ingest", "--check", tmp_path).stderr
    assert told == f"warning: ignored the columns note, qeue (of {tmp_path / 'b.csv'})\n"
