"""Text for people, on a terminal: names and values come from telemetry and must not act on it."""

import click

from ledger.printable import printable


def echo(text: str, *, err: bool = False) -> None:
    """Print the text, with what a terminal would act on as escapes; its line breaks stay. JSON, which programs read, goes out as it is."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)
