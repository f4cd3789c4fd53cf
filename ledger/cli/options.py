"""What commands share: options and what they refuse, the open database, and results as JSON."""

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ledger.contract.scalar import parse_duration, parse_instant
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

MONTH = re.compile(r"(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])")


def _month(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not MONTH.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a month; write it as 2026-05", ctx, param)
    return value


def month_argument(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The month that a command is about, as `period`."""
    return click.argument("period", metavar="MONTH" if required else "[MONTH]", callback=_month, required=required)


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback that reads an option as contracts read the same kind of value; a value that is not given stays None."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    return callback


def duration_option(flag: str, name: str, text: str, default: str | None = None) -> Callable[..., Any]:
    """An option that takes a duration above 0, such as 15s, as microseconds."""

    def positive(value: str) -> int:
        duration_us = parse_duration(value)
        if duration_us == 0:
            raise ValueError("expected a duration above 0")
        return duration_us

    shown = default is not None
    return click.option(flag, name, metavar="DURATION", default=default, show_default=shown, callback=parsed(positive), help=text)


def span_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--from` and `--until`, as `start` and `end`: instants with an offset, or None."""
    first = click.option("--from", "start", metavar="INSTANT", callback=parsed(parse_instant), help="From this instant on.")
    return first(click.option("--until", "end", metavar="INSTANT", callback=parsed(parse_instant), help="Up to this instant.")(command))


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
