"""Which rows in conflict say what their request says, now that it is corrected: nobody has to look at them any more.

A row of a whole request has to say all that the request says. A half was refused in favour of the stored one of its id; it has to agree in
what the request takes from it. Source: specification, section 2; decision record repair.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeAlias

from ledger.ingest.mapping import Mapping as SourceMapping
from ledger.ingest.mapping import Role
from ledger.ingest.resubmission import judged_rows, record_number
from ledger.store.answers import taken_columns
from ledger.store.connection import Connection
from ledger.store.events import EVENT_FIELDS
from ledger.store.forming import is_joined
from ledger.store.histories import StoredObservation, observations_of
from ledger.store.quarantine import RefusedRow, conflicts_of
from ledger.workflows.reread import Mappings

Fields: TypeAlias = Mapping[str, Any]


def rows_as_corrected(connection: Connection, fields: Fields, *, at: datetime) -> list[int]:
    """The ids of the waiting rows in conflict that say what the request's EVENT_FIELDS say. A row that a mapping of somebody's own has
    read is none of them, since that mapping is not at hand."""
    account, request_id = fields["account"], fields["request_id"]
    joined = is_joined(connection, account, request_id)
    halves = [] if joined is None else observations_of(connection, account, request_id)
    if not joined:  # what its engine says is not in it
        halves = [half for half in halves if half.role == Role.GATEWAY]
    # An engine knows the request by an id of its own, and may not know the account.
    ids = {(account, request_id)} | {(half.account or None, half.request_id) for half in halves if half.role == Role.ENGINE}
    rows = {row.quarantine_id: row for one in ids for row in conflicts_of(connection, *one)}
    mappings = Mappings.of_ledger()
    return [row.quarantine_id for row in rows.values() if _says_so(row, mappings.as_it_came(row), halves, fields, at)]


def _says_so(row: RefusedRow, mapping: SourceMapping | None, halves: Collection[StoredObservation], fields: Fields, at: datetime) -> bool:
    if mapping is None:
        return False
    number = record_number(row.fields)
    with judged_rows([row.fields], mapping, now=at, sources=[row.source], records=[number] if number else ()) as chunk:
        judged = chunk.first_events(1, waiting=True)
    if not judged:
        return False
    said = {**judged[0], "received_at": datetime.fromisoformat(str(judged[0]["received_at"]))}
    if mapping.role is not None and halves:
        return _half_agrees(said, mapping.role, halves, fields)
    # An observation may have another request_id than its request; it was found by that of its request.
    but = ("clock_clamped",) if mapping.role is None else ("clock_clamped", "request_id")
    return all(said[name] == fields[name] for name in EVENT_FIELDS if name not in but)


def _half_agrees(said: Fields, role: Role, halves: Collection[StoredObservation], fields: Fields) -> bool:
    """Whether the request says what it would take from this half in place of the stored one, and some of that is what they differ in. It
    cannot be told where several rows of the source make the request, or somebody has repaired the one."""
    others = [half.fields for half in halves if half.role != role]
    match [half for half in halves if half.role == role]:
        case [stored] if not stored.repaired and _links(said) == _links(asdict(stored)):
            taken = taken_columns(role, (said, stored.fields), others)
            return all(said[name] == fields[name] for name in taken) and any(said[name] != stored.fields[name] for name in taken)
        case _:
            return False


def _links(half: Fields) -> tuple[object, ...]:
    """What makes it the one that it is."""
    return (half["account"] or "", *(half[name] for name in ("request_id", "record_id", "trace", "header")))
