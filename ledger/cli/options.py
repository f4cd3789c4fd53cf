"""Options that several commands share, and what they refuse."""

import getpass

import click

LARGEST_ID = 2**63 - 1


def said(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """A text that must say something."""
    if not value.strip():
        raise click.BadParameter("say why: what stands there is shown to whoever asks later", ctx, param)
    return value


format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text for people, json for programs.",
)

author_option = click.option(
    "--author", metavar="NAME", default=getpass.getuser, show_default="your user name", help="Who does this; it is kept with the entry."
)
