"""`ledger contract`: check contract files. Source: specification, section 9."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from unicodedata import east_asian_width

import click

from ledger.cli.options import echo_json, format_option
from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.source import printable
from ledger.workflows.contract import CheckedFile, check_contracts


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@format_option
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], output_format: str) -> None:
    """Show every error and warning of contract files, and of their versions together.

    Exit code 0 without errors (warnings are allowed), 1 with errors.
    """
    checked = check_contracts(files)
    if output_format == "json":
        findings = [asdict(diagnostic) for file in checked for diagnostic in file.diagnostics]
        echo_json(findings)
    else:
        for file in checked:
            for diagnostic in file.diagnostics:
                click.echo(quoted(diagnostic, file.lines))
        click.echo(_summary(checked))
    ctx.exit(1 if any(file.count(Severity.ERROR) for file in checked) else 0)


def quoted(diagnostic: Diagnostic, lines: Sequence[str]) -> str:
    """The diagnostic, its line and a caret under its column. A long line is cut around the column."""
    if not 0 < diagnostic.line <= len(lines):
        return f"{diagnostic}\n"
    left = max(diagnostic.column - 61, 0)
    line = printable(lines[diagnostic.line - 1][left : left + 120], limit=120)
    before = line[: diagnostic.column - 1 - left]
    width = sum(2 if east_asian_width(character) in "WF" else 1 for character in before)
    return f"{diagnostic}\n    {line}\n    {' ' * width}^\n"


def _summary(checked: Sequence[CheckedFile]) -> str:
    errors = sum(file.count(Severity.ERROR) for file in checked)
    warnings = sum(file.count(Severity.WARNING) for file in checked)
    examples = sum(len(file.contract.examples) for file in checked if file.contract is not None)
    unproved = f"; {counted(examples, 'example')}, run them with: ledger contract test" if examples else ""
    return f"{counted(len(checked), 'file')}: {counted(errors, 'error')}, {counted(warnings, 'warning')}{unproved}"


def counted(number: int, noun: str) -> str:
    """`no errors`, `1 error`, `2 errors`."""
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
