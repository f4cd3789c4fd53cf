"""English: how worked numbers are said."""

from collections.abc import Callable, Mapping
from typing import Any

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.documents.contract_prose.conditions import is_price_of_queue
from ledger.documents.contract_prose.english.words import KINDS, duration, plural
from ledger.documents.contract_prose.figures import currency_of, exact_text, grouped_rate, money_text, quoted, sum_text
from ledger.documents.contract_prose.illustration import (
    Alert,
    AsyncCases,
    BreakerCases,
    Capped,
    ColdStartCases,
    Credit,
    Edge,
    Illustration,
    Instants,
    Judged,
    Measured,
    Priced,
    Rounded,
    Taxed,
    Tolerance,
    Tolerated,
    TrueUp,
    Verdicts,
    Waits,
)
from ledger.documents.number import grouped_amount, grouped_count
from ledger.documents.wording import and_list


def _tokens(counts: Mapping[str, int]) -> str:
    return f"{and_list([f'{grouped_count(count)} {KINDS[kind]}' for kind, count in counts.items()])} tokens"


def _exempt(is_exempt: bool) -> str:
    return "is exempt" if is_exempt else "is not exempt"


def _instants(one: Instants, fact: Fact, facts: Facts) -> str:
    until = f"; the first instant after it is {one.end.isoformat()}" if one.end else ""
    return f"The first instant of this version is {one.first.isoformat()}{until}."


def _rounded(one: Rounded, fact: Fact, facts: Facts) -> str:
    digits = facts.of(FactCode.CURRENCY)["digits"]
    pairs = [f"{exact_text(exact)} becomes {grouped_amount(minor, digits)}" for exact, minor in one.amounts]
    return f"In {currency_of(facts)}, {and_list(pairs)}."


def _taxed(one: Taxed, fact: Fact, facts: Facts) -> str:
    refunds = f" and refunds of {money_text(-one.credits, facts)}" if one.credits else ""
    tax, total = money_text(one.tax, facts), money_text(one.total, facts)
    return f"On charges of {money_text(one.charges, facts)}{refunds} the tax is {tax}, together {total}."


def _true_up(one: TrueUp, fact: Fact, facts: Facts) -> str:
    charges, line, lifted = (money_text(minor, facts) for minor in (one.charges, one.true_up, one.charges + one.true_up))
    return f"Charges of {charges} are lifted by a line of {line} to {lifted}."


def _measured(one: Measured, fact: Fact, facts: Facts) -> str:
    latency = "no latency" if one.latency_us is None else f"a latency of {duration(one.latency_us)}"
    return (
        f"A request that waits {duration(one.queue_us)} in the queue, then takes {duration(one.prefill_us)} to its first token and "
        f"{duration(one.decode_us)} more to its last has {latency}."
    )


def _tolerated(one: Tolerated, fact: Fact, facts: Facts) -> str:
    may = grouped_count(one.tolerated) if one.tolerated else "none"
    breach = f"with {grouped_count(one.tolerated + 1)} late the window is a breach"
    return f"Of {grouped_count(one.requests)} request{plural(one.requests)} in a window {may} may be late; {breach}."


def _edge(one: Edge, fact: Fact, facts: Facts) -> str:
    late = {True: "is late", False: "meets the target"}
    exactly = ("exactly ", "") if one.is_written_below else ("", "exactly ")
    return (
        f"A latency of {exactly[0]}{duration(one.below_us)} is in the tier {quoted(one.below_tier)} and {late[one.below_late]}; one of "
        f"{exactly[1]}{duration(one.above_us)} is in the tier {quoted(one.above_tier)} and {late[one.above_late]}."
    )


def _priced(one: Priced, fact: Fact, facts: Facts) -> str:
    tokens, charge = _tokens({kind: count for kind, count, _ in one.charge.tokens}), one.charge
    instead = ""
    if charge.multiplier != one.tier_multiplier:
        instead = f", with the multiplier {exact_text(charge.multiplier)} instead of {exact_text(one.tier_multiplier)}"
    queue = "" if one.is_in_queue or not is_price_of_queue(facts) else ", without the multiplier of a queue"
    tier = f"at {duration(one.latency_us)} is in the tier {quoted(one.tier)}{instead}"
    return f"A request with {tokens} {tier}: {sum_text(charge, facts)}{queue}."


def _waits(one: Waits, fact: Fact, facts: Facts) -> str:
    return (
        f"In the tier {quoted(one.tier)}: after a wait of exactly {duration(fact['max_queue'])} the multiplier is "
        f"{exact_text(one.within)}, of {duration(one.longest_us + 1)} it is {exact_text(one.beyond)}, of an unknown wait "
        f"{exact_text(one.unknown)}."
    )


