"""What has happened to a request, from PostgreSQL: its revisions, what withdrew each, and the observations that it was formed of.

Source: specification, section 2, "Corrections".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from ledger.store.connection import Connection, column_list, fetch, fetch_as
from ledger.store.events import EVENT_FIELDS
from ledger.store.quarantine import RowFilter, RowState


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Which load brought a row in, or which correction; `source` is its file."""

    batch_id: int
    source: str
    mapping: str
    author: str
    loaded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """Why a revision counts no more: void, correct or join."""

    kind: str
    reason: str
    author: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRevision:
    """A revision, as `fields` by the names of EVENT_FIELDS, and its withdrawal if there was one."""

    revision: int
    fields: dict[str, Any]
    load: Load
    withdrawal: Withdrawal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """An observation as its source gave it, with what links it to others; `repaired` if its figures are what somebody set.
    `line` is known of a row that has waited in quarantine."""

    role: str
    account: str
    record_id: str
    request_id: str
    trace: str | None
    header: str | None
    repaired: bool
    line: int | None
    fields: dict[str, Any]
    load: Load


_OBSERVATION_FIELDS = tuple(name for name in EVENT_FIELDS if name not in ("account", "request_id"))
_LINKS = ("role", "account", "record_id", "request_id", "trace", "header", "repaired")
_LOAD = sql.SQL("batch_id, source, mapping, batch.author, loaded_at")


def accounts_of_request(connection: Connection, request_id: str, *, rows: RowState) -> list[str]:
    """The accounts that have a request of this id, or a refused row of this state that speaks of one."""
    query = sql.SQL(
        "SELECT account FROM event WHERE request_id = {} "
        "UNION SELECT account FROM quarantine WHERE account IS NOT NULL AND {} ORDER BY account"
    ).format(request_id, RowFilter(request_id=request_id, state=rows).condition())
    return [account for (account,) in fetch(connection, query)]


def revisions_of(connection: Connection, account: str, request_id: str) -> list[StoredRevision]:
    """All revisions of the request, in order."""
    query = sql.SQL(
        "SELECT {load}, event.revision, kind, reason, void.author AS voided_by, voided_at, {fields} FROM event JOIN batch USING (batch_id) "
        "LEFT JOIN void ON (void.account, void.request_id, void.revision) = (event.account, event.request_id, event.revision) "
        "WHERE event.account = {account} AND event.request_id = {request_id} ORDER BY event.revision"
    ).format(
        load=_LOAD,
        fields=sql.SQL(", ").join(sql.Identifier("event", name) for name in EVENT_FIELDS),
        account=account,
        request_id=request_id,
    )
    return fetch_as(connection, _stored_revision, query)


def _stored_revision(*, revision: int, kind: str | None, reason: str, voided_by: str, voided_at: datetime, **others: Any) -> StoredRevision:
    withdrawal = None if kind is None else Withdrawal(kind=kind, reason=reason, author=voided_by, at=voided_at)
    return StoredRevision(revision=revision, fields=_chosen(others, EVENT_FIELDS), load=_load(others), withdrawal=withdrawal)


def observations_of(connection: Connection, account: str, request_id: str) -> list[StoredObservation]:
    """The observations that the request was or may be formed of, those of its call: the gateway's by time, then those of its engine."""
    gateway = _observations(
        connection,
        sql.SQL(
            "role = 'gateway' AND observation.account = {account} AND request_id = (SELECT request_id FROM observation own "
            "WHERE own.role = 'gateway' AND own.account = {account} AND own.record_id = {request_id})"
        ).format(account=account, request_id=request_id),
    )
    engine = _observations(
        connection,
        sql.SQL(
            "role = 'engine' AND (observation.account, request_id) IN (SELECT account, request_id FROM engine_request "
            "WHERE of_account = {account} AND of_request = ANY ({requests}))"
        ).format(account=account, requests=sorted({observation.request_id for observation in gateway})),
    )
    return [*gateway, *engine]


def engine_observations(connection: Connection, account: str, request_id: str) -> list[StoredObservation]:
    """The observations of the request of this id as an engine knows it, under the account or none."""
    which = "role = 'engine' AND observation.account IN ({account}, '') AND request_id = {request_id}"
    return _observations(connection, sql.SQL(which).format(account=account, request_id=request_id))


def _observations(connection: Connection, which: sql.Composable) -> list[StoredObservation]:
    query = sql.SQL(
        "SELECT {load}, {links}, {fields}, (SELECT line FROM quarantine WHERE row_sha256 = refused_sha256) AS line "
        "FROM observation JOIN batch USING (batch_id) WHERE {which} ORDER BY received_at, record_id"
    ).format(load=_LOAD, links=column_list(_LINKS), fields=column_list(_OBSERVATION_FIELDS), which=which)
    return fetch_as(connection, _stored_observation, query)


def _stored_observation(**row: Any) -> StoredObservation:
    return StoredObservation(**_chosen(row, (*_LINKS, "line")), fields=_chosen(row, _OBSERVATION_FIELDS), load=_load(row))


def _load(row: Mapping[str, Any]) -> Load:
    return Load(**_chosen(row, Load.__slots__))


def _chosen(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}
