"""Loads a file into the store, chunk by chunk: each chunk is one batch, and one transaction.

A chunk goes straight into the events; if one of them exists, it goes through staging instead, and so does the rest of the file. While one
chunk is stored the next is judged. A rerun after a crash continues behind the committed chunks; a rerun of a complete file adds nothing.
Source: specification, section 2; architecture, "The one idea".
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

import psycopg

from ledger.errors import LedgerError
from ledger.fault_point import fault_point
from ledger.ingest.chunk import Chunk, Cut, Judge
from ledger.ingest.event_rules import Reason
from ledger.ingest.given import Asked
from ledger.ingest.implausible import Implausible
from ledger.ingest.known_content import committed_chunks
from ledger.ingest.mapping import Role
from ledger.ingest.reading.record_file import RecordFile
from ledger.instant import since_1970_us
from ledger.store.connection import Connection, execute
from ledger.store.database import Database
from ledger.store.events import (
    Batch,
    IdentityTaken,
    Inserted,
    add_batch,
    copy_events,
    insert_staged,
    is_stored,
    lock_content,
    next_batch_id,
    stage_events,
    staged_conflicts,
    unstage_duplicates,
)
from ledger.store.forming import form_requests, mark_formed
from ledger.store.observations import add_observations, fates_of_observations, stage_observations
from ledger.store.pairing import lock_joins, pair_observations
from ledger.store.quarantine import add_refused, count_added
from ledger.store.revivals import change_revived, revive_staged, withdrawn_staged
from ledger.store.withdrawals import lock_all_requests

CHUNK_ROWS = 100_000  # LEDGER_CHUNK_ROWS sets another number
MOST_CHUNK_ROWS = 10**9
SWITCH_SECONDS = 0.0005  # so that the thread that feeds the server does not wait for those that compute
ATTEMPTS = 5  # of a chunk that meets other loads of the same events


@dataclass(slots=True, kw_only=True)
class Summary:
    """What became of the rows that were read: read = new + duplicate + conflict + refused + skipped + merged.

    `skipped` are no requests, by the mapping's names for them. `merged` became part of a request that has another row, or wait for one.
    `joined` are requests, not rows: they have the figures of their engines now, and had none before. Instants are those of stored rows.
    `kept` counts the refused and the conflicting ones that quarantine did not have yet: rows of which the same is kept stand there once.
    `filled` are the rows that took what the command line gives to those that have none, none of them included. `revived` of the new ones
    are requests that were withdrawn and count again; `withdrawn` are rows of requests that stay so, by the reason why.
    """

    read: int = 0
    new: int = 0
    duplicate: int = 0
    conflict: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    merged: int = 0
    clamped: int = 0
    joined: int = 0
    kept: int = 0
    filled: dict[Asked, int] = field(default_factory=dict)
    earliest_us: int | None = None
    latest_us: int | None = None
    implausible: Implausible | None = None
    revived: int = 0
    withdrawn: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Summary") -> None:
        """Count the other one in."""
        self.read += other.read
        self.new += other.new
        self.duplicate += other.duplicate
        self.conflict += other.conflict
        self.refused += other.refused
        self.skipped += other.skipped
        self.merged += other.merged
        self.clamped += other.clamped
        self.joined += other.joined
        self.kept += other.kept
        self.filled |= {asked: self.filled.get(asked, 0) + count for asked, count in other.filled.items()}
        self.earliest_us = min((at for at in (self.earliest_us, other.earliest_us) if at is not None), default=None)
        self.latest_us = max((at for at in (self.latest_us, other.latest_us) if at is not None), default=None)
        self.implausible = self.implausible.with_later(other.implausible) if self.implausible else other.implausible
        self.revived += other.revived
        self.withdrawn += other.withdrawn

    def check(self) -> None:
        """Assert that it adds up."""
        counted = self.new + self.duplicate + self.conflict + self.refused.total() + self.skipped.total() + self.merged
        assert self.read == counted, self


class ChunkUpkeep(Protocol):
    """Keeps what is computed from events equal to them when those of one chunk are added."""

    def ahead(self) -> None:
        """Compute what follows if every event of the chunk is new; before the chunk is stored, in a thread beside the loader's."""
        ...

    def follow(self, connection: Connection, new: Sequence[tuple[str, str]] | None) -> None:
        """Add what follows from the events of these identities (account, request_id), of all if None. Last in the chunk's transaction;
        again if the transaction is."""
        ...


