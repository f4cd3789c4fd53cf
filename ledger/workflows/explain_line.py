"""Explain a line of an invoice: the requests whose tokens it sums, one by one, and that they come to it exactly.

Takes a document's number or a contract's month, and the line's place; gives the line with its requests classified anew by the plan that
settles: of a closed month those that the close saw, of an open one all that stand. Source: specification, sections 5, 7 and 8.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

from sqlglot import exp

from ledger.contract.scalar import currency_digits
from ledger.documents.request_words import exact_text
from ledger.errors import LedgerError
from ledger.instant import instant_text
from ledger.rating import sql
from ledger.rating.classified import ClassifiedRequest, classified_request
from ledger.rating.postgres import PostgresEngine, current_events, seen_events
from ledger.rating.rated_period import RatedPeriod
from ledger.settlement.budget import refunded_windows
from ledger.settlement.calendar import Days
from ledger.settlement.cell import Cell
from ledger.settlement.charges import usage_lines
from ledger.settlement.credits import credit_lines
from ledger.settlement.money import to_minor
from ledger.settlement.period import Period, contract_period
from ledger.settlement.statement import InvoiceLine, LineKind
from ledger.spreadsheet import defused
from ledger.store.closings import Closing, closing_of
from ledger.store.connection import Connection
from ledger.store.contracts import stored_versions
from ledger.store.credit_notes import documents_numbered
from ledger.store.database import Database
from ledger.store.seen import EVERYTHING, Seen, run_of
from ledger.workflows.basis import as_recorded
from ledger.workflows.explain_money import LinePart, line_key, line_part, settled_now
from ledger.workflows.plans import plans_of_periods
from ledger.workflows.rate_seen import rate_seen, seen_intervals, united_days
from ledger.workflows.to_settle import snapshot_to_settle

_LINE = re.compile("[0-9]{1,6}")
_MONTH = re.compile(
    f"(?P<contract>[A-Za-z0-9._-]+)/(?P<month>(?:19[7-9]|2[0-9]{{2}})[0-9]-(?:0[1-9]|1[0-2]))(?:/(?P<line>{_LINE.pattern}))?"
)
COLUMNS = (
    *("account", "request_id", "received_at", "model", "queue", "outcome", "latency_us", "window_start"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "line_tokens", "line_amount"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A contract's month whose lines are explained: as it was closed (`number`), or would be settled now, from what is `rated` then."""

    period: Period
    lines: Sequence[InvoiceLine]
    number: str | None
    seen: Seen
    days: Days | None
    rated: RatedPeriod | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLine:
    """A line and what its requests come to: how many there are, and their exact amount before the rounding, below 0 of a credit. None of
    both for a line that sums no requests: a true-up, a cap, an adjustment."""

    month: Month
    position: int
    line: InvoiceLine
    requests: int | None
    amount: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A contract's month, and one of its lines, from 1; None: all of them."""

    contract_id: str
    period: str
    position: int | None


def meant_place(database: Database, asked: str) -> Place | None:
    """The month or line that is meant by `INV-2026-000001`, `INV-2026-000001/3`, `acme/2026-05` or `acme/2026-05/3`; None: it means none.

    Raises LedgerError if several providers have a document of that number.
    """
    if match := _MONTH.fullmatch(asked):
        return Place(contract_id=match["contract"], period=match["month"], position=int(match["line"]) if match["line"] else None)
    number, _, line = asked.rpartition("/")
    with database.begin() as connection:
        if found := _document(connection, asked):
            return Place(contract_id=found[0], period=found[1], position=None)
        if _LINE.fullmatch(line) and (found := _document(connection, number)):
            return Place(contract_id=found[0], period=found[1], position=int(line))
    return None


def _document(connection: Connection, number: str) -> tuple[str, str] | None:
    """The contract and the month that were closed by the document of that number."""
    closed = [(one.contract_id, one.period) for one in documents_numbered(connection, number, None) if one.contract_id and one.period]
    if len(closed) > 1:
        named = " or ".join(f"{contract_id}/{period}" for contract_id, period in closed)
        raise LedgerError(f"several providers have a document {number}", cure=f"name contract and month: {named}", exit_code=2)
    return closed[0] if closed else None


def explain_month(database: Database, contract_id: str, period: str) -> Month:
    """The lines of the contract's month. Raises LedgerError if it has none."""
    with snapshot_to_settle(database, period, [contract_id]) as connection:
        return _month(connection, database, contract_id, period)


def explain_line(database: Database, contract_id: str, period: str, position: int, export: Path | None = None) -> ExplainedLine:
    """The line at the place, from 1, and what its requests come to; `export` gets a CSV of them, COLUMNS, whose last two sum to the line.

    Raises LedgerError if there is no such line, or its requests do not come to it: somebody altered them behind ledger's back.
    """
    with snapshot_to_settle(database, period, [contract_id]) as connection:
        month = _month(connection, database, contract_id, period)
        if not 1 <= position <= len(month.lines):
            raise LedgerError(
                f"there is no line {position}: the month has {len(month.lines)}", cure=f"see: ledger explain {contract_id}/{period}"
            )
        line = month.lines[position - 1]
        if line.kind not in (LineKind.USAGE, LineKind.CREDIT):
            return ExplainedLine(month=month, position=position, line=line, requests=None, amount=None)
        requests, tokens, amount = 0, 0, Fraction(0)
        with _rows_into(export) as write:
            for request, part in _parts(connection, month, line):
                requests, tokens, amount = requests + 1, tokens + part.tokens, amount + part.amount
                write(request, part)
        contract = month.period.last
        digits = currency_digits(contract.money.currency)
        if tokens != line.quantity or to_minor(amount, digits, contract.money.rounding) != line.amount_minor:
            raise LedgerError(
                f"the requests of line {position} have {tokens:,} tokens, and the line {line.quantity or 0:,}",
                cure=f"see: ledger verify {period}, ledger verify --cells",
                exit_code=5,
            )
        return ExplainedLine(month=month, position=position, line=line, requests=requests, amount=amount)


