"""The oracle: a month's settlement once more, in plain loops and fractions, with nothing taken from `ledger`.

Takes contract texts, event rows, intervals and a period; gives the JSON object of the specification's section 9, without `state`,
`unresolved` and `changed_afterwards`. Written to be read beside the specification, sections 4 to 8, sentence by sentence.
"""

from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any

from tests.oracle.charges import MINOR_DIGITS, Json, Money, plain_line, priced_lines, tokens_of, usage_key, usage_lines
from tests.oracle.classification import classify, count_events, is_failure
from tests.oracle.days import day_start, days_touched, month_days
from tests.oracle.telemetry import read_events
from tests.oracle.terms import Stretch, Terms, read_terms, stretches_in_force
from tests.oracle.windows import Window, judge

KINDS = ("usage", "true_up", "credit", "cap", "adjustment")


def settle(
    contract_texts: list[str],
    events: list[dict[str, str]],
    intervals: list[dict[str, str]],
    period: str,
    *,
    carried_in: Decimal = Decimal(0),
    voids: list[tuple[str, str]] | None = None,
    clock: datetime | None = None,
) -> Json:
    """The settlement of one contract's month. `carried_in` is an amount of the currency. Raises Stopped, section 5."""
    versions = [read_terms(text) for text in contract_texts]
    assert len({terms.contract for terms in versions}) == 1
    timezone, currency = versions[0].timezone, versions[0].currency
    first_day, next_first_day = month_days(period)
    start, end = day_start(first_day, timezone), day_start(next_first_day, timezone)

    stretches = [
        Stretch(max(stretch.start, start), min(stretch.end, end), stretch.terms)
        for stretch in stretches_in_force(versions)
        if stretch.start < end and stretch.end > start
    ]
    assert stretches, f"no version is in force in {period}"
    # "The version in force last is the one that started last; of two that started together, the higher number."
    last = max((stretch.terms for stretch in stretches), key=lambda terms: (terms.effective_from, terms.version))

    stored, _ = read_events(events, voids, clock)
    requests = classify(stored, intervals, stretches, days_touched(start, end, timezone))
    windows, insufficient, overload = judge(requests)
    breaches = sorted((window for window in windows if window.is_breach), key=lambda window: (window.end, window.start, window.scope))
    used = spend_budget(breaches)
    refunded = [window for window in breaches if window.result == "refunded"]

    money = Money(MINOR_DIGITS.get(currency, 2), last.rounding)
    lines, totals = bill(usage_lines(requests, money), refund_lines(refunded, money), last, money, money.minor(Fraction(carried_in)))
    return {
        "contract": last.contract,
        "version": last.version,
        "period": period,
        "start": instant_text(start),
        "end": instant_text(end),
        "timezone": timezone,
        "currency": currency,
        "events": count_events(requests),
        "lines": [line_json(line, money) for line in lines],
        "windows": {
            "judged": len(windows),
            "breached": len(breaches),
            "insufficient": insufficient,
            "overload": overload,
            "breaches": [breach_json(window) for window in breaches],
        },
        "budget": {
            "allowed": last.breaches,
            "used": used,
            "refunded": len(refunded),
            # "An alert is due when used >= floor(alert_at x breaches), at least 1, or when anything was refunded."
            "alert": used >= max(floor(last.alert_at * last.breaches), 1) or bool(refunded),
        },
        "totals": {name: money.text(amount) for name, amount in totals.items()},
    }


def bill(usage: list[Json], credit: list[Json], last: Terms, money: Money, carried_in: int) -> tuple[list[Json], dict[str, int]]:
    """All lines in order, and the totals: sections 5 (true-up), 7 (cap) and 8. `last` is the last version of the period."""
    lines = usage + credit
    charges = sum(line["amount"] for line in usage)
    minimum = charges if last.minimum is None else money.minor(Fraction(last.minimum))
    true_up = max(minimum - charges, 0)
    if true_up > 0:
        lines.append(plain_line("true_up", true_up))
    credits = sum(line["amount"] for line in credit)
    if last.refund_cap is not None:
        # "If credits exceed P % of the charges (true-up not counted), one `cap` line takes the excess back"
        excess = money.round(-credits - last.refund_cap * charges)
        if excess > 0:
            lines.append(plain_line("cap", excess))
            credits += excess

    net = charges + true_up + credits
    taxable = net if last.refund_tax == "reduces_base" else net - credits
    tax = money.round(last.tax_rate * taxable)
    total = net + tax
    totals = {
        "charges": charges,
        "true_up": true_up,
        "credits": credits,
        "adjustments": 0,
        "net": net,
        "tax": tax,
        "total": total,
        "carried_in": carried_in,
        "due": max(total - carried_in, 0),
        "carried_out": max(carried_in - total, 0),
    }
    return sorted(lines, key=line_order), totals


def spend_budget(breaches: list[Window]) -> int:
    """Gives each breach, in order, its result; returns how many units of the budget were used."""
    used = 0
    for window in breaches:
        if not window.is_over and used < window.terms.breaches:
            window.result = "forgiven"
            used += 1
        else:
            window.result = "refunded"
    return used


def refund_lines(refunded: list[Window], money: Money) -> list[Json]:
    """Factor x tokens of the `success` requests of the refunded windows, and of the failed ones' input where that is agreed."""
    quantities: dict[tuple[Any, ...], int] = {}
    rates: dict[tuple[Any, ...], str] = {}

    def refund(key: tuple[Any, ...], rate: str, quantity: int) -> None:
        quantities[key] = quantities.get(key, 0) + quantity
        rates[key] = rate

    for window in refunded:
        for request in window.requests:
            terms, model = request.terms, request.model
            assert model is not None
            base = (terms.version, model, None, None, False)
            if request.outcome == "success" and (request.late or terms.refund_of == "window"):
                key = usage_key(request) if terms.valued_at == "charged_rate" else (*base, "refund", Fraction(1))
                for token, quantity in tokens_of(request.event).items():
                    refund((*key, token), terms.rates[model, token], terms.refund_factor * quantity)
            if is_failure(request) and terms.refund_failed == "input_tokens":
                quantity = terms.refund_factor * (request.event.input_tokens or 0)
                refund((*base, "failed", Fraction(1), "input"), terms.rates[model, "input"], quantity)
    return priced_lines("credit", quantities, rates, money)


def line_order(line: Json) -> tuple[Any, ...]:
    """(kind in the order given, version, model, variant, queue, forfeited, band, token, multiplier by value), nulls first."""
    fields = ("version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier")
    nulls_first = [(False,) if line[field] is None else (True, line[field]) for field in fields]
    return (KINDS.index(line["kind"]), *nulls_first)


def line_json(line: Json, money: Money) -> Json:
    multiplier = None if line["multiplier"] is None else decimal_text(line["multiplier"])
    return {**line, "multiplier": multiplier, "amount": money.text(line["amount"])}


def breach_json(window: Window) -> Json:
    breach = {
        "start": instant_text(window.start),
        "end": instant_text(window.end),
        "scope": window.scope,
        "requests": window.n,
        "late": window.late,
        "over": window.is_over,
        "p99_us": window.percentile_us,
        "result": window.result,
    }
    return {**breach, "pooled": True} if window.pooled else breach


def instant_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def decimal_text(value: Fraction) -> str:
    """Without exponent and without trailing zeros."""
    with localcontext(prec=100):
        text = format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
