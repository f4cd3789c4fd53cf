"""What a contract says but probably does not mean. Takes a contract that breaks no rule, gives warnings that `accept` silences.

Each warning has a function of its own, in _LINTS in the order of the specification. Source: specification, section 3, "Lint".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import ceil

from ledger.contract.diagnostic import Finding, Path, Severity, warning
from ledger.contract.expression import BUILT_IN, words_of
from ledger.contract.lint_figures import FIGURE_LINTS, percent_text
from ledger.contract.model import Async, CircuitBreaker, Contract
from ledger.contract.scalar import duration_text
from ledger.instant import MICROSECOND

BREAKER_SHARE = Fraction(5, 100)  # of the month; more means that the breaker, and not the objective, rules

# Countries all of whose zones keep UTC the whole year: for them a month of UTC is the local month.
COUNTRIES_ON_UTC = frozenset({"BF", "CI", "GH", "GM", "GN", "IS", "LR", "ML", "MR", "SH", "SL", "SN", "ST", "TG"})

# Zones of the IANA database that are days of UTC, there also after Etc/, and those that name a time whose clocks no place need keep.
NAMES_OF_UTC = frozenset({"UTC", "UCT", "Universal", "Zulu", "GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich"})
ZONES_BY_ABBREVIATION = frozenset({"CET", "EET", "MET", "WET", "EST", "HST", "MST", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"})

# What a value of a template of `ledger contract new` holds, and hardly one of a real contract does.
TEMPLATE_MARKS = ("EXAMPLE", "示例")


def lint(contract: Contract, of_file: Iterable[Finding] = ()) -> tuple[Finding, ...]:
    """The warnings that the contract does not accept, those of its file among them, and one for every useless `accept`."""
    found = [*of_file] + [finding for function in (*_LINTS, *FIGURE_LINTS) for finding in function(contract)]
    accepted = {entry.code for entry in contract.accept}
    occurring = {finding.code for finding in found} | {"breaker_share"}  # which only a settlement can see
    silent = [finding for finding in found if finding.code not in accepted]
    return (*silent, *_useless_accepts(contract, occurring))


def lint_breaker_share(
    contract: Contract, intervals: Sequence[tuple[datetime, datetime]], period_start: datetime, period_end: datetime
) -> tuple[Finding, ...]:
    """A warning if breaker intervals [start, end) together cover more than 5 % of the period and the contract does not accept it."""
    exempting = [at for at, exemption in enumerate(contract.exemptions) if isinstance(exemption, CircuitBreaker)]
    if not exempting or any(entry.code == "breaker_share" for entry in contract.accept):
        return ()
    covered = timedelta()
    covered_until = period_start
    for start, end in sorted(intervals):
        covered += max(min(end, period_end) - max(start, covered_until), timedelta())
        covered_until = max(covered_until, min(end, period_end))
    share = Fraction(covered // MICROSECOND, (period_end - period_start) // MICROSECOND)
    if share <= BREAKER_SHARE:
        return ()
    found = f"an open circuit breaker for {percent_text(share)} of the period"
    cure = "check the recorded intervals: requests in them are outside the objective"
    return (warning("breaker_share", ("exemptions", exempting[0]), found, "at most 5%", cure),)


def _useless_accepts(contract: Contract, occurring: set[str]) -> Iterator[Finding]:
    for at, entry in enumerate(contract.accept):
        if entry.code not in occurring:
            found = f"`{entry.code}` accepted, which does not occur"
            cure = "remove it, so that the warning is seen should it ever occur"
            yield warning("useless_accept", ("accept", at, "code"), found, "the code of a warning of this contract", cure)


def _target_at_a_tier_edge(contract: Contract) -> Iterator[Finding]:
    """At an edge means: the latencies that meet the target and those that do not have different tiers, or the target begins a tier."""
    target_us = contract.objective.target_us
    edges = {tier.latency.from_us for tier in contract.pricing.tiers}
    if target_us in edges or target_us + 1 in edges:
        return
    for tier in contract.pricing.tiers:
        span = tier.latency
        if span.from_us <= target_us and (span.until_us is None or target_us < span.until_us):
            late = ""
            if span.until_us is not None:
                late = f", {percent_text(Fraction(span.until_us - target_us - 1, span.until_us - span.from_us))} of the tier,"
            target = duration_text(target_us)
            yield warning(
                "target_inside_tier",
                ("objective", "target"),
                f"the target {target} inside the tier `{tier.name}` ({span.text}), whose latencies above {target}{late} are late",
                "a target where one tier ends and the next begins",
                f"a late request would cost as much as one on time: move the target, or let a tier end at {target}",
            )


def _latency_to_the_last_token(contract: Contract) -> Iterator[Finding]:
    edges = [tier.latency.until_us for tier in contract.pricing.tiers if tier.latency.until_us is not None]
    if not edges or min(edges) >= 1_000_000:
        return
    used: list[tuple[Path, str]] = [(("latency", "default"), contract.latency.default)]
    used += [(("latency", "by_queue", queue), name) for queue, name in contract.latency.by_queue.items()]
    for path, name in used:
        if _reaches_last_token(contract, name):
            found = f"`{name}`, which lasts to the last token, with a tier that ends at {duration_text(min(edges))}"
            cure = "long answers leave such tiers by their length alone: say first_token if that is meant"
            yield warning("last_token", path, found, "tiers of at least 1s, or first_token", cure)


def _reaches_last_token(contract: Contract, latency: str) -> bool:
    words = [BUILT_IN[latency]] if latency in BUILT_IN else words_of(contract.latency.define[latency].text)
    return not {"e2e", "inference", "decode"}.isdisjoint(words)


def _limit_is_confirmed(contract: Contract) -> Iterator[Finding]:
    for at, exemption in enumerate(contract.exemptions):
        if isinstance(exemption, Async) and exemption.input_tokens.tokens in (16000, 16384):
            found = f"a limit of {exemption.input_tokens.tokens} tokens"
            cure = "confirm which is meant, 16000 or 16384, and accept the warning"
            yield warning("limit_16k", ("exemptions", at, "input_tokens"), found, "the number that the agreement means by 16k", cure)


def _calendar_of_a_party(contract: Contract) -> Iterator[Finding]:
    if contract.calendar.timezone.removeprefix("Etc/") not in NAMES_OF_UTC:
        return
    for role, party in (("provider", contract.parties.provider), ("customer", contract.parties.customer)):
        country = re.split("[ ,]+", party.address[-1])[-1]
        if country in _countries() and country not in COUNTRIES_ON_UTC:
            found = f"{contract.calendar.timezone}, with a {role} in {country}"
            cure = "days and months would not be those of the parties: write their zone"
            yield warning("utc_calendar", ("calendar", "timezone"), found, f"a zone of {country}", cure)


def _zone_is_of_a_place(contract: Contract) -> Iterator[Finding]:
    zone, path = contract.calendar.timezone, ("calendar", "timezone")
    expected, cure = "a zone by region and city, such as Europe/Paris", "write the zone of the parties"
    if match := re.fullmatch(r"Etc/GMT([+-])([1-9][0-9]?)", zone):
        sign = {"+": "-", "-": "+"}[match[1]]
        yield warning("zone_without_place", path, f"{zone}, which is {sign}{match[2]} hours from UTC: its sign is reversed", expected, cure)
    elif zone in ZONES_BY_ABBREVIATION:
        yield warning("zone_without_place", path, f"{zone}, the abbreviation of a time and no place", expected, cure)


@cache
def _countries() -> frozenset[str]:
    """The country codes of the installed tzdata package."""
    lines = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text("utf-8").splitlines()
    return frozenset(line.split("\t")[0] for line in lines if not line.startswith("#"))


def _refund_has_a_cap(contract: Contract) -> Iterator[Finding]:
    if contract.refund.cap is None:
        cure = "refunds could exceed the charges: write a share such as 100%"
        yield warning("no_cap", ("refund", "cap"), "a refund without cap", "a cap", cure)


def _refund_at_base_rate(contract: Contract) -> Iterator[Finding]:
    if contract.refund.valued_at != "base_rate":
        return
    target_us = contract.objective.target_us
    late = [tier for tier in contract.pricing.tiers if tier.latency.until_us is None or tier.latency.until_us > target_us + 1]
    lowest = min(late, key=lambda tier: tier.multiplier)
    charged, repaid = percent_text(Fraction(lowest.multiplier)), percent_text(Fraction(contract.refund.tokens))
    found = f"base_rate: a late request charged {charged} (`{lowest.name}`) is repaid {repaid} of the base"
    cure = "write charged_rate, or accept the warning if that is meant"
    yield warning("base_rate_refund", ("refund", "valued_at"), found, "a refund of what was charged", cure)


def _cancelled_requests_are_billed(contract: Contract) -> Iterator[Finding]:
    if contract.outcomes.cancelled.bill == "nothing":
        cure = "a client that closes before the last token would pay nothing: write produced"
        yield warning(
            "cancelled_free",
            ("outcomes", "cancelled", "bill"),
            "`nothing` billed for cancelled requests",
            "a bill for what was produced",
            cure,
        )


def _shedding_load_is_not_free(contract: Contract) -> Iterator[Finding]:
    if contract.outcomes.rate_limited.objective == "exclude":
        cure = "the provider could keep its promise by refusing requests: write late"
        found, expected = "`exclude`: requests that are refused with status 429 are outside the objective", "429 answers that count as late"
        yield warning("shedding_free", ("outcomes", "rate_limited", "objective"), found, expected, cure)


def _one_late_request_is_no_breach(contract: Contract) -> Iterator[Finding]:
    objective = contract.objective
    requests = 1 if objective.small_windows == "evaluate" else max(objective.min_requests, 1)
    needed = ceil(1 / (1 - Fraction(objective.percentile)))  # the fewest of which one may be late
    if requests < needed:
        path = ("objective", "small_windows" if objective.small_windows == "evaluate" else "min_requests")
        found = f"windows of {requests} request{'s' * (requests > 1)}, of which a single late one is a breach"
        percentile = objective.percentile.scaleb(2).normalize()
        expected = f"at least {needed} requests for P{percentile:f}"
        yield warning("single_late_breach", path, found, expected, f"write min_requests: {needed} and skip or pool_day")


def _standard_queue_is_end_to_end(contract: Contract) -> Iterator[Finding]:
    by_queue = "standard" in contract.latency.by_queue
    latency = contract.latency.by_queue["standard"] if by_queue else contract.latency.default
    if latency == "inference" and "standard" in contract.queues.by_name:
        path: Path = ("latency", "by_queue", "standard") if by_queue else ("latency", "default")
        found = "`inference` for the queue `standard`: the wait in the queue is not part of the latency"
        cure = "whoever uses a service in real time waits in the queue too, and no such wait would ever be late: write end_to_end"
        yield warning("inference_latency", path, found, "end_to_end for the queue of requests that name none", cure)


def _percentile_is_high(contract: Contract) -> Iterator[Finding]:
    if contract.objective.percentile < Decimal("0.99"):
        late = percent_text(1 - Fraction(contract.objective.percentile))
        found = f"P{contract.objective.percentile.scaleb(2).normalize():f}: in each window {late} of the requests may be late"
        cure = "so many are rarely agreed: write 99, or accept the warning if they are meant"
        yield warning("low_percentile", ("objective", "percentile"), found, "a percentile of at least 99", cure)


def _nothing_is_the_templates(contract: Contract) -> Iterator[Finding]:
    """One for each key, value or entry of a list that holds one of TEMPLATE_MARKS; examples follow the rest."""
    for path, text, at_key in _named(contract):
        if any(mark in text for mark in TEMPLATE_MARKS):
            cure = "write the name that is meant, in the examples too" if at_key else "write what the agreement says"
            yield Finding(
                severity=Severity.WARNING,
                code="template_value",
                path=path,
                at_key=at_key,
                found=f"`{text}`, a value of the template",
                expected="a value of your own",
                cure=cure,
            )


def _named(contract: Contract) -> Iterator[tuple[Path, str, bool]]:
    """The texts in which contracts of one kind differ, their paths and whether they are keys."""
    yield ("id",), contract.id, False
    yield ("title",), contract.title or "", False
    for role, party in (("provider", contract.parties.provider), ("customer", contract.parties.customer)):
        yield ("parties", role, "name"), party.name, False
        yield ("parties", role, "tax_id"), party.tax_id, False
        yield from _entries(("parties", role, "address"), party.address)
    yield from _entries(("parties", "customer", "accounts"), contract.parties.customer.accounts)
    if contract.payment is not None:
        yield ("payment", "details"), contract.payment.details, False
    for name, model in contract.models.items():
        yield ("models", name), name, True
        yield from _entries(("models", name, "served_as"), model.served_as or ())
        yield from ((("models", name, "degraded", variant), variant, True) for variant in model.degraded)


def _entries(path: Path, texts: Sequence[str]) -> Iterator[tuple[Path, str, bool]]:
    yield from (((*path, at), text, False) for at, text in enumerate(texts))


def _sections_name_their_clause(contract: Contract) -> Iterator[Finding]:
    sections: list[tuple[Path, str | None]] = [
        (("latency",), contract.latency.clause),
        (("objective",), contract.objective.clause),
        (("pricing",), contract.pricing.clause),
        (("queues",), contract.queues.clause),
        *((("exemptions", at), exemption.clause) for at, exemption in enumerate(contract.exemptions)),
        (("error_budget",), contract.error_budget.clause),
        (("refund",), contract.refund.clause),
    ]
    for path, clause in sections:
        if clause is None:
            cure = "add `clause`, so that an invoice can be traced to the agreement"
            yield warning("no_clause", path, f"no clause for `{path[0]}`", "the clause of the agreement", cure)


_LINTS = (
    _target_at_a_tier_edge,
    _latency_to_the_last_token,
    _limit_is_confirmed,
    _calendar_of_a_party,
    _zone_is_of_a_place,
    _refund_has_a_cap,
    _refund_at_base_rate,
    _cancelled_requests_are_billed,
    _shedding_load_is_not_free,
    _one_late_request_is_no_breach,
    _standard_queue_is_end_to_end,
    _percentile_is_high,
    _nothing_is_the_templates,
    _sections_name_their_clause,
)
