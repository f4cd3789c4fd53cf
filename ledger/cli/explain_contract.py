"""`ledger contract explain`: a contract in plain sentences for a lawyer. Source: specification, section 9."""

import sys
from pathlib import Path

import click

from ledger.cli.contract import quoted
from ledger.cli.output import echo
from ledger.cli.output_file import check_output, force_option
from ledger.contract.diagnostic import Severity
from ledger.documents.contract_prose.forms import FORMS
from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.documents.text_table import write_lines
from ledger.workflows.explain_contract import explain_contract


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="en", show_default=True, help="English or Chinese.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMS)),
    default="text",
    show_default=True,
    help="text for the terminal, markdown to send, html to print.",
)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead.")
@force_option
@click.pass_context
def explain(ctx: click.Context, file: Path, language: str, form: str, output: Path | None, force: bool) -> None:
    """Say the whole contract in numbered plain sentences, each with its clause and worked numbers, to be read beside the signed text.

    Works without a database. A file with errors is not explained: they are shown as `contract check` shows them, and the exit code is 1.

    \b
    Examples:
      ledger contract explain contracts/acme-bank.yaml
      ledger contract explain contracts/acme-bank.yaml --language zh --format html --output acme-bank.html
    """
    check_output(output, force=force, inputs=[file])
    explained = explain_contract(file, language)
    checked = explained.checked
    if explained.prose is None:
        for diagnostic in checked.diagnostics:
            write_lines(quoted(diagnostic, checked.lines), sys.stderr)
        ctx.exit(1)
    text = FORMS[form](explained.prose)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        echo(f"{output} is written", err=True)
    warnings = checked.count(Severity.WARNING)
    if warnings:
        echo(f"{warnings} warning{'' if warnings == 1 else 's'} of this file: ledger contract check {file}", err=True)
