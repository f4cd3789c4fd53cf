"""What an example of a contract comes to, request by request and window by window, and where that is not what it expects.

Takes classified requests and judged windows, gives findings to compare. Pure. Source: specification, section 10.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from ledger.contract.example import Example, ExampleEvent, ExampleWindow
from ledger.contract.model import Contract
from ledger.settlement.budget import give_verdicts
from ledger.settlement.calendar import window_end
from ledger.settlement.cell import Cell, WindowCell
from ledger.settlement.period import Period, Piece
from ledger.settlement.priced_request import PricedRequest, priced_request
from ledger.settlement.statement import Verdict
from ledger.settlement.windows import Judgement, window_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFound(PricedRequest):
    """What the contract makes of an event: `event` with the defaults filled in."""

    event: ExampleEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFound:
    """What the contract makes of a window of `requests` requests that all took its percentile. `result` is as an example expects it;
    `used` counts the breaches of its month that were forgiven before it; `pooled`: it was judged with others of its day, and `is_over` is
    of all of them together."""

    window: ExampleWindow
    start: datetime
    end: datetime
    requests: int
    is_late: bool
    is_over: bool
    result: str
    used: int
    pooled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleFound:
    """All that an example comes to, in its order."""

    contract: Contract
    example: Example
    requests: tuple[RequestFound, ...] = ()
    windows: tuple[WindowFound, ...] = ()

    @property
    def charge(self) -> Fraction:
        return sum((request.charge for request in self.requests), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An expectation that does not hold: `key` of `expect`, and the place of the event or window, None for a charge."""

    key: str
    place: int | None
    expected: str | Decimal | None
    found: str | Decimal | Fraction | None


def request_found(piece: Piece, event: ExampleEvent, cell: Cell, latency_us: int | None) -> RequestFound:
    """The price and charge of one classified event."""
    assert event.status is not None, "its default is filled in"
    priced = priced_request(piece, cell, latency_us, status=event.status, queue_us=event.queue_us)
    return RequestFound(event=event, **{field.name: getattr(priced, field.name) for field in fields(priced)})


def windows_found(period: Period, windows: Sequence[tuple[ExampleWindow, WindowCell]], judgement: Judgement) -> list[WindowFound]:
    """What became of the windows of one month, each with its cell, in their order, after all of them were judged together."""
    verdicts = give_verdicts(period, judgement.breaches)
    found = []
    for window, cell in windows:
        stretch, start, scope = key = window_of(period, cell)
        piece = period.pieces[stretch]
        at = judgement.breach_at(stretch, scope, cell.window_start)
        found.append(
            WindowFound(
                window=window,
                start=start,
                end=window_end(piece.contract.objective.window, start, piece.days),
                requests=cell.requests,
                is_late=cell.late > 0,
                is_over=cell.over > 0 if at is None else judgement.breaches[at].is_over,
                result=judgement.unjudged.get(key, "met") if at is None else verdicts[at].value,
                used=0 if at is None else verdicts[:at].count(Verdict.FORGIVEN),
                pooled=at is not None and judgement.breaches[at].pooled,
            )
        )
    return found


def differences(found: ExampleFound) -> list[Difference]:
    """Every expectation of the example that does not hold, in the order of its events or windows, the charge last."""
    return list(_differences(found))


def _differences(found: ExampleFound) -> Iterator[Difference]:
    expect = found.example.expect
    for place, request in enumerate(found.requests):
        if expect.band is not None and expect.band[place] != request.band:
            yield Difference(key="band", place=place, expected=expect.band[place], found=request.band)
        if expect.multiplier is not None and expect.multiplier[place] != request.multiplier:
            yield Difference(key="multiplier", place=place, expected=expect.multiplier[place], found=request.multiplier)
        if expect.objective is not None and expect.objective[place] != request.objective:
            yield Difference(key="objective", place=place, expected=expect.objective[place], found=request.objective)
    for place, window in enumerate(found.windows):
        if expect.results is not None and expect.results[place] != window.result:
            yield Difference(key="results", place=place, expected=expect.results[place], found=window.result)
    if expect.charge is not None and Fraction(expect.charge) != found.charge:
        yield Difference(key="charge", place=None, expected=expect.charge, found=found.charge)
