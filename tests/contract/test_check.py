"""`ledger contract check`: what it prints and how it ends."""

import json
import os
import pty
import socket
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ledger.cli.main import cli

from .golden import GOLDEN, QUIET, edited

GOOD = GOLDEN / "good" / "quiet.yaml"


def check(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["contract", "check", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_good_contract_ends_with_0() -> None:
    result = check(GOOD)
    assert (result.exit_code, result.output) == (0, "1 file: no errors, no warnings; 1 example, run them with: ledger contract test\n")


def test_an_error_is_shown_with_its_place_its_line_and_a_caret(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["target: 300ms", "target: 300"]))
    result = check(file)
    assert result.exit_code == 1
    assert result.output == (
        f"{file}:29:11: error bad_duration: found `300`; expected a duration with its unit, such as 300ms, 8.3s, 5m, 1h or 30d; "
        "add the unit that is meant, for example 300ms or 300s\n"
        "      target: 300\n"
        "              ^\n"
        "\n"
        "1 file: 1 error, no warnings\n"
    )


def test_the_caret_stands_under_wide_characters_and_in_long_lines(tmp_path: Path) -> None:
    wide = tmp_path / "wide.yaml"
    wide.write_text(
        edited(QUIET, ["provider: {name: Example Inference Ltd, tax_id: 91110000TEST000001", "provider: {name: 推理服务, tax_id: ~"])
    )
    _, line, caret, *_ = check(wide).output.splitlines()
    assert line.index("~") + len("推理服务") == caret.index("^")
    long = tmp_path / "long.yaml"
    long.write_text(edited(QUIET, ["accounts: [acme-bank]", f"accounts: [{'a' * 150}, {{}}, {'b' * 150}]"]))
    _, line, caret, *_ = check(long).output.splitlines()
    assert line[caret.index("^")] == "{" and len(line) <= 124


def test_all_errors_of_all_files_are_shown_in_one_run(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(
        edited(QUIET, ["grace: 24h", "grace: 24", '"< 100ms"', '"< 99ms"', "[standard, vip]", "[vip, night]", "rate: 6%", "rat: 6%"])
    )
    two.write_text("schema: ledger/contract/v1\nid: x\nid: y\n")
    result = check(one, two, GOOD)
    codes = ["bad_duration", "tier_gap", "undeclared_queue", "unknown_key", "missing_key", "duplicate_key"]
    assert [code for code in codes if f"error {code}:" not in result.output] == []
    assert result.exit_code == 1


def test_warnings_alone_end_with_0(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["cap: 100%", "cap: none"]))
    result = check(file)
    assert result.exit_code == 0
    assert ": warning no_cap:" in result.output and "1 file: no errors, 1 warning" in result.output


def test_versions_given_together_are_checked_together(tmp_path: Path) -> None:
    second = tmp_path / "second.yaml"
    second.write_text(edited(QUIET, ["version: 3", "version: 4"]))
    result = check(GOOD, second)
    assert result.exit_code == 1
    assert f"{second}:9:1: error versions_overlap: found version 4 in force together with version 3" in result.output


def test_a_correction_can_be_checked_without_the_version_that_it_replaces(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["version: 3", "version: 3\nreplaces: 2"]))
    assert check(file).exit_code == 0


def test_an_example_on_a_day_outside_its_version_is_told_as_the_file_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    at = {"last": "2026-12-31T23:59:59.999999+08:00", "next": "2027-01-01T00:00:00+08:00", "before": "2025-12-31T15:59:59Z"}
    events = "\n".join(f"      - {{received_at: {instant}, queue_ms: 10, inference_ms: 90}}" for instant in at.values())
    windows = f"  - it: b\n    windows: [{{at: {at['next']}, p99: 1s}}]\n    expect: {{results: [refunded]}}"
    text = f"{QUIET[: QUIET.index('examples:')]}examples:\n  - it: a\n    events:\n{events}\n    expect: {{charge: 0}}\n{windows}\n"
    file.write_text(text)
    result = check(file)
    lines = text.splitlines()
    first, last = (next(number for number, line in enumerate(lines, 1) if word in line) for word in (at["next"], "windows: [{"))
    told = [line for line in result.output.splitlines() if line.startswith(str(file))]
    assert result.exit_code == 1
    assert told == [
        f"{file}:{line}:{lines[line - 1].index(at['next']) + 1}: error bad_example: found the instant `{at['next']}`{more}; "
        "expected instants within `effective`, from 2026-01-01 to before 2027-01-01 in Asia/Shanghai; move the example onto these days"
        for line, more in ((first, " and 1 more of this example"), (last, ""))
    ]


def test_json_has_every_field_of_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["target: 300ms", "target: 300"]))
    result = check(file, "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {
            "file": str(file),
            "line": 29,
            "column": 11,
            "end_line": 29,
            "end_column": 14,
            "severity": "error",
            "code": "bad_duration",
            "found": "`300`",
            "expected": "a duration with its unit, such as 300ms, 8.3s, 5m, 1h or 30d",
            "cure": "add the unit that is meant, for example 300ms or 300s",
        }
    ]
    assert json.loads(check(GOOD, "--format", "json").stdout) == []
    (whole,) = json.loads(check(tmp_path / "none.yaml", "--format", "json").stdout)
    assert [whole[key] for key in ("line", "column", "end_line", "end_column")] == [None] * 4


