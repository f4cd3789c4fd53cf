"""Random valid contracts: one or several versions of one contract, every setting of the specification's section 3 that moves money.

Small on purpose: short windows, few requests needed, tight budgets, so that a hundred requests meet every rule.
"""

from datetime import date, timedelta
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.properties.expressions import definitions

Draw = st.DrawFn
Json = dict[str, Any]

# Months in which local days are not what one expects, with the days to look at.
ODD_MONTHS: list[tuple[str, str, tuple[int, ...]]] = [
    ("Asia/Shanghai", "2026-05", (6, 7)),
    ("Asia/Kolkata", "2026-05", (1, 31)),  # half an hour off
    ("Asia/Kathmandu", "2026-02", (28,)),  # a quarter of an hour off
    ("Europe/Paris", "2026-03", (29, 30)),  # 23 hours
    ("Europe/Paris", "2026-10", (24, 25)),  # 25 hours
    ("Australia/Lord_Howe", "2026-04", (5,)),  # half an hour more
    ("Australia/Lord_Howe", "2026-10", (4,)),  # half an hour less
    ("Africa/Cairo", "2026-04", (23, 24)),  # no midnight
    ("America/Sao_Paulo", "2018-11", (3, 4)),  # no midnight
    ("America/Sao_Paulo", "2018-02", (17, 18)),  # 23 o'clock twice
    ("America/Havana", "2020-11", (1, 2)),  # midnight twice
    ("America/St_Johns", "2009-11", (1, 2)),  # the first minute of the month, then an hour of October again
    ("America/St_Johns", "2010-11", (6, 7)),  # the same inside a month
    ("Pacific/Apia", "2011-12", (29, 30, 31)),  # the 30th does not exist
    ("Pacific/Kwajalein", "1993-08", (20, 22)),  # nor the 21st
]
CURRENCIES = ("CNY", "USD", "JPY", "KWD")
RATES = ("2.00", "0.50", "8.00", "7", "0.15", "7.333333", "1000000.000001", "0.000000000001", "0")
MULTIPLIERS = ("1.0", "2.0", "30%", "3.0", "0.5", "12.5%", "0", "1.000000000001")
SERVED = ("a-model", "b/model", "Z-model")
QUEUES_JUDGED = (["standard", "vip", "Gold"], ["standard", "batch", "vip", "Gold"], ["standard"], ["batch", "vip"])
WINDOWS = ("1h", "1d", "15m", "1m", "5m", "10m", "30m", "2h", "3h", "4h", "6h", "8h", "12h", "month")


