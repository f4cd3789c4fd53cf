"""`ledger demo`: shows in a minute what ledger does, with nothing of the user's touched."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from ledger.documents.finance_table import outcome_words
from ledger.documents.number import grouped_count, plain_amount
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

    \b
    Examples:
      ledger demo
      ledger demo --output /tmp/demo
    """
    done = run_demo(output, on_step=lambda step: click.echo(f"  {step} ...", err=True))
    click.echo(_told(done, output))


def _told(done: Demo, output: Path) -> str:
    width = max(len(statement.contract.parties.customer.name) for statement in done.settled.statements)
    program = program_name()
    lines = [
        "",
        f"May 2026 is settled: {_loaded(done)}, {len(done.contracts)} contracts.",
        "",
        *(f"  {_result(statement, width)}" for statement in done.settled.statements),
        *(f"  and {warning}" for warning in done.settled.warnings),
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


def program_name() -> str:
    """How the reader calls this program: by its name if the shell finds this one and no other of that name, else as it was called."""
    called, found = Path(sys.argv[0]), shutil.which("ledger")
    if called.name != "ledger":
        return f"{shlex.quote(sys.orig_argv[0])} -m ledger"
    return "ledger" if found and called.exists() and os.path.samefile(found, called) else shlex.quote(sys.argv[0])


def _loaded(done: Demo) -> str:
    loaded = done.loaded
    return (
        f"{grouped_count(loaded.read)} lines of telemetry ({grouped_count(loaded.new)} requests, "
        f"{grouped_count(loaded.duplicate)} duplicates, {grouped_count(loaded.refused.total())} set aside)"
    )


def _result(statement: Statement, width: int) -> str:
    contract = statement.contract
    amount = plain_amount(statement.totals.total, statement.minor_digits, contract.money.currency)
    requests = f"{grouped_count(statement.events.total)} requests"
    return f"{contract.parties.customer.name:{width}}  {requests:>15}  {amount:>14}  {outcome_words(statement)}"
