"""What must hold within one version of a contract. Takes the sections that could be read, gives a finding for every breach of a rule.

A rule names the sections that it looks at and is asked as soon as all of them could be read, so that one run shows as much as it can.
What a single scalar or key must be is proved where it is read. Source: specification, section 3, "Rules the validator proves".
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

from ledger.contract.diagnostic import Finding, Path
from ledger.contract.example import Example, ExampleEvent
from ledger.contract.expression import BUILT_IN, NAMES
from ledger.contract.model import (
    CircuitBreaker,
    Effective,
    Exemption,
    ExemptionKind,
    Latency,
    Model,
    Money,
    Objective,
    Parties,
    Pricing,
    Queues,
    Refund,
    Tier,
    served_names,
)
from ledger.contract.scalar import UNIT_US, currency_digits, duration_text
from ledger.contract.suggestion import did_you_mean, listed, near_match
from ledger.contract.whole_numbers import LARGEST_RESULT_US, MOST_DIGITS, size_of

RESERVED_TIERS = (*ExemptionKind, "missing_latency", "cancelled", "refund", "failed")
RESERVED_DEFINITIONS = (*BUILT_IN, *(name for name in NAMES if name not in BUILT_IN), "min", "max", "if", "and", "or", "not")

ONE = Decimal(1)
MOST_PRICE_DIGITS = 20  # in minor units; with the tokens of a billion of the largest requests an amount has 35 digits, and the books 38

Rule = Callable[..., Iterator[Finding]]
_RULES: list[tuple[Rule, tuple[str, ...]]] = []


def _rule(*sections: str) -> Callable[[Rule], Rule]:
    """Enters a rule, which is called with these sections in this order."""

    def enter(rule: Rule) -> Rule:
        _RULES.append((rule, sections))
        return rule

    return enter


def check_sections(sections: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings of all rules whose sections are given, by the model's names of the sections."""
    for rule, needed in _RULES:
        if all(name in sections for name in needed):
            yield from rule(*(sections[name] for name in needed))


@_rule("version", "replaces")
def _replaces_an_earlier_version(version: int, replaces: int | None) -> Iterator[Finding]:
    if replaces is not None and replaces >= version:
        yield Finding(
            code="replaces_later_version",
            path=("replaces",),
            found=f"version {version}, which replaces version {replaces}",
            expected="a version that replaces one with a lower number",
            cure=f"name a version below {version}, or give this version a higher number",
        )


@_rule("effective")
def _effective_has_days(effective: Effective) -> Iterator[Finding]:
    if effective.until is not None and effective.until <= effective.start:
        yield Finding(
            code="no_days",
            path=("effective", "until"),
            found=f"until {effective.until}, from {effective.start}",
            expected="an `until` after `from`",
            cure="`until` is the first day on which the version is no longer in force: correct it, or leave it out",
        )


@_rule("money", "minimum_commitment")
def _minimum_fits_currency(money: Money, minimum: Any) -> Iterator[Finding]:
    digits = currency_digits(money.currency)
    if minimum is not None and -minimum.as_tuple().exponent > digits:
        is_thousands = minimum.as_tuple().exponent == -3
        thousands = f"; if the point parts thousands, leave it out: `{str(minimum).replace('.', '')}`" if is_thousands else ""
        yield Finding(
            code="too_many_digits",
            path=("minimum_commitment",),
            found=f"`{minimum}`",
            expected=f"an amount of {money.currency}, which has {digits} digits after the point",
            cure=f"write an amount that can be paid{thousands}",
        )


