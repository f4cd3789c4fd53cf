"""The classification plan: the terms of contracts, compiled to SQL that turns events into cells.

Two steps. The *signature* is computed per event and holds only what an event is: its window, outcome, latency class (between which of
the terms' edges its latency lies), exemption and whether its queue's multiplier is forfeited. Events are grouped by one number for most
of it (`code`), and the *rules* are computed per signature: tier, in the objective, late, over. One plan serves every contract with the
same terms: events are grouped by account, and an account's contract is looked up for groups, not for events. The plan names no engine; a
dialect prints it.
Source: specification, section 4, whose steps the functions follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import assert_never

from sqlglot import exp

from ledger.contract.expression import BUILT_IN
from ledger.contract.model import Async, CircuitBreaker, ColdStart
from ledger.rating import cold_start, sql
from ledger.rating.code import Code
from ledger.rating.definition import latency_us
from ledger.rating.measured import is_without_usage, measured
from ledger.rating.outcome import ANSWERED, is_any_of, is_cancelled, is_outcome, outcome_of_status
from ledger.rating.recorded import Breaker, Coverage, ModelLoad
from ledger.rating.rules import tier_and_objective
from ledger.rating.terms import Terms
from ledger.settlement.calendar import WINDOW_STEPS, Days, days_touched
from ledger.settlement.cell import CELL_COLUMNS, SUMS, Outcome

# What a plan reads of an event.
EVENT_COLUMNS = (
    *("account", "request_id", "revision", "model", "received_at", "queue", "status", "cold_start", "async_header", "node"),
    *("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us"),
    *("input_tokens", "cached_input_tokens", "output_tokens"),
)
# What of an event decides its classification, and nothing else.
SIGNATURE = ("account", "window_start", "model", "queue", "forfeited", "outcome", "exemption", "latency_class")
NAMES, USAGE = ("account", "model", "queue"), ("input_tokens", "cached_input_tokens", "output_tokens")
# Of a cell of one request.
REQUEST_COLUMNS = ("account", "request_id", "received_at", "latency_us")
# Relations that an engine may treat as it likes: of single events, of the groups whose sums it computes, and of what the groups stand for.
CLASSIFIED, GROUPS, SIGNATURES = "classified", "groups", "signatures"
MOST_SPANS = 50  # that a query lists one by one


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Terms over the days that the coverage names, compiled. `coverage` is not empty, and its days are those of the terms' zone.

    `source` is the relation of standing events with the canonical columns; it may hold more than the coverage names. If it `has_others`
    than events of the covered accounts, and not just a few, they are kept out one by one; else they leave with their groups. Intervals
    outside the days do no harm. `by_request` does not group what is told apart by identity alone: each cell is of one request, and says
    which, and with which latency (REQUEST_COLUMNS, after those of a cell). `days` are those of the zone if it had others once.
    """

    terms: Terms
    coverage: Sequence[Coverage]
    breakers: Sequence[Breaker]
    loads: Sequence[ModelLoad]
    source: exp.Query
    has_others: bool = True
    by_request: bool = False
    days: Days | None = None

    def cells(self) -> exp.Query:
        """The cells of all events: CELL_COLUMNS, some rows with the same key."""
        delayed = self.delayed()
        return self.summed() if delayed is None else sql.all_of_each([self.summed(), delayed])

    def summed(self) -> exp.Query:
        """The cells of the events that no cold start delayed: sums that merge with those of other events."""
        return self._cells(delayed=False if self._ranks_cold_starts else None)

    def delayed(self) -> exp.Query | None:
        """The cells of the other events, cold starts ranked: `source` holds all that there are on each day. None if it never matters."""
        if not self._ranks_cold_starts:
            return None
        query = self._cells(delayed=True)
        for position, exemption in enumerate(self.terms.exemptions):
            if isinstance(exemption, ColdStart):
                candidate, exempt = cold_start.candidate(position), cold_start.relation(position)
                query = query.with_(candidate, as_=self._cold_start_candidates(position), materialized=True, copy=False)
                query = query.with_(exempt, as_=cold_start.exempt_requests(exemption, candidate), copy=False)
        return query

    def cold_starts(self) -> exp.Query | None:
        """The events that `delayed` is about, COLD_START_COLUMNS; None if it never matters."""
        if not self._ranks_cold_starts:
            return None
        event = exp.select(
            *(sql.column(name) for name in ("account", "request_id", "revision")),
            sql.named(self._window_start(), "window_start"),
        )
        event = event.from_(exp.to_table("measured"), copy=False)
        listed = exp.select(
            *(sql.column(name, "coverage") for name in ("contract_id", "version")),
            sql.named(self._day(sql.column("window_start", "event")), "day_start"),
            *(sql.column(name, "event") for name in ("account", "request_id", "revision")),
        )
        return self._with_measured(self._covered(listed.from_(event.subquery("event", copy=False), copy=False), "event"), delayed=True)

    def _cells(self, *, delayed: bool | None) -> exp.Select:
        """Cells of the events that a cold start may have delayed, of the others, or (None) of all where it does not matter."""
        judged = tier_and_objective(self.terms)
        values: dict[str, exp.Expr] = {
            **{name: sql.column(name, "coverage") for name in ("contract_id", "version")},
            "day_start": self._day(sql.column("window_start", SIGNATURES)),
            **{name: sql.column(name, SIGNATURES) for name in SIGNATURE},
            "outcome": sql.choose((is_outcome(outcome), sql.text(outcome)) for outcome in Outcome),
            **judged,
            **{name: sql.column(name, SIGNATURES) for name in SUMS},
            "late_latencies_us": sql.choose([(sql.both(judged["late"], is_any_of(ANSWERED)), sql.column("late_latencies_us"))]),
        }
        cells = exp.select(
            *(sql.named(values[name], name) for name in CELL_COLUMNS),
            *(sql.column(name, SIGNATURES) for name in REQUEST_COLUMNS if self.by_request),
        )
        cells = cells.from_(self._signatures(ranked=delayed is True).subquery(SIGNATURES, copy=False), copy=False)
        return self._with_measured(self._covered(cells, SIGNATURES), delayed=delayed)

    def _cold_start_candidates(self, position: int) -> exp.Select:
        """The events that the cold-start exemption at this position could take: no earlier exemption took them."""
        counts = sql.both(
            is_any_of(ANSWERED),
            exp.Not(this=exp.paren(sql.either(*(self._takes(earlier) for earlier in range(position))))),
        )
        event = (
            exp.select(*(sql.column(name) for name in ("account", "request_id", "received_at", "cold_start_id")))
            .from_(exp.to_table("measured"), copy=False)
            .where(counts, copy=False)
        )
        candidates = exp.select(
            sql.column("contract_id", "coverage"),
            sql.named(self._day(sql.column("received_at", "event")), "day_start"),
            *(sql.column(name, "event") for name in ("account", "request_id", "received_at", "cold_start_id")),
        )
        return self._covered(candidates.from_(event.subquery("event", copy=False), copy=False), "event", at="received_at")

    def _covered(self, query: exp.Select, relation: str, *, at: str = "window_start") -> exp.Select:
        """The query joined with the coverage of its relation's account at this instant: whole days, so a window's start will do."""
        columns = [("account", "text"), ("contract_id", "text"), ("version", "int"), ("start", "timestamptz"), ("end", "timestamptz")]
        rows = [
            [sql.text(one.account), sql.text(one.contract_id), sql.number(one.version), sql.instant(one.start), sql.instant(one.end)]
            for one in self.coverage
        ]
        instant = sql.column(at, relation)
        same_account = exp.EQ(this=sql.column("account", relation), expression=sql.column("account", "coverage"))
        return query.join(
            sql.rows(columns, rows).subquery("coverage", copy=False),
            on=sql.both(
                same_account,
                exp.GTE(this=instant, expression=sql.column("start", "coverage")),
                exp.LT(this=instant.copy(), expression=sql.column("end", "coverage")),
            ),
            copy=False,
        )

    # -- step 0: the events of the days, with what is derived from their measurements

    def _with_measured(self, query: exp.Select, *, delayed: bool | None) -> exp.Select:
        measured = self._measured()
        if delayed is None:
            return query.with_("measured", as_=measured, materialized=False, copy=False)
        events = exp.select(exp.Star()).from_(measured.subquery("event", copy=False), copy=False)
        cold_start_id = sql.column("cold_start_id")
        events = events.where(sql.is_known(cold_start_id) if delayed else sql.is_null(cold_start_id), copy=False)
        # The few events of cold starts are looked at several times.
        return query.with_("measured", as_=events, materialized=delayed, copy=False)

    def _measured(self) -> exp.Select:
        """Standing events on any covered day, of the covered accounts and no more than a few others, with `outcome`, `latency_us` and
        `cold_start_id`."""
        received_at, accounts = sql.column("received_at"), sorted({one.account for one in self.coverage})
        loads = [load for load in self.loads if load.end > self._spans[0][0]]
        cold_start_id = cold_start.identity([(load.interval_id, load.node, load.model, load.start, load.end) for load in loads])
        return (
            exp.select(
                exp.Star(),
                sql.named(outcome_of_status(), "outcome"),
                sql.named(self._latency(), "latency_us"),
                sql.named(cold_start_id, "cold_start_id"),
            )
            .from_(self.source.copy().subquery("event", copy=False), copy=False)
            .where(
                *([sql.among(sql.column("account"), accounts)] if self.has_others else []),
                sql.either(
                    *(
                        sql.both(
                            exp.GTE(this=received_at, expression=sql.instant(start)),
                            exp.LT(this=received_at.copy(), expression=sql.instant(end)),
                        )
                        for start, end in self._spans
                    )
                ),
                copy=False,
            )
        )

    @cached_property
    def _spans(self) -> list[tuple[datetime, datetime]]:
        """The covered spans, united, in order; one from the first day to the last if there are many."""
        united: list[tuple[datetime, datetime]] = []
        for start, end in sorted({(one.start, one.end) for one in self.coverage}):
            if united and start <= united[-1][1]:
                united[-1] = (united[-1][0], max(end, united[-1][1]))
            else:
                united.append((start, end))
        return united if len(united) <= MOST_SPANS else [(united[0][0], united[-1][1])]

    @cached_property
    def _days(self) -> Days:
        return self.days or days_touched(self.terms.timezone, self._spans[0][0], self._spans[-1][1])

    # -- step 2: latency

    def _latency(self) -> exp.Expr:
        by_queue = [
            (exp.EQ(this=sql.column("queue"), expression=sql.text(queue)), self._latency_by(name))
            for queue, name in self.terms.latency_by_queue
        ]
        defined = sql.choose(by_queue, self._latency_by(self.terms.latency_default))
        waited = sql.choose([(is_cancelled(), measured("e2e"))])
        return sql.known_or(defined, waited)

    def _latency_by(self, name: str) -> exp.Expr:
        if name in BUILT_IN:
            return measured(BUILT_IN[name])
        return latency_us(dict(self.terms.definitions)[name], measured)

    def _latency_class(self) -> exp.Expr:
        """1 for class 0, and so on; 0 without a latency, which no comparison holds for: few are, so that it is not asked first."""
        latency, edges = sql.column("latency_us"), self.terms.edges_us
        classes = [
            (exp.LT(this=latency, expression=sql.number(edge)), self._code.summand("latency_class", number))
            for number, edge in enumerate(edges, start=1)
        ]
        slowest = exp.GTE(this=latency, expression=sql.number(edges[-1])), self._code.summand("latency_class", len(edges) + 1)
        return sql.choose([*classes, slowest], sql.number(0))

    # -- step 3: exemption

    def _exemption(self, *, ranked: bool) -> exp.Expr:
        """The first exemption that takes the event, 1 for that at position 0, and so on; 0 for none; cold starts take events only where
        they are ranked."""
        positions = [p for p, one in enumerate(self.terms.exemptions) if ranked or not isinstance(one, ColdStart)]
        return sql.choose([(self._takes(p), self._code.summand("exemption", p + 1)) for p in positions], sql.number(0))

    @property
    def _ranks_cold_starts(self) -> bool:
        return any(isinstance(one, ColdStart) for one in self.terms.exemptions)

    def _takes(self, position: int) -> exp.Expr:
        """Whether the exemption's own condition holds; never null."""
        exemption = self.terms.exemptions[position]
        answered = is_any_of(ANSWERED)
        match exemption:
            case CircuitBreaker(queues=queues):
                return sql.both(sql.among(sql.column("queue"), queues), self._breaker_open())
            case Async(input_tokens=threshold, evidence=evidence):
                compared = sql.COMPARE[threshold.op](this=sql.column("input_tokens"), expression=sql.number(threshold.tokens))
                header = [sql.column("async_header")] if evidence == "header" else []
                return sql.both(*header, sql.known_or(compared, sql.boolean(False)), answered)  # what is seldom true first
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
                if breaker.start < self._spans[-1][1] and breaker.end > self._spans[0][0]
            )
        )

    # -- windows

    def _window_start(self) -> exp.Expr:
        """The start of the event's window; a month's cells are kept by day, so that a day can be computed again by itself."""
        window = "1d" if self.terms.window == "month" else self.terms.window
        return self._step_start(window, sql.column("received_at"))

    def _day(self, instant: exp.Expr) -> exp.Expr:
        return self._step_start("1d", instant)

    def _step_start(self, window: str, instant: exp.Expr) -> exp.Expr:
        """The start of the step that holds the instant: within a run of equal days, steps are equal too."""
        runs = [
            (
                end,
                exp.DateBin(
                    this=sql.span(day if window == "1d" else WINDOW_STEPS[window]), expression=instant.copy(), unit=sql.instant(start)
                ),
            )
            for start, end, day in self._days.runs()
        ]
        earlier = [(exp.LT(this=instant.copy(), expression=sql.instant(end)), step) for end, step in runs[:-1]]
        return sql.choose(earlier, runs[-1][1])

    # -- the signature of an event

    @property
    def _request(self) -> tuple[str, ...]:
        """What tells requests apart, where they are, beside their signature."""
        return tuple(name for name in REQUEST_COLUMNS if name not in SIGNATURE) if self.by_request else ()

    @cached_property
    def _code(self) -> Code:
        """What of a signature is counted and not named, as one number."""
        return Code(
            "code",
            [
                ("outcome", len(Outcome)),
                ("forfeited", 2),
                ("without_usage", 2),
                ("exemption", len(self.terms.exemptions) + 1),
                ("latency_class", len(self.terms.edges_us) + 2),
            ],
        )

    def _signatures(self, *, ranked: bool) -> exp.Select:
        """SIGNATURE, SUMS and `late_latencies_us`; some rows have the same signature."""
        flags = {"forfeited": self._forfeited(), "without_usage": is_without_usage()}
        circumstances = [
            sql.column("outcome"),
            *(sql.choose([(holds, self._code.summand(name, 1))], sql.number(0)) for name, holds in flags.items()),
            self._exemption(ranked=ranked),
        ]
        names = (*NAMES, *self._request)
        looked_at = dict.fromkeys((*names, *USAGE, "latency_us"))
        classified = exp.select(
            *map(sql.column, looked_at),
            sql.named(self._window_start(), "window_start"),
            sql.named(sql.added(*circumstances), "circumstances"),
        ).from_(exp.to_table("measured"), copy=False)
        coded = exp.select(
            *map(sql.column, (*looked_at, "window_start")),
            sql.named(sql.added(sql.column("circumstances"), self._latency_class()), "code"),
        ).from_(classified.subquery(CLASSIFIED, copy=False), copy=False)
        # Of failed requests too: for single events the cheaper question, and the rules drop them.
        over_target = exp.GTE(this=sql.column("latency_us"), expression=sql.number(self.terms.late_from_us))
        late_latencies = exp.Filter(this=exp.ArrayAgg(this=sql.column("latency_us")), expression=exp.Where(this=over_target))
        groups = (
            exp.select(
                *map(sql.column, (*names, "window_start", "code")),
                sql.named(exp.Count(this=exp.Star()), "requests"),
                *(sql.named(exp.Sum(this=sql.column(name)), name) for name in USAGE),
                sql.named(late_latencies, "late_latencies_us"),
            )
            .from_(coded.subquery("coded", copy=False), copy=False)
            .group_by(*map(sql.column, (*names, "window_start", "code")), copy=False)
        )
        input_tokens, cached, output_tokens = (sql.known_or(sql.column(name), sql.number(0)) for name in USAGE)  # unknown ones count as 0
        parts = {
            **{name: sql.column(name) for name in (*names, "window_start", "requests", "late_latencies_us")},
            "outcome": self._code.part("outcome"),
            "forfeited": exp.EQ(this=self._code.part("forfeited"), expression=sql.number(1)),
            "exemption": exp.cast(_counted_from_1(self._code.part("exemption")), "smallint"),
            "latency_class": _counted_from_1(self._code.part("latency_class")),
            "requests_without_usage": exp.Mul(this=sql.column("requests"), expression=self._code.part("without_usage")),
            "tokens_input": exp.Sub(this=input_tokens, expression=cached),
            "tokens_cached_input": cached.copy(),
            "tokens_output": output_tokens,
        }
        decoded = exp.select(*(sql.named(parts[name], name) for name in (*SIGNATURE, *self._request, *SUMS, "late_latencies_us")))
        return decoded.from_(groups.subquery(GROUPS, copy=False), copy=False)

    def _forfeited(self) -> exp.Expr:
        """Whether the queue's multiplier falls away because the wait was above the queue's limit, or is unknown."""
        waited = sql.column("queue_us")
        return sql.either(
            *(
                sql.both(
                    exp.EQ(this=sql.column("queue"), expression=sql.text(name)),
                    sql.either(sql.is_null(waited), exp.GT(this=waited.copy(), expression=sql.number(longest_us))),
                )
                for name, longest_us in self.terms.waits_us
            )
        )


def _counted_from_1(number: exp.Expr) -> exp.Expr:
    """The position that this number stands for, null for 0."""
    return exp.Sub(this=exp.Nullif(this=number, expression=sql.number(0)), expression=sql.number(1))
