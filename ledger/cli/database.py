"""`ledger database ...`: create, upgrade and look after the database."""

import dataclasses

import click

from ledger.cli.options import echo_json, format_option
from ledger.cli.output import echo
from ledger.cli.rights import role_warnings
from ledger.workflows.database import database_status, database_url, open_shell, stop_database, upgrade_database


@click.command()
@click.option("--test", "is_test", is_flag=True, help="Make a new database a test database: LEDGER_NOW sets its clock, documents say TEST.")
@click.option(
    "--application", metavar="ROLE", help="Let this role do what all other commands do, and nothing else. Needs the owner of the tables."
)
@click.pass_obj
def upgrade(database: str | None, is_test: bool, application: str | None) -> None:
    """Create the tables of a new database, or bring those of an earlier ledger up to date.

    Everything happens in one transaction, so an upgrade that fails changes nothing. Whether it is a test database is decided
    when the tables are created and never changes.

    It is the owner of the tables who does it. All other commands may connect as a role that owns nothing, so that what is closed can be
    changed through it by nobody: --application gives that role its rights, once. Later upgrades give it those to new tables by themselves.
    The server that ledger keeps itself has both roles.

    \b
    Examples:
      ledger database upgrade
      ledger --database postgresql://ledger_owner@db.example/ledger database upgrade --application ledger
      ledger --database postgresql://ledger_owner@db.example/trial database upgrade --test --application ledger
    """
    upgraded = upgrade_database(database, is_test=is_test, application=application)
    before, after = upgraded.before, upgraded.after
    if before is None:
        click.echo(f"created {'test ' if is_test else ''}tables, schema {after}")
    elif before == after:
        click.echo(f"nothing to do, schema {after}")
    else:
        click.echo(f"upgraded from schema {before} to {after}")
    if database is not None and upgraded.applications:
        echo(f"rights of the application: {', '.join(upgraded.applications)}")


@click.command()
@click.option("--owner", "of_owner", is_flag=True, help="That of the owner, on the server that ledger keeps itself: for restoring a copy.")
@click.pass_obj
def url(database: str | None, of_owner: bool) -> None:
    """Print the database's URL as psql and other tools take it.

    The URL holds the password: whoever reads your terminal, its history or a log that it lands in can read and add to the ledger;
    with that of the owner he can change everything.

    \b
    Example:
      pg_dump "$(ledger database url)" > ledger.sql
    """
    click.echo(database_url(database, of_owner=of_owner))


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
    """Show the server, its version, the schema, the size, about how many events there are, and the role that commands connect as.

    Starts nothing: a server that ledger keeps itself is shown as not running. Warns if what is closed is not protected from that role,
    or if it lacks a right.

    \b
    Examples:
      ledger database status
      ledger database status --format json
    """
    found = database_status(database)
    for warning in role_warnings(found.role, database) if found is not None and found.schema is not None else []:
        echo(warning, err=True)
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
            "role": found.role.name,
        }
        for name, value in rows.items():
            echo(f"{name:9} {value}")
