"""Text for people, on a terminal: names and values come from telemetry and must not act on it."""

import click

# Control characters (but not the end of a line), and the marks that turn the direction of what follows.
_ACTING = dict.fromkeys((*range(10), *range(11, 32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)), "?")


def echo(text: str, *, err: bool = False) -> None:
    """Print the text with `?` for each character that a terminal would act on. JSON, which programs read, goes out as it is."""
    click.echo(text.translate(_ACTING), err=err)
