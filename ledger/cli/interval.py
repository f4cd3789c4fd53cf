"""`ledger interval add`: record open circuit breakers and model loads."""

from pathlib import Path

import click

from ledger.workflows.interval import add_intervals


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--author", help="Who does this. Default: the user of the operating system.")
@click.pass_obj
def add(database: str | None, file: Path, author: str | None) -> None:
    """Add the intervals of a CSV file: kind,node,start,end and, if need be, model,id.

    kind is circuit_breaker or model_load; an empty node means any. Adding a file again adds nothing.
    """
    done = add_intervals(database, file, author=author)
    click.echo(f"{done.read} read, {done.new} new")
