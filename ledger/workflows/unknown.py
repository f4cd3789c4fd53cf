"""What of a load the contracts do not know: requests of accounts that none covers, and models and queues that theirs does not name.

Looks at each chunk with the contracts that are in force when the load begins, and counts. Nothing is refused for it: the events are
stored, and the settlement says it again. Source: specification, sections 2 ("unassigned") and 4.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.ingest.chunk import Chunk
from ledger.instant import instant_of, since_1970_us
from ledger.store.cells import Covered, coverage
from ledger.store.database import Database


class Unpriced(NamedTuple):
    """A name that a contract version does not have: `what` is model or queue."""

    contract_id: str
    version: int
    what: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Events by account that no contract covers at their receipt (`elsewhen` are those of these accounts that one covers at another time),
    and by name that their contract does not price. Requests that the client
    got wrong (4xx) are left out of the latter: they may ask for what has never existed."""

    unassigned: Counter[str] = field(default_factory=Counter)
    elsewhen: set[str] = field(default_factory=set)
    unpriced: Counter[Unpriced] = field(default_factory=Counter)

    def __add__(self, other: "Unknown") -> "Unknown":
        return Unknown(
            unassigned=self.unassigned + other.unassigned,
            elsewhen=self.elsewhen | other.elsewhen,
            unpriced=self.unpriced + other.unpriced,
        )


@dataclass(slots=True)
class UnknownNames:
    """Finds them in the chunks of a command, one after the other; `found` is since it was last taken."""

    _database: Database
    found: Unknown = field(default_factory=Unknown)
    _covered: dict[str, list[Covered]] = field(default_factory=dict)
    _known: dict[tuple[str, int], dict[str, frozenset[str]]] = field(default_factory=dict)

    def look_at(self, chunk: Chunk) -> None:
        """Count what is unknown in the chunk."""
        accounts = chunk.accounts()
        self._learn(accounts - self._covered.keys())
        spans = {account: self._covered[account] for account in accounts}
        bounds = {since_1970_us(bound) for covered in spans.values() for one in covered for bound in (one.start, one.end) if bound}
        for account, model, queue, wrong, received_us, count in chunk.names_used(bounds):
            received_at = instant_of(received_us)
            one = next((one for one in spans[account] if one.start <= received_at and (one.end is None or received_at < one.end)), None)
            if one is None:
                self.found.unassigned[account] += count
                self.found.elsewhen.update([account] if spans[account] else [])
                continue
            version = (one.contract_id, one.version)
            for what, name in (("model", model), ("queue", queue)):
                if not wrong and name not in self._known[version][what]:
                    self.found.unpriced[Unpriced(*version, what, name)] += count

    def take(self) -> Unknown:
        """What was found since this was last asked."""
        found, self.found = self.found, Unknown()
        return found

    def _learn(self, accounts: frozenset[str]) -> None:
        if not accounts:
            return
        from ledger.store.contracts import stored_versions  # imported late, as all that reads contracts: a load does so on its way

        with self._database.begin() as connection:
            covered = coverage(connection, accounts)
            versions = stored_versions(connection, {one.contract_id for one in covered})
        self._covered |= {account: [] for account in accounts}
        for one in covered:
            self._covered[one.account].append(one)
        for stored in versions:
            contract = stored.contract
            names = {"model": frozenset(contract.served_names()), "queue": frozenset(contract.queues.by_name)}
            self._known[contract.id, contract.version] = names