def _async_cases(one: AsyncCases, fact: Fact, facts: Facts) -> str:
    needs_header = not all(header for _, header, _ in one.cases)
    told = []
    for tokens, header, is_exempt in one.cases:
        evidence = "" if not needs_header else " and the header" if header else " without the header"
        told.append(f"one with {grouped_count(tokens)} input token{plural(tokens)}{evidence} {_exempt(is_exempt)}")
    return f"Of such requests, {and_list(told)}."


def _breaker_cases(one: BreakerCases, fact: Fact, facts: Facts) -> str:
    moments = ("at the instant at which it opens", "a microsecond before it closes", "at the instant at which it closes")
    told = [f"one received {moment} {_exempt(is_exempt)}" for moment, is_exempt in zip(moments, one.exempt, strict=True)]
    return f"Of such requests, {and_list(told)}."


def _cold_start_cases(one: ColdStartCases, fact: Fact, facts: Facts) -> str:
    (_, at_limit), (beyond_us, beyond) = one.apart
    starts, exempt = one.of_day
    return (
        f"Of a cold start, a request {duration(fact['max_duration'])} after the first one {_exempt(at_limit == 2)}, one "
        f"{duration(beyond_us)} after it {_exempt(beyond == 2)}. Of {starts} cold starts on one day, {exempt} "
        f"{'is' if exempt == 1 else 'are'} exempt."
    )


def _judged(one: Judged, fact: Fact, facts: Facts) -> str:
    latency = "" if one.latency_us is None else f" with a latency of {duration(one.latency_us)}"
    judged = "in the objective, late" if one.late else "in the objective, not late" if one.in_objective else "outside the objective"
    billed = "not billed" if one.charge is None else f"billed {sum_text(one.charge, facts)}"
    status = f"Status {one.status}" if one.queue is None else f"In the queue {quoted(one.queue)}, status {one.status}"
    return f"{status}{latency}: {billed}; {judged}."


def _tolerance(one: Tolerance, fact: Fact, facts: Facts) -> str:
    limit, beyond = ("beyond it" if is_over else "within it" for is_over in (one.limit_over, one.beyond_over))
    return f"A latency of exactly {duration(one.limit_us)} is {limit}; one of {duration(one.limit_us + 1)} is {beyond}."


def _verdicts(one: Verdicts, fact: Fact, facts: Facts) -> str:
    told = [f"{place} is {'forgiven' if is_forgiven else 'refunded'}" for place, is_forgiven in enumerate(one.within, 1)]
    over = "forgiven" if one.is_over_forgiven else "refunded"
    return f"Of the breaches of a month within the tolerance, number {and_list(told)}. A breach beyond it, even as the first, is {over}."


def _alert(one: Alert, fact: Fact, facts: Facts) -> str:
    return f"The alert is due when {grouped_count(one.used)} breach{' is' if one.used == 1 else 'es are'} forgiven."


def _credit(one: Credit, fact: Fact, facts: Facts) -> str:
    lines, counts = [], {}
    for line in one.lines:
        assert line.rate is not None and line.multiplier is not None and line.token is not None
        count = counts[line.token] = one.tokens[line.token]
        price = f"{grouped_rate(line.rate)} ÷ 1,000,000 × {exact_text(line.multiplier)}"
        amount = money_text(line.amount_minor, facts)
        lines.append(f"{one.factor} × {grouped_count(count)} × {price}, a line of {amount} for {KINDS[line.token]} tokens")
    queue = "" if one.queue is None else f" in the queue {quoted(one.queue)}"
    given = f"Failed requests{queue} with {_tokens(counts)}"
    if one.latency_us is not None:
        given = f"{_tokens(counts)} of requests{queue} at {duration(one.latency_us)}, charged {money_text(one.charged, facts)},"
    return f"{given} give back in a refunded window {'; '.join(lines)}."


def _capped(one: Capped, fact: Fact, facts: Facts) -> str:
    back, remain = money_text(one.taken_back, facts), money_text(-one.credits - one.taken_back, facts)
    refunds = money_text(-one.credits, facts)
    return f"On charges of {money_text(one.charges, facts)} and refunds of {refunds} the cap takes back {back}; {remain} remain."


ILLUSTRATIONS: Mapping[type[Illustration], Callable[[Any, Fact, Facts], str]] = {
    Instants: _instants,
    Rounded: _rounded,
    Taxed: _taxed,
    TrueUp: _true_up,
    Measured: _measured,
    Tolerated: _tolerated,
    Edge: _edge,
    Priced: _priced,
    Waits: _waits,
    AsyncCases: _async_cases,
    ColdStartCases: _cold_start_cases,
    BreakerCases: _breaker_cases,
    Judged: _judged,
    Tolerance: _tolerance,
    Verdicts: _verdicts,
    Alert: _alert,
    Credit: _credit,
    Capped: _capped,
}