ENDS = {
    "an unknown key": (["  target: 300ms", "  targte: 300ms"], "targte"),
    "a text in quotes": (["< 100ms", "< 0ms"], "< 0ms"),
    "a mistake within a text": (['inference)"', 'inferense)"'], "inferense)"),
    "an alias": (["grace: 24h", "grace: *day"], "*day"),
    "a folded text, as a whole": (
        ['hybrid: "if(inference / e2e < 0.30, e2e, inference)"', "hybrid: >-\n      e2e -\n      inferense\n    other: e2e"],
        ">-\n      e2e -\n      inferense\n",
    ),
    "a text with escapes, as a whole": (
        ["0.30, e2e, inf", "0.3, e2\\x65, inferense, inf"],
        "if(inference / e2e < 0.3, e2\\x65, inferense, inference)",
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_json_tells_where_a_finding_begins_and_ends(tmp_path: Path, case: str) -> None:
    edit, found = ENDS[case]
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, edit))
    (finding,) = json.loads(check(file, "--format", "json").stdout)
    lines = file.read_text().splitlines(keepends=True)
    start, end = (sum(map(len, lines[: finding[f"{at}line"] - 1])) + finding[f"{at}column"] - 1 for at in ("", "end_"))
    assert "".join(lines)[start:end] == found


def test_a_missing_file_is_an_error_with_a_cure(tmp_path: Path) -> None:
    result = check(tmp_path / "none.yaml", GOOD)
    assert result.exit_code == 1
    assert (
        "none.yaml: error unreadable_file: found no such file or directory; expected a contract file that can be read; check"
        in result.output
    )


def test_the_document_beside_a_contract_is_compared_with_its_checksum(tmp_path: Path) -> None:
    signed = sha256(b"as signed").hexdigest()
    file, document = tmp_path / "contract.yaml", tmp_path / "signed.pdf"
    governing = f"governing_text: {{language: en, document: signed.pdf, sha256: {signed}}}\n"
    file.write_text(governing + "".join(line for line in QUIET.splitlines(True) if not line.startswith("governing_text")))
    clean = "1 file: no errors, no warnings"
    assert check(file).output.startswith(clean)  # nothing is there to be compared
    document.write_bytes(b"as signed")
    assert check(file).output.startswith(clean)
    document.write_bytes(b"as drafted")
    result = check(file)
    found = f"found `{signed}`, while signed.pdf beside this file has {sha256(b'as drafted').hexdigest()}; "
    assert result.exit_code == 0 and f"contract.yaml:1:62: warning other_document: {found}" in result.output
    document.unlink()
    document.mkdir()
    assert check(file).output.startswith(clean)


def test_a_folder_is_an_error_with_a_cure(tmp_path: Path) -> None:
    result = check(tmp_path)
    assert result.exit_code == 1 and "error unreadable_file: found a folder;" in result.output


def test_what_need_not_end_is_refused_by_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        command = [sys.executable, "-m", "ledger", "contract", "check", "pipe", "socket", "/dev/zero"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert [line.split(";")[0] for line in result.stdout.splitlines() if "error" in line] == [
        "pipe: error unreadable_file: found a pipe, which need not end",
        "socket: error unreadable_file: found a socket",
        "/dev/zero: error unreadable_file: found a device",
        "3 files: 3 errors, no warnings",
    ]


@pytest.mark.parametrize(("no_color", "escapes"), [("", True), ("1", False)])
def test_only_a_terminal_gets_colours_and_no_color_refuses_them(tmp_path: Path, no_color: str, escapes: bool) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["target: 300ms", "target: 300", "title: Inference services, Acme Bank", 'title: "\\e[31m"']))
    assert "\x1b" not in check(file).output
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ledger", "contract", "check", str(file)]
    subprocess.run(command, env={**os.environ, "NO_COLOR": no_color}, stdout=theirs, timeout=20)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    assert ("\x1b[31merror bad_duration\x1b[0m" in shown) == escapes
    assert ("\x1b" in shown) == escapes


def test_no_file_is_wrong_usage() -> None:
    assert check().exit_code == 2


def test_hostile_text_reaches_the_terminal_harmless(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_bytes(edited(QUIET, ["title: Inference services", 'title: "\\e[31m\\uD800"\n"\\e[2J": x\nx: services']).encode())
    output = check(file).output
    assert "\x1b" not in output and "\ud800" not in output


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_the_command_prints_in_any_locale(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["title: Inference services, Acme Bank", "title: 推理服务\ntilte: 推理"]), "utf-8")
    command = [sys.executable, "-m", "ledger", "contract", "check", str(file)]
    result = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True)
    assert result.returncode == 1, result.stderr
    assert b"Traceback" not in result.stderr
