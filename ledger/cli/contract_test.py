"""`ledger contract test`: run the examples of contract files. Source: specification, sections 9 and 10."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.cli.contract import counted, finding_json, quoted
from ledger.cli.options import echo_json, format_option
from ledger.cli.output import echo
from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.documents.text_table import write_lines

if TYPE_CHECKING:
    from ledger.workflows.contract_examples import RunFile


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--require-full", is_flag=True, help="Exit with 1 also if a rule of a contract is reached by no example.")
@format_option
@click.pass_context
def test(ctx: click.Context, files: tuple[Path, ...], require_full: bool, output_format: str) -> None:
    """Run the examples of contract files: each priced and judged by what settles months, without a database.

    Says of every example that fails what was expected, what was found and which rule decided; then which rules of the contract no example
    reaches, with an example for each to start from. Exit code 1 if an example fails or could not run.

    \b
    Examples:
      ledger contract test contracts/acme-bank.yaml
      ledger contract test --require-full --format json contracts/*.yaml
    """
    from ledger.workflows.contract import check_contracts
    from ledger.workflows.contract_examples import run_examples

    run = run_examples(check_contracts(files))
    if output_format == "json":
        echo_json([_file_json(one) for one in run])
    else:
        for one in run:
            for diagnostic in _errors(one):
                write_lines(quoted(diagnostic, one.checked.lines), sys.stdout)
            for line in _file_lines(one):
                echo(line)
        echo(_summary(run))
    is_short = require_full and any(one.not_reached for one in run)
    ctx.exit(1 if is_short or any(_errors(one) or any(example.differences for example in one.run) for one in run) else 0)


def _errors(run: "RunFile") -> list[Diagnostic]:
    """What keeps examples from running: the contract cannot be used, or the example says what cannot be."""
    return [*(one for one in run.checked.diagnostics if one.severity is Severity.ERROR), *run.wrong]


def _file_lines(run: "RunFile") -> Iterator[str]:
    from ledger.documents.example_report import coverage_line, failure_lines, sketch_lines

    for example in run.run:
        if example.differences:
            line, *_ = run.checked.places.of(("examples", example.place))
            yield from failure_lines(f"{run.checked.file}:{line}", example.found, example.differences)
            yield ""
    if run.rules:
        yield f"{run.checked.file}: {coverage_line(len(run.rules), len(run.awaited), len(run.not_reached))}"
    for rule in run.not_reached:
        yield from sketch_lines(rule)


def _summary(run: Sequence["RunFile"]) -> str:
    examples = sum(len(one.checked.contract.examples) for one in run if one.checked.contract is not None)
    failing = sum(bool(example.differences) for one in run for example in one.run)
    skipped = examples - sum(len(one.run) for one in run)
    unread = sum(one.checked.contract is None for one in run)
    parts = [f"{counted(examples, 'example')}: {examples - failing - skipped} hold, {failing} fail, {skipped} skipped"]
    parts += [f"{counted(unread, 'file')} could not be read as a contract"] if unread else []
    return f"{counted(len(run), 'file')}, {'; '.join(parts)}"


def _file_json(run: "RunFile") -> dict[str, object]:
    from ledger.documents.example_report import failure_json, sketch_json

    contract = run.checked.contract
    by_place = {example.place: example for example in run.run}
    examples = []
    for place, stated in enumerate(() if contract is None else contract.examples):
        example = by_place.get(place)
        result = "skipped" if example is None else "fails" if example.differences else "holds"
        failures = [] if example is None else failure_json(example.found, example.differences)
        line, *_ = run.checked.places.of(("examples", place))
        examples.append({"it": stated.it, "clause": stated.clause, "line": line, "result": result, "failures": failures})
    return {
        "file": run.checked.file,
        "contract": None if contract is None else contract.id,
        "version": None if contract is None else contract.version,
        "errors": [finding_json(diagnostic) for diagnostic in _errors(run)],
        "examples": examples,
        "rules": {
            "total": len(run.rules),
            "reached": len(run.rules) - len(run.awaited) - len(run.not_reached),
            "reached_by_failing": len(run.awaited),
            "not_reached": [sketch_json(rule) for rule in run.not_reached],
        },
    }
