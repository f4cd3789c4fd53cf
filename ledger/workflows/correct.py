"""Correct: withdraw the current revision of a request and add the next one, in one transaction, through the rules of every event.

Source: specification, section 2, "Corrections".
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.errors import LedgerError
from ledger.ingest.resubmission import DURATION_COLUMNS, canonical_mapping, check_values, judged_rows, with_values
from ledger.store.cells import change_events
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.events import (
    EVENT_FIELDS,
    Batch,
    Revision,
    add_batch,
    add_revision,
    add_void,
    next_batch_id,
    stage_events,
    staged_fields,
)
from ledger.store.quarantine import RowFilter, resolve
from ledger.workflows.conflict import rows_as_corrected
from ledger.workflows.void import the_request


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """The revision that stands now, what changed (before, after), and the rows in conflict that are settled by it; `revived` if the
    request was withdrawn before."""

    account: str
    request_id: str
    revision: int
    changes: dict[str, tuple[object, object]]
    conflicts: tuple[int, ...]
    revived: bool


def correct_request(
    database: Database,
    request_id: str,
    values: Mapping[str, str],
    *,
    account: str | None,
    reason: str,
    author: str,
    revive: bool = False,
) -> Corrected:
    """Set these columns (texts; "" empties one). Raises LedgerError if a value breaks a rule, or nothing changes.

    A withdrawn request counts again once it is corrected: that has to be said (`revive`).
    """
    check_values(values, but=("account", "request_id"))
    with database.begin() as connection:
        current = the_request(connection, request_id, account)
        request_id = current.request_id
        if current.voided and not revive:
            raise LedgerError(
                f"{request_id} is withdrawn, and a correction would bring it back",
                cure=f"--revive says that it is meant to count again; ledger explain {request_id} shows why it was withdrawn",
            )
        row = {name: _text(value) for name, value in current.fields.items() if name != "clock_clamped"}
        with judged_rows([with_values(row, values)], canonical_mapping(), now=database.now()) as chunk:
            for why, detail in chunk.refused_records().values():
                raise LedgerError(f"{why}: {detail}", cure="correct the values")
            with chunk.event_stream(batch_id=None) as stream:
                stage_events(connection, stream)
        (fields,) = staged_fields(connection)
        if not values.keys() & set(DURATION_COLUMNS["queue_us"]):  # what was clamped is still the queue that counts
            fields["clock_clamped"] = current.fields["clock_clamped"]
        changes = {
            name: (current.fields[name], fields[name])
            for name in EVENT_FIELDS
            if name != "clock_clamped" and fields[name] != current.fields[name]
        }
        if not changes and not current.voided:
            raise LedgerError(f"{request_id} has these values already", cure="nothing to do")
        withdrawn = add_void(connection, current, kind="correct", reason=reason, author=author, voided_at=database.now())
        _add(connection, database, current, fields, author=author)
        agreeing = RowFilter(ids=rows_as_corrected(connection, fields, at=database.now()))
        settled = resolve(connection, agreeing, resolution="corrected", reason=reason, author=author, at=database.now())
        before = [(current.account, current.fields["received_at"], -1)] if withdrawn else []
        change_events(connection, [*before, (current.account, fields["received_at"], 1)])
        return Corrected(
            account=current.account, request_id=request_id, revision=current.revision + 1, changes=changes, conflicts=tuple(settled),
            revived=current.voided,
        )  # fmt: skip


def _add(connection: Connection, database: Database, current: Revision, fields: dict[str, Any], *, author: str) -> None:
    batch_id = next_batch_id(connection)
    add_revision(connection, fields, batch_id=batch_id, revision=current.revision + 1)
    content = json.dumps([current.revision + 1, fields], default=str, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()
    add_batch(
        connection,
        Batch(
            batch_id=batch_id, source="correct", content_sha256=digest, mapping="correct", mapping_sha256=digest, chunk=0, chunk_rows=1,
            read=1, new=1, duplicate=0, conflict=0, refused=0, clamped=int(fields["clock_clamped"]), loaded_at=database.now(),
            author=author,
        ),
    )  # fmt: skip


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat()
        case _:
            return str(value)
