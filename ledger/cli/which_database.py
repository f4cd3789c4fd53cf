"""Says which database a command writes to: what is in force in one is unknown in another. Takes an open database, gives one line."""

from ledger.cli.output import echo
from ledger.store.database import Database, place


def show_database(database: Database) -> None:
    """On standard error, where the database is, without user and password."""
    if database.embedded_in is None:
        echo(f"database: {place(database.url)}", err=True)
    else:
        made = "made now, " if database.is_made else ""
        echo(f"database: {made}kept in {database.embedded_in}, for this user alone; LEDGER_DATABASE_URL names one that is shared", err=True)
