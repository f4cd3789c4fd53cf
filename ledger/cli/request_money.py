"""What `ledger explain` says of a request's money: each rule with its clause and figures, the window that counts it, and the lines."""

from collections.abc import Iterator

from ledger.contract.scalar import duration_text
from ledger.documents.local_time import window_words_local
from ledger.documents.number import decimal_text, grouped_count, percent_text, rate_text
from ledger.documents.request_words import band_reason, charge_sum, clause_words, exact_text, multiplier_reason, objective_reason
from ledger.instant import instant_text
from ledger.settlement.statement import InvoiceLine
from ledger.workflows.explain_money import LinePart, RequestMoney, RequestWindow, WindowResult

_RESULTS = {
    WindowResult.KEPT: "the promise was kept",
    WindowResult.FORGIVEN: "a breach, forgiven by the error budget",
    WindowResult.REFUNDED: "a breach, refunded",
    WindowResult.INSUFFICIENT: "too few requests to be judged",
    WindowResult.OVERLOAD: "more requests than are judged",
    WindowResult.RUNNING: "not over yet",
}


def money_lines(money: RequestMoney) -> Iterator[str]:
    """The request's rules and lines, one a line."""
    contract, request = money.piece.contract, money.request
    document = "not closed yet" if money.number is None else f"closed as {money.number}"
    yield f"under {contract.id}, version {contract.version}, in {money.period.name}, {document}"
    if money.is_late:
        yield f"  it came after the close: what follows from it is adjusted on the document of a later month, not on {money.number}"
    if request.multiplier is None:
        yield f"  band {request.band}: {band_reason(contract, request)}"
    else:
        yield f"  band {request.band}, multiplier {decimal_text(request.multiplier)}: {multiplier_reason(contract, request)}"
    yield f"  objective {request.objective}: {objective_reason(contract, request)}"
    if money.window is not None:
        yield f"  window: {_window_words(money, money.window)}"
    yield f"  charge: {charge_sum(contract, request)} {contract.money.currency}, before lines are rounded"
    for part in money.parts:
        yield f"  {_part_words(part, contract.money.currency)}"


def money_json(money: RequestMoney) -> dict[str, object]:
    """The same for programs; amounts are exact, as text."""
    contract, request, window = money.piece.contract, money.request, money.window
    return {
        "contract": contract.id,
        "version": contract.version,
        "period": money.period.name,
        "document": money.number,
        "after_close": money.is_late,
        "outcome": request.cell.outcome.value,
        "latency_us": request.latency_us,
        "band": request.band,
        "band_reason": band_reason(contract, request),
        "multiplier": None if request.multiplier is None else decimal_text(request.multiplier),
        "multiplier_reason": multiplier_reason(contract, request),
        "objective": request.objective,
        "objective_reason": objective_reason(contract, request),
        "charge": exact_text(request.charge),
        "currency": contract.money.currency,
        "window": None if window is None else _window_json(window),
        "lines": [_part_json(part) for part in money.parts],
    }


def _window_words(money: RequestMoney, window: RequestWindow) -> str:
    contract = money.piece.contract
    scope = "all models" if window.scope == "contract" else f"model {window.scope}"
    pooled = "the small windows of a day together, " if window.pooled else ""
    counted = f"{grouped_count(window.requests)} requests in the objective, {grouped_count(window.late)} of them late"
    span = window_words_local(window.start, window.end, (money.period.start, money.period.end), contract.calendar.timezone)
    told = f"{span}, {pooled}{scope}: {counted}"
    if window.result in (WindowResult.FORGIVEN, WindowResult.REFUNDED):
        percentile = "a request that failed or has no latency" if window.percentile_us is None else duration_text(window.percentile_us)
        clause = contract.error_budget.clause if window.result is WindowResult.FORGIVEN else contract.refund.clause
        place = percent_text(contract.objective.percentile).removesuffix("%")
        told += f", at most {grouped_count(window.tolerated)} may be, P{place} is {percentile}"
        return f"{told}; {_RESULTS[window.result]}{clause_words(clause)}"
    may = "" if window.result is not WindowResult.KEPT else f", at most {grouped_count(window.tolerated)} may be"
    return f"{told}{may}; {_RESULTS[window.result]}{clause_words(contract.objective.clause)}"


def _part_words(part: LinePart, currency: str) -> str:
    line = part.line
    place = f"line {part.position}" if part.position is not None else "no line of it yet"
    what = f"{line.kind}, {', '.join(_named(line))}"
    price = f"{_rate(line)} per 1,000,000 × {_multiplier(line)}"
    return f"{place} ({what}): {grouped_count(part.tokens)} tokens at {price} = {exact_text(part.amount)} {currency}"


def _named(line: InvoiceLine) -> Iterator[str]:
    yield from (name for name in (line.model, line.variant, line.queue and f"{line.queue} queue", line.band, line.token) if name)


def _rate(line: InvoiceLine) -> str:
    assert line.rate is not None, "tokens have a rate"
    return rate_text(line.rate)


def _multiplier(line: InvoiceLine) -> str:
    assert line.multiplier is not None, "tokens have a multiplier"
    return decimal_text(line.multiplier)


def _window_json(window: RequestWindow) -> dict[str, object]:
    return {
        "start": instant_text(window.start),
        "end": instant_text(window.end),
        "scope": window.scope,
        "pooled": window.pooled,
        "requests": window.requests,
        "late": window.late,
        "tolerated": window.tolerated,
        "p99_us": window.percentile_us,
        "result": window.result.value,
    }


def _part_json(part: LinePart) -> dict[str, object]:
    line = part.line
    names = ("version", "model", "variant", "queue", "forfeited", "band", "token")
    return {
        "line": part.position,
        "kind": line.kind.value,
        **{name: getattr(line, name) for name in names},
        "tokens": part.tokens,
        "rate": _rate(line),
        "multiplier": _multiplier(line),
        "amount": exact_text(part.amount),
    }
