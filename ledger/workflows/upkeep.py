"""Upkeep: cells follow the events that a load adds, and what a later interval changes is marked stale.

A load computes the cells of a chunk in DuckDB, from the rows that it judged, by the plan that settles; PostgreSQL only takes them in.
Source: architecture, "The one idea"; decision record kept-cells, which has the argument for the locks.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlglot import exp

from ledger.fault_point import fault_point
from ledger.ingest.chunk import Chunk
from ledger.instant import instant_of
from ledger.rating.duckdb import Microseconds, all_of
from ledger.store.cells import (
    DELTA_COLUMNS,
    Basis,
    Spans,
    copy_deltas,
    coverage,
    current_basis,
    fold_cells,
    lock_cells,
    lock_for_deltas,
    mark_breakers,
    mark_model_loads,
)
from ledger.store.connection import Connection
from ledger.store.database import Database

if TYPE_CHECKING:
    from ledger.rating.plan import Plan
    from ledger.store.intervals import Interval

ARRIVED = "arrived"  # the view of a chunk's events

Span = tuple[datetime, datetime]

# The tables that gather a chunk's deltas in DuckDB, instants in microseconds since 1970.
_DELTAS = (
    """CREATE OR REPLACE TEMP TABLE cell_delta (contract_id VARCHAR, version INT, day_start BIGINT, window_start BIGINT, model VARCHAR,
    queue VARCHAR, forfeited BOOLEAN, outcome VARCHAR, exemption SMALLINT, tier SMALLINT, in_objective BOOLEAN, late BOOLEAN, over BOOLEAN,
    requests BIGINT, requests_without_usage BIGINT, tokens_input BIGINT, tokens_cached_input BIGINT, tokens_output BIGINT,
    late_latencies_us BIGINT[])""",
    """CREATE OR REPLACE TEMP TABLE cold_start_event_delta (contract_id VARCHAR, version INT, day_start BIGINT, account VARCHAR,
    request_id VARCHAR, revision SMALLINT)""",
    # Before 1980 an instant is its own quarter, as in the database.
    """CREATE OR REPLACE TEMP TABLE traffic_delta AS SELECT account,
    received_at - CASE WHEN received_at < 315532800000000 THEN 0 ELSE received_at % 900000000 END AS quarter_start, count(*) AS requests
    FROM arrived GROUP BY ALL""",
)
_INSTANTS = ("day_start", "window_start", "quarter_start")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """A plan in DuckDB's words: the statements that add to the deltas."""

    accounts: frozenset[str]
    insertions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """How the events of some accounts in some months are classified, as long as the basis is the same."""

    basis: Basis
    accounts: frozenset[str]
    plans: tuple[_Compiled, ...]


