"""Reconcile: the requests of a ledger held against the counters of the engines that served them, per model and UTC day.

Takes an open database and what Prometheus or two scrapes have of vLLM, gives the checks; writes nothing and changes no figure. The ledger's
side are the rows of engines where there are some, else its events.
Source: telemetry of vLLM, "Prometheus: names, and how to reconcile a ledger with them".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

from ledger.contract.model import Contract
from ledger.contract.scalar import duration_text
from ledger.documents.number import decimal_text
from ledger.errors import LedgerError
from ledger.ingest.counter import Counted, counted
from ledger.ingest.engine_counters import Counter, EngineCounters, counters_by_model, scrape_step_us
from ledger.ingest.prometheus import Series, decimal_of
from ledger.ingest.span import Span
from ledger.instant import instant_of, since_1970_us
from ledger.store.contracts import stored_versions
from ledger.store.database import Database
from ledger.store.ended_requests import EndedRequests, RowKind, ended_requests
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.reconciliation import Check, Pieces, Sides, checks, compared, is_by_engine

ALWAYS_US = 300_000  # the edge of clause 1.1, and vLLM's lowest bucket
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The checks of one model (the name that engines show) in [start, end), and what has to be known of the samples. `by_engine`: what is
    compared are rows of engines, and `without_engine` answered requests have none."""

    model: str
    start: datetime
    end: datetime
    by_engine: bool
    without_engine: int
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What engines say: series, the span that is compared, and whether it is cut at UTC midnights. `edge_us`: requests that ended this
    close to an edge may have been counted on either side of it; None is one distance of the samples."""

    series: Sequence[Series]
    start: datetime | None = None
    end: datetime | None = None
    by_day: bool = True
    edge_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """All models that engines show, by name and time; the requests of the ledger's models that none shows; and how many rows of engines
    have no model, their own or their gateway's."""

    models: tuple[Reconciled, ...]
    unmatched: Mapping[str, int]
    nameless: int


