"""`ledger contract add`: contract files into the database."""

import sys
from pathlib import Path
from shlex import quote

import click

from ledger.cli.contract import quoted
from ledger.cli.options import author_option, pass_database
from ledger.cli.output import echo
from ledger.cli.stored_version import short_hash, show_missing, unproved_words, version_words
from ledger.cli.which_database import show_database
from ledger.documents.text_table import write_lines
from ledger.printable import printable
from ledger.store.contracts import StoredVersion
from ledger.store.database import Database
from ledger.workflows.register import register_contracts


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--examples-may-fail", is_flag=True, help="Add them although examples do not hold.")
@author_option
@click.pass_context
@pass_database
def add(database: Database, ctx: click.Context, files: tuple[Path, ...], examples_may_fail: bool, author: str) -> None:
    """Add contract versions: all of the files, or none if anything is wrong or an example of theirs does not hold.

    Adding the same file again does nothing. A stored version never changes; a mistake is corrected by a new version that says
    `replaces`.

    \b
    Example:
      ledger contract add acme-v1.yaml acme-v2.yaml
    """
    registered = register_contracts(database, files, author=author, examples_may_fail=examples_may_fail)
    for file in registered.files:
        for diagnostic in file.diagnostics:
            write_lines(quoted(diagnostic, file.lines), sys.stderr)
    lines = {file.file: file.lines for file in registered.files}
    for diagnostic in registered.together:
        write_lines(quoted(diagnostic, lines.get(diagnostic.file, ())), sys.stderr)
    for one in registered.unproved:
        echo(printable(f"{one.file}: {unproved_words(one)}; see: ledger contract test {quote(one.file)}"), err=True)
    for version in registered.added:
        echo(f"added {_title(version)}")
    for version in registered.already_there:
        echo(f"already there: {_title(version)}")
    if not registered.failed and not database.is_made:  # which was told then
        show_database(database)
    for version in (*registered.added, *registered.already_there):
        show_missing(version, registered.missing[version.content_sha256])
    if registered.failed:
        otherwise = ", or add them with --examples-may-fail" if registered.unproved else ""
        echo(f"error: nothing was added\n  correct the files and add them again{otherwise}", err=True)
        ctx.exit(1)


def _title(version: StoredVersion) -> str:
    return printable(f"{version_words(version)} ({version.file}, {short_hash(version)})")
