"""`ledger numbering set | show`: how the numbers of invoices and credit notes are written."""

import sys
from collections.abc import Sequence

import click

from ledger.cli.options import author_option, echo_json, format_option, pass_database
from ledger.cli.output import echo
from ledger.documents.text_table import Table, write_lines
from ledger.instant import instant_text
from ledger.printable import printable
from ledger.settlement.numbering import Series
from ledger.store.database import Database
from ledger.store.numbering import SeriesNumbering
from ledger.workflows.numbering import numberings, set_number_format


@click.command("set")
@click.option("--provider", "tax_id", metavar="TAX_ID", required=True, help="The provider's tax ID, as its contracts have it.")
@click.option("--series", type=click.Choice([series.value for series in Series]), required=True, help="What is numbered by itself.")
@click.option("--format", "number_format", metavar="FORMAT", required=True, help="With {year}, and {number} or {number:06} (six digits).")
@author_option
@pass_database
def set_(database: Database, tax_id: str, series: str, number_format: str, author: str) -> None:
    """Say how the numbers of a provider's documents are written from now on.

    Numbers begin with 1 in each year and series, and go on whatever the format is; what is issued keeps its number. The year is that of
    the day of issue. The formats of the two series must differ in letters or signs, so that no two documents have one number.

    \b
    Examples:
      ledger numbering set --provider 91110000TEST000001 --series invoice --format 'INV-{year}-{number:06}'
      ledger numbering set --provider 91110000TEST000001 --series credit_note --format '{year}/CN{number:04}'
    """
    numbering = set_number_format(database, tax_id, Series(series), number_format, author=author)
    last = f"; the last was {numbering.last_number}" if numbering.last_number else ""
    echo(f"the next {series} of {tax_id} is numbered as {numbering.number_format}{last}", err=True)


@click.command()
@format_option
@pass_database
def show(database: Database, output_format: str) -> None:
    """Show how each provider's numbers are written, and which was issued last.

    \b
    Example:
      ledger numbering show
    """
    found = numberings(database)
    if output_format == "json":
        echo_json([_json(one) for one in found])
    elif found:
        write_lines(_table(found).lines(indent=""), sys.stdout)
    else:
        echo("no provider is known: a contract names it", err=True)


def _table(found: Sequence[SeriesNumbering]) -> Table:
    table = Table("Provider", "Series", "Format", "Last issued", "Set")
    for one in found:
        is_set = "" if one.set_at is None else f"{instant_text(one.set_at)} by {one.author}"
        table.add_row(*map(printable, (one.tax_id, one.series, one.number_format, one.last_number or "", is_set)))
    return table


def _json(one: SeriesNumbering) -> dict[str, str | None]:
    return {
        "provider": one.tax_id,
        "series": one.series,
        "format": one.number_format,
        "last_issued": one.last_number,
        "set_at": None if one.set_at is None else instant_text(one.set_at),
        "author": one.author,
    }
