"""Text for people, on a terminal: names and values come from telemetry and must not act on it."""

from textwrap import wrap

import click

from ledger.printable import printable

_LINE = 100  # characters of a line that holds many fields


def echo(text: str, *, err: bool = False) -> None:
    """Print the text, with what a terminal would act on as escapes; its line breaks stay. JSON, which programs read, goes out as it is."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def wrapped(text: str, *, first: str = "    ") -> list[str]:
    """Many fields, on lines that a terminal shows whole, each after an indent; an id stays whole, to be copied."""
    return wrap(text, _LINE, initial_indent=first, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
