"""Statements of contracts: what a snapshot of the database says of them, put together for drafts and for what is issued.

Takes contracts with their periods rated, gives a statement for each that can be settled. Source: specification, sections 4 to 9.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from operator import attrgetter

from ledger.contract.scalar import currency_digits
from ledger.documents.settlement_json import canonical_bytes, statement_to_json
from ledger.rating.rated_period import RatedPeriod
from ledger.settlement.cell import Cell
from ledger.settlement.period import Period
from ledger.settlement.settlement import Surroundings, settle
from ledger.settlement.statement import ChangedAfterwards, Statement, Unrated, Unresolved
from ledger.settlement.windows import BreachedWindow
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion
from ledger.store.settlements import count_changed_afterwards, count_unassigned, count_unresolved
from ledger.workflows.carried import Carried, Settling, carried_into
from ledger.workflows.rate import rate_stored, unrated_cure, unrated_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A contract that was not settled or closed, why, and what to do about it."""

    contract_id: str
    problem: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A contract's statement, and what it was computed from: the digest of its cells, and the starts of its days."""

    statement: Statement
    digest: str
    day_starts: tuple[datetime, ...]

    @property
    def document(self) -> bytes:
        """The JSON of the statement, canonical."""
        return canonical_bytes(statement_to_json(self.statement))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What the database says of periods besides their events: by contract, and by span the events of accounts that no contract covers."""

    unresolved: Mapping[str, Unresolved] = field(default_factory=dict)
    changed_afterwards: Mapping[str, ChangedAfterwards] = field(default_factory=dict)
    unassigned: Mapping[tuple[datetime, datetime], dict[str, int]] = field(default_factory=dict)

    def unassigned_of(self, terms: Period) -> dict[str, int]:
        """The events that no contract covers in the month, by account."""
        return self.unassigned.get((terms.start, terms.end), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of periods, by contract: their cells rated, what is kept besides, and what is carried in. With a `connection`, requests
    can be named."""

    rated: Mapping[str, RatedPeriod]
    noted: Noted = Noted()
    carried: Mapping[str, Carried] = field(default_factory=dict)
    connection: Connection | None = None


def know_stored(connection: Connection, settling: Sequence[Settling], now: datetime) -> Known:
    """What the snapshot of the connection says, in which nothing of the periods and of the contracts' closed months is stale."""
    periods = [terms for _, terms in settling]
    spans = {(terms.start, terms.end) for terms in periods}  # contracts of one zone share theirs
    noted = Noted(
        unresolved=count_unresolved(connection, periods),
        changed_afterwards=count_changed_afterwards(connection, periods),
        unassigned={span: count_unassigned(connection, *span) for span in spans},
    )
    carried = carried_into(connection, settling, now)
    return Known(rated=rate_stored(connection, periods, now), noted=noted, carried=carried, connection=connection)


def state_contracts(
    settling: Sequence[Settling],
    known: Known,
    *,
    state: str,
    is_test: bool,
    on_contract: Callable[[str, int, int], None] = lambda contract_id, position, count: None,
) -> Iterator[Stated | Stopped]:
    """The statement of each, or why it has none: somebody used what a contract does not know. A contract that has ended has one only if
    something is adjusted. `on_contract` is told (contract id, position from 1, how many) before each."""
    for position, (versions, terms) in enumerate(settling, start=1):
        contract_id = terms.last.id
        on_contract(contract_id, position, len(settling))
        rated, carried = known.rated[contract_id], known.carried.get(contract_id, Carried())
        if unrated := [(one, names) for one, names in [(terms, rated.judged.unrated), *carried.unrated] if names]:
            yield _unrated(known.connection, contract_id, unrated)
        elif terms.pieces or carried.adjustments.lines:
            noted = known.noted
            surroundings = Surroundings(
                state=state,
                contract_hashes=_hashes(versions, terms),
                minor_digits=currency_digits(terms.last.money.currency),
                unresolved=replace(noted.unresolved.get(contract_id, Unresolved()), unassigned=sum(noted.unassigned_of(terms).values())),
                changed_afterwards=noted.changed_afterwards.get(contract_id, ChangedAfterwards()),
                adjustments=carried.adjustments,
                carried_in_minor=carried.carried_in_minor,
                is_test=is_test,
            )
            statement = settle(terms, rated.judged.cells, rated.judged.judgement, rated.refunded, rated.percentiles_us, surroundings)
            day_starts = tuple(start for piece in terms.pieces for start in piece.days.starts)
            yield Stated(statement=statement, digest=_digest(rated), day_starts=day_starts)


def _unrated(connection: Connection | None, contract_id: str, unrated: Sequence[tuple[Period, Sequence[Unrated]]]) -> Stopped:
    problem = "; ".join(unrated_words(connection, terms, names) for terms, names in unrated)
    cure = unrated_cure([name for _, names in unrated for name in names])
    return Stopped(contract_id=contract_id, problem=problem, cure=cure)


def _digest(rated: RatedPeriod) -> str:
    """SHA-256 of all that follows from events. Events that differ without changing any of it give the same digest."""
    judgement = rated.judged.judgement
    sums, windows = attrgetter(*Cell.__slots__), attrgetter(*BreachedWindow.__slots__)
    cells = [sorted([str(value) for value in sums(cell)] for cell in group) for group in (rated.judged.cells, rated.refunded)]
    breaches = [[*map(str, windows(window)), str(rated.percentiles_us[window])] for window in judgement.breaches]
    return sha256(json.dumps([*cells, str(judgement.counts), breaches]).encode()).hexdigest()


def _hashes(versions: Sequence[StoredVersion], terms: Period) -> dict[int, str]:
    """The content hash of each version in force in the period."""
    hashes = {stored.contract.version: stored.content_sha256 for stored in versions}
    return {piece.contract.version: hashes[piece.contract.version] for piece in terms.pieces}
