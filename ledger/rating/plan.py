"""The classification plan: one contract version in force over a span, compiled to SQL that turns events into cells.

Two steps. The *signature* is computed per event and holds only what an event is: its window, outcome, latency class (between which of
the contract's edges its latency lies), exemption and whether its queue's multiplier is forfeited. The *rules* are computed per signature:
tier, in the objective, late, over. Grouped by signature the plan gives cells, ungrouped it explains single requests.
The plan names no engine; a dialect prints it. Source: specification, section 4, whose steps the functions follow.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import assert_never

from sqlglot import exp

from ledger.contract.expression import BUILT_IN
from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract
from ledger.rating import cold_start, sql
from ledger.rating.definition import latency_us
from ledger.settlement.calendar import WINDOW_STEPS, Days
from ledger.settlement.cell import Outcome
from ledger.settlement.windows import CONTRACT_SCOPE

# What of an event decides its classification, and nothing else.
SIGNATURE = ("window_start", "model", "queue", "forfeited", "outcome", "exemption", "latency_class")
SUMS = ("requests", "requests_without_usage", "tokens_input", "tokens_cached_input", "tokens_output")
RULES = ("tier", "in_objective", "late", "over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A recorded span [start, end) of an open circuit breaker; node None means every node."""

    node: str | None
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """A recorded load of a model on a node, [start, end); its id is the id of the cold start it causes."""

    interval_id: str
    node: str
    model: str
    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One contract version over one span of local days (within a settled period), compiled.

    `stretch` is the index of the span; `source` the relation of current events (not voided) with the canonical columns.
    """

    contract: Contract
    stretch: int
    days: Days
    breakers: Sequence[Breaker]
    loads: Sequence[ModelLoad]
    source: exp.Query

    def cells(self) -> exp.Query:
        """One row per cell: SIGNATURE, RULES and SUMS; also of a span without events, which has no rows."""
        sums = {
            "requests": exp.Count(this=exp.Star()),
            "requests_without_usage": _total(
                exp.cast(
                    sql.both(
                        exp.EQ(this=sql.column("outcome"), expression=sql.text(Outcome.CANCELLED)),
                        sql.either(sql.is_null(sql.column("input_tokens")), sql.is_null(sql.column("output_tokens"))),
                    ),
                    "int",
                )
            ),
            "tokens_input": _total(
                exp.Sub(
                    this=sql.known_or(sql.column("input_tokens"), sql.number(0)),
                    expression=sql.known_or(sql.column("cached_input_tokens"), sql.number(0)),
                )
            ),
            "tokens_cached_input": _total(sql.known_or(sql.column("cached_input_tokens"), sql.number(0))),
            "tokens_output": _total(sql.known_or(sql.column("output_tokens"), sql.number(0))),
        }
        signatures = (
            exp.select(*self._signature(), *(sql.named(total, name) for name, total in sums.items()))
            .from_(exp.to_table("measured"), copy=False)
            .group_by(*(sql.number(position) for position in range(1, len(SIGNATURE) + 1)), copy=False)
        )
        ruled = exp.select(
            sql.named(sql.number(self.stretch), "stretch"),
            *(sql.column(name) for name in SIGNATURE),
            *(sql.named(rule, name) for name, rule in self._rules().items()),
            *(sql.column(name) for name in SUMS),
        ).from_(signatures.subquery("signatures", copy=False), copy=False)
        return self._with_measured(ruled)

    def requests(self) -> exp.Query:
        """One row per event: its identity, latency (null if unknown, and if it failed) and received_at, with SIGNATURE and RULES."""
        failed = sql.among(sql.column("outcome"), [o for o in Outcome if o.is_failure])
        single = exp.select(
            *(sql.column(name) for name in ("account", "request_id", "revision", "received_at")),
            sql.named(sql.choose([(failed, sql.null())], sql.column("latency_us")), "judged_latency_us"),
            *self._signature(),
        ).from_(exp.to_table("measured"), copy=False)
        ruled = exp.select(
            sql.named(sql.number(self.stretch), "stretch"),
            *(sql.column(name) for name in ("account", "request_id", "revision", "received_at", "judged_latency_us", *SIGNATURE)),
            *(sql.named(rule, name) for name, rule in self._rules().items()),
        ).from_(single.subquery("single", copy=False), copy=False)
        return self._with_measured(ruled)

    def scope(self, model: exp.Expr) -> exp.Expr:
        """The scope that judges a request, from its served name; null for a name that no model claims."""
        if self.contract.objective.scope == "contract":
            return sql.text(CONTRACT_SCOPE)
        names: dict[str, list[str]] = {}
        for served, (key, _) in self.contract.served_names().items():
            names.setdefault(key, []).append(served)
        return sql.choose((sql.among(model, served), sql.text(key)) for key, served in names.items())

    # -- step 0: the events of the span, with what is derived from their measurements

    def _with_measured(self, query: exp.Select) -> exp.Query:
        query = query.with_("measured", as_=self._measured(), materialized=False, copy=False)
        for position, exemption in enumerate(self.contract.exemptions):
            if isinstance(exemption, ColdStart):
                query = query.with_(
                    cold_start.relation(position),
                    as_=cold_start.exempt_requests(
                        exemption,
                        day=self._day,
                        counts=sql.both(
                            sql.among(sql.column("outcome"), [Outcome.SUCCESS, Outcome.CANCELLED]),
                            exp.Not(this=exp.paren(sql.either(*(self._takes(p) for p in range(position))))),
                        ),
                    ),
                    copy=False,
                )
        return query

    def _measured(self) -> exp.Select:
        """Current events of the contract's accounts in the span, with `outcome`, `latency_us` and `cold_start_id`."""
        received_at, accounts = sql.column("received_at"), self.contract.parties.customer.accounts
        cold_start_id = cold_start.identity([(load.interval_id, load.node, load.model, load.start, load.end) for load in self.loads])
        return (
            exp.select(
                exp.Star(),
                sql.named(self._outcome(), "outcome"),
                sql.named(self._latency(), "latency_us"),
                sql.named(cold_start_id, "cold_start_id"),
            )
            .from_(self.source.copy().subquery("event", copy=False), copy=False)
            .where(
                sql.among(sql.column("account"), accounts),
                exp.GTE(this=received_at.copy(), expression=sql.instant(self.days.starts[0])),
                exp.LT(this=received_at.copy(), expression=sql.instant(self.days.end)),
                copy=False,
            )
        )

    # -- step 1: outcome

    def _outcome(self) -> exp.Expr:
        """The outcome by status, in order of precedence."""
        status = sql.column("status")

        def between(low: int, high: int) -> exp.Expr:
            return exp.Between(this=status.copy(), low=sql.number(low), high=sql.number(high))

        return sql.choose(
            [
                (between(200, 299), sql.text(Outcome.SUCCESS)),
                (exp.EQ(this=status.copy(), expression=sql.number(499)), sql.text(Outcome.CANCELLED)),
                (exp.EQ(this=status.copy(), expression=sql.number(429)), sql.text(Outcome.RATE_LIMITED)),
                (between(400, 499), sql.text(Outcome.CLIENT_ERROR)),
            ],
            sql.text(Outcome.SERVER_ERROR),
        )

    # -- step 2: latency

    def _latency(self) -> exp.Expr:
        terms = self.contract.latency
        by_queue = [
            (exp.EQ(this=sql.column("queue"), expression=sql.text(queue)), self._latency_by(name)) for queue, name in terms.by_queue.items()
        ]
        defined = sql.choose(by_queue, self._latency_by(terms.default))
        waited = sql.choose([(exp.EQ(this=self._outcome(), expression=sql.text(Outcome.CANCELLED)), measured("e2e"))])
        return sql.known_or(defined, waited)

    def _latency_by(self, name: str) -> exp.Expr:
        if name in BUILT_IN:
            return measured(BUILT_IN[name])
        return latency_us(self.contract.latency.define[name], measured)

    @cached_property
    def edges_us(self) -> tuple[int, ...]:
        """Latencies, ascending, at which a rule changes: class k holds latencies from edges[k - 1] to before edges[k]."""
        starts = {tier.latency.from_us for tier in self.contract.pricing.tiers} - {0}
        return tuple(sorted(starts | {self._late_from_us, self._over_from_us}))

    @property
    def _late_from_us(self) -> int:
        return self.contract.objective.target_us + 1

    @property
    def _over_from_us(self) -> int:
        """The first whole microsecond above target x up_to, which itself may have a fraction."""
        return int(self.contract.objective.target_us * Fraction(self.contract.error_budget.up_to)) + 1

    def _latency_class(self) -> exp.Expr:
        latency = sql.column("latency_us")
        branches = [(sql.is_null(latency), sql.null())]
        branches += [
            (exp.LT(this=latency.copy(), expression=sql.number(edge)), sql.number(position)) for position, edge in enumerate(self.edges_us)
        ]
        return sql.choose(branches, sql.number(len(self.edges_us)))

    # -- step 3: exemption

    def _exemption(self) -> exp.Expr:
        """The position of the first exemption that takes the event, null for none."""
        return sql.choose([(self._takes(position), sql.number(position)) for position in range(len(self.contract.exemptions))])

    def _takes(self, position: int) -> exp.Expr:
        """Whether the exemption's own condition holds; never null."""
        exemption = self.contract.exemptions[position]
        answered = sql.among(sql.column("outcome"), [Outcome.SUCCESS, Outcome.CANCELLED])
        match exemption:
            case CircuitBreaker(queues=queues):
                return sql.both(sql.among(sql.column("queue"), queues), self._breaker_open())
            case Async(input_tokens=threshold, evidence=evidence):
                compared = sql.COMPARE[threshold.op](this=sql.column("input_tokens"), expression=sql.number(threshold.tokens))
                conditions = [answered, sql.known_or(compared, sql.boolean(False))]
                return sql.both(*conditions, *([sql.column("async_header")] if evidence == "header" else []))
            case ColdStart():
                return sql.both(sql.is_known(sql.column("cold_start_id")), cold_start.is_exempt(position))
            case _:
                assert_never(exemption)

    def _breaker_open(self) -> exp.Expr:
        received_at, node = sql.column("received_at"), sql.column("node")
        return sql.either(
            *(
                sql.both(
                    exp.GTE(this=received_at.copy(), expression=sql.instant(breaker.start)),
                    exp.LT(this=received_at.copy(), expression=sql.instant(breaker.end)),
                    *(
                        []
                        if breaker.node is None
                        else [sql.either(sql.is_null(node), exp.EQ(this=node.copy(), expression=sql.text(breaker.node)))]
                    ),
                )
                for breaker in self.breakers
            )
        )

    # -- windows

    def _window_start(self) -> exp.Expr:
        window = self.contract.objective.window
        return sql.instant(self.days.starts[0]) if window == "month" else self._step_start(window)

    @property
    def _day(self) -> exp.Expr:
        return self._step_start("1d")

    def _step_start(self, window: str) -> exp.Expr:
        """The start of the step that holds the event: within a run of equal days, steps are equal too."""
        received_at = sql.column("received_at")
        runs = [
            (
                end,
                exp.DateBin(
                    this=sql.span(day if window == "1d" else WINDOW_STEPS[window]), expression=received_at.copy(), unit=sql.instant(start)
                ),
            )
            for start, end, day in self.days.runs()
        ]
        earlier = [(exp.LT(this=received_at.copy(), expression=sql.instant(end)), step) for end, step in runs[:-1]]
        return sql.choose(earlier, runs[-1][1])

    # -- the signature of an event

    def _signature(self) -> list[exp.Expr]:
        parts = {
            "window_start": self._window_start(),
            "model": sql.column("model"),
            "queue": sql.column("queue"),
            "forfeited": self._forfeited(),
            "outcome": sql.column("outcome"),
            "exemption": self._exemption(),
            "latency_class": self._latency_class(),
        }
        assert tuple(parts) == SIGNATURE
        return [sql.named(part, name) for name, part in parts.items()]

    def _forfeited(self) -> exp.Expr:
        """Whether the queue's multiplier falls away because the wait was above the queue's limit, or is unknown."""
        waited = sql.column("queue_us")
        return sql.either(
            *(
                sql.both(
                    exp.EQ(this=sql.column("queue"), expression=sql.text(name)),
                    sql.either(sql.is_null(waited), exp.GT(this=waited.copy(), expression=sql.number(queue.max_queue_us))),
                )
                for name, queue in self.contract.queues.by_name.items()
                if queue.over_limit == "forfeit" and queue.max_queue_us is not None
            )
        )

    # -- steps 4 and "in the objective": rules over signatures

    def _rules(self) -> dict[str, exp.Expr]:
        outcomes, pricing = self.contract.outcomes, self.contract.pricing

        def is_outcome(outcome: Outcome) -> exp.Expr:
            return exp.EQ(this=sql.column("outcome"), expression=sql.text(outcome))

        def reaches(edge_us: int) -> exp.Expr:
            position = bisect_right(self.edges_us, edge_us)
            return sql.known_or(exp.GTE(this=sql.column("latency_class"), expression=sql.number(position)), sql.boolean(False))

        not_exempt, no_latency = sql.is_null(sql.column("exemption")), sql.is_null(sql.column("latency_class"))
        over_target = reaches(self._late_from_us)
        failed = sql.among(sql.column("outcome"), [o for o in Outcome if o.is_failure])

        priced = [sql.both(is_outcome(Outcome.SUCCESS), sql.is_known(sql.column("latency_class")))]
        if outcomes.cancelled.bill == "produced":
            priced.append(sql.both(is_outcome(Outcome.CANCELLED), over_target))
        from_fastest = sorted(enumerate(pricing.tiers), key=lambda item: item[1].latency.from_us, reverse=True)
        tier_of_latency = sql.choose((reaches(tier.latency.from_us), sql.number(position)) for position, tier in from_fastest)
        tier = sql.choose([(sql.both(not_exempt, sql.either(*priced)), tier_of_latency)])

        judged = [
            sql.both(
                is_outcome(Outcome.SUCCESS),
                sql.boolean(True) if pricing.missing_latency.objective == "late" else exp.Not(this=no_latency.copy()),
            )
        ]
        if outcomes.cancelled.objective == "late_if_over_target":
            judged.append(sql.both(is_outcome(Outcome.CANCELLED), over_target))
        terms = {
            Outcome.SERVER_ERROR: outcomes.server_error,
            Outcome.RATE_LIMITED: outcomes.rate_limited,
            Outcome.CLIENT_ERROR: outcomes.client_error,
        }
        judged += [is_outcome(outcome) for outcome, term in terms.items() if term.objective == "late"]
        in_objective = sql.both(sql.among(sql.column("queue"), self.contract.objective.queues), not_exempt, sql.either(*judged))
        return {
            "tier": tier,
            "in_objective": in_objective,
            "late": sql.both(in_objective, sql.either(over_target, no_latency, failed)),
            "over": sql.both(in_objective, sql.either(reaches(self._over_from_us), no_latency, failed)),
        }


def measured(name: str) -> exp.Expr:
    """A measured quantity of an event: a column, or what specification section 2 derives from columns; null when a part is missing."""
    match name:
        case "queue":
            return sql.column("queue_us")
        case "prefill" | "decode":
            return sql.column(f"{name}_us")
        case "inference":
            return sql.known_or(sql.column("inference_us"), exp.Add(this=sql.column("prefill_us"), expression=sql.column("decode_us")))
        case "e2e":
            return sql.known_or(sql.column("e2e_us"), exp.Add(this=sql.column("queue_us"), expression=measured("inference")))
        case "ttft":
            return sql.known_or(sql.column("ttft_us"), exp.Add(this=sql.column("queue_us"), expression=sql.column("prefill_us")))
        case _:
            return sql.column(name)


def _total(expression: exp.Expr) -> exp.Expr:
    return exp.Sum(this=expression)
