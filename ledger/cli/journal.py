"""`ledger journal export | chart`: what was issued as double entries for accounting software, and the names of their accounts."""

import io
from collections.abc import Sequence
from pathlib import Path

import click

from ledger.cli.options import month, month_argument, pass_database
from ledger.cli.output import echo
from ledger.cli.output_file import check_output, force_option
from ledger.documents.chart_of_accounts import DEFAULT, Chart, default_chart, read_chart
from ledger.documents.journal_beancount import beancount_text
from ledger.documents.journal_csv import write_journal_csv
from ledger.settlement.journal import JournalEntry
from ledger.store.database import Database
from ledger.workflows.journal import journal_entries


@click.command()
@month_argument(required=False)
@click.option("--to", "form", type=click.Choice(["csv", "beancount"]), required=True, help="csv for spreadsheets and imports.")
@click.option("--from", "from_month", metavar="MONTH", callback=month, help="From this month of issue on.")
@click.option("--until", "until_month", metavar="MONTH", callback=month, help="Up to this month of issue, and with it.")
@click.option("--provider", "tax_id", metavar="TAX_ID", help="Whose journal, if several have issued.")
@click.option(
    "--chart",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What your accounts are called; `ledger journal chart` prints one to begin with.",
)
@click.option("--no-open", "is_opening", flag_value=False, default=True, help="Of beancount: open no accounts, since another file does.")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead.")
@force_option
@pass_database
def export(
    database: Database,
    period: str | None,
    form: str,
    from_month: str | None,
    until_month: str | None,
    tax_id: str | None,
    chart: Path | None,
    is_opening: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Write the journal: a balanced double entry for each document that was issued in the month, in several, or ever.

    An entry is booked on the day its document was issued: the invoice of May stands in the journal of June if May was closed in June. So
    who takes over one month after the other misses no document, and has none twice.

    \b
    Examples:
      ledger journal export --to csv 2026-06 --output june.csv
      ledger journal export --to beancount --chart accounts.yaml
      ledger journal export --to beancount --from 2026-01 --until 2026-12 --provider 91110000TEST000001 --output 2026.beancount
    """
    if period is not None and (from_month or until_month):
        raise click.UsageError("name one month, or the first with --from and the last with --until")
    if from_month and until_month and until_month < from_month:
        raise click.UsageError(f"{until_month} is before {from_month}: name the first month with --from and the last with --until")
    check_output(output, force=force, inputs=[] if chart is None else [chart])
    names = default_chart() if chart is None else read_chart(chart)
    entries = journal_entries(database, from_month=from_month or period, until_month=until_month or period, tax_id=tax_id)
    text = _text(entries, names, form, is_opening=is_opening)
    if output is None:
        click.echo(text, nl=False)
    else:
        unfinished = output.with_name(f".{output.name}.unfinished")
        unfinished.write_text(text, encoding="utf-8", newline="")
        unfinished.replace(output)
    counted = f"{len(entries):,} document{'' if len(entries) == 1 else 's'}"
    echo(counted if output is None else f"{counted} in {output}", err=True)
    if not entries:
        echo("a document stands in the month in which it was issued: without a month, all of them are written", err=True)


@click.command()
def chart() -> None:
    """Print the chart of accounts that is used unless you name your own: a file to begin yours with.

    It must name every account that a document can post to.

    \b
    Example:
      ledger journal chart > accounts.yaml
    """
    click.echo(DEFAULT.read_text(encoding="utf-8"), nl=False)


def _text(entries: Sequence[JournalEntry], chart: Chart, form: str, *, is_opening: bool) -> str:
    if form == "beancount":
        return beancount_text(entries, chart, is_opening=is_opening)
    stream = io.StringIO()
    write_journal_csv(entries, chart, stream)
    return stream.getvalue()