def load_file(
    database: Database, records: RecordFile, *, author: str, upkeep: Callable[[Chunk], ChunkUpkeep],
    on_chunk: Callable[[Chunk], None] | None = None, on_progress: Callable[[int], None] | None = None, again: bool = False,
    revive: str | None = None, chunk_rows: int | None = None, prepare: Callable[[], None] = lambda: None,
) -> Summary:  # fmt: skip
    """Load every record of the file, and let what is computed from events follow: `upkeep` is asked for each chunk.

    `prepare` is called while the first chunk is judged; `on_chunk` sees each one while it is stored, in a thread beside; `on_progress`
    hears of rows stored; `again` allows content that was loaded in another way; requests that were withdrawn for the reason `revive` count
    again, as the file says them. Raises LedgerError if that is asked of halves of requests.
    """
    if revive is not None and records.mapping.observations:
        raise LedgerError(
            f"{records.name}: the rows of {records.mapping.name} are halves of requests, and --revive brings back whole ones",
            cure="ledger correct ID --revive --set ... does it for one request",
        )
    chunk_rows = chunk_rows or _chunk_rows()
    with database.begin() as connection:
        committed = committed_chunks(connection, records, chunk_rows=chunk_rows, again=again)
    if len(committed) == -(-records.records // chunk_rows):
        committed = {}  # complete: everything is looked at again
    loader = _Loader(database=database, records=records, author=author, chunk_rows=chunk_rows, again=again, revive=revive)
    loader.through_staging = True if revive is not None else None
    summary, judge = Summary(), Judge(records, now_us=since_1970_us(database.now()))

    def cut_next(number: int) -> Cut:
        first = number * chunk_rows
        return judge.cut(number=number, first=first, last=min(first + chunk_rows, records.records))

    def judge_next(cut: Cut) -> tuple[Chunk, ChunkUpkeep]:
        chunk = judge.chunk(cut)
        if chunk.number not in committed:
            loader.write_ahead(chunk)
        return chunk, upkeep(chunk)

    def compute(chunk: Chunk, kept: ChunkUpkeep) -> None:
        if on_chunk:
            on_chunk(chunk)
        if chunk.number not in committed and not records.mapping.observations and not loader.through_staging:
            kept.ahead()

    with closing(_ahead(cut_next, judge_next, compute, -(-records.records // chunk_rows), prepare)) as chunks:
        for (chunk, kept), computed in chunks:
            with closing(chunk):
                try:
                    before = committed.get(chunk.number)
                    summary.add(loader.as_committed(chunk, before) if before else loader.store(chunk, kept, computed))
                finally:
                    wait([computed])
                computed.result()
            if on_progress:
                on_progress(chunk.read)
    summary.check()
    return summary


def _chunk_rows() -> int:
    written = os.environ.get("LEDGER_CHUNK_ROWS") or str(CHUNK_ROWS)
    if not (written.isascii() and written.isdecimal() and 0 < int(written) <= MOST_CHUNK_ROWS):
        raise LedgerError(
            f"LEDGER_CHUNK_ROWS is {written!r}", cure=f"write a whole number from 1 to {MOST_CHUNK_ROWS}, or unset it", exit_code=2
        )
    return int(written)


def _ahead(
    cut_next: Callable[[int], Cut], judge_next: Callable[[Cut], tuple[Chunk, ChunkUpkeep]], compute: Callable[[Chunk, ChunkUpkeep], None],
    chunks: int, prepare: Callable[[], None],
) -> Generator[tuple[tuple[Chunk, ChunkUpkeep], "Future[None]"], None, None]:  # fmt: skip
    """What becomes of each chunk, in order, while it is computed what follows from it; the next one is under way while the caller has the
    one before, and the one behind it is cut out."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with ThreadPoolExecutor(max_workers=1) as executor, ThreadPoolExecutor(max_workers=1) as cutter:
        cuts: list[Future[Cut]] = []

        def begin(number: int) -> "tuple[Future[tuple[Chunk, ChunkUpkeep]], Future[None]]":
            cuts.extend(cutter.submit(cut_next, ahead) for ahead in range(number + len(cuts), min(number + 2, chunks)))
            cut = cuts.pop(0)
            judged = executor.submit(lambda: judge_next(cut.result()))
            return judged, executor.submit(lambda: compute(*judged.result()))

        ahead = begin(0) if chunks else None
        try:
            prepare()
            for number in range(1, chunks + 1):
                assert ahead is not None
                judged, computed = ahead
                ahead = begin(number) if number < chunks else None
                yield judged.result(), computed
        finally:  # if a chunk could not be stored, nobody waits for the next
            executor.shutdown(cancel_futures=True)


@dataclass(slots=True, kw_only=True)
class _Loader:
    """Stores the chunks of one file."""

    database: Database
    records: RecordFile
    author: str
    chunk_rows: int
    again: bool
    revive: str | None
    has_stored: bool = False  # a chunk of this load is committed
    through_staging: bool | None = None  # not known before the first chunk
    batch_ids: dict[int, int] = field(default_factory=dict)  # of chunks whose events are written already

    def write_ahead(self, chunk: Chunk) -> None:
        """Write the events of the chunk, or its observations, as the store will take them; in a thread beside its own."""
        if self.records.mapping.observations:
            chunk.write_observations(self.records.mapping.observations.role)
            return
        batch_id = None
        with self.database.begin() as connection:
            if self.through_staging is None:  # if the first event is known, the file has probably come before, in another order
                identity = chunk.first_identity()
                self.through_staging = identity is not None and is_stored(connection, *identity)
            if not self.through_staging:
                batch_id = self.batch_ids[chunk.number] = next_batch_id(connection)
        chunk.write_events(batch_id=batch_id)

    def as_committed(self, chunk: Chunk, batch: Batch) -> Summary:
        """What the chunk's batch recorded; the reasons and the span are judged anew. Rows that were in the future then may be past now, and
        observations without tokens had them from their engine."""
        refused = chunk.refused.copy()
        with self.database.begin() as connection:
            added = count_added(connection, batch.batch_id)
        more = batch.refused - refused.total()
        refused[Reason.FUTURE if more > 0 else Reason.USAGE_MISSING] += more
        return Summary(
            read=batch.read, new=batch.new, duplicate=batch.duplicate, conflict=batch.conflict, refused=+refused,
            skipped=chunk.skipped.copy(), merged=batch.merged, clamped=batch.clamped, joined=batch.requests_joined, kept=added,
            filled=chunk.filled, earliest_us=chunk.earliest_us, latest_us=chunk.latest_us, implausible=chunk.implausible,
        )  # fmt: skip

    def store(self, chunk: Chunk, upkeep: ChunkUpkeep, computed: "Future[None]") -> Summary:
        """Store the chunk in one transaction; a second attempt goes through staging. Until it is `computed` what follows from the chunk,
        only what was written ahead can be used."""
        for attempt in range(ATTEMPTS):
            try:
                with self.database.begin() as connection:
                    fault_point("ingest.before_copy")
                    if chunk.last < self.records.records:  # the commit of the file's last chunk puts all before it on disk
                        execute(connection, "SET LOCAL synchronous_commit = off")
                    if not self.has_stored:
                        lock_content(connection, self.records.sha256)
                        committed_chunks(connection, self.records, chunk_rows=self.chunk_rows, again=self.again)
                    summary = self._store(connection, chunk, upkeep, computed)
                    self.records.check_unchanged()
                    fault_point("ingest.before_commit")
                self.has_stored = True
                fault_point("ingest.after_commit")
                return summary
            except IdentityTaken:
                self.through_staging = True
            except psycopg.OperationalError as error:
                if not isinstance(error, psycopg.errors.DeadlockDetected) or attempt == ATTEMPTS - 1:
                    raise LedgerError(
                        f"the database failed while {self.records.name} was loaded: {str(error).splitlines()[0]}",
                        cure="run the command again; what was committed stays, the rest is loaded then", exit_code=4,
                    ) from error  # fmt: skip
        raise LedgerError(f"{self.records.name}: other loads of the same events are in the way", cure="run the command again", exit_code=4)

    def _store(self, connection: Connection, chunk: Chunk, upkeep: ChunkUpkeep, computed: "Future[None]") -> Summary:
        batch_id = self.batch_ids.pop(chunk.number, None) or next_batch_id(connection)
        if self.records.mapping.observations:
            computed.result()
            return self._store_observations(connection, chunk, batch_id, self.records.mapping.observations.role)
        inserted: Inserted | None = None
        conflicts: list[tuple[int, str]] = []
        revived, withdrawn = 0, Counter[str]()
        if self.through_staging:
            computed.result()
            if self.revive is not None:
                lock_all_requests(connection)
            with chunk.event_stream(batch_id=None) as stream:
                stage_events(connection, stream)
            fault_point("ingest.after_copy")
            if self.revive is not None:
                revived = revive_staged(connection, batch_id, self.revive)
            withdrawn.update(withdrawn_staged(connection))
            duplicates = unstage_duplicates(connection)
            inserted = insert_staged(connection, batch_id)
            new = inserted.count + revived
            if new + duplicates < chunk.events:
                conflicts = staged_conflicts(connection)
        else:
            if batch_id not in chunk.written:
                computed.result()
            with chunk.event_stream(batch_id=batch_id) as stream:
                new = copy_events(connection, stream)
            computed.result()
            fault_point("ingest.after_copy")
        summary = Summary(
            read=chunk.read, new=new, duplicate=chunk.events - new - len(conflicts), conflict=len(conflicts), refused=chunk.refused.copy(),
            skipped=chunk.skipped.copy(), clamped=chunk.clamped, filled=chunk.filled, earliest_us=chunk.earliest_us,
            latest_us=chunk.latest_us, implausible=chunk.implausible, revived=revived, withdrawn=withdrawn,
        )  # fmt: skip
        self._store_counts(connection, chunk, batch_id, summary)
        if chunk.refused or conflicts:
            with chunk.refused_stream(conflicts) as stream:
                told, summary.kept = add_refused(connection, stream, batch_id)
            assert told == chunk.refused.total() + len(conflicts), (told, chunk.refused, len(conflicts))
        if revived:
            change_revived(connection)
        if new > revived:
            some = inserted.events() if inserted is not None and inserted.count < chunk.events else None
            upkeep.follow(connection, None if some is None else [(account, request_id) for account, request_id, _ in some])
        return summary

    def _store_observations(self, connection: Connection, chunk: Chunk, batch_id: int, role: Role) -> Summary:
        """Store rows that are observations, and what they make."""
        with chunk.observation_stream(role) as stream:
            stage_observations(connection, stream)
        fault_point("ingest.after_copy")
        add_observations(connection, batch_id)
        lock_joins(connection)
        pair_observations(connection)
        fault_point("ingest.after_pairs")
        joined = form_requests(connection, batch_id, author=self.author, at=self.database.now())
        fates = fates_of_observations(connection)
        refused = chunk.refused.copy()
        refused[Reason.USAGE_MISSING] = len(fates.waiting)
        summary = Summary(
            read=chunk.read, new=fates.new, duplicate=fates.duplicate, conflict=len(fates.conflicts), refused=+refused,
            skipped=chunk.skipped.copy(), merged=fates.merged, clamped=chunk.clamped, joined=joined,
            filled=chunk.filled, earliest_us=chunk.earliest_us, latest_us=chunk.latest_us, implausible=chunk.implausible,
        )  # fmt: skip
        self._store_counts(connection, chunk, batch_id, summary)
        if refused or fates.conflicts:
            with chunk.refused_stream(fates.conflicts, waiting=fates.waiting, role=role) as stream:
                told, summary.kept = add_refused(connection, stream, batch_id)
            assert told == refused.total() + len(fates.conflicts), (told, refused, len(fates.conflicts))
        mark_formed(connection)
        return summary

    def _store_counts(self, connection: Connection, chunk: Chunk, batch_id: int, summary: Summary) -> None:
        summary.check()
        add_batch(
            connection,
            Batch(
                batch_id=batch_id, source=self.records.name, content_sha256=self.records.sha256, mapping=self.records.mapping.name,
                mapping_sha256=self.records.mapping.sha256, chunk=chunk.number, chunk_rows=self.chunk_rows, read=summary.read,
                new=summary.new, duplicate=summary.duplicate, conflict=summary.conflict, refused=summary.refused.total(),
                skipped=summary.skipped.total(), merged=summary.merged, clamped=summary.clamped, requests_joined=summary.joined,
                loaded_at=self.database.now(), author=self.author, given=dict(self.records.mapping.given.texts()),
            ),
        )  # fmt: skip
        fault_point("ingest.after_batch")
