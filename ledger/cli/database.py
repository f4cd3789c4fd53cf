"""`ledger database ...`: create, upgrade and look after the database."""

import dataclasses

import click

from ledger.cli.options import echo_json, format_option
from ledger.workflows.database import database_status, database_url, open_shell, stop_database, upgrade_database


@click.command()
@click.option("--test", "is_test", is_flag=True, help="Make a new database a test database: LEDGER_NOW sets its clock, documents say TEST.")
@click.pass_obj
def upgrade(database: str | None, is_test: bool) -> None:
    """Create the tables of a new database, or bring those of an earlier ledger up to date.

    Everything happens in one transaction, so an upgrade that fails changes nothing. Whether it is a test database is decided
    when the tables are created and never changes.

    \b
    Examples:
      ledger database upgrade
      ledger --database postgresql://ledger@db.example/trial database upgrade --test
    """
    before, after = upgrade_database(database, is_test=is_test)
    if before is None:
        click.echo(f"created {'test ' if is_test else ''}tables, schema {after}")
    elif before == after:
        click.echo(f"nothing to do, schema {after}")
    else:
        click.echo(f"upgraded from schema {before} to {after}")


@click.command()
@click.pass_obj
def url(database: str | None) -> None:
    """Print the database's URL as psql and other tools take it.

    The URL holds the password: whoever reads your terminal, its history or a log that it lands in can read and add to the ledger.

    \b
    Example:
      pg_dump "$(ledger database url)" > ledger.sql
    """
    click.echo(database_url(database))


@click.command()
@click.pass_obj
def shell(database: str | None) -> None:
    """Open psql on the database.

    \b
    Example:
      ledger database shell
    """
    open_shell(database)


@click.command()
@click.pass_obj
def stop(database: str | None) -> None:
    """Stop the server that ledger keeps itself. The next command starts it again.

    \b
    Example:
      ledger database stop
    """
    click.echo("stopped" if stop_database(database) else "was not running")


@click.command()
@format_option
@click.pass_obj
def status(database: str | None, output_format: str) -> None:
    """Show the server, its version, the schema, the size and about how many events there are.

    Starts nothing: a server that ledger keeps itself is shown as not running.

    \b
    Examples:
      ledger database status
      ledger database status --format json
    """
    found = database_status(database)
    if output_format == "json":
        echo_json({**dataclasses.asdict(found), "embedded_in": found.embedded_in and str(found.embedded_in)} if found else None)
    elif found is None:
        click.echo("the database is not running; the next command that needs it starts it")
    else:
        schema = f"{found.schema or 'none'}" + ("" if found.schema == found.schema_wanted else " (run: ledger database upgrade)")
        rows = {
            "database": found.place,
            "server": f"PostgreSQL {found.postgresql}" + (f", kept in {found.embedded_in}" if found.embedded_in else ""),
            "schema": schema,
            "kind": "test" if found.is_test else "production",
            "size": f"{found.size_bytes / 2**20:,.1f} MiB",
            "events": f"about {found.events:,}",
        }
        for name, value in rows.items():
            click.echo(f"{name:9} {value}")
