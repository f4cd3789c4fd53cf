"""`ledger interval add`: record open circuit breakers and model loads."""

from pathlib import Path

import click

from ledger.cli.options import author_option, pass_database
from ledger.cli.output import echo
from ledger.store.database import Database
from ledger.workflows.interval import add_intervals


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@author_option
@pass_database
def add(database: Database, file: Path, author: str) -> None:
    """Add the intervals of a CSV file: kind,node,start,end and, if need be, model,id.

    kind is circuit_breaker or model_load; an empty node means any. Adding a file again adds nothing.
    """
    done = add_intervals(database, file, author=author)
    echo(f"{done.read} read, {done.new} new")