def reconcile(database: Database, telemetry: Telemetry, labels: Mapping[str, str]) -> Reconciliation:
    """Both sides of every model that engines show, by model and day. `labels` gives the label `model_name` of a model of the ledger whose
    own name it is not.

    Raises LedgerError if there are no counters of vLLM, or no two samples of one.
    """
    engines = counters_by_model(telemetry.series)
    spans = _spans(engines.values(), telemetry)
    found = {(model, span): _counted(one, span, telemetry) for model, one in sorted(engines.items()) for span in spans}
    cuts_us = sorted({edge for (_, span), both in found.items() for one in (span, *both.unsure()) for edge in one})
    first, last = instant_of(spans[0][0]), instant_of(spans[-1][1])
    with any_snapshot(database) as connection:
        contracts = [stored.contract for stored in stored_versions(connection, in_force=(first, last))]
        names = {label: {label, *(name for name, other in labels.items() if other == label)} for label in engines}
        edges_us = sorted({ALWAYS_US, *(edge for some in names.values() for edge in _edges_us(contracts, some))})
        rows = ended_requests(connection, [instant_of(at_us) for at_us in cuts_us], edges_us)
    nameless = [row for row in rows if not row.model]
    by_label: dict[str, list[EndedRequests]] = {}
    unmatched: dict[str, list[EndedRequests]] = {}
    for row in rows:
        label = labels.get(row.model, row.model)
        if label in engines:
            by_label.setdefault(label, []).append(row)
        elif row.model:
            unmatched.setdefault(row.model, []).append(row)
    return Reconciliation(
        models=tuple(
            _reconciled(model, both, by_label.get(model, []), nameless, Pieces(cuts_us, span, both.unsure()), edges_us, span)
            for (model, span), both in found.items()
        ),
        unmatched={name: _count(unmatched[name]) for name in sorted(unmatched)},
        nameless=sum(row.requests for row in nameless),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the counters and buckets of a model counted in a span."""

    counters: Mapping[Counter, Counted]
    buckets: Mapping[Fraction, Counted]

    def unsure(self) -> list[Span]:
        return [span for one in (*self.counters.values(), *self.buckets.values()) for span in one.unsure]


def _spans(engines: Iterable[EngineCounters], telemetry: Telemetry) -> list[Span]:
    """The spans that are compared by themselves: days of UTC, the first and last one cut."""
    instants = {at for one in engines for series in one.series() for at in (*series.at_us[:1], *series.at_us[-1:])}
    if len(instants) < 2:
        raise LedgerError("there are no two samples of a counter of vLLM", cure="give raw samples, or two scrapes, of the metrics vllm:...")
    start = min(instants) if telemetry.start is None else since_1970_us(telemetry.start)
    end = max(instants) if telemetry.end is None else since_1970_us(telemetry.end)
    if end <= start:
        raise LedgerError("the span has no length", cure="give --from and a later --until", exit_code=2)
    midnights = range((start // DAY_US + 1) * DAY_US, end, DAY_US) if telemetry.by_day else ()
    return list(pairwise([start, *midnights, end]))


def _counted(engine: EngineCounters, span: Span, telemetry: Telemetry) -> _Seen:
    step_us = scrape_step_us(engine.series())
    edge_us = step_us if telemetry.edge_us is None else telemetry.edge_us
    return _Seen(
        counters={counter: counted(some, span, step_us, edge_us) for counter, some in engine.counters.items()},
        buckets={edge: counted(some, span, step_us, edge_us) for edge, some in engine.buckets.items()},
    )


def _edges_us(contracts: Iterable[Contract], names: set[str]) -> set[int]:
    """The latencies that the contracts on these models speak of: edges of tiers, the target, and the target with its tolerance."""
    edges: set[int] = set()
    for contract in contracts:
        claimed = {name for key, model in contract.models.items() for name in (*(model.served_as or (key,)), *model.degraded)}
        if claimed & names:
            of_tiers = (edge for tier in contract.pricing.tiers for edge in tier.latency.edges_us)
            tolerated = int(contract.objective.target_us * contract.error_budget.up_to)
            edges |= {*of_tiers, contract.objective.target_us, tolerated}
    return edges


def _reconciled(
    model: str, seen: _Seen, rows: Sequence[EndedRequests], nameless: Sequence[EndedRequests], pieces: Pieces, edges_us: Sequence[int],
    span: Span,
) -> Reconciled:  # fmt: skip
    by_engine = is_by_engine(rows, pieces)
    sides = Sides(
        rows=compared(rows, by_engine=by_engine),
        pieces=pieces,
        by_engine=by_engine,
        nameless=sum(row.requests for row in nameless if pieces.may_have(row)),
        counters=seen.counters,
        buckets=seen.buckets,
        edges_us=edges_us,
        flag=_buckets_flag(seen.buckets, edges_us),
    )
    alone = (row for row in rows if row.kind is RowKind.ALONE and not row.is_cancelled and pieces.has(row))
    return Reconciled(
        model=model,
        start=instant_of(span[0]),
        end=instant_of(span[1]),
        by_engine=by_engine,
        without_engine=sum(row.requests for row in alone) if by_engine else 0,
        checks=tuple(checks(sides)),
        notes=tuple(_notes(seen)),
    )


def _count(rows: Iterable[EndedRequests]) -> int:
    """How many requests events have, or rows of engines if there are no events: they are the same requests."""
    of_events = of_engines = 0
    for row in rows:
        if row.kind is RowKind.ENGINE:
            of_engines += row.requests
        else:
            of_events += row.requests
    return of_events or of_engines


def _buckets_flag(buckets: Iterable[Fraction], edges_us: Iterable[int]) -> str:
    """What vLLM has to be started with to have buckets at these edges, besides those that it has."""
    edges = sorted({*buckets, *map(Fraction, edges_us)})
    seconds = ",".join(decimal_text(decimal_of(edge / 1_000_000)) for edge in edges)
    return f"--custom-histogram-buckets '{{\"request_latency\":[{seconds}]}}'"


def _notes(seen: _Seen) -> Iterator[str]:
    """What has to be known of the samples: where they begin and end, and engines that came and went."""
    # One series an engine, where there is a counter that is not split by how requests finished.
    some = [one for counter, one in seen.counters.items() if counter is not Counter.FINISHED] or list(seen.counters.values())
    if late_us := max((one.first_after_us for one in some), default=0):
        yield f"the first sample is {duration_text(late_us)} after the start"
    if early_us := max((one.last_before_us for one in some), default=0):
        yield f"the last sample is {duration_text(early_us)} before the end"
    if restarts := max((one.restarts for one in some), default=0):
        yield f"counters started again ({restarts}): what was counted between the last sample and the restart is lost"
    if started := max((one.started for one in some), default=0):
        yield f"series that began inside ({started}) are counted from 0"
    if stopped := max((one.stopped for one in some), default=0):
        yield f"series that stopped inside ({stopped}): what was counted after their last sample is lost"
