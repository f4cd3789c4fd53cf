"""`ledger contract test`: what it prints and how it ends."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ledger.cli.main import cli
from tests.cli.watched_command import run_watched

ROOT = Path(__file__).parents[2]
ACME = ROOT / "contracts" / "acme-bank.yaml"
QUIET = ROOT / "tests" / "golden" / "contracts" / "good" / "quiet.yaml"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["contract", "test", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """Where the contract of Acme Bank is written with changes by `write`."""
    return tmp_path / "contract.yaml"


def write(path: Path, *changes: tuple[str, str]) -> Path:
    text = ACME.read_text("utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    return path


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text("utf-8").split("\n"), start=1) if text in line)


def test_examples_that_hold_and_reach_every_rule_end_with_0() -> None:
    result = run("--require-full", ACME)
    assert (result.exit_code, result.output) == (
        0,
        f"{ACME}: examples reach 43 of 43 rules\n1 file, 17 examples: 17 hold, 0 fail, 0 skipped\n",
    )


def test_a_failing_example_is_named_with_its_place_its_clause_what_was_found_and_the_rule_that_decided(edited: Path) -> None:
    write(edited, ("expect: {band: [fast], multiplier: [6.0], charge: 0.51}", "expect: {band: [slow], multiplier: [5.0], charge: 0.50}"))
    result = run(edited)
    assert result.exit_code == 1
    assert result.output.startswith(
        f"{edited}:{line_of(edited, 'a fast vip request')}: fails: a fast vip request earns six times the price (clause 5.2)\n"
        "    event 1: expected band slow, found fast\n"
        "        a latency of 92ms end to end lies in the tier fast, < 100ms (clause 3.2)\n"
        "    event 1: expected multiplier 5, found 6\n"
        "        a latency of 92ms end to end lies in the tier fast, < 100ms (clause 3.2): 2, times 3 of the queue vip (clause 5.2)\n"
        "    expected charge 0.5, found 0.51\n"
        "        event 1, band fast: 3,000 input at 20.00 + 1,000 cached input at 5.00 + 250 output at 80.00 per 1,000,000, times "
        "6 = 0.51\n"
        "\n"
    )
    assert result.output.endswith("1 file, 17 examples: 16 hold, 1 fail, 0 skipped\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("objective: [met, met, late]}", "objective: [met, late, late]}"),
            "event 2: expected objective late, found met\n        a latency of 300ms end to end is within the target "
            "300ms (clause intro, 6.1)",
        ),
        (
            ("band: [missing_latency], multiplier: [1.0], objective: [late]", "band: [fast], multiplier: [1.0], objective: [met]"),
            "event 1: expected band fast, found missing_latency\n        no latency end to end was measured\n"
            "    event 1: expected objective met, found late\n        no latency end to end counts as late",
        ),
        (
            ("multiplier: [0.9, 0.3, 2.0]", "multiplier: [0.9, 0.9, 6.0]"),
            "event 2: expected multiplier 0.9, found 0.3\n        a latency of 550.001ms end to end lies in the tier slow, > 300ms "
            "(clause 3.2): 0.3, the multiplier of the queue vip is forfeited, as it waited 500.001ms, not within 500ms\n"
            "    event 3: expected multiplier 6, found 2\n        a latency of 50ms end to end lies in the tier fast, < 100ms (clause "
            "3.2): 2, the multiplier of the queue vip is forfeited, as it waited for an unknown time, not within 500ms",
        ),
        (
            ("{band: [fast, slow], multiplier: [1.0, 30%]}", "{band: [fast, slow], multiplier: [6.0, 30%]}"),
            "event 1: expected multiplier 6, found 1\n        a latency of 60ms end to end lies in the tier fast, < 100ms (clause 3.2): 2, "
            "times 3 of the queue vip (clause 5.2), the variant deepseek-moe-4bit is never above 1",
        ),
        (
            ("{band: [circuit_breaker, fast, slow]", "{band: [fast, fast, slow]"),
            "event 1: expected band fast, found circuit_breaker\n        the exemption circuit_breaker (clause 3.1) takes it",
        ),
        (
            ("{band: [cancelled, slow]", "{band: [standard, none]"),
            "event 1: expected band standard, found cancelled\n        the client closed it, and a latency of 300ms end to end is not over "
            "the target 300ms\n    event 2: expected band none, found slow\n        closed by the client after the target, it is priced "
            "like a success: a latency of 301ms end to end lies in the tier slow, > 300ms (clause 3.2)",
        ),
        (
            ("band: [none, none, none], objective: [late, exclude, exclude]", "band: [none, fast, none], objective: [late, exclude, late]"),
            "event 2: expected band fast, found none\n        status 429 is rate_limited, which is never billed\n"
            "    event 3: expected objective late, found exclude\n        status 404 is client_error, which is outside the objective",
        ),
        (
            ("results: [forgiven, refunded]", "results: [met, forgiven]"),
            "window 1: expected result met, found forgiven\n        310ms is above the target 300ms and within 120% of the target, 360ms; "
            "0 of 3 breaches of the month were used before (clause 3.2)\n    window 2: expected result forgiven, found refunded\n"
            "        361ms is above the target 300ms and above 120% of the target, 360ms, which is never forgiven (clause 3.2)",
        ),
        (
            (
                "results: [met, forgiven, forgiven, forgiven, refunded, forgiven]",
                "results: [forgiven, forgiven, forgiven, forgiven, met, met]",
            ),
            "window 1: expected result forgiven, found met\n        300ms is within the target 300ms\n    window 5: expected result met, "
            "found refunded\n        301ms is above the target 300ms and within 120% of the target, 360ms, but 3 of 3 breaches of the "
            "month were used before (clause 3.2)\n    window 6: expected result met, found forgiven",
        ),
        (
            ("results: [forgiven, forgiven, forgiven, insufficient]", "results: [forgiven, refunded, forgiven, met]"),
            "window 2: expected result refunded, found forgiven\n        310ms is above the target 300ms (judged together with the other "
            "small windows of its day) and within 120% of the target, 360ms; 1 of 3 breaches of the month were used before (clause 3.2)\n"
            "    window 4: expected result met, found insufficient\n        99 requests, and fewer than 100 are not judged (pool_day)",
        ),
        (
            ("results: [forgiven, forgiven, forgiven, insufficient]", "results: [forgiven, forgiven, met, insufficient]"),
            "window 3: expected result met, found forgiven\n        250ms is within the target 300ms, but not all small windows of its day "
            "together, and these are within 120% of the target, 360ms; 1 of 3 breaches of the month were used before (clause 3.2)",
        ),
        (
            ("p99: 310ms, requests: 60", "p99: 361ms, requests: 60"),
            "window 2: expected result forgiven, found refunded\n        361ms is above the target 300ms (judged together with the other "
            "small windows of its day) and above 120% of the target, 360ms, which is never forgiven (clause 3.2)\n"
            "    window 3: expected result forgiven, found refunded\n        250ms is within the target 300ms, but not all small windows "
            "of its day together, and these are above 120% of the target, 360ms, which is never forgiven (clause 3.2)",
        ),
    ],
)
def test_each_kind_of_failure_says_why(edited: Path, change: tuple[str, str], told: str) -> None:
    result = run(write(edited, change))
    assert result.exit_code == 1
    assert f"    {told}" in result.output, result.output
    assert result.output.endswith("1 file, 17 examples: 16 hold, 1 fail, 0 skipped\n")


def test_all_failures_are_shown_in_one_run(edited: Path) -> None:
    write(edited, ("charge: 0.0684", "charge: 0.0685"), ("results: [forgiven, refunded]", "results: [met, met]"))
    result = run(edited, QUIET)
    assert re.findall(r"expected (.*), found (.*)\n", result.output) == [
        ("charge 0.0685", "0.0684"),
        ("result met", "forgiven"),
        ("result met", "refunded"),
    ]


def test_rules_that_no_example_reaches_are_listed_with_an_example_that_can_be_copied(edited: Path) -> None:
    terms = ACME.read_text("utf-8").partition("\nexamples:\n")[0]
    edited.write_text(f"{terms}\nexamples: []\n")
    result = run(edited)
    assert result.exit_code == 0 and result.output.startswith(f"{edited}: examples reach 0 of 43 rules; not reached:\n")
    assert run("--require-full", edited).exit_code == 1
    copied = result.output.partition("not reached:\n")[2].rpartition("1 file,")[0]
    edited.write_text(f"{terms}\nexamples:\n{copied}")
    assert (
        run("--require-full", edited).output
        == f"{edited}: examples reach 43 of 43 rules\n1 file, 43 examples: 43 hold, 0 fail, 0 skipped\n"
    )


def test_a_name_that_yaml_takes_for_something_else_is_quoted_in_an_example_to_copy(edited: Path) -> None:
    terms = ACME.read_text("utf-8").partition("\nexamples:\n")[0]
    edited.write_text(terms.replace("deepseek-moe-4bit", "'{4 bit: \"null\"}'") + "\nexamples: []\n")
    copied = run(edited).output.partition("not reached:\n")[2].rpartition("1 file,")[0]
    assert r'model: "{4 bit: \"null\"}"' in copied
    edited.write_text(edited.read_text().replace("examples: []\n", f"examples:\n{copied}"))
    assert run("--require-full", edited).exit_code == 0


def test_an_example_that_cannot_be_is_skipped_and_ends_with_1(edited: Path) -> None:
    write(edited, ("{e2e_ms: 300, input_tokens: 1000, output_tokens: 500}", "{e2e_ms: 300, input_tokens: 1, cached_input_tokens: 2}"))
    result = run(edited)
    assert result.exit_code == 1
    assert (
        f"{edited}:{line_of(edited, 'input_tokens: 1, cached')}:9: error bad_example: found cached_input_tokens is 2 of 1 input_tokens;"
        in (result.output)
    )
    assert result.output.endswith("1 file, 17 examples: 16 hold, 0 fail, 1 skipped\n")


def test_a_file_that_is_no_contract_ends_with_1_and_the_others_run(edited: Path) -> None:
    write(edited, ("target: 300ms", "target: 300"))
    result = run(edited, ACME, edited.with_name("missing.yaml"))
    assert result.exit_code == 1
    assert "error bad_duration: found `300`" in result.output and "error unreadable_file" in result.output
    assert result.output.endswith("3 files, 17 examples: 17 hold, 0 fail, 0 skipped; 2 files could not be read as a contract\n")


def test_json_has_every_example_every_failure_and_what_is_not_reached(edited: Path) -> None:
    write(edited, ("charge: 0.0684", "charge: 0.0685"), ("results: [forgiven, refunded]", "results: [forgiven, met]"))
    result = run("--format", "json", edited)
    assert result.exit_code == 1
    [file] = json.loads(result.stdout)
    assert (file["file"], file["contract"], file["version"], file["errors"]) == (str(edited), "acme-bank-llm", 1, [])
    assert [example["result"] for example in file["examples"]].count("holds") == 15
    charge, window = [example for example in file["examples"] if example["result"] == "fails"]
    assert (charge["line"], charge["clause"]) == (line_of(edited, "800 tokens of input"), None)
    assert {key: value for key, value in charge["failures"][0].items() if key != "why"} == {
        "expect": "charge",
        "event": None,
        "window": None,
        "expected": "0.0685",
        "found": "0.0684",
    }
    assert [(one["window"], one["expected"], one["found"]) for one in window["failures"]] == [(2, "met", "refunded")]
    assert file["rules"] == {"total": 43, "reached": 41, "reached_by_failing": 2, "not_reached": []}


def test_what_no_example_reaches_is_told_beside_those_that_fail_and_without_what_they_would_reach(edited: Path) -> None:
    within = ("p99: 361ms}\n    expect: {results: [forgiven, refunded]}", "p99: 310ms}\n    expect: {results: [forgiven, forgiven]}")
    write(edited, ("charge: 0.0684", "charge: 0.0685"), within)
    result = run("--require-full", edited)
    assert result.exit_code == 1 and ": fails: " in result.output
    counted = "examples reach 41 of 43 rules, and 1 more once those that fail are corrected; not reached:\n"
    assert f'{edited}: {counted}  - it: "budget: a breach above 360ms is refunded"\n' in result.output
    assert "model deepseek-v4-mini: its rates" not in result.output
    [file] = json.loads(run("--format", "json", edited).stdout)
    assert [rule["rule"] for rule in file["rules"]["not_reached"]] == ["budget: a breach above 360ms is refunded"]
    assert file["rules"]["not_reached"][0]["example"]["expect"] == {"results": ["refunded"]}


def test_a_contract_of_another_model_of_prices_is_tested_with_a_warning_unsaid() -> None:
    assert "warning" not in run(ROOT / "tests" / "golden" / "contracts" / "good" / "specification.yaml").output


def test_it_needs_no_database_and_imports_nothing_of_one() -> None:
    result = run_watched(
        ["contract", "test", str(ACME)],
        {"sqlalchemy", "psycopg", "alembic", "pandas", "jinja2", "rich"},
        LEDGER_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none",
    )
    assert (result.returncode, result.stderr) == (0, "[]\n")
