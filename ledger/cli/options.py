"""Options that several commands share."""

import getpass

import click

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
