"""Explain, in money: what a contract makes of a request that stands, the window that counts it, and the lines on which its tokens are.

Takes a standing event; the plan that settles months classifies it, and its month is as it was closed or would be settled now. Source:
specification, sections 4 to 9.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from operator import attrgetter
from typing import Any

from sqlglot import exp

from ledger.contract.scalar import currency_digits
from ledger.errors import LedgerError
from ledger.rating import sql
from ledger.rating.cells import read_windows
from ledger.rating.classified import ClassifiedRequest, classified_request
from ledger.rating.kept_cells import kept_cells
from ledger.rating.plans import plans_of
from ledger.rating.postgres import PostgresEngine, current_events
from ledger.rating.rated_period import RatedPeriod
from ledger.rating.recorded import Coverage
from ledger.settlement.budget import give_verdicts
from ledger.settlement.calendar import months_anywhere, window_end
from ledger.settlement.charges import exact_amount, usage_lines
from ledger.settlement.credits import credit_lines
from ledger.settlement.period import Period, Piece, contract_period
from ledger.settlement.priced_request import PricedRequest, priced_request
from ledger.settlement.statement import InvoiceLine, LineKind, Verdict
from ledger.settlement.windows import tolerated_of, window_of
from ledger.store.cells import coverage
from ledger.store.closings import Closing, closing_of
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, stored_versions
from ledger.store.database import Database
from ledger.store.intervals import stored_intervals
from ledger.store.seen import run_of, was_seen
from ledger.workflows.plans import breakers_and_loads
from ledger.workflows.rate import rate_stored, unrated_cure, unrated_words
from ledger.workflows.recompute import listed_events
from ledger.workflows.statements import Stated, know_stored, state_contracts
from ledger.workflows.to_settle import snapshot_to_settle

line_key = attrgetter("kind", "version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier", "rate", "of")


class WindowResult(StrEnum):
    """What became of a window."""

    KEPT = "kept"
    FORGIVEN = "forgiven"
    REFUNDED = "refunded"
    INSUFFICIENT = "insufficient"
    OVERLOAD = "overload"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWindow:
    """The window that counts a request, or the pool of a day's small ones, with its requests in the objective. At most `tolerated` of them
    may be late; `percentile_us` is known of a breach, and None there if its rank falls on a request without a number."""

    start: datetime
    end: datetime
    scope: str
    pooled: bool
    requests: int
    late: int
    tolerated: int
    percentile_us: int | None
    result: WindowResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePart:
    """What a line has of a request: tokens, and their exact amount before the line is rounded, below 0 of a credit. `position` counts the
    lines from 1; None: the line was issued without this request, and has no such tokens at all."""

    position: int | None
    line: InvoiceLine
    tokens: int
    amount: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMoney:
    """What the contract makes of a request, in which month. `number` is that of the month's document, None before it is closed; `is_late`:
    the request came after that, and what follows from it is adjusted later. `window` None: it is outside the objective."""

    piece: Piece
    period: Period
    request: PricedRequest
    window: RequestWindow | None
    parts: tuple[LinePart, ...]
    number: str | None
    is_late: bool


class NotPriced(LedgerError):
    """No contract prices the request, or its month cannot be settled now."""


def explain_money(database: Database, event: Mapping[str, Any], batch_id: int) -> RequestMoney:
    """What the contract that covers it makes of a standing event, of which `event` has the columns. Raises NotPriced."""
    with database.begin() as connection:
        versions, period = _covering(connection, event)
    contract_id = period.last.id
    with snapshot_to_settle(database, period.name, [contract_id]) as connection:
        classified = _classified(connection, event, period)
        piece = period.pieces[period.piece_at(classified.window_start)]
        cell, contract = classified.cell, piece.contract
        closing = closing_of(connection, contract_id, period.name)
        if closing is None:
            rated, lines = settled_now(connection, database, versions, period)
        else:
            rated, lines = rate_stored(connection, [period], database.now())[contract_id], [one.line for one in closing.lines]
            _refuse_unrated(connection, rated)
        window = _window(connection, classified, period, rated, database.now()) if cell.in_objective else None
        digits = currency_digits(contract.money.currency)
        own = usage_lines(period, [cell], digits)
        if window is not None and window.result is WindowResult.REFUNDED:
            own += credit_lines(period, [cell], digits)
        return RequestMoney(
            piece=piece,
            period=period,
            request=priced_request(piece, cell, classified.latency_us, status=event["status"], queue_us=event["queue_us"]),
            window=window,
            parts=tuple(_parts(own, lines)),
            number=None if closing is None else closing.document.number_text,
            is_late=closing is not None and not _was_settled(connection, closing, batch_id),
        )


def _covering(connection: Connection, event: Mapping[str, Any]) -> tuple[Sequence[StoredVersion], Period]:
    """The contract that covers the event: its versions, and the month of the event."""
    at = event["received_at"]
    covered = [one for one in coverage(connection, [event["account"]]) if one.start <= at and (one.end is None or at < one.end)]
    if not covered:
        raise NotPriced(
            f"no contract covers the account {event['account']} at that time: nothing is billed of it",
            cure="add the account to a contract, if it belongs to one",
        )
    versions = stored_versions(connection, covered[0].contract_id)
    contracts = [one.contract for one in versions]
    periods = [terms for name in months_anywhere(at) if (terms := contract_period(contracts, name)) and terms.start <= at < terms.end]
    return versions, periods[0]


def _classified(connection: Connection, event: Mapping[str, Any], period: Period) -> ClassifiedRequest:
    """The event as the plan classifies it: alone, and where it may be a cold start among those of its day."""
    at = event["received_at"]
    piece = period.pieces[period.piece_at(at)]
    contract, (start, end) = piece.contract, piece.days.day_of(at)
    covered = [
        Coverage(account=account, contract_id=contract.id, version=contract.version, start=start, end=end)
        for account in contract.parties.customer.accounts
    ]
    contracts, engine = {(contract.id, contract.version): contract}, PostgresEngine(connection)
    recorded = breakers_and_loads(stored_intervals(connection))
    same = [exp.EQ(this=sql.column(name, "e"), expression=sql.text(event[name])) for name in ("account", "request_id")]
    alone = plans_of(contracts, covered, *recorded, current_events().where(*same), by_request=True)
    listed = plans_of(contracts, covered, *recorded, listed_events({contract.id: [(start, end)]}), by_request=True)
    queries = [*(plan.summed() for plan in alone), *(query for plan in listed if (query := plan.delayed()) is not None)]
    found = [classified_request(row, lambda instant: instant) for query in queries for row in engine.each(query)]
    mine = [one for one in found if (one.account, one.request_id) == (event["account"], event["request_id"])]
    assert mine, "an event that stands has a cell"
    return mine[0]


def _window(connection: Connection, request: ClassifiedRequest, period: Period, rated: RatedPeriod, now: datetime) -> RequestWindow:
    """The window that counts the request, and what became of it, by all that is known now."""
    contract_id, judgement = period.last.id, rated.judged.judgement
    cells = read_windows(kept_cells(connection, {contract_id: (period.start, period.end)}))[contract_id]
    own = next(one for one in cells if (one.window_start, one.model) == (request.window_start, request.cell.model))
    key = stretch, start, scope = window_of(period, own)
    piece = period.pieces[stretch]
    alike = [one for one in cells if window_of(period, one) == key]
    window = RequestWindow(
        start=start,
        end=window_end(piece.contract.objective.window, start, piece.days),
        scope=scope,
        pooled=False,
        requests=sum(one.requests for one in alike),
        late=sum(one.late for one in alike),
        tolerated=0,
        percentile_us=None,
        result=WindowResult.KEPT,
    )
    if (unjudged := judgement.unjudged.get(key)) is not None:
        window = replace(window, result=WindowResult(unjudged.value))
    elif (pool := judgement.pools.get(key)) is not None:
        window = replace(window, start=pool.start, end=pool.end, pooled=True, requests=pool.requests, late=pool.late)
    if window.end > now:
        window = replace(window, result=WindowResult.RUNNING)
    if (place := judgement.breach_at(stretch, scope, own.window_start)) is not None:
        verdict = give_verdicts(period, judgement.breaches)[place]
        result = WindowResult.FORGIVEN if verdict is Verdict.FORGIVEN else WindowResult.REFUNDED
        window = replace(window, percentile_us=rated.percentiles_us[judgement.breaches[place]], result=result)
    return replace(window, tolerated=tolerated_of(piece.percentile, window.requests))


def settled_now(
    connection: Connection, database: Database, versions: Sequence[StoredVersion], period: Period
) -> tuple[RatedPeriod, Sequence[InvoiceLine]]:
    """The month rated, and its lines as it would be settled now. Raises NotPriced."""
    settling = [(versions, period)]
    known = know_stored(connection, settling, database.now())
    rated = known.rated[period.last.id]
    _refuse_unrated(connection, rated)
    stated = next(state_contracts(settling, known, state="provisional", is_test=database.is_test))
    if isinstance(stated, Stated):
        return rated, stated.statement.lines
    raise NotPriced(f"{stated.contract_id} cannot be settled: {stated.problem}", cure=stated.cure)


def _refuse_unrated(connection: Connection, rated: RatedPeriod) -> None:
    if unrated := rated.judged.unrated:
        raise NotPriced(unrated_words(connection, rated.judged.period, unrated), cure=unrated_cure(unrated))


def _parts(own: Sequence[InvoiceLine], lines: Sequence[InvoiceLine]) -> Iterator[LinePart]:
    """What each line has of a request, whose own lines are these."""
    positions = {line_key(line): position for position, line in enumerate(lines, start=1)}
    for line in own:
        yield line_part(line, positions.get(line_key(line)))


def line_part(own: InvoiceLine, position: int | None) -> LinePart:
    """A request's own line as the part of a line of many."""
    assert own.quantity is not None and own.rate is not None and own.multiplier is not None, "tokens have a price"
    amount = exact_amount(own.quantity, own.rate, own.multiplier)
    return LinePart(position=position, line=own, tokens=own.quantity, amount=-amount if own.kind is LineKind.CREDIT else amount)


def _was_settled(connection: Connection, closing: Closing, batch_id: int) -> bool:
    return was_seen(connection, run_of(connection, closing.run_id).seen, batch_id)
