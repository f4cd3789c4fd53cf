"""`ledger contract check | schema`: contract files checked, and what editors need to check them. Source: specification, section 9."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import click

from ledger.cli.options import echo_json, format_option, month
from ledger.cli.output import echo
from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.source import printable
from ledger.documents.text_table import Line, Span, Style, write_lines
from ledger.printable import printable as escaped
from ledger.workflows.contract import CheckedFile, check_contracts

if TYPE_CHECKING:
    from ledger.workflows.replay_warnings import ReplayedWarning

LONGEST_LINE = 120  # characters of a line of the file that are shown


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--replay",
    "replayed",
    metavar="MONTH",
    callback=month,
    help="Show for warnings about a choice what the recorded requests of this month would have cost either way.",
)
@format_option
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], replayed: str | None, output_format: str) -> None:
    """Show every error and warning of contract files, and of their versions together.

    Each is one line, `file:line:column: error code: found, expected, what to do`, with the line of the file and a caret below it.
    docs/contracts/codes.md shows every code with an example. Exit code 0 without errors (warnings are allowed), 1 with errors.

    With --replay, each warning that has another choice (latency to the first token, a refund at the charged rate, ...) is followed by what
    the month would have cost with either. The contract is taken as if in force for the whole month; nothing is written. Without it, no
    database is used.

    \b
    Examples:
      ledger contract check acme-v1.yaml acme-v2.yaml
      ledger contract check acme-v2.yaml --replay 2026-05
    """
    checked = check_contracts(files)
    warnings, is_refused = ({}, False) if replayed is None else _replayed(ctx, replayed, checked)
    if output_format == "json":
        echo_json([finding_json(one) | _replay_json(warnings.get(one)) for file in checked for one in file.diagnostics])
    else:
        for file in checked:
            for diagnostic in file.diagnostics:
                lines = quoted(diagnostic, file.lines)
                if diagnostic in warnings:
                    lines = [*lines[:-1], *_either_way(warnings[diagnostic]), []]
                write_lines(lines, sys.stdout)
        click.echo(_summary(checked))
    ctx.exit(1 if is_refused or any(file.count(Severity.ERROR) for file in checked) else 0)


@click.command()
def schema() -> None:
    """Print a JSON Schema of contract files, for editors: they complete keys, explain them and mark what cannot be right.

    docs/contracts/editor.md says how to set one up. `ledger contract check` alone proves that a contract is sound.

    \b
    Example:
      ledger contract schema > ledger-contract.schema.json
    """
    from ledger.contract.schema import contract_schema

    echo_json(contract_schema())


def quoted(diagnostic: Diagnostic, lines: Sequence[str]) -> list[Line]:
    """The diagnostic, its line and a caret under its column, and an empty line. A long line is cut around the column."""
    style = Style.RED if diagnostic.severity is Severity.ERROR else Style.YELLOW
    title = [
        Span(f"{escaped(diagnostic.place)}: ", Style.BOLD),
        Span(f"{diagnostic.severity} {diagnostic.code}", style),
        Span(f": {escaped(diagnostic.message)}"),
    ]
    if not 0 < diagnostic.line <= len(lines):
        return [title, []]
    whole = lines[diagnostic.line - 1]
    left = max(diagnostic.column - 61, 0) if len(whole) > LONGEST_LINE else 0
    line = printable(whole[left : left + LONGEST_LINE], limit=LONGEST_LINE)
    before = line[: diagnostic.column - 1 - left]
    width = sum(2 if east_asian_width(character) in "WF" else 1 for character in before)
    return [title, [Span(f"    {line}")], [Span(f"    {' ' * width}"), Span("^", style)], []]


def finding_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The fields of a finding for editors and CI; a place that is not known is null."""
    return {
        "file": diagnostic.file,
        "line": diagnostic.line or None,
        "column": diagnostic.column or None,
        "end_line": diagnostic.end_line or None,
        "end_column": diagnostic.end_column or None,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "found": diagnostic.found,
        "expected": diagnostic.expected,
        "cure": diagnostic.cure,
    }


def _replayed(ctx: click.Context, month: str, checked: Sequence[CheckedFile]) -> "tuple[dict[Diagnostic, ReplayedWarning], bool]":
    """The warnings of the files that have another choice, and whether the month cannot be settled under a file: its findings are shown all
    the same. On standard error why, and what a reader of the figures must know."""
    from ledger.documents.replay_words import ENGLISH, note_text
    from ledger.store.database import open_database
    from ledger.workflows.replay import ReplayRefused
    from ledger.workflows.replay_warnings import replay_warnings

    found: dict[Diagnostic, ReplayedWarning] = {}
    is_refused = False
    with open_database(ctx.obj) as database:
        for file in checked:
            try:
                replayed = replay_warnings(database, month, file)
            except ReplayRefused as error:
                echo(error.text, err=True)
                is_refused = True
                continue
            for note in replayed.notes:
                echo(f"note: {note_text(note, ENGLISH)}", err=True)
            if file.contract is not None and not replayed.warnings:
                echo(f"note: no warning of {file.file} has another choice to replay", err=True)
            found |= replayed.warnings
    return found, is_refused


def _replay_json(warning: "ReplayedWarning | None") -> dict[str, object]:
    if warning is None:
        return {}
    from ledger.documents.replay_table import either_way_json

    return {"replay": either_way_json(warning.value, warning.written, warning.otherwise)}


def _either_way(warning: "ReplayedWarning") -> Iterator[Line]:
    from ledger.documents.replay_table import either_way_lines

    for line in either_way_lines(warning.value, warning.written, warning.otherwise):
        yield [Span(f"    {line}")]


def _summary(checked: Sequence[CheckedFile]) -> str:
    errors = sum(file.count(Severity.ERROR) for file in checked)
    warnings = sum(file.count(Severity.WARNING) for file in checked)
    examples = sum(len(file.contract.examples) for file in checked if file.contract is not None)
    unproved = f"; {counted(examples, 'example')}, run them with: ledger contract test" if examples else ""
    is_partial = any(diagnostic.code == "bad_syntax" for file in checked for diagnostic in file.diagnostics)
    unread = "; what stands around a bad_syntax was not read: correct it, and check again" if is_partial else ""
    return f"{counted(len(checked), 'file')}: {counted(errors, 'error')}, {counted(warnings, 'warning')}{unproved}{unread}"


def counted(number: int, noun: str) -> str:
    """`no errors`, `1 error`, `2 errors`."""
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
