"""`ledger demo`: shows in a minute what ledger does, with nothing of the user's touched."""

import os
import shutil
import sys
from pathlib import Path

import click

from ledger.documents.finance_table import outcome_words
from ledger.documents.number import currency_amount, grouped_count
from ledger.settlement.statement import Statement
from ledger.workflows.demo import DEMO_DATABASE, Demo, run_demo


@click.command()
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("ledger-demo"),
    show_default=True,
    help="Where telemetry and invoices go.",
)
def demo(output: Path) -> None:
    """Settle a made-up month of two made-up customers and say where their invoices are.

    Works on the server that ledger keeps itself, in a test database of its own that every run makes anew; other databases are not
    touched. Every run gives the same result.
    """
    done = run_demo(output, on_step=lambda step: click.echo(f"  {step} ...", err=True))
    click.echo(_told(done, output))


def _told(done: Demo, output: Path) -> str:
    width = max(len(statement.contract.parties.customer.name) for statement in done.settled.statements)
    program = _program()
    lines = [
        "",
        f"May 2026 is settled: {_loaded(done)}, {len(done.contracts)} contracts.",
        "",
        *(f"  {_result(statement, width)}" for statement in done.settled.statements),
        "",
        "The invoices (open them in a browser, or print them):",
        "",
    ]
    for path in done.settled.files:
        if path.suffix == ".html":
            lines += [f"  {path}", f"    {path.resolve().as_uri()}"]
    lines += [
        "",
        "What they were made from:",
        "",
        f"  {output / 'telemetry'}  two log files, with duplicates and lines that cannot be right",
        *(f"  {path}" for path in done.contracts),
        "",
        f"The customers do not exist. All of it is in a test database of its own, {DEMO_DATABASE}; your data was not touched.",
        "",
        "Next, with a contract and telemetry of yours:",
        "",
        f"  {program} contract check FILE     every error with its line, and what is probably not meant",
        f"  {program} contract add FILE       put it into force",
        f"  {program} ingest PATH             load telemetry, as often as you like",
        f"  {program} settle 2026-05          the table for finance, and the invoices",
    ]
    return "\n".join(lines)


def _program() -> str:
    """How the reader calls this program: by its name if the shell finds it, else by its path."""
    if shutil.which("ledger"):
        return "ledger"
    called = Path(sys.argv[0])
    return os.path.relpath(called) if called.name == "ledger" else "python -m ledger"


def _loaded(done: Demo) -> str:
    loaded = done.loaded
    return (
        f"{grouped_count(loaded.read)} lines of telemetry ({grouped_count(loaded.new)} requests, "
        f"{grouped_count(loaded.duplicate)} duplicates, {grouped_count(loaded.refused.total())} set aside)"
    )


def _result(statement: Statement, width: int) -> str:
    contract = statement.contract
    amount = currency_amount(statement.totals.total, statement.minor_digits, contract.money.currency)
    return f"{contract.parties.customer.name:{width}}  {amount:>14}  {outcome_words(statement)}"