class TextDumper(yaml.CSafeDumper):
    """Writes every scalar as plain text, as people write contracts: no quotes where none are needed."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML declares it so)


def to_yaml(contract: Json) -> str:
    return yaml.dump(contract, Dumper=TextDumper, sort_keys=False, allow_unicode=True)


def microseconds_text(count: int) -> str:
    return f"{count // 1000}ms" if count % 1000 == 0 else f"{count}us"


@st.composite
def tiers(draw: Draw, low_us: int, high_us: int, top_us: int) -> list[Json]:
    """Tiers that cover every latency once, in each way of writing them."""
    low, high, top = (microseconds_text(edge) for edge in (low_us, high_us, top_us))
    spans = draw(
        st.sampled_from(
            (
                (f"< {low}", f"{low} .. {high}", f"> {high}"),
                (f"< {low}", f"{low} ..< {high}", f">= {high}"),
                (f"<= {high}", f"> {high}"),
                (f"< {high}", f">= {high}"),
                (f"< {low}", f"{low} ..< {high}", f"{high} .. {top}", f"> {top}"),
                (">= 0ms",),
            )
        )
    )
    names = ("fast", "standard", "slow", "Slowest")
    multipliers = draw(st.permutations(("2.0", "1.0", "30%", "0.5")))
    return [{"name": name, "latency": span, "multiplier": by} for name, span, by in zip(names, spans, multipliers, strict=False)]


@st.composite
def queues(draw: Draw) -> dict[str, Json]:
    """Four queue classes; `standard` is always one."""
    declared: dict[str, Json] = {"standard": {}}
    for name in ("batch", "vip", "Gold"):
        queue: Json = {}
        if draw(st.booleans()) or name == "vip":
            queue["multiplier"] = draw(st.sampled_from(("3.0", "1.5", "0.5")))
            queue["combine"] = draw(st.sampled_from(("multiply", "highest")))
        if draw(st.booleans()):
            queue["max_queue"] = draw(st.sampled_from(("20ms", "100ms")))
            queue["over_limit"] = draw(st.sampled_from(("forfeit", "report")))
        declared[name] = queue
    return declared


@st.composite
def exemptions(draw: Draw) -> list[Json]:
    """None to four, in any order, a kind perhaps twice."""
    kinds = draw(st.lists(st.sampled_from(("cold_start", "async", "circuit_breaker")), max_size=4))
    rules = []
    for kind in kinds:
        rule: Json = {"kind": kind}
        if kind == "circuit_breaker":
            rule["queues"] = draw(st.sampled_from((["batch"], ["standard", "batch"], ["vip", "Gold"])))
        elif kind == "async":
            rule["input_tokens"] = draw(st.sampled_from(("> 16000", ">= 16000", "> 15999", "< 3")))
            if draw(st.booleans()):
                rule["evidence"] = "header"
        else:
            rule["limit"] = draw(st.sampled_from(("1", "2", "0")))
            rule["per"] = "day"
            rule["max_duration"] = draw(st.sampled_from(("60s", "600s", "1us", "1d")))
        rule["multiplier"] = draw(st.sampled_from(MULTIPLIERS))
        rules.append(rule)
    return rules


@st.composite
def terms(draw: Draw) -> Json:
    """What the versions of one contract may differ in."""
    target_us = draw(st.sampled_from((300_000, 299_000, 100_000)))
    late_or_exclude = st.sampled_from(("late", "exclude"))
    defined = draw(definitions) if draw(st.integers(0, 2)) == 0 else None
    latency: Json = {"default": "defined" if defined else draw(st.sampled_from(("end_to_end", "inference", "first_token")))}
    if defined:
        latency["define"] = {"defined": defined}
    if draw(st.booleans()):
        latency["by_queue"] = {"batch": draw(st.sampled_from(("inference", "first_token", "end_to_end")))}
    models: Json = {}
    for name in SERVED[: draw(st.integers(1, 3))]:
        model: Json = {"per_million_tokens": {token: draw(st.sampled_from(RATES)) for token in ("input", "cached_input", "output")}}
        if draw(st.booleans()):
            model["served_as"] = [name, f"org/{name}"]
        if draw(st.booleans()):
            model["degraded"] = {f"{name}-4bit": {"max_multiplier": draw(st.sampled_from(("1.0", "0.5", "150%")))}}
        models[name] = model
    return {
        "minimum_commitment": draw(st.sampled_from(("none", "3", "100000"))),
        "models": models,
        "latency": latency,
        "objective": {
            "percentile": draw(st.sampled_from(("99", "90", "50", "66.6", "99.9"))),
            "target": microseconds_text(target_us),
            "window": draw(st.one_of(st.sampled_from(("1h", "15m", "1d", "month")), st.sampled_from(WINDOWS))),
            "scope": draw(st.sampled_from(("model", "contract"))),
            "min_requests": draw(st.sampled_from(("3", "1", "5", "8", "15"))),
            "small_windows": draw(st.sampled_from(("pool_day", "evaluate", "skip"))),
            "max_requests": draw(st.sampled_from(("none", "none", "none", "3", "30"))),
            "queues": draw(
                st.sampled_from((["standard", "vip", "Gold"], ["standard", "batch", "vip", "Gold"], ["standard"], ["batch", "vip"]))
            ),
        },
        "pricing": {
            "tiers": draw(tiers(50_000, target_us, 400_000)),
            "missing_latency": {"multiplier": draw(st.sampled_from(MULTIPLIERS)), "objective": draw(late_or_exclude)},
        },
        "queues": draw(queues()),
        "exemptions": draw(exemptions()),
        "outcomes": {
            **{outcome: {"objective": draw(late_or_exclude)} for outcome in ("server_error", "rate_limited", "client_error")},
            "cancelled": {
                "bill": draw(st.sampled_from(("produced", "nothing"))),
                "objective": draw(st.sampled_from(("late_if_over_target", "exclude"))),
            },
        },
        "error_budget": {
            "breaches": draw(st.sampled_from(("1", "2", "0", "3", "5"))),
            "per": "month",
            "up_to": draw(st.sampled_from(("120%", "115.5%", "100%", "300%"))),
            "order": "chronological",
            "alert_at": draw(st.sampled_from(("80%", "50%", "100%", "85%"))),
        },
        "refund": {
            "of": draw(st.sampled_from(("late_requests", "window"))),
            "tokens": draw(st.sampled_from(("2x", "1x", "5x"))),
            "valued_at": draw(st.sampled_from(("base_rate", "charged_rate"))),
            "failed": draw(st.sampled_from(("none", "input_tokens"))),
            "tax": draw(st.sampled_from(("reduces_base", "outside_scope"))),
            "cap": draw(st.sampled_from(("none", "100%", "33.3%", "1%"))),
        },
    }


@st.composite
def effective_spans(draw: Draw, period: str, hot_days: tuple[int, ...]) -> list[tuple[date, date | None, int | None]]:
    """(from, until, replaces) of each version, cut among the days that have traffic."""
    year, month = int(period[:4]), int(period[5:])
    before, after = date(year - 1, 1, 1), date(year + 1, 6, 1)
    cut = date(year, month, draw(st.sampled_from(hot_days)))
    return draw(
        st.sampled_from(
            (
                [(before, None, None)],
                [(before, cut, None), (cut, after, None)],
                [(before, None, None), (cut, None, None)],
                [(before, after, None), (cut, cut + timedelta(days=1), 1)],
                [(before, None, None), (cut, None, 1)],
                [(before, None, None), (cut, None, None), (cut - timedelta(days=2), cut, 1)],
                [(cut, None, None)],
            )
        )
    )


@st.composite
def contracts(draw: Draw, timezone: str, period: str, hot_days: tuple[int, ...]) -> list[Json]:
    """The versions of one contract, in order, as what their files say."""
    currency, rounding = draw(st.sampled_from(CURRENCIES)), draw(st.sampled_from(("half_up", "half_even")))
    versions = []
    for number, (start, until, replaces) in enumerate(draw(effective_spans(period, hot_days)), start=1):
        money: Json = {"currency": currency, "rounding": rounding}
        if draw(st.booleans()):
            money["tax"] = {"name": "VAT", "rate": draw(st.sampled_from(("6%", "7.5%", "33.333%")))}
        accounts = draw(st.sampled_from((["acct-a", "acct-b"], ["acct-a"])))
        version: Json = {
            "schema": "ledger/contract/v1",
            "id": "random-llm",
            "version": str(number),
            "parties": {
                "provider": {"name": "Example Inference Ltd", "tax_id": "TEST-PROVIDER-1", "address": ["1 Example Road", "Beijing"]},
                "customer": {"name": "Acme Bank Co.", "tax_id": "TEST-CUSTOMER-1", "address": ["2 Sample Street"], "accounts": accounts},
            },
            "effective": {"from": start.isoformat()} | ({"until": until.isoformat()} if until else {}),
            "calendar": {"timezone": timezone, "billing_period": "month", "grace": "24h"},
            "money": money,
            **draw(terms()),
        }
        if replaces:
            version["replaces"] = str(replaces)
        versions.append(version)
    return versions
