"""What commands share: options and what they refuse, the open database, and results as JSON."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ledger.contract.scalar import parse_duration, parse_instant
from ledger.workflows.author import author_name

LARGEST_ID = 2**63 - 1


def said(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A text that must say something, if it is given."""
    if value is not None and not value.strip():
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

contract_option = click.option("--contract", "contract_id", metavar="ID", help="Only this contract.")


def documents_option(gets: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The folder that documents are written below, as `output`; `gets` says what is written where."""
    return click.option(
        "--output",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("settlements"),
        show_default=True,
        help=f"Where {gets}.",
    )


def confirm_final(unasked: str, question: str) -> None:
    """Ask before what cannot be undone. Without a terminal nobody can answer: a UsageError that says `unasked`."""
    if not sys.stdin.isatty():
        raise click.UsageError(unasked)
    if not click.confirm(question, err=True):
        raise click.Abort


MONTH = re.compile(r"(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])")


def month(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not MONTH.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a month; write it as 2026-05", ctx, param)
    return value


def month_argument(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The month that a command is about, as `period`."""
    return click.argument("period", metavar="MONTH" if required else "[MONTH]", callback=month, required=required)


replay_option = click.option(
    "--replay",
    "replayed",
    metavar="MONTH",
    callback=month,
    help="Settle the recorded requests of this month too, from the database, and show the difference in money.",
)


def _named(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("name who does this: it is kept with the entry", ctx, param)
    return value


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback that reads an option as contracts read the same kind of value; a value that is not given stays None."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    return callback


instant = parsed(parse_instant)


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
    first = click.option("--from", "start", metavar="INSTANT", callback=instant, help="From this instant on.")
    return first(click.option("--until", "end", metavar="INSTANT", callback=instant, help="Up to this instant.")(command))


author_option = click.option(
    "--author",
    metavar="NAME",
    default=author_name,
    show_default="your user name",
    callback=_named,
    help="Who does this; it is kept with the entry.",
)


def pass_database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command, as its first argument, the database that `--database` names, open until the command ends."""

    @click.pass_obj
    @wraps(command)
    def run(url: str | None, /, *arguments: Any, **options: Any) -> Any:
        from ledger.store.database import open_database

        with open_database(url) as database:
            if database.is_made:
                from ledger.cli.which_database import show_database

                show_database(database)
            return command(database, *arguments, **options)

    return run


def echo_json(result: object) -> None:
    """Writes a result for programs: names as they are, keys in the order given."""
    text = json.dumps(result, ensure_ascii=False, indent=2)
    # Half a surrogate, from the name of a file, becomes the escape that it is in JSON.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


def echo_json_each(results: Iterable[object]) -> None:
    """The same of an array, each item as soon as it is there: there may be a million."""
    between = "[\n"
    for result in results:
        text = "\n".join(f"  {line}" for line in json.dumps(result, ensure_ascii=False, indent=2).split("\n"))
        click.echo((between + text).encode("utf-8", "backslashreplace").decode(), nl=False)
        between = ",\n"
    click.echo("[]" if between == "[\n" else "\n]")


def settings(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Columns and their values, written FIELD=VALUE."""
    values: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or name in values:
            raise click.BadParameter(f"{setting!r}: write FIELD=VALUE, each field once", ctx, param)
        values[name] = value
    return values
