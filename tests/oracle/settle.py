"""The oracle: a month's settlement once more, in plain loops and fractions, with nothing taken from `ledger`.

Takes contract texts, event rows, intervals and a period; gives the JSON object of the specification's section 9, without `state`,
`unresolved` and `changed_afterwards`. Written to be read beside the specification, sections 4 to 8, sentence by sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any

from tests.oracle.charges import MINOR_DIGITS, Json, Money, plain_line, priced_lines, tokens_of, usage_key, usage_lines
from tests.oracle.classification import classify, count_events, is_failure
from tests.oracle.days import day_start, days_touched, month_days
from tests.oracle.telemetry import Event, read_events
from tests.oracle.terms import Stretch, Terms, read_terms, stretches_in_force
from tests.oracle.windows import Window, judge

KINDS = ("usage", "true_up", "credit", "cap", "adjustment")
CREDITS = ("credit", "cap")


@dataclass(frozen=True)
class Month:
    """What a contract's month comes to by itself: its lines in minor units and its verdicts, before adjustments, tax and balance.

    `last` is the version in force last; `ended` says that none is in force any more.
    """

    period: str
    start: datetime
    end: datetime
    last: Terms
    ended: bool
    money: Money
    events: Json
    lines: list[Json]
    judged: int
    insufficient: int
    overload: int
    breaches: list[Window]
    used: int


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
    stored, _ = read_events(events, voids, clock)
    month = settle_month([read_terms(text) for text in contract_texts], stored, intervals, period)
    assert month is not None and not month.ended, f"no version is in force in {period}"
    return settlement(month, [], month.money.minor(Fraction(carried_in)))


def settle_month(versions: list[Terms], events: Sequence[Event], intervals: list[dict[str, str]], period: str) -> Month | None:
    """What the month of one contract comes to by these events, which stand; None before the contract's first day. Raises Stopped."""
    assert len({terms.contract for terms in versions}) == 1
    timezone = versions[0].timezone
    first_day, next_first_day = month_days(period)
    start, end = day_start(first_day, timezone), day_start(next_first_day, timezone)

    begun = [stretch for stretch in stretches_in_force(versions) if stretch.start < end]
    if not begun:
        return None
    stretches = [Stretch(max(stretch.start, start), min(stretch.end, end), stretch.terms) for stretch in begun if stretch.end > start]
    # "The version in force last is the one that started last; of two that started together, the higher number." An ended contract has
    # "the last version's rules".
    last = max((stretch.terms for stretch in stretches or begun), key=lambda terms: (terms.effective_from, terms.version))

    requests = classify(list(events), intervals, stretches, days_touched(start, end, timezone))
    windows, insufficient, overload = judge(requests)
    breaches = sorted((window for window in windows if window.is_breach), key=lambda window: (window.end, window.start, window.scope))
    used = spend_budget(breaches)
    money = Money(MINOR_DIGITS.get(last.currency, 2), last.rounding)
    refunded = [window for window in breaches if window.result == "refunded"]
    return Month(
        period=period,
        start=start,
        end=end,
        last=last,
        ended=not stretches,
        money=money,
        events=count_events(requests),
        lines=own_lines(usage_lines(requests, money), refund_lines(refunded, money), last, money, ended=not stretches),
        judged=len(windows),
        insufficient=insufficient,
        overload=overload,
        breaches=breaches,
        used=used,
    )


