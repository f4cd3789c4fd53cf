"""`--output FILE`: a file that is there may hold somebody's work, so it stays unless forced; one that is read is never written on."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from ledger.errors import LedgerError

force_option = click.option("--force", is_flag=True, help="Replace the file of --output if it is there.")


def check_output(output: Path | None, *, force: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse an output that is one of the inputs, by whatever name, or that is there already and not forced. To be asked before any work;
    what is no ordinary file (a terminal, a pipe) may be written to."""
    if output is None or not output.is_file():
        return
    for file in inputs:
        if os.path.exists(file) and os.path.samefile(file, output):
            raise LedgerError(f"{output} is a file that this command reads", cure="name another file", exit_code=2)
    if not force:
        raise LedgerError(f"{output} is there already", cure="name another file, or add --force to replace it", exit_code=2)
