"""Archived events: Parquet files of standing events in the canonical columns, as a source of the plan on DuckDB.

An archive is not telemetry: its rows were judged before, each identity stands in it once, and it is typed as the events are. What can be
proven column by column is proven; a file that breaks a rule of events is refused as a whole. Source: specification, section 2.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
from sqlglot import exp

from ledger.errors import LedgerError
from ledger.rating.duckdb import all_of
from ledger.rating.plan import EVENT_COLUMNS

TEXTS = ("account", "request_id", "model", "queue", "cold_start", "node")
NEEDED = ("account", "request_id", "model", "received_at")
DEFAULTS = {"queue": "'standard'", "status": "200", "async_header": "false", "cached_input_tokens": "0", "revision": "1"}
DURATIONS = ("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
LONGEST_US = 30 * 86_400_000_000
LARGEST_TOKENS = 10**12

# What must hold of a column or two; null where there are no rows.
RULES = {
    **{f"{name} is there": f"count({name}) = count(*)" for name in NEEDED},
    **{f"{name} is from 0 to 30 days": f"min({name}) >= 0 AND max({name}) <= {LONGEST_US}" for name in DURATIONS},
    **{f"{name} is from 0 to 10^12": f"min({name}) >= 0 AND max({name}) <= {LARGEST_TOKENS}" for name in TOKENS},
    "cached_input_tokens is a part of input_tokens": "bool_and(cached_input_tokens <= coalesce(input_tokens, 0))",
    "a success has tokens": "bool_and(status NOT BETWEEN 200 AND 299 OR (input_tokens IS NOT NULL AND output_tokens IS NOT NULL))",
    # Asked only where there is one: to put millions of nulls in lower case takes longer than all other rules.
    "cold_start is an id or 'true'": "bool_and(CASE WHEN cold_start IS NOT NULL "
    "THEN cold_start = 'true' OR lower(cold_start) NOT IN ('', 'false', 'true') END)",
}
WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
PATTERN = re.compile(r"[*?\[]")
OURS = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)  # a query of ours is wrong, no file
CURE = "archives hold events as they are stored; load telemetry with: ledger ingest"


def archived_events(connection: duckdb.DuckDBPyConnection, path: Path) -> exp.Select:
    """The events of a Parquet file, or of all Parquet files below a folder. Raises LedgerError if they are not an archive."""
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".parquet") if path.is_dir() else [path]
    if not files:
        raise LedgerError(f"{path}: no Parquet file", cure=CURE)
    with readable(path):
        # Each file by itself: read together, a naive instant beside one with an offset would silently become one of some zone.
        for file in files:
            _check_columns(file, _read(connection, [file]))
        archive = _read(connection, files)
        archive.project(", ".join(_column(name, name in archive.columns) for name in EVENT_COLUMNS)).create_view("archived_event")
        # One by one: what is asked alone of a column is mostly answered from what the file says of its parts.
        kept = {rule: connection.view("archived_event").aggregate(holds).fetchone() for rule, holds in RULES.items()}
    broken = [rule for rule, answer in kept.items() if answer == (False,)]
    if broken:
        raise LedgerError(
            f"{path}: not every row keeps the rules of events: {', '.join(broken)}", cure="look for such rows where the archive was written"
        )
    return all_of("archived_event")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What DuckDB finds wrong with the files, whenever it reads them, is said of the path."""
    try:
        yield
    except OURS:
        raise
    except duckdb.Error as error:
        raise LedgerError(f"{path} cannot be read: {' '.join(str(error).split())}", cure=CURE) from error


def _read(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> duckdb.DuckDBPyRelation:
    # A name is no pattern, and a folder called like a column gives no values.
    names = [PATTERN.sub(r"[\g<0>]", str(file)) for file in files]
    return connection.read_parquet(names, union_by_name=True, hive_partitioning=False)


def _check_columns(file: Path, archive: duckdb.DuckDBPyRelation) -> None:
    found = {name: str(kind) for name, kind in zip(archive.columns, archive.types, strict=True)}
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise LedgerError(f"{file}: no column {', '.join(missing)}", cure=CURE)
    unknown = [name for name in found if name not in EVENT_COLUMNS]
    if unknown:  # such as e2e_ms: a latency that is not read would be one that was not measured
        raise LedgerError(f"{file}: no column of an archive: {', '.join(unknown)}", cure=f"its columns are {', '.join(EVENT_COLUMNS)}")
    for name in EVENT_COLUMNS:
        if name in found and found[name] not in _kinds(name):
            raise LedgerError(f"{file}: {name} is {found[name]}, expected {' or '.join(_kinds(name))}", cure=CURE)


def _kinds(name: str) -> tuple[str, ...]:
    match name:
        case "received_at":
            return ("TIMESTAMP WITH TIME ZONE",)
        case "async_header":
            return ("BOOLEAN",)
        case _ if name in TEXTS:
            return ("VARCHAR",)
        case _:
            return WHOLE_NUMBERS


def _column(name: str, is_there: bool) -> str:
    if name == "received_at":
        return "epoch_us(received_at) AS received_at"
    if not is_there:
        return f"{DEFAULTS.get(name) or ('NULL::VARCHAR' if name in TEXTS else 'NULL::BIGINT')} AS {name}"
    kept = name if name in TEXTS or name == "async_header" else f"{name}::BIGINT"
    return f"coalesce({kept}, {DEFAULTS[name]}) AS {name}" if name in DEFAULTS else f"{kept} AS {name}"
