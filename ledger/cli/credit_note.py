"""`ledger credit-note create | lines | list`: a line of an issued document is credited on demand, and what was credited so far."""

import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from ledger.cli.options import (
    author_option,
    confirm_final,
    contract_option,
    documents_option,
    echo_json,
    format_option,
    parsed,
    pass_database,
    said,
)
from ledger.cli.output import echo
from ledger.cli.settle import show_waiting
from ledger.contract.scalar import parse_decimal
from ledger.documents.credit_note import CreditNote
from ledger.documents.invoice import line_words
from ledger.documents.number import amount_text, grouped_amount, grouped_count, plain_amount
from ledger.documents.text_table import Table, write_lines
from ledger.printable import printable
from ledger.store.credit_notes import CreditNoteRow
from ledger.store.database import Database
from ledger.workflows.credit_note import FOLDER, CreditAsked, create_credit, creditable_lines, list_credit_notes, preview_credit


@click.command()
@click.argument("number", metavar="NUMBER")
@click.option("--line", "position", metavar="N", type=click.IntRange(min=1), required=True, help="The line of the document, from 1.")
@click.option("--amount", metavar="A", callback=parsed(parse_decimal), help="How much of it is credited, net of tax, such as 12.50.")
@click.option("--tokens", metavar="T", type=click.IntRange(min=1, max=10**30), help="Or how many of its tokens, at the line's price.")
@click.option("--reason", metavar="WHY", required=True, callback=said, help="Why; the credit note says so.")
@click.option("--provider", "tax_id", metavar="TAX_ID", help="Whose document, if several providers have that number.")
@click.option("--yes", is_flag=True, help="Issue without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be issued, and issue nothing.")
@documents_option(f"the folder {FOLDER} gets the page and its JSON")
@author_option
@format_option
@pass_database
def create(
    database: Database,
    number: str,
    position: int,
    amount: Decimal | None,
    tokens: int | None,
    reason: str,
    tax_id: str | None,
    yes: bool,
    dry_run: bool,
    output: Path,
    author: str,
    output_format: str,
) -> None:
    """Credit a line of an issued document: issue a credit note that names both, for good.

    The document itself stays as it is. The credit, with its tax, goes to the customer's balance, and the next month of the contract that is
    closed sets it off. It is never more than the line, or the document with its later adjustments. Lines are counted as
    ledger credit-note lines shows them. Each call issues another credit note: ledger credit-note list shows those that there are.

    \b
    Examples:
      ledger credit-note create INV-2026-000001 --line 1 --amount 12.50 --reason "agreed with the customer" --dry-run
      ledger credit-note create INV-2026-000001 --line 3 --tokens 250000 --reason "answers cut short on 3 May" --yes
    """
    if (amount is None) == (tokens is None):
        raise click.UsageError("say how much: --amount or --tokens")
    asked = CreditAsked(number=number, tax_id=tax_id, position=position, amount=amount, tokens=tokens, reason=reason.strip())
    if dry_run or not yes:
        _show_preview(preview_credit(database, asked))
    if dry_run:
        echo("dry run: nothing was issued", err=True)
        return
    if not yes:
        confirm_final("a credit note is final: say --yes to issue it without being asked", "Issue this credit note for good?")
    created = create_credit(database, asked, author=author, output=output, on_waiting=show_waiting)
    if output_format == "json":
        echo_json(json.loads(created.document.content))
    else:
        note = created.note
        credited = plain_amount(note.total_minor, note.minor_digits, note.contract.money.currency)
        echo(f"issued {created.document.number_text}: {credited} with tax of line {position} of {note.invoice} ({note.contract.id})")
    echo(f"documents of {created.document.number_text} in {output / FOLDER}", err=True)


@click.command()
@click.argument("number", metavar="NUMBER")
@click.option("--provider", "tax_id", metavar="TAX_ID", help="Whose document, if several providers have that number.")
@pass_database
def lines(database: Database, number: str, tax_id: str | None) -> None:
    """Show the lines of an issued document as they are counted, and what was credited of each.

    \b
    Example:
      ledger credit-note lines INV-2026-000001
    """
    closing, found = creditable_lines(database, number, tax_id)
    digits = closing.document.minor_digits
    table = Table(">Line", "Kind", "What", ">Tokens", f">{closing.document.currency}", ">Credited", ">Tokens credited")
    for position, one in enumerate(found, start=1):
        tokens = "" if one.line.quantity is None else grouped_count(one.line.quantity)
        amounts = [grouped_amount(minor, digits) for minor in (one.line.amount_minor, one.credited_minor)]
        credited_tokens = grouped_count(one.credited_tokens) if one.credited_tokens else ""
        table.add_row(str(position), one.line.kind.value, line_words(one.line), tokens, *amounts, credited_tokens)
    write_lines(table.lines(indent=""), sys.stdout)


@click.command("list")
@contract_option
@click.option(
    "--output", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help=f"Write their files again, into its {FOLDER}."
)
@format_option
@pass_database
def list_(database: Database, contract_id: str | None, output: Path | None, output_format: str) -> None:
    """List the credits on demand, and the month that has set off each.

    \b
    Examples:
      ledger credit-note list --contract acme-bank-llm
      ledger credit-note list --output settlements
    """
    found = list_credit_notes(database, contract_id, output)
    if output_format == "json":
        echo_json([_json(row) for row in found])
    elif found:
        write_lines(_table(found).lines(indent=""), sys.stdout)
    else:
        echo("nothing was credited on demand", err=True)


def _show_preview(note: CreditNote) -> None:
    credit, digits = note.credit, note.minor_digits
    rows = [
        ("document", f"{note.invoice} of {note.contract.id}, {note.period}"),
        ("line", f"{credit.position} ({line_words(note.line)}): {grouped_amount(note.line.amount_minor, digits)}"),
        *([] if credit.tokens is None else [("tokens", grouped_count(credit.tokens))]),
        ("credit", f"{grouped_amount(credit.net_minor, digits)} and tax {grouped_amount(credit.tax_minor, digits)}"),
        ("together", f"{grouped_amount(note.total_minor, digits)} {note.contract.money.currency}"),
        ("reason", note.reason),
    ]
    for name, text in rows:
        echo(f"{name:<9} {printable(text)}", err=True)


def _table(found: Sequence[CreditNoteRow]) -> Table:
    table = Table("Number", "Issued", "Contract", "Of", ">Line", ">Tokens", ">Net", ">Tax", ">Total", "Currency", "Set off in", "Reason")
    for row in found:
        amounts = [grouped_amount(minor, row.minor_digits) for minor in (row.net_minor, row.tax_minor, row.net_minor + row.tax_minor)]
        tokens = "" if row.tokens is None else grouped_count(row.tokens)
        texts = (row.number_text, row.issued_on.isoformat(), row.contract_id, row.invoice, str(row.line_position), tokens)
        table.add_row(*map(printable, (*texts, *amounts, row.currency, row.carried_into or "", row.reason)))
    return table


def _json(row: CreditNoteRow) -> dict[str, Any]:
    amounts = {"net": row.net_minor, "tax": row.tax_minor, "total": row.net_minor + row.tax_minor}
    return {
        "credit_note": row.number_text,
        "provider": row.tax_id,
        "issued_on": row.issued_on.isoformat(),
        "author": row.author,
        "contract": row.contract_id,
        "period": row.period,
        "invoice": row.invoice,
        "line": row.line_position,
        "tokens": row.tokens,
        "currency": row.currency,
        "credit": {name: amount_text(minor, row.minor_digits) for name, minor in amounts.items()},
        "carried_into": row.carried_into,
        "reason": row.reason,
    }
