"""Odd arguments, streams and surroundings: always a place, a cure and the right exit code, never a defect."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunLedger, RunLedgerProcess
from tests.ingest.sample_rows import counts, row, totals, write_rows

NOT_UTF_8 = "\udcff"


def test_an_argument_that_is_no_text_is_wrong_usage(run_ledger_process: RunLedgerProcess) -> None:
    for arguments in (["void", NOT_UTF_8, "--reason", "x"], ["correct", "r", "--set", f"node={NOT_UTF_8}", "--reason", "x"]):
        result = run_ledger_process(*arguments)
        assert result.returncode == 2 and "is not UTF-8" in result.stderr


def test_a_file_whose_name_is_no_text_is_named_and_the_others_are_loaded(tmp_path: Path, run_ledger: RunLedger) -> None:
    write_rows(tmp_path / f"{NOT_UTF_8}.csv", [row(request_id="lost")])
    write_rows(tmp_path / "good.csv", [row()])
    result = run_ledger("ingest", tmp_path, "--format", "json")
    assert (result.exit_code, totals(result.stdout)) == (1, counts(read=1, new=1))
    assert "the name of the file is not UTF-8\n  rename it" in result.stderr


@pytest.mark.parametrize("command", [["quarantine", "requeue", "99999999999999999999"], ["quarantine", "dismiss", "0", "--reason", "x"]])
def test_an_id_that_cannot_be_is_wrong_usage(run_ledger: RunLedger, command: list[str]) -> None:
    assert run_ledger(*command).exit_code == 2


@pytest.mark.parametrize("command", [["void", "r"], ["correct", "r", "--set", "status=200"], ["quarantine", "dismiss", "1"]])
def test_a_reason_says_something(run_ledger: RunLedger, command: list[str]) -> None:
    result = run_ledger(*command, "--reason", " ")
    assert result.exit_code == 2 and "say why" in result.stderr


@pytest.mark.parametrize("rows", ["abc", "0", "-1", "1.5"])
def test_a_chunk_has_at_least_one_row(tmp_path: Path, run_ledger_process: RunLedgerProcess, rows: str) -> None:
    result = run_ledger_process("ingest", write_rows(tmp_path / "rows.csv", [row()]), env={"LEDGER_CHUNK_ROWS": rows})
    assert result.returncode == 2 and "LEDGER_CHUNK_ROWS" in result.stderr


@pytest.mark.parametrize("query", ["port=abc", "nosuchoption=s3cret", "connect_timeout=soon", "sslmode=bogus", "port=99999999"])
def test_a_url_with_wrong_options_is_named_without_its_secrets(run_ledger: RunLedger, query: str) -> None:
    result = run_ledger("--database", f"postgresql://u:s3cret@/x?host=/tmp&{query}", "database", "status", database=None)
    assert result.exit_code in (2, 4) and "s3cret" not in result.output and "URL" in result.stderr


def test_an_output_that_cannot_be_written_is_the_environments_fault(database_url: str) -> None:
    environment = os.environ | {"LEDGER_DATABASE_URL": database_url}
    with open("/dev/full", "w") as full:
        for arguments in (["database", "url"], ["contract", "show", "x"], ["quarantine", "list", "--format", "json"]):
            command = [sys.executable, "-m", "ledger", *arguments]
            done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            expected = (1, "there is no contract x") if arguments[0] == "contract" else (4, "No space left on device")
            assert done.returncode == expected[0] and expected[1] in done.stderr


def test_output_is_utf_8_whatever_the_locale(run_ledger_process: RunLedgerProcess, tmp_path: Path) -> None:
    write_rows(tmp_path / "Büro.csv", [row(request_id="é" * 201)])
    odd = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    assert run_ledger_process("ingest", tmp_path, env=odd).returncode == 0
    result = run_ledger_process("quarantine", "list", env=odd)
    assert result.returncode == 0 and "Büro.csv:2 bad_text" in result.stdout


def test_a_time_zone_of_the_machine_that_is_none_does_no_harm(run_ledger_process: RunLedgerProcess, tmp_path: Path) -> None:
    result = run_ledger_process("settle", "2026-05", "--output", tmp_path, env={"TZ": ":/etc/passwd"})
    assert result.returncode == 1 and result.stderr.startswith("error: no contract is in force in 2026-05")


def test_names_in_telemetry_cannot_act_on_the_terminal(tmp_path: Path, run_ledger: RunLedger) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("\x1b[31mred,\x00\n1,2\n")
    odd = write_rows(tmp_path / "odd\x1b[2J.csv", [f"{row(request_id='')},1"], header="account,request_id,model,received_at,inference_us,"
                     "input_tokens,output_tokens,\x1b]0;owned\x07")  # fmt: skip
    intervals = tmp_path / "intervals.csv"
    intervals.write_text("\x1b[31m,\x00\n")
    commands = (["ingest", wrong], ["ingest", odd], ["ingest", "--check", odd], ["quarantine", "list"], ["interval", "add", intervals])
    for arguments in commands:
        result = run_ledger(*arguments)
        assert not {"\x1b", "\x00", "\x07"} & set(result.output), (arguments, result.output)


def test_a_pipe_in_place_of_a_file_is_read(tmp_path: Path, database_url: str) -> None:
    file = write_rows(tmp_path / "rows.csv", [row()])
    command = ["bash", "-c", f"'{sys.executable}' -m ledger ingest <(cat '{file}')"]
    done = subprocess.run(command, env=os.environ | {"LEDGER_DATABASE_URL": database_url}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "1 read = 1 new" in done.stdout


def test_messages_name_the_users_file_and_not_a_temporary_one(
    tmp_path: Path, run_ledger: RunLedger, run_ledger_process: RunLedgerProcess
) -> None:
    assert run_ledger_process("ingest", "-").stderr.startswith("error: stdin: ")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1" + bytes(100))
    assert "/ledger-ingest-" not in run_ledger("ingest", cut).stderr


def test_a_device_is_read_like_a_stream(run_ledger: RunLedger) -> None:
    result = run_ledger("ingest", "/dev/null")
    assert result.exit_code == 1 and "error: /dev/null: the file is empty" in result.stderr


NOT_READABLE = [
    ("ingest - <&-", 1, "stdin: it is closed"),
    ("void --ids - --reason x --yes <&-", 1, "stdin: it is closed"),
    ("interval detect - <&-", 1, "stdin: it is closed"),
    ("ingest no-such-file 2>&-", 1, ""),
    ("ingest rows.csv", 4, "rows.csv: no room for what reading it takes"),
    ("ingest - < rows.csv", 4, "stdin: no room for what reading it takes"),
    ("quarantine requeue --account acme --set input_tokens=1 --reason x", 4, "no room for what reading it takes"),
]


def test_what_cannot_be_read_is_named_with_a_cure(tmp_path: Path, database_url: str, run_ledger: RunLedger) -> None:
    write_rows(tmp_path / "rows.csv", [row(request_id=f"r{n}") for n in range(1_000)])
    run_ledger("ingest", write_rows(tmp_path / "refused.csv", [row(request_id=f"q{n}").replace(",10,", ",,") for n in range(1_000)]))
    for command, exit_code, message in NOT_READABLE:
        # A process whose files may have a few kilobytes only finds each disk full.
        limit = "ulimit -f 8; " if exit_code == 4 else ""
        done = subprocess.run(
            ["bash", "-c", f"{limit}'{sys.executable}' -m ledger {command}"], cwd=tmp_path,
            env=os.environ | {"LEDGER_DATABASE_URL": database_url}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == exit_code and message in done.stderr, (command, done.stderr)
    for path, message in (
        ("", "an empty path"),
        ("x" * 5_000, "File name too long"),
        ("/proc/self/mem", "/proc/self/mem: Input/output error"),
    ):
        result = run_ledger("ingest", path)
        assert result.exit_code == (1 if path else 2) and message in result.stderr


def test_a_name_with_line_breaks_makes_no_line_of_its_own_and_a_long_one_is_cut(tmp_path: Path, run_ledger: RunLedger) -> None:
    good = {
        "account": "a\nb",
        "request_id": "r",
        "model": "m",
        "received_at": "2026-05-06T10:00:00Z",
        "input_tokens": 1,
        "output_tokens": 1,
    }
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(good | {"x\ny": 1, "z" * 10_000: 1} | {f"~{n:03d}": 1 for n in range(60)}) + "\n")
    result = run_ledger("ingest", file)
    assert "  no contract covers the requests of a\\u000ab (1)" in result.stdout.splitlines()
    [warning] = result.stderr.splitlines()
    assert "x\\u000ay" in warning and warning.endswith("~047 and 12 more") and len(warning) < 1_000
    file.write_text("".join(f"{'n' * 10_000}{n}," for n in range(5)) + "\n1,2,3,4,5,\n")
    assert len(run_ledger("ingest", "--check", file).stderr) < 1_000
