"""English: what the contract says of itself, the parties, dates, money, models and examples."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.documents.contract_prose.english.words import (
    BANDS,
    FIELDS,
    IN_OBJECTIVE,
    INTERVALS,
    RESULTS,
    TIMES,
    TOKENS,
    WARNINGS,
    duration,
    names,
    plural,
)
from ledger.documents.contract_prose.figures import currency_of, number_text, quoted
from ledger.documents.contract_prose.prose import Say
from ledger.documents.number import grouped_count
from ledger.documents.wording import and_list


def _governing_text(fact: Fact, facts: Facts) -> str:
    if fact["document"] is None:
        return "The file names no signed text that rules in case of doubt."
    document, language, sha256 = (quoted(fact[name]) for name in ("document", "language", "sha256"))
    return f"In case of doubt the signed text rules: the document {document} in the language {language}, whose SHA-256 is {sha256}."


def _party(fact: Fact, facts: Facts) -> str:
    role = fact.subject[0]
    series = " The numbers of its invoices are counted under this tax ID." if role == "provider" else ""
    address = ", ".join(map(quoted, fact["address"]))
    return f"The {role} is {quoted(fact['name'])}, tax ID {quoted(fact['tax_id'])}, address {address}.{series}"


def _accounts(fact: Fact, facts: Facts) -> str:
    accounts = and_list([quoted(name) for name in fact["accounts"]])
    return f"The contract covers the requests of the customer's account{plural(len(fact['accounts']))} {accounts} at the gateway."


def _effective(fact: Fact, facts: Facts) -> str:
    if fact["until"] is None:
        return f"This version applies from {fact['from']} on, without an end: until another version begins that replaces none."
    last = fact["until"] - timedelta(days=1)
    return f"This version applies from {fact['from']} up to and including {last}; {fact['until']} is the first day on which it does not."


def _corrections(fact: Fact, facts: Facts) -> str:
    more = "may" if fact["may_charge_more"] else "may not"
    consequence = "" if fact["may_charge_more"] else ": one that comes to more to pay is reported, not billed"
    return (
        f"What becomes known of a month within {duration(fact['within'])} after its end is adjusted on a later invoice; what becomes "
        f"known after that is only reported. An adjustment {more} charge the customer more{consequence}."
    )


def _rounding(fact: Fact, facts: Facts) -> str:
    half = {"half_up": "up, away from zero", "half_even": "to the even neighbour"}[fact["rounding"]]
    return f"Each line of an invoice is computed exactly and rounded once, a half {half}. Totals are sums of rounded lines."


def _tax(fact: Fact, facts: Facts) -> str:
    if fact["rate"] is None:
        return "No tax is added."
    return f"{quoted(fact['name'])} of {number_text(fact['rate'])} of the taxable amount is added, rounded once."


def _payment(fact: Fact, facts: Facts) -> str:
    if fact["due"] is None:
        return "The contract says neither when nor where to pay."
    return f"An invoice is due within {duration(fact['due'])} of its date of issue. Payment details: {quoted(fact['details'])}."


def _minimum(fact: Fact, facts: Facts) -> str:
    if fact["minimum"] is None:
        return "There is no minimum commitment."
    minimum = f"{number_text(fact['minimum'])} {currency_of(facts)}"
    return (
        f"The charges of a month are at least {minimum} before refunds and tax, also where the contract covers only a part of the month: "
        "if they are less, one line lifts them to it."
    )


def _approvals(fact: Fact, facts: Facts) -> str:
    if not fact["roles"].names:
        return "The file requires no approval."
    return f"This version requires the approval of {names(fact['roles'].names)}."


def _rates(fact: Fact, facts: Facts) -> str:
    rates = {kind: number_text(fact[kind]) for kind in ("input", "cached_input", "output")}
    return (
        f"The base rates of {quoted(fact.subject[0])}, in {currency_of(facts)} per 1,000,000 tokens, are {rates['input']} for input "
        f"tokens that were not cached, {rates['cached_input']} for cached input tokens and {rates['output']} for output tokens."
    )


def _variant(fact: Fact, facts: Facts) -> str:
    model, variant = map(quoted, fact.subject)
    return (
        f"Requests served as {variant}, a weaker variant of {model}, have the rates of {model}; the multiplier of their price, queue "
        f"included, is never more than {number_text(fact['max_multiplier'])}."
    )


def _accepts(fact: Fact, facts: Facts) -> str:
    count = fact["count"]
    if not count:
        return "The file accepts no warning."
    return f"The file accepts {count} warning{plural(count)} of its check, as read and meant."


def _accepted(fact: Fact, facts: Facts) -> str:
    meaning = WARNINGS.get(fact["warning"])
    return f"Accepted is {quoted(fact['warning'])}{f' ({meaning})' if meaning else ''}, with the reason {quoted(fact['reason'])}."


def _examples(fact: Fact, facts: Facts) -> str:
    count = fact["count"]
    return f"The contract states {count or 'no'} example{plural(count)}."


def _field(name: str, value: Any) -> str:
    if name in FIELDS:
        return f"{FIELDS[name]} {quoted(value)}"
    if name in TIMES:
        return f"{TIMES[name]} {duration(value)}"
    if name in TOKENS:
        return f"{grouped_count(value)} {TOKENS[name]}"
    match name:
        case "received_at":
            return f"received at {value.text}"
        case "status":
            return f"HTTP status {value}"
        case _:
            return "with the header of asynchronous processing" if value else "without the header of asynchronous processing"


def _interval(interval: Mapping[str, Any]) -> str:
    where = [f"{name} {quoted(interval[name])}" for name in ("node", "model") if interval[name] is not None]
    span = f"from {interval['start'].text} to before {interval['end'].text}"
    return " ".join([INTERVALS[interval["kind"]], *(["on", " for ".join(where)] if where else []), span])


def _window(window: Mapping[str, Any], percentile: str) -> str:
    size = "" if window["requests"] is None else f" and {grouped_count(window['requests'])} request{plural(window['requests'])}"
    return f"a window at {window['at'].text} with a P{percentile} of {duration(window['p99'])}{size}"


def _example(fact: Fact, facts: Facts) -> str:
    given = [_interval(interval) for interval in fact["intervals"]]
    given += [f"a request ({', '.join(_field(name, value) for name, value in event.items())})" for event in fact["events"]]
    percentile = number_text(facts.of(FactCode.PROMISE)["percentile"])
    given += [_window(one, percentile) for one in fact["windows"]]
    expected = []
    if fact["band"] is not None:
        expected.append(f"priced as {', '.join(BANDS.get(band) or quoted(band) for band in fact['band'])}")
    if fact["multiplier"] is not None:
        multipliers = ("none" if one is None else number_text(one) for one in fact["multiplier"])
        expected.append(f"multiplier {', '.join(multipliers)}")
    if fact["objective"] is not None:
        expected.append(", ".join(IN_OBJECTIVE[one] for one in fact["objective"]))
    if fact["charge"] is not None:
        expected.append(f"charge before rounding {number_text(fact['charge'])} {currency_of(facts)}")
    if fact["results"] is not None:
        expected.append(", ".join(RESULTS[result] for result in fact["results"]))
    return f"{quoted(fact['it'])}: given {'; '.join(given)}, the contract gives: {'; '.join(expected)}."


SENTENCES: Mapping[FactCode, Say] = {
    FactCode.SCHEMA: lambda fact, _: f"The file is written in the contract language {quoted(fact['schema'])}.",
    FactCode.ID: lambda fact, _: f"The contract is kept under the name {quoted(fact['id'])}.",
    FactCode.VERSION: lambda fact, _: f"This is version {fact['version']} of the contract.",
    FactCode.REPLACES: lambda fact, _: (
        "This version replaces no earlier one."
        if fact["replaces"] is None
        else f"This version replaces version {fact['replaces']} on the days that both cover, as if that one had not been in force then."
    ),
    FactCode.TITLE: lambda fact, _: (
        "The contract has no title." if fact["title"] is None else f"The title of the contract is {quoted(fact['title'])}."
    ),
    FactCode.GOVERNING_TEXT: _governing_text,
    FactCode.PARTY: _party,
    FactCode.ACCOUNTS: _accounts,
    FactCode.EFFECTIVE: _effective,
    FactCode.TIMEZONE: lambda fact, _: f"Days and months are those of the time zone {quoted(fact['timezone'])}.",
    FactCode.BILLING_PERIOD: lambda fact, _: (
        f"What is billed is the calendar {fact['period']}. A request belongs to the day and month in which the gateway received it in full."
    ),
    FactCode.GRACE: lambda fact, _: f"A month is settled finally {duration(fact['grace'])} after its end at the earliest.",
    FactCode.CORRECTIONS: _corrections,
    FactCode.CURRENCY: lambda fact, _: (
        f"The currency is {fact['currency']}; its amounts have {fact['digits'] or 'no'} digit{plural(fact['digits'])} after the point."
    ),
    FactCode.ROUNDING: _rounding,
    FactCode.TAX: _tax,
    FactCode.PAYMENT: _payment,
    FactCode.MINIMUM: _minimum,
    FactCode.APPROVALS: _approvals,
    FactCode.MODEL_OF_REQUEST: lambda fact, _: (
        "A request served under a name that no model of the contract has is not billed at zero: if it would be billed or is in the "
        "objective, its month is not settled until that is corrected."
    ),
    FactCode.SERVED_AS: lambda fact, _: (
        f"Requests to the model {quoted(fact.subject[0])} are those that the telemetry says were served as "
        f"{names(fact['names'].names, 'or')}."
    ),
    FactCode.RATES: _rates,
    FactCode.VARIANT: _variant,
    FactCode.ACCEPTS: _accepts,
    FactCode.ACCEPTED: _accepted,
    FactCode.EXAMPLES: _examples,
    FactCode.EXAMPLE: _example,
}