@_rule("models", "pricing", "queues", "exemptions", "refund", "money")
def _amounts_fit_into_the_books(
    models: Mapping[str, Model], pricing: Pricing, queues: Queues, exemptions: tuple[Exemption, ...], refund: Refund, money: Money
) -> Iterator[Finding]:
    """Of the highest price that the contract can come to, told of its largest factor: a close could not post what it makes of a month."""
    rates: list[tuple[Path, Decimal]] = [
        (("models", name, "per_million_tokens", kind), rate) for name, model in models.items() for kind, rate in model.per_million_tokens
    ]
    bands: list[tuple[Path, Decimal]] = [(("pricing", "missing_latency", "multiplier"), pricing.missing_latency.multiplier)]
    bands += [(("pricing", "tiers", at, "multiplier"), tier.multiplier) for at, tier in enumerate(pricing.tiers)]
    bands += [(("exemptions", at, "multiplier"), exemption.multiplier) for at, exemption in enumerate(exemptions)]
    of_queues: list[tuple[Path, Decimal]] = [
        (("queues", name, "multiplier"), terms.multiplier or ONE) for name, terms in queues.by_name.items()
    ]
    others: list[tuple[Path, Decimal]] = [(("refund", "tokens"), Decimal(refund.tokens))]
    others += [(("money", "tax", "rate"), ONE + money.tax.rate)] if money.tax else []
    factors = [max(some, key=lambda each: each[1]) for some in (rates, bands, of_queues) if some] + others
    price = prod(max(Fraction(factor), Fraction(1)) for _, factor in factors)
    most = MOST_PRICE_DIGITS - currency_digits(money.currency)
    if price >= 10**most:
        yield Finding(
            code="price_too_large",
            path=max(factors, key=lambda each: each[1])[0],
            found=f"a price of {len(str(int(price)))} digits for 1,000,000 tokens: rate, multipliers, factor of a refund and tax together",
            expected=f"at most {most} digits before the point",
            cure="write less of them: what a month comes to has to fit into the books",
        )


