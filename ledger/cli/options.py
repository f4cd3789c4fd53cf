"""What commands share: options and what they refuse, the open database, and results as JSON."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ledger.workflows.author import author_name

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
    "--author", metavar="NAME", default=author_name, show_default="your user name", help="Who does this; it is kept with the entry."
)


def pass_database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command, as its first argument, the database that `--database` names, open until the command ends."""

    @click.pass_obj
    @wraps(command)
    def run(url: str | None, /, *arguments: Any, **options: Any) -> Any:
        from ledger.store.database import open_database

        with open_database(url) as database:
            return command(database, *arguments, **options)

    return run


def echo_json(result: object) -> None:
    """Writes a result for programs: names as they are, keys in the order given."""
    text = json.dumps(result, ensure_ascii=False, indent=2)
    # Half a surrogate, from the name of a file, becomes the escape that it is in JSON.
    click.echo(text.encode("utf-8", "backslashreplace").decode())