def _month(connection: Connection, database: Database, contract_id: str, name: str) -> Month:
    closing = closing_of(connection, contract_id, name)
    versions = stored_versions(connection, contract_id)
    if not versions:
        raise LedgerError(f"there is no contract {contract_id}", cure="see: ledger contract list")
    if closing is not None:
        return _closed_month(connection, closing)
    period = contract_period([one.contract for one in versions], name)
    if period is None:
        raise LedgerError(f"no version of contract {contract_id} is in force in {name}", cure="see: ledger contract list")
    rated, lines = settled_now(connection, database, versions, period)
    return Month(period=period, lines=lines, number=None, seen=EVERYTHING, days=None, rated=rated)


def _closed_month(connection: Connection, closing: Closing) -> Month:
    """The month as it was closed: by the contracts, the days and the events of then."""
    run = run_of(connection, closing.run_id)
    known = run.contracts[closing.contract_id]
    contracts = [one.contract for one in stored_versions(connection, closing.contract_id) if str(one.contract.version) in known]
    now = contract_period(contracts, closing.period)
    period = now and as_recorded(now, closing.basis)
    if period is None:
        raise LedgerError(f"{closing.document.number_text} has no requests of its own", cure="its lines adjust months before it")
    days = None if period == now else united_days([period])
    lines = [one.line for one in closing.lines]
    return Month(period=period, lines=lines, number=closing.document.number_text, seen=run.seen, days=days, rated=None)


def _parts(connection: Connection, month: Month, line: InvoiceLine) -> Iterator[tuple[ClassifiedRequest, LinePart]]:
    """Each request that the line has tokens of, and its part."""
    period, key = month.period, line_key(line)
    digits = currency_digits(period.last.money.currency)
    refunded = _refunded(connection, month) if line.kind is LineKind.CREDIT else frozenset()

    def own_lines(cell: Cell) -> list[InvoiceLine]:
        return [one for one in made([cell]) if line_key(one) == key]

    made = partial(usage_lines if line.kind is LineKind.USAGE else credit_lines, period, minor_digits=digits)
    is_of_line: dict[Cell, bool] = {}  # what prices a request, with a token of each kind
    for request in _classified(connection, month, line):
        alike = replace(request.cell, tokens_input=1, tokens_cached_input=1, tokens_output=1)
        if alike not in is_of_line:
            is_of_line[alike] = own_lines(alike) != []
        if is_of_line[alike] and (line.kind is LineKind.USAGE or _window(period, request) in refunded):
            for own in own_lines(request.cell):
                yield request, line_part(own, None)


def _refunded(connection: Connection, month: Month) -> frozenset[tuple[int, datetime, str]]:
    """The windows whose requests are refunded, each of a pool: its piece of the period, its start, its scope."""
    period = month.period
    rated = month.rated or rate_seen(connection, month.seen, [period], month.days)[period.last.id]
    windows = refunded_windows(period, rated.judged.judgement.breaches)
    return frozenset((window.stretch, start, window.scope) for window in windows for start in window.window_starts)


def _window(period: Period, request: ClassifiedRequest) -> tuple[int, datetime, str]:
    stretch = period.piece_at(request.window_start)
    return stretch, request.window_start, period.pieces[stretch].scope_of(request.cell.model)


def _classified(connection: Connection, month: Month, line: InvoiceLine) -> Iterator[ClassifiedRequest]:
    """The requests of the month to the line's model, classified one by one."""
    intervals = seen_intervals(connection, month.seen)
    served = sorted(name for piece in month.period.pieces for name, (model, _) in piece.served_names.items() if model == line.model)
    events = current_events() if month.seen is EVERYTHING else seen_events(month.seen.batches, month.seen.voids)
    of_model = events.where(sql.among(exp.column("model", table="e"), served))
    engine = PostgresEngine(connection)
    queries = [replace(plan, by_request=True).summed() for plan in plans_of_periods([month.period], intervals, of_model, None, month.days)]
    ranked = plans_of_periods([month.period], intervals, events, None, month.days)
    queries += [query for plan in ranked if (query := replace(plan, by_request=True).delayed()) is not None]
    for query in queries:
        for row in engine.each(query.order_by("received_at", "request_id")):
            yield classified_request(row, lambda instant: instant)


@contextmanager
def _rows_into(file: Path | None) -> Iterator[Callable[[ClassifiedRequest, LinePart], None]]:
    """What takes the requests of a line, and writes them into the file if there is one. Raises LedgerError if that cannot be written."""
    if file is None:
        yield lambda request, part: None
        return
    try:
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(COLUMNS)

            def write(request: ClassifiedRequest, part: LinePart) -> None:
                writer.writerow(_row(request, part))

            yield write
    except OSError as error:
        raise LedgerError(
            f"{error.filename or file} could not be written: {error.strerror}", cure="make room or name another file", exit_code=4
        ) from error


def _row(request: ClassifiedRequest, part: LinePart) -> list[object]:
    cell = request.cell
    names = (request.account, request.request_id, instant_text(request.received_at), cell.model, cell.queue, cell.outcome.value)
    measured = (request.latency_us, instant_text(request.window_start))
    counted = (cell.tokens_input + cell.tokens_cached_input, cell.tokens_cached_input, cell.tokens_output, part.tokens)
    return [*(defused(name) for name in names), *measured, *counted, exact_text(part.amount)]