def settlement(month: Month, adjustments: list[Json], carried_in: int) -> Json:
    """The object of section 9 for a month that carries these adjustments of closed ones, each with its `of` and its tax."""
    last, money = month.last, month.money
    refunded = sum(window.result == "refunded" for window in month.breaches)
    return {
        "contract": last.contract,
        "version": last.version,
        "period": month.period,
        "start": instant_text(month.start),
        "end": instant_text(month.end),
        "timezone": last.timezone,
        "currency": last.currency,
        "events": month.events,
        "lines": [line_json(line, money) for line in sorted(month.lines + adjustments, key=line_order)],
        "windows": {
            "judged": month.judged,
            "breached": len(month.breaches),
            "insufficient": month.insufficient,
            "overload": month.overload,
            "breaches": [breach_json(window) for window in month.breaches],
        },
        "budget": {
            "allowed": last.breaches,
            "used": month.used,
            "refunded": refunded,
            # "An alert is due when used >= floor(alert_at x breaches), at least 1, or when anything was refunded."
            "alert": month.used >= max(floor(last.alert_at * last.breaches), 1) or refunded > 0,
        },
        "totals": {name: money.text(amount) for name, amount in totals_of(month, adjustments, carried_in).items()},
    }


def own_lines(usage: list[Json], credit: list[Json], last: Terms, money: Money, *, ended: bool) -> list[Json]:
    """Usage and credits, with what sections 5 (true-up) and 7 (cap) add. `last` is the last version of the period."""
    lines = usage + credit
    charges = sum(line["amount"] for line in usage)
    if last.minimum is not None and not ended:  # "An ended contract keeps one period a month [...]: no usage, no minimum"
        true_up = money.minor(Fraction(last.minimum)) - charges
        if true_up > 0:
            lines.append(plain_line("true_up", true_up))
    if last.refund_cap is not None:
        # "If credits exceed P % of the charges (true-up not counted), one `cap` line takes the excess back"
        excess = money.round(-sum(line["amount"] for line in credit) - last.refund_cap * charges)
        if excess > 0:
            lines.append(plain_line("cap", excess))
    return lines


def totals_of(month: Month, adjustments: list[Json], carried_in: int) -> dict[str, int]:
    """Section 8, in minor units."""
    last, money = month.last, month.money

    def sum_of(*kinds: str) -> int:
        return sum(line["amount"] for line in month.lines if line["kind"] in kinds)

    charges, true_up, credits = sum_of("usage"), sum_of("true_up"), sum_of(*CREDITS)
    adjusted = sum(line["amount"] for line in adjustments)
    net = charges + true_up + credits + adjusted

    # "Adjustments of a month with another rate are taxed by themselves at that rate"; "`refund.tax` is that of the month adjusted".
    base = sum(line["amount"] for line in month.lines if is_taxed(line["kind"], last.refund_tax))
    taxable: dict[tuple[str, Fraction], int] = {(month.period, last.tax_rate): base}
    for line in adjustments:
        rate, refund_tax = line["taxed"]
        group = (month.period if rate == last.tax_rate else line["of"]["period"], rate)
        amount = line["amount"] if is_taxed(line["of"]["kind"], refund_tax) else 0
        taxable[group] = taxable.get(group, 0) + amount
    tax = sum(money.round(rate * base) for (_, rate), base in taxable.items())

    total = net + tax
    return {
        "charges": charges,
        "true_up": true_up,
        "credits": credits,
        "adjustments": adjusted,
        "net": net,
        "tax": tax,
        "total": total,
        "carried_in": carried_in,
        "due": max(total - carried_in, 0),
        "carried_out": max(carried_in - total, 0),
    }


def is_taxed(kind: str, refund_tax: str) -> bool:
    """Whether a line of this kind is in the taxable base: SLA credits are not where they are damages."""
    return refund_tax == "reduces_base" or kind not in CREDITS


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
    """(kind in the order given, version, model, variant, queue, forfeited, band, token, multiplier by value), nulls first; adjustments
    first by of.period and of.kind."""
    fields = ("version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier")
    nulls_first = [(False,) if line[field] is None else (True, line[field]) for field in fields]
    of = (line["of"]["period"], line["of"]["kind"]) if "of" in line else ()
    return (KINDS.index(line["kind"]), of, *nulls_first)


def line_json(line: Json, money: Money) -> Json:
    shown = {field: value for field, value in line.items() if field != "taxed"}
    multiplier = None if line["multiplier"] is None else decimal_text(line["multiplier"])
    return {**shown, "multiplier": multiplier, "amount": money.text(line["amount"])}


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
