"""Requeue: send refused rows in again, through the same rules, as they are or with some columns set.

Rows are worked on in pieces, each a transaction of its own: there may be a million of them. Source: specification, section 2.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import psycopg

from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.ingest.chunk import Chunk
from ledger.ingest.event_rules import Reason
from ledger.ingest.mapping import Role
from ledger.ingest.resubmission import check_values
from ledger.store.cells import change_events
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.events import (
    Batch,
    IdentityTaken,
    add_batch,
    insert_resubmitted,
    next_batch_id,
    stage_events,
    staged_conflicts,
    staged_records,
    unstage,
    unstage_records,
)
from ledger.store.forming import changed_events, form_requests
from ledger.store.kept_apart import KeptApart, apart_of_arrived
from ledger.store.observations import (
    add_observations,
    each_fate,
    fates_of_observations,
    repair_waiting,
    stage_observations,
    unstage_observations,
    waiting_observations,
)
from ledger.store.pairing import lock_joins, pair_observations
from ledger.store.quarantine import START, Place, RefusedRow, RowFilter, last_refused_id, piece_end, piece_of_refused, resolve
from ledger.store.resubmissions import Resubmission, add_resubmissions
from ledger.store.withdrawals import lock_all_requests
from ledger.workflows.quarantine import check_ids
from ledger.workflows.reread import AlikeRows, Mappings, Values, alike
from ledger.workflows.unknown import UnknownNames

ACCEPTED, DUPLICATE, SKIPPED, RESOLVED, UNCHANGED = "accepted", "duplicate", "skipped", "resolved", "unchanged"
ATTEMPTS = 5  # of a piece that meets other loads of the same events

NEW, MERGED, WAITING = "new", "merged", "waiting"  # what the store calls them
_STAYS_AS_IT_IS = str(Reason.CONFLICT), "a half that waits for its tokens stays the half that it is: leave its account, ids and role"

Outcome: TypeAlias = tuple[str, str]  # of a row, and the detail
Change: TypeAlias = tuple[str, datetime, int]  # account, instant and number of events, as `cells.change_events` takes them
# By record, what changed, how many requests became whole, and by record what stays apart.
Stored: TypeAlias = tuple[dict[int, Outcome], list[Change], int, dict[int, KeptApart]]
Sent: TypeAlias = tuple[list[Resubmission], list[Change], dict[int, KeptApart]]  # the last by the id of the row
ValuesOf: TypeAlias = Callable[[list[RefusedRow]], Mapping[int, Values]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """What became of a row that was sent in again: `accepted`, `duplicate` (it is stored by now), `skipped` (by the mapping given it is no
    request, but what `detail` says), `resolved` (somebody was faster), `unchanged` (it was not sent in), or the reason and the detail why
    it was refused again. `apart`: its other half is there, and they are not joined."""

    quarantine_id: int
    outcome: str
    detail: str = ""
    apart: KeptApart | None = None

    @property
    def refused(self) -> bool:
        """Whether it still waits for somebody."""
        return self.outcome not in (ACCEPTED, DUPLICATE, SKIPPED, RESOLVED, UNCHANGED)


def requeue_rows(
    database: Database,
    wanted: RowFilter,
    *,
    reason: str,
    author: str,
    names: UnknownNames,
    mappings: Sequence[Path] = (),
    values: Values | None = None,
    dry_run: bool = False,
) -> Iterator[Requeued]:
    """Send the rows that wait in again, piece by piece, and tell of each. `values` are canonical columns that replace what is read of them;
    `names` learns what the contracts do not know of the events.

    Each row is read by the mapping under which it came in, or by one of the given ones (`Mappings`). What is accepted, or a duplicate by
    now, is marked requeued; what is refused again stays. A dry run tells the same and undoes it. Raises LedgerError, before anything is
    done, if an id is none or a mapping is not at hand.
    """
    check_values(values or {})
    with database.begin() as connection:
        check_ids(connection, wanted.ids or ())
        known = Mappings.for_rows(connection, wanted, mappings)
        last = last_refused_id(connection)
    same = dict(values or {})
    requeue = Requeue(database=database, mappings=known, author=author, reason=reason, last_id=last, names=names)
    told = set()
    for one in requeue.each(wanted, lambda rows: {row.quarantine_id: same for row in rows}, dry_run=dry_run):
        if wanted.ids is not None:
            told.add(one.quarantine_id)
        yield one
    yield from (Requeued(quarantine_id=one, outcome=RESOLVED) for one in sorted(set(wanted.ids or ()) - told))


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Sends rows in again: those with ids up to `last_id`, which is asked at the start."""

    database: Database
    mappings: Mappings
    author: str
    reason: str
    last_id: int
    names: UnknownNames

    def each(self, wanted: RowFilter, values_of: ValuesOf, *, dry_run: bool) -> Iterator[Requeued]:
        """What becomes of each of the rows, by load and line. `values_of` says what is set of the rows of a piece, by id; those that
        it leaves out stay as they are."""
        if dry_run:
            yield from self._tried(wanted, values_of)
            return
        after = START
        while True:
            with self.database.begin() as connection:
                end = piece_end(connection, wanted, after=after, last_id=self.last_id)
            if end is None:
                return
            yield from self._committed(wanted, values_of, after, end)
            after = end

    def _tried(self, wanted: RowFilter, values_of: ValuesOf) -> list[Requeued]:
        """What would become of the rows: in one transaction, so that a later row meets the earlier ones. It is over before anybody looks
        at the result, since loads of the same requests wait for it."""
        done: list[Requeued] = []
        with self.database.begin() as connection:
            after = START
            try:
                while (end := piece_end(connection, wanted, after=after, last_id=self.last_id)) is not None:
                    done += self._piece(connection, wanted, values_of, after, end, dry_run=True)
                    after = end
            except (IdentityTaken, psycopg.OperationalError) as error:
                if not _lost_a_race(error):
                    raise
                raise _in_the_way() from error
            connection.rollback()
        return done

    def _committed(self, wanted: RowFilter, values_of: ValuesOf, after: Place, end: Place) -> list[Requeued]:
        known = self.names.take()
        for _ in range(ATTEMPTS):
            try:
                with self.database.begin() as connection:
                    done = self._piece(connection, wanted, values_of, after, end, dry_run=False)
                    fault_point("requeue.before_commit")
                fault_point("requeue.after_commit")
                self.names.found += known
                return done
            except (IdentityTaken, psycopg.OperationalError) as error:
                if not _lost_a_race(error):
                    raise
                self.names.take()  # the next attempt finds it again
        raise _in_the_way()

    def _piece(
        self, connection: Connection, wanted: RowFilter, values_of: ValuesOf, after: Place, end: Place, *, dry_run: bool
    ) -> list[Requeued]:
        if self.mappings.of_observations:
            # First: a load that joins observations has both when it resolves their rows.
            lock_joins(connection)
            lock_all_requests(connection)
        rows = piece_of_refused(connection, wanted, after=after, end=end, last_id=self.last_id, lock=not dry_run)
        values = values_of(rows)
        sent = [row for row in rows if row.quarantine_id in values and (row.fields or values[row.quarantine_id])]
        done: list[Resubmission] = []
        changes: list[Change] = []
        apart: dict[int, KeptApart] = {}
        groups = alike([(row, values[row.quarantine_id]) for row in sent], self.mappings)
        fault_point("requeue.before_store")
        # Engines first: a gateway's row without tokens may wait for one of them.
        for group in sorted(groups, key=lambda group: group.role is not Role.ENGINE):
            done_with, changed, kept = self._send(connection, group)
            done += done_with
            changes += changed
            apart |= kept
        told = {
            one.quarantine_id: Requeued(
                quarantine_id=one.quarantine_id, outcome=one.outcome, detail=one.detail, apart=apart.get(one.quarantine_id)
            )
            for one in done
        }  # fmt: skip
        accepted = [one.quarantine_id for one in told.values() if not one.refused]
        if not dry_run:
            at = self.database.now()
            fault_point("requeue.before_resolve")
            resolve(connection, RowFilter(ids=accepted), resolution="requeued", reason=self.reason, author=self.author, at=at)
            add_resubmissions(connection, done)
            change_events(connection, changes)
        return [told.get(row.quarantine_id) or _not_sent(row, row.quarantine_id in values) for row in rows]

    def _send(self, connection: Connection, group: AlikeRows) -> Sent:
        """Judge the rows and store what they are, as one batch; gives what became of each, which events changed, and what stays apart."""
        batch_id, now = next_batch_id(connection), self.database.now()
        with group.judged(now) as chunk:
            outcomes = {record: (str(reason), detail) for record, (reason, detail) in chunk.refused_records().items()}
            outcomes |= {record: (SKIPPED, kind) for record, kind in chunk.skipped_records().items()}
            clamped, identities = len(chunk.clamped_records()), chunk.identities(group.role)
            self.names.look_at(chunk)
            store = self._store_events if group.role is None else self._store_observations
            stored, changes, joined, apart = store(connection, group, chunk, batch_id)
            outcomes |= stored
        told = [outcomes[record] for record in group.records]
        is_stored = {record for record, (outcome, _) in outcomes.items() if outcome in (NEW, MERGED, DUPLICATE)}
        became = [identities[record] if record in is_stored else (None, None) for record in group.records]
        done = [
            Resubmission(
                quarantine_id=row.quarantine_id, batch_id=batch_id, values_set=dict(values),
                outcome=ACCEPTED if outcome in (NEW, MERGED) else outcome, detail=detail, reason=self.reason, mapping=group.mapping.name,
                author=self.author, at=now, account=account, request_id=request_id,
            )
            for row, values, (outcome, detail), (account, request_id) in zip(group.rows, group.values, told, became, strict=True)
        ]  # fmt: skip
        counts = Counter(outcome for outcome, _ in told)
        known = {name: counts.pop(name, 0) for name in (NEW, DUPLICATE, str(Reason.CONFLICT), SKIPPED, MERGED)}
        content = json.dumps([[one.quarantine_id, one.values_set] for one in done], sort_keys=True)
        add_batch(
            connection,
            Batch(
                batch_id=batch_id, source=group.rows[0].source, content_sha256=hashlib.sha256(content.encode()).hexdigest(),
                mapping=group.mapping.name, mapping_sha256=group.mapping.sha256, chunk=0, chunk_rows=len(told), read=len(told), **known,
                refused=counts.total(), clamped=clamped, requests_joined=joined, loaded_at=now, author=self.author,
                given=dict(group.mapping.given.texts()),
            ),
        )  # fmt: skip
        ids = {record: row.quarantine_id for record, row in zip(group.records, group.rows, strict=True)}
        return done, changes, {ids[record]: kept for record, kept in apart.items() if record in ids}

    def _store_events(self, connection: Connection, group: AlikeRows, chunk: Chunk, batch_id: int) -> Stored:
        """Store the rows as whole requests; gives what became of each that is good, by its record, and which events changed."""
        with chunk.event_stream(batch_id=None) as stream:
            stage_events(connection, stream)
        outcomes = dict.fromkeys(staged_records(connection), (DUPLICATE, ""))
        for record in waiting_observations(connection, group.hashes).keys() & outcomes.keys():
            outcomes[record] = _STAYS_AS_IT_IS
        unstage_records(connection, [record for record, outcome in outcomes.items() if outcome == _STAYS_AS_IT_IS])
        inserted = insert_resubmitted(connection, batch_id)
        outcomes |= {record: (NEW, "") for record, _, _ in inserted}
        outcomes |= {record: (str(Reason.CONFLICT), detail) for record, detail in staged_conflicts(connection)}
        unstage(connection)
        return outcomes, [(account, received_at, 1) for _, account, received_at in inserted], 0, {}

    def _store_observations(self, connection: Connection, group: AlikeRows, chunk: Chunk, batch_id: int) -> Stored:
        """The same of observations, as the loader stores them; those that have waited for tokens take what was set."""
        assert group.role is not None
        with chunk.observation_stream(group.role) as stream:
            stage_observations(connection, stream)
        outcomes = dict.fromkeys(repair_waiting(connection, batch_id, group.hashes), _STAYS_AS_IT_IS)
        add_observations(connection, batch_id)
        pair_observations(connection)
        joined = form_requests(connection, batch_id, author=self.author, at=self.database.now())
        conflicts = dict(fates_of_observations(connection).conflicts)
        # Those that still wait are refused as they were judged.
        outcomes |= {record: (fate, conflicts.get(record, "")) for record, fate in each_fate(connection).items() if fate != WAITING}
        changes, apart = changed_events(connection), apart_of_arrived(connection)
        unstage_observations(connection)
        return outcomes, changes, joined, apart


def _lost_a_race(error: Exception) -> bool:
    """Whether another load of the same rows was faster, so that a second attempt finds them."""
    return isinstance(error, IdentityTaken | psycopg.errors.DeadlockDetected)


def _in_the_way() -> LedgerError:
    return LedgerError("other loads of the same events are in the way", cure="run the command again; what is done stays", exit_code=4)


def _not_sent(row: RefusedRow, chosen: bool) -> Requeued:
    if not chosen:
        return Requeued(quarantine_id=row.quarantine_id, outcome=UNCHANGED)
    return Requeued(quarantine_id=row.quarantine_id, outcome=row.reason, detail="nothing of the line could be kept: set its columns")
