"""Quarantine: list the refused rows, dismiss one, or send some in again through the same rules.

Source: specification, section 2.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from ledger.errors import LedgerError
from ledger.ingest.event_rules import Reason
from ledger.ingest.given import Given
from ledger.ingest.mapping import Mapping, built_in_mappings, read_mapping
from ledger.ingest.resubmission import judged_rows, mapping_of, record_number
from ledger.store.cells import change_events
from ledger.store.database import Database
from ledger.store.events import Batch, IdentityTaken, add_batch, insert_staged, next_batch_id, stage_events, staged_conflicts, unstage
from ledger.store.quarantine import RefusedRow, add_refused, refused_rows, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """What became of a row that was sent in again: accepted, or the reason and the detail why not."""

    quarantine_id: int
    accepted: bool
    reason: Reason | None = None
    detail: str = ""


def list_quarantine(database: Database, *, reason: str | None = None, resolved: bool = False) -> list[RefusedRow]:
    """The rows that wait for somebody, or all of them."""
    with database.engine.connect() as connection:
        return refused_rows(connection, reason=reason, resolved=resolved)


def dismiss_row(database: Database, quarantine_id: int, *, reason: str, author: str) -> bool:
    """Mark the row dismissed; False if it was resolved before. Raises LedgerError if there is none."""
    with database.engine.begin() as connection:
        if not refused_rows(connection, ids=[quarantine_id], resolved=True):
            raise LedgerError(f"there is no row {quarantine_id} in quarantine", cure="ledger quarantine list shows their ids")
        return resolve(connection, quarantine_id, resolution="dismissed", reason=reason, author=author, at=database.now())


def requeue_rows(database: Database, ids: Sequence[int], *, mapping: Path | None, reason: str, author: str) -> list[Requeued]:
    """Send the rows (all that wait, if none is named) in again, all in one transaction.

    Each is read by the mapping under which it came in, or by the given one. What is accepted, or a duplicate by now, is marked requeued.
    """
    with database.engine.begin() as connection:
        rows = [row for row in refused_rows(connection, ids=ids or None) if row.fields]
        known = {row.quarantine_id for row in rows}
        lacking = [str(one) for one in ids if one not in known]
        if lacking:
            raise LedgerError(f"no waiting row with fields: {', '.join(lacking)}", cure="ledger quarantine list shows their ids")
        given = read_mapping(mapping) if mapping else None
        candidates = list(built_in_mappings().values())
        groups: dict[tuple[str, str, int | None], list[tuple[RefusedRow, Mapping]]] = defaultdict(list)
        for row in rows:
            used = given.filled(Given.of_fields(row.fields)) if given else given
            used = used or mapping_of(row.fields, candidates, sha256=row.mapping_sha256, name=row.mapping)
            groups[(used.sha256, row.source, record_number(row.fields))].append((row, used))
        requeue = _Requeue(connection=connection, database=database, author=author, reason=reason)
        done = [one for group in groups.values() for one in requeue.group([row for row, _ in group], group[0][1])]
        change_events(connection, [(account, at, 1) for account, at in requeue.added])
        return sorted(done, key=lambda one: one.quarantine_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requeue:
    connection: Connection
    database: Database
    author: str
    reason: str
    added: list[tuple[str, datetime]] = field(default_factory=list)  # events: account, instant

    def group(self, rows: list[RefusedRow], mapping: Mapping) -> list[Requeued]:
        """Rows of one file and one mapping, numbered from the first one's own number."""
        first = record_number(rows[0].fields) or 1
        now = self.database.now()
        with judged_rows([row.fields for row in rows], mapping, name=rows[0].source, now=now, first_record=first) as chunk:
            refused = chunk.refused_records()
            batch_id = next_batch_id(self.connection)
            with chunk.event_stream(batch_id=None) as stream:
                stage_events(self.connection, stream)
            try:
                inserted = insert_staged(self.connection, batch_id)
            except IdentityTaken as error:
                raise LedgerError(
                    "other loads of the same events are in the way; nothing was sent in", cure="run the command again", exit_code=4
                ) from error
            self.added.extend((account, at) for account, _, at in inserted.events())
            conflicts = staged_conflicts(self.connection)
            unstage(self.connection)
            content = json.dumps([[row.quarantine_id, row.fields] for row in rows], sort_keys=True)
            add_batch(
                self.connection,
                Batch(
                    batch_id=batch_id, source=rows[0].source, content_sha256=hashlib.sha256(content.encode()).hexdigest(),
                    mapping=mapping.name, mapping_sha256=mapping.sha256, chunk=0, chunk_rows=len(rows), read=len(rows), new=inserted.count,
                    duplicate=chunk.events - inserted.count - len(conflicts), conflict=len(conflicts), refused=len(refused),
                    clamped=chunk.clamped, loaded_at=now, author=self.author,
                ),
            )  # fmt: skip
            in_conflict = dict(conflicts)
            fresh = [one for one in conflicts if rows[one[0] - first].reason != Reason.CONFLICT]
            if fresh:
                with chunk.refused_stream(fresh, conflicts_only=True) as stream:
                    add_refused(self.connection, stream, batch_id)
        done = []
        for record, row in enumerate(rows, start=first):
            reason, detail = refused.get(record, (None, ""))
            if record in in_conflict:
                reason, detail = Reason.CONFLICT, in_conflict[record]
            if reason is None or (reason is Reason.CONFLICT and row.reason != Reason.CONFLICT):
                resolve(self.connection, row.quarantine_id, resolution="requeued", reason=self.reason, author=self.author, at=now)
            done.append(Requeued(quarantine_id=row.quarantine_id, accepted=reason is None, reason=reason, detail=detail))
        return done
