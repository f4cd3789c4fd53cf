"""The empty DuckDB database in which one file is read, and what its errors say of the machine.

Takes a folder and a limit of memory; gives a connection that knows what expressions of a mapping call, and that writes rows for PostgreSQL.
"""

from importlib.util import find_spec
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.ingest.expression import MACROS
from ledger.ingest.file_state import says_no_room


def connect_scratch(folder: Path, memory_mb: int) -> duckdb.DuckDBPyConnection:
    """An empty database in the folder."""
    database = folder / "records.duckdb"
    database.unlink(missing_ok=True)
    connection = duckdb.connect(
        str(database),
        config={
            "memory_limit": f"{memory_mb}MB",
            "threads": 1,  # more of them cost twice the work; chunks are judged and stored beside each other already
            "temp_directory": str(folder),
            "force_compression": "uncompressed",  # half the time; the lines stand on disk once more while the file is loaded
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_unsigned_extensions": True,  # the only one came with the package, and its signature takes a tenth of a second
        },
    )
    load_writer(connection)
    for macro in MACROS:
        connection.execute(macro)
    return connection


def load_writer(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB write rows as PostgreSQL reads them; its settings have to allow unsigned extensions."""
    spec = find_spec("duckdb_extension_postgres_scanner")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
    connection.load_extension(str(folder / "postgres_scanner.duckdb_extension"))


def literal(text: str) -> str:
    """The text in a statement. Whatever is given as a parameter, DuckDB looks for pandas, and imports it where it is installed."""
    return exp.Literal.string(text).sql("duckdb")


def lacks_room(error: duckdb.Error) -> bool:
    """Whether the disk is full."""
    return says_no_room(str(error)) or "max_temp_directory_size" in str(error)


def lacks_memory(error: duckdb.Error) -> bool:
    """Whether more memory would do: there is a class for it, but a commit that fails for it says so in words alone."""
    return "memory_limit" in str(error)
