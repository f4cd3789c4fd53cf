"""What is put into force: a version whose examples hold, and with warnings that were shown, since a stored version never changes."""

from pathlib import Path

from tests.conftest import ROOT, RunLedger

TEMPLATE = ROOT / "contracts" / "templates" / "batch.en.yaml"
CONTRACT = (ROOT / "contracts" / "acme-bank.yaml").read_text("utf-8")


def test_a_version_whose_examples_do_not_hold_is_added_only_if_that_is_said(run_ledger: RunLedger, tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(CONTRACT.replace("expect: {results: [forgiven, refunded]}", "expect: {results: [refunded, refunded]}"))
    refused = run_ledger("contract", "add", file)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[-3:] == [
        f"{file}: 1 of 17 examples does not hold; see: ledger contract test {file}",
        "error: nothing was added",
        "  correct the files and add them again, or add them with --examples-may-fail",
    ]
    assert run_ledger("contract", "list").stdout == ""
    assert run_ledger("contract", "add", file, "--examples-may-fail").stdout.startswith("added acme-bank-llm version")
    assert run_ledger("contract", "add", file).stdout.startswith("already there: ")  # which changes nothing
    shown = run_ledger("contract", "show", "acme-bank-llm")
    assert "warning: 1 of 17 examples does not hold in what is stored of acme-bank-llm version " in shown.stderr
    assert shown.stdout_bytes == file.read_bytes()


def test_the_warnings_of_a_version_are_shown_when_it_is_added(run_ledger: RunLedger) -> None:
    added = run_ledger("contract", "add", TEMPLATE)
    checked = run_ledger("contract", "check", TEMPLATE)
    assert added.exit_code == 0 and "warning template_value" in added.stderr
    told, _, _ = checked.stdout.rpartition("1 file: ")
    assert added.stderr.startswith(told)
