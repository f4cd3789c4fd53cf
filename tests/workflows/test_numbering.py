"""How documents are numbered, set through the command line: what is issued stays, and no two documents can have one number."""

import json
from pathlib import Path

import pytest

from tests.conftest import RunLedger
from tests.workflows.issued_months import PROVIDER, close_months, done, load_months

SET = ("numbering", "set", "--provider", PROVIDER, "--author", "finance")


def numbers(run_ledger: RunLedger) -> list[tuple[str, str, str | None]]:
    """What is shown: series, format and the number issued last."""
    shown = json.loads(done(run_ledger("numbering", "show", "--format", "json")).stdout)
    assert {one["provider"] for one in shown} <= {PROVIDER}
    return [(one["series"], one["format"], one["last_issued"]) for one in shown]


def test_numbers_are_written_as_set_from_then_on_and_what_is_issued_stays(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    default = ("credit_note", "CN-{year}-{number:06}", None)
    assert numbers(run_ledger) == [("invoice", "INV-{year}-{number:06}", None), default]
    close_months(run_ledger, tmp_path, ["2026-05"])
    result = done(run_ledger(*SET, "--series", "invoice", "--format", "{year}/R{number:04}", now="2026-06-04T00:00:00Z"))
    assert result.stderr == f"the next invoice of {PROVIDER} is numbered as {{year}}/R{{number:04}}; the last was INV-2026-000001\n"
    assert numbers(run_ledger) == [("invoice", "{year}/R{number:04}", "INV-2026-000001"), default]
    close_months(run_ledger, tmp_path, ["2026-06"])
    assert numbers(run_ledger) == [("invoice", "{year}/R{number:04}", "2026/R0002"), default]
    again = done(run_ledger("close", "2026-05", "--output", tmp_path / "out")).stdout
    assert again.startswith("closed before 2026-05: acme-bank-llm INV-2026-000001,")
    lines = done(run_ledger("numbering", "show")).stdout.splitlines()
    assert lines[1].split() == [PROVIDER, "invoice", "{year}/R{number:04}", "2026/R0002", "2026-06-04T00:00:00Z", "by", "finance"]


@pytest.mark.parametrize("number_format", ["INV-{year}-{number:06}", "INV-{number}-{year}", "INV-{year}-9{number:04}"])
def test_a_format_that_could_write_a_number_of_the_other_series_is_refused(
    number_format: str, run_ledger: RunLedger, tmp_path: Path
) -> None:
    load_months(run_ledger, tmp_path)
    refused = run_ledger(*SET, "--series", "credit_note", "--format", number_format)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        f"error: {number_format} could give one number to two documents: invoices are written as INV-{{year}}-{{number:06}}\n"
    )
    assert numbers(run_ledger)[1] == ("credit_note", "CN-{year}-{number:06}", None)


def test_a_number_that_was_issued_before_its_format_changed_is_not_given_again(run_ledger: RunLedger, tmp_path: Path) -> None:
    load_months(run_ledger, tmp_path)
    close_months(run_ledger, tmp_path, ["2026-05"])
    done(run_ledger(*SET, "--series", "invoice", "--format", "R-{year}-{number}"))
    refused = run_ledger(*SET, "--series", "credit_note", "--format", "INV-{year}-{number:06}")
    assert refused.exit_code == 1 and "invoices are written as INV-2026-000001\n" in refused.stderr


def test_what_does_not_number_documents_is_refused_and_so_is_a_provider_of_no_contract(run_ledger: RunLedger, tmp_path: Path) -> None:
    assert run_ledger("numbering", "show").stderr == "no provider is known: a contract names it\n"
    load_months(run_ledger, tmp_path)
    refused = run_ledger(*SET, "--series", "invoice", "--format", "INV-{number}")
    assert refused.exit_code == 2 and refused.stderr.startswith("error: the format 'INV-{number}' needs {year} once\n")
    unknown = run_ledger("numbering", "set", "--provider", "nobody", "--series", "invoice", "--format", "{year}-{number}")
    assert (unknown.exit_code, unknown.stderr) == (1, f"error: no contract has a provider nobody\n  known are {PROVIDER}\n")