@_rule("models")
def _served_names_are_unique(models: Mapping[str, Model]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for served, model, _, path in served_names(models):
        if served in first:
            yield Finding(
                code="served_name_twice",
                path=path,
                found=f"the served name `{served}` of `{model}`, which `{first[served]}` has already",
                expected="each served name once",
                cure="remove it here or there: an event must have one price",
            )
        else:
            first[served] = model


@_rule("latency")
def _definitions_have_names_of_their_own(latency: Latency) -> Iterator[Finding]:
    for name in latency.define:
        if name in RESERVED_DEFINITIONS:
            yield Finding(
                code="reserved_definition",
                path=("latency", "define", name),
                at_key=True,
                found=f"a definition called `{name}`",
                expected="a name that means nothing yet",
                cure=f"call it something else, for example my_{name}",
            )


@_rule("latency")
def _latencies_are_known(latency: Latency) -> Iterator[Finding]:
    known = [*BUILT_IN, *latency.define]
    used: list[tuple[Path, str]] = [(("latency", "default"), latency.default)]
    used += [(("latency", "by_queue", queue), name) for queue, name in latency.by_queue.items()]
    for path, name in used:
        if name not in known:
            yield Finding(
                code="unknown_latency",
                path=path,
                found=f"`{name}`",
                expected=f"one of {listed(known)}",
                cure=did_you_mean(name, known, "define it under `define`"),
            )


@_rule("latency")
def _definitions_can_be_computed(latency: Latency) -> Iterator[Finding]:
    for name, definition in latency.define.items():
        size = size_of(definition.tree)
        if size.step >= 10**MOST_DIGITS:
            yield Finding(
                code="definition_too_large",
                path=("latency", "define", name),
                found=f"a definition that needs numbers of {len(str(size.step))} digits",
                expected=f"one that needs at most {MOST_DIGITS}",
                cure="digits after the point add up where decimals are multiplied: write fewer of them, or multiply fewer decimals",
            )
        elif size.result_us > LARGEST_RESULT_US:
            yield Finding(
                code="definition_too_large",
                path=("latency", "define", name),
                found=f"a latency of up to {size.result_us // UNIT_US['d']:,} days, of the largest measurements that a request can have",
                expected=f"at most {LARGEST_RESULT_US // UNIT_US['d']:,} days",
                cure="multiply by less, or bound it: min(..., 1d)",
            )


def _undeclared(queue: str, path: Path, queues: Queues, *, at_key: bool = False) -> Iterator[Finding]:
    if queue not in queues.by_name:
        yield Finding(
            code="undeclared_queue",
            path=path,
            at_key=at_key,
            found=f"the queue `{queue}`",
            expected=f"one of {listed(list(queues.by_name)) or 'the queues, of which none is declared'}",
            cure=did_you_mean(queue, queues.by_name, "declare it under `queues`"),
        )


@_rule("latency", "queues")
def _queues_with_a_latency_are_declared(latency: Latency, queues: Queues) -> Iterator[Finding]:
    for queue in latency.by_queue:
        yield from _undeclared(queue, ("latency", "by_queue", queue), queues, at_key=True)


@_rule("objective", "queues")
def _queues_in_the_objective_are_declared(objective: Objective, queues: Queues) -> Iterator[Finding]:
    for at, queue in enumerate(objective.queues):
        yield from _undeclared(queue, ("objective", "queues", at), queues)


@_rule("exemptions", "queues")
def _exempt_queues_are_declared(exemptions: tuple[Exemption, ...], queues: Queues) -> Iterator[Finding]:
    for at, exemption in enumerate(exemptions):
        if isinstance(exemption, CircuitBreaker):
            for entry, queue in enumerate(exemption.queues):
                yield from _undeclared(queue, ("exemptions", at, "queues", entry), queues)


@_rule("examples", "queues")
def _queues_of_examples_are_declared(examples: tuple[Example, ...], queues: Queues) -> Iterator[Finding]:
    for path, event in _example_events(examples):
        if event.queue is not None:
            yield from _undeclared(event.queue, (*path, "queue"), queues)


@_rule("pricing")
def _tiers_have_names_of_their_own(pricing: Pricing) -> Iterator[Finding]:
    names = [tier.name for tier in pricing.tiers]
    for at, name in enumerate(names):
        path: Path = ("pricing", "tiers", at, "name")
        if name in RESERVED_TIERS:
            cure = "call it something else: invoice lines carry this name for another reason"
            yield Finding(code="reserved_tier", path=path, found=f"a tier called `{name}`", expected="a name of its own", cure=cure)
        if name in names[:at]:
            cure = "give each tier its own name: invoice lines are told apart by it"
            yield Finding(code="tier_twice", path=path, found=f"a second tier called `{name}`", expected="each name once", cure=cure)


@_rule("pricing")
def _tiers_cover_every_latency_once(pricing: Pricing) -> Iterator[Finding]:
    """Each gap and each overlap is shown with a latency in it."""
    tiers = sorted(enumerate(pricing.tiers), key=lambda numbered: (numbered[1].latency.from_us, numbered[0]))
    covered_us: int | None = 0  # every latency below is covered; None: every latency
    last = None
    for at, tier in tiers:
        span = tier.latency
        if covered_us is not None and span.from_us > covered_us:
            yield _gap(at, covered_us, last, tier)
        elif last is not None and (covered_us is None or span.from_us < covered_us):
            yield Finding(
                code="tier_overlap",
                path=("pricing", "tiers", at, "latency"),
                found=f"two prices for {duration_text(span.from_us)}: `{last.name}` ({last.latency.text}) and `{tier.name}` ({span.text})",
                expected="exactly one tier for every latency",
                cure="let one of them end where the other begins: use `a ..< b` or `> a` to leave an edge out",
            )
        if covered_us is not None and (span.until_us is None or span.until_us > covered_us):
            covered_us, last = span.until_us, tier
    if covered_us is not None:
        yield _gap(tiers[-1][0] if tiers else None, covered_us, last, None)


def _gap(at: int | None, latency_us: int, before: Tier | None, after: Tier | None) -> Finding:
    """No tier has this latency; the ones next to it are `before` and `after`, None where there is none."""
    ends, begins = (f"`{tier.name}` ({tier.latency.text})" if tier else "" for tier in (before, after))
    if before and after:
        why = f"{ends} ends below it and {begins} begins above it"
        longer = _span_text(before.latency.from_us, after.latency.from_us)
        cure = f"write `{longer}` for `{before.name}`, or let `{after.name}` begin sooner"
    elif after:
        why = f"{begins}, the fastest tier, begins above it"
        cure = f"write `{_span_text(0, after.latency.until_us)}` for `{after.name}`, or add a tier below it"
    elif before:
        why = f"{ends}, the slowest tier, ends below it"
        cure = f"write `{_span_text(before.latency.from_us, None)}` for `{before.name}`, or add a tier above it"
    else:
        why, cure = "there is no tier", "write the tiers of the agreement; a single one for all latencies is `>= 0ms`"
    return Finding(
        code="tier_gap",
        path=("pricing", "tiers") if at is None else ("pricing", "tiers", at, "latency"),
        found=f"no price for {duration_text(latency_us)}: {why}",
        expected="a tier for every latency, from 0 without end",
        cure=cure,
    )


def _span_text(from_us: int, until_us: int | None) -> str:
    """Latencies from_us <= L < until_us as a tier writes them, with the shorter of the two ways to name an edge.

    >>> _span_text(0, 100_000), _span_text(0, 300_001), _span_text(100_000, 300_001), _span_text(100_000, 300_000)
    ('< 100ms', '<= 300ms', '100ms .. 300ms', '100ms ..< 300ms')
    >>> _span_text(300_001, None), _span_text(0, None)
    ('> 300ms', '>= 0ms')
    """

    def is_beyond(edge_us: int) -> bool:
        return edge_us > 0 and len(duration_text(edge_us - 1)) < len(duration_text(edge_us))

    if until_us is None:
        return f"> {duration_text(from_us - 1)}" if is_beyond(from_us) else f">= {duration_text(from_us)}"
    included = is_beyond(until_us)
    end = duration_text(until_us - 1 if included else until_us)
    if from_us == 0:
        return f"{'<=' if included else '<'} {end}"
    return f"{duration_text(from_us)} {'..' if included else '..<'} {end}"


@_rule("examples", "models", "parties")
def _examples_speak_of_this_contract(examples: tuple[Example, ...], models: Mapping[str, Model], parties: Parties) -> Iterator[Finding]:
    served = [name for name, _, _, _ in served_names(models)]
    for path, event in _example_events(examples):
        for key, value, known in (("model", event.model, served), ("account", event.account, list(parties.customer.accounts))):
            if value is not None and value not in known:
                near = near_match(value, known)
                found = f"the {key} `{value}`"
                cure = f"{f'write `{near}` if it is meant' if near else 'name one of these'}; if it left the contract, remove the example"
                yield Finding(code="bad_example", path=(*path, key), found=found, expected=f"one of {listed(known)}", cure=cure)


@_rule("examples")
def _examples_expect_something_for_each(examples: tuple[Example, ...]) -> Iterator[Finding]:
    for at, example in enumerate(examples):
        path: Path = ("examples", at)
        expect = example.expect
        lists: tuple[tuple[str, tuple[object, ...] | None, str], ...] = (
            ("band", expect.band, "events"),
            ("multiplier", expect.multiplier, "events"),
            ("objective", expect.objective, "events"),
            ("results", expect.results, "windows"),
        )
        for key, expected, what in lists:
            count = len(example.events) if what == "events" else len(example.windows)
            if expected is not None and len(expected) != count:
                found = f"a list of {len(expected)} for {count} {what if count != 1 else what[:-1]}"
                cure = f"write one entry for each of the {what}"
                yield Finding(code="bad_example", path=(*path, "expect", key), found=found, expected=f"a list of {count}", cure=cure)
        says_something = expect.charge is not None or any(expected is not None for _, expected, _ in lists)
        if not says_something or bool(example.events) == bool(example.windows) or (expect.charge is not None and not example.events):
            yield Finding(
                code="bad_example",
                path=path,
                found=f"{len(example.events)} events, {len(example.windows)} windows and what they should give",
                expected="either events with band, multiplier, objective or charge, or windows with results",
                cure="make it two examples, or add what is missing",
            )


@_rule("examples")
def _circumstances_of_examples_are_possible(examples: tuple[Example, ...]) -> Iterator[Finding]:
    """Of intervals what `interval add` asks of them, and windows with requests. Events are judged by the rules of events when they run."""

    def wrong(path: Path, found: str, expected: str, cure: str) -> Finding:
        return Finding(code="bad_example", path=path, found=found, expected=expected, cure=cure)

    for at, example in enumerate(examples):
        if example.intervals and not example.events:
            yield wrong(("examples", at, "intervals"), "intervals without events", "events that lie in them", "remove them")
        for entry, interval in enumerate(example.intervals):
            path: Path = ("examples", at, "intervals", entry)
            if interval.end <= interval.start:
                yield wrong(path, "an interval that does not end after its start", "an end after the start", "exchange or correct them")
            if interval.kind == "model_load" and (interval.node is None or interval.model is None):
                yield wrong(path, "a model_load without its node or its model", "both", "add what is missing")
        for entry, window in enumerate(example.windows):
            if window.requests == 0:
                path = ("examples", at, "windows", entry, "requests")
                yield wrong(path, "a window without requests", "at least 1", "leave `requests` out for as many as are judged")


def _example_events(examples: tuple[Example, ...]) -> Iterator[tuple[Path, ExampleEvent]]:
    for at, example in enumerate(examples):
        for entry, event in enumerate(example.events):
            yield ("examples", at, "events", entry), event
