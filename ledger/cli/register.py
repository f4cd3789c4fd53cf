"""`ledger contract add | list | show`: contract files into the database, and what is there."""

from pathlib import Path

import click

from ledger.cli.contract import quoted
from ledger.cli.options import author_option, echo_json, format_option, pass_database
from ledger.cli.output import echo
from ledger.contract.diagnostic import Severity
from ledger.contract.model import Contract
from ledger.contract.schedule import stretches
from ledger.errors import LedgerError
from ledger.store.contracts import StoredVersion, stored_versions
from ledger.store.database import Database
from ledger.workflows.register import register_contracts


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@author_option
@click.pass_context
@pass_database
def add(database: Database, ctx: click.Context, files: tuple[Path, ...], author: str) -> None:
    """Add contract versions: all of the files, or none if anything is wrong.

    Adding the same file again does nothing. A stored version never changes; a mistake is corrected by a new version that says
    `replaces`.

    \b
    Example:
      ledger contract add acme-v1.yaml acme-v2.yaml
    """
    registered = register_contracts(database, files, author=author)
    for file in registered.files:
        for diagnostic in file.diagnostics:
            if diagnostic.severity is Severity.ERROR:
                echo(quoted(diagnostic, file.lines), err=True)
        if warnings := file.count(Severity.WARNING):
            echo(f"{file.file}: {warnings} warning{'s' * (warnings > 1)}; see: ledger contract check {file.file}", err=True)
    for diagnostic in registered.together:
        echo(str(diagnostic), err=True)
    for version in registered.added:
        echo(f"added {_title(version)}")
    for version in registered.already_there:
        echo(f"already there: {_title(version)}")
    if registered.failed:
        echo("error: nothing was added\n  correct the files and add them again", err=True)
        ctx.exit(1)


@click.command(name="list")
@format_option
@pass_database
def list_(database: Database, output_format: str) -> None:
    """List the stored versions with the days on which each is in force."""
    with database.begin() as connection:
        versions = stored_versions(connection)
    rows = [_row(version, [other.contract for other in versions if other.contract.id == version.contract.id]) for version in versions]
    if output_format == "json":
        echo_json(rows)
    elif not rows:
        echo("no contracts yet; add one with: ledger contract add FILE", err=True)
    else:
        for row in rows:
            echo(f"{row['contract']}  version {row['version']}  {row['in_force']}  {row['customer']}  {row['sha256'][:12]}")


@click.command()
@click.argument("contract_id", metavar="ID")
@click.argument("version", type=click.IntRange(min=1), required=False)
@pass_database
def show(database: Database, contract_id: str, version: int | None) -> None:
    """Print a stored version exactly as it was added; without VERSION the highest."""
    with database.begin() as connection:
        found = [stored for stored in stored_versions(connection, contract_id) if version in (None, stored.contract.version)]
    if not found:
        what = f"version {version} of contract {contract_id}" if version else f"contract {contract_id}"
        raise LedgerError(f"there is no {what}", cure="see: ledger contract list", exit_code=1)
    click.echo(found[-1].content, nl=False)


def _title(version: StoredVersion) -> str:
    return f"{version.contract.id} version {version.contract.version} ({version.file}, sha256 {version.content_sha256[:12]})"


def _row(version: StoredVersion, versions: list[Contract]) -> dict[str, str]:
    contract = version.contract
    days = [f"{stretch.from_on} to {stretch.until_on or 'open'}" for stretch in stretches(versions) if stretch.version == contract.version]
    return {
        "contract": contract.id,
        "version": str(contract.version),
        "in_force": ", ".join(days) or "replaced",
        "customer": contract.parties.customer.name,
        "file": version.file,
        "sha256": version.content_sha256,
        "added_at": version.added_at.isoformat(),
        "author": version.author,
    }
