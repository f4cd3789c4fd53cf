"""What commands share: options, the open database, and results as JSON."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ledger.workflows.author import author_name

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
    click.echo(json.dumps(result, ensure_ascii=False, indent=2))