class LoadUpkeep:
    """What the chunks of a command share: rules, compiled once for each span of whole months, and the days that they touched."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: dict[Span, _Rules] = {}
        self._lock = Lock()
        self.days: set[tuple[str, datetime]] = set()

    def of(self, chunk: Chunk) -> "ChunkUpkeep":
        """The upkeep of a chunk."""
        return ChunkUpkeep(shared=self, chunk=chunk)

    def rules(self, months: Span, accounts: Collection[str], connection: Connection | None = None, basis: Basis | None = None) -> _Rules:
        """The rules for these accounts, of this basis if one is given; read over the connection, or one of its own, unless known."""
        with self._lock:
            months = next((span for span in self._rules if span[0] <= months[0] and months[1] <= span[1]), months)
            known = self._rules.get(months)
            if known is not None and known.accounts.issuperset(accounts) and basis in (None, known.basis):
                return known
            wanted = frozenset(accounts) | (frozenset() if known is None else known.accounts)
            if connection is not None:
                found = read_rules(connection, months, wanted)
            else:
                with self._database.begin() as own:
                    found = read_rules(own, months, wanted)
            self._rules[months] = found
            return found

    def finish(self) -> None:
        """Join the deltas of the days that were touched, where that makes them half as many, and rank the cold starts on them: both would
        otherwise be left to the next settlement."""
        if not self.days:
            return
        from ledger.workflows.recompute import rank_where_needed

        with self._database.begin() as connection:
            fold_cells(connection, self.days)
            fault_point("fold.before_commit")
        rank_where_needed(self._database, self.days)
        self.days.clear()


@dataclass(slots=True, kw_only=True)
class ChunkUpkeep:
    """The deltas of one chunk. `done` says which they are: the rules, and the new identities (None: all events)."""

    shared: LoadUpkeep
    chunk: Chunk
    done: tuple[_Rules, Sequence[tuple[str, str]] | None] | None = field(default=None)
    days: list[tuple[str, int]] = field(default_factory=list)
    written: dict[str, Path] = field(default_factory=dict)  # by the table that the rows go to

    def ahead(self) -> None:
        """Compute the deltas of all events of the chunk."""
        if self.chunk.events:
            self._compute(None)

    def follow(self, connection: Connection, new: Sequence[tuple[str, str]] | None) -> None:
        """Add the deltas of these events, or of all, to the database. If rules have changed meanwhile, they are computed again."""
        if self.done is None or self.done[1] != new:
            self._compute(new)
        assert self.done is not None
        fault_point("ingest.before_cells")
        lock_for_deltas(connection)
        basis = current_basis(connection)
        if self.done[0].basis != basis:
            self._compute(new, connection, basis)
        for table, path in self.written.items():
            with path.open("rb") as stream:
                copy_deltas(connection, table, stream)
        self.shared.days.update((contract_id, instant_of(day_start)) for contract_id, day_start in self.days)
        fault_point("ingest.after_cells")

    def _compute(self, new: Sequence[tuple[str, str]] | None, connection: Connection | None = None, basis: Basis | None = None) -> None:
        self.done = None
        memory = self.chunk.connection
        self.chunk.list_events(new)
        for statement in _DELTAS:
            memory.execute(statement)
        accounts = {account for (account,) in memory.execute("SELECT DISTINCT account FROM traffic_delta").fetchall()}
        rules = self.shared.rules(_months_of(self.chunk), accounts, connection, basis)
        for plan in rules.plans:
            if not plan.accounts.isdisjoint(accounts):
                for statement in plan.insertions:
                    memory.execute(statement)
        self.written.clear()
        for table, columns in DELTA_COLUMNS.items():
            if memory.table(f"{table}_delta").limit(1).fetchone() is not None:
                values = ", ".join(f"make_timestamp({name})" if name in _INSTANTS else name for name in columns)
                self.written[table] = self.chunk.write(f"SELECT {values} FROM {table}_delta")  # noqa: S608
        self.days = memory.execute(
            "SELECT contract_id, day_start FROM cell_delta UNION SELECT contract_id, day_start FROM cold_start_event_delta"
        ).fetchall()
        self.done = rules, new


def _months_of(chunk: Chunk) -> Span:
    """The whole months, in UTC, that hold the chunk's events."""
    assert chunk.earliest_us is not None and chunk.latest_us is not None, "there are events"
    first, last = instant_of(chunk.earliest_us), instant_of(chunk.latest_us)
    return datetime(first.year, first.month, 1, tzinfo=UTC), datetime(last.year + last.month // 12, last.month % 12 + 1, 1, tzinfo=UTC)


def read_rules(connection: Connection, months: Span, accounts: frozenset[str]) -> _Rules:
    """The rules that the connection sees."""
    from ledger.workflows.plans import contracts_of, stored_plans, whole_days

    basis = current_basis(connection)
    start, end = months
    covered = [one for one in coverage(connection, accounts) if one.start < end and (one.end is None or one.end > start)]
    contracts = contracts_of(connection, {one.contract_id for one in covered})
    # Not the months themselves: they may lie where a zone has no days.
    spans = {(one.contract_id, max(one.start, start), end if one.end is None else min(one.end, end)) for one in covered}
    touched: Spans = {}
    for contract_id, first, last in sorted(spans):
        touched.setdefault(contract_id, []).append((first, last))
    plans = stored_plans(connection, covered, whole_days(touched, contracts), contracts, all_of(ARRIVED))
    return _Rules(basis=basis, accounts=accounts, plans=tuple(map(_compiled, plans)))


def _compiled(plan: "Plan") -> _Compiled:
    queries = [(plan.summed(), "cell_delta", DELTA_COLUMNS["cell"])]
    cold_starts = plan.cold_starts()
    if cold_starts is not None:
        queries.append((cold_starts, "cold_start_event_delta", DELTA_COLUMNS["cold_start_event"]))
    return _Compiled(
        accounts=frozenset(one.account for one in plan.coverage),
        insertions=tuple(exp.insert(query, table, columns=columns).sql(Microseconds) for query, table, columns in queries),
    )


def mark_intervals(connection: Connection, added: "Sequence[Interval]") -> None:
    """Mark what the intervals, which this transaction has added, change of what is kept: its last act."""
    if not added:
        return
    from ledger.contract.model import CircuitBreaker, ColdStart
    from ledger.store.contracts import stored_versions

    lock_cells(connection)
    in_force = {(one.contract_id, one.version) for one in coverage(connection)}
    contracts = [stored.contract for stored in stored_versions(connection)]
    for kind, exemption, mark in (
        ("circuit_breaker", CircuitBreaker, mark_breakers),
        ("model_load", ColdStart, mark_model_loads),
    ):
        intervals = [one for one in added if one.kind == kind]
        versions = [
            (contract.id, contract.version)
            for contract in contracts
            if (contract.id, contract.version) in in_force and any(isinstance(one, exemption) for one in contract.exemptions)
        ]
        if intervals and versions:
            mark(connection, intervals, versions)
