"""What becomes of a few made-up requests under a contract: on both sides of every edge, and what each costs.

All are asked of the plan at once (`rating/in_memory`). A rule is asked by itself: tiers with latencies as they are told and queues that
change no price, an exemption without the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from ledger.contract.fact import FactCode, Identity
from ledger.contract.model import Async, CircuitBreaker, ColdStart, Contract, Exemption, Queue, Tier
from ledger.contract.whole_numbers import LARGEST_RESULT_US
from ledger.documents.contract_prose.illustration import (
    AsyncCases,
    BreakerCases,
    Charge,
    ColdStartCases,
    Edge,
    Illustration,
    Judged,
    Measured,
    Priced,
    Tolerance,
    Waits,
)
from ledger.instant import MICROSECOND
from ledger.rating.classified import with_told_latencies
from ledger.rating.in_memory import Answer, Question, Request, classify
from ledger.rating.recorded import Breaker
from ledger.rating.terms import terms_of
from ledger.settlement.calendar import day_start, local_days
from ledger.settlement.cell import Cell
from ledger.settlement.charges import Tokens, band_and_multiplier, exact_charge, is_billed, price_of, rate_of
from ledger.settlement.period import Piece

HOUR = timedelta(hours=1)
LONGEST_SPAN_US = 20 * 3_600_000_000  # that fits into every day, also into one that clocks made shorter
MOST_STARTS = 20  # cold starts of a day that are asked one by one
INPUT, OUTPUT = 1_000, 500
MEASURED = ((20_000, 80_000, 150_000), (700_000, 80_000, 150_000))  # queue, prefill, decode
STATUSES = {"server_error": 503, "rate_limited": 429, "client_error": 404}
CANCELLED = 499

Found = Iterator[tuple[Identity, Illustration]]
Make = Callable[[list[Answer]], list[Illustration]]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A contract with one rule left at a time, and what its made-up requests have in common.

    `told` takes latencies as they are told (end to end) and has no exemptions; in `plain` the queues change no price besides.
    """

    contract: Contract
    told: Contract
    plain: Contract
    at: datetime  # an hour after the first day begins
    model: str
    queue: str  # in the objective, without a multiplier if one there has none
    _questions: list[Question] = field(default_factory=list)
    _asked: list[tuple[Identity, slice, Make]] = field(default_factory=list)

    @classmethod
    def of(cls, contract: Contract) -> "Stage":
        """The stage of a contract."""
        told = with_told_latencies(contract)
        queues = told.queues.model_copy(update={"by_name": {name: Queue() for name in told.queues.by_name}})
        return cls(
            contract=contract,
            told=told,
            plain=told.model_copy(update={"queues": queues}),
            at=day_start(contract.calendar.timezone, contract.effective.start) + HOUR,
            model=next(iter(contract.served_names())),
            queue=min(contract.objective.queues, key=lambda name: _multiplier(contract, name) is not None),
        )

    @property
    def told_queue(self) -> str | None:
        """The queue, if prices differ by queue."""
        has_multiplier = any(queue.multiplier is not None for queue in self.contract.queues.by_name.values())
        return self.queue if has_multiplier else None

    def request(self, latency_us: int | None, **others: Any) -> Request:
        """A request of this latency."""
        usual: dict[str, Any] = {
            "model": self.model,
            "queue": self.queue,
            "input_tokens": INPUT,
            "output_tokens": OUTPUT,
            "received_at": self.at,
        }
        return Request(e2e_us=latency_us, **(usual | others))

    def alone(self, contract: Contract, latency_us: int | None, **others: Any) -> Question:
        """A question about one such request."""
        return Question(contract=contract, requests=(self.request(latency_us, **others),))

    def ask(self, about: Identity, questions: list[Question], make: Make) -> None:
        """Keeps the questions; of their answers `make` makes the illustrations of the fact."""
        start = len(self._questions)
        self._questions.extend(questions)
        self._asked.append((about, slice(start, len(self._questions)), make))

    def answers(self) -> Found:
        """The illustrations of all that was asked."""
        answers = classify(self._questions)
        for about, part, make in self._asked:
            for one in make(answers[part]):
                yield about, one

    def piece(self, contract: Contract) -> Piece:
        """The contract's first days."""
        start = contract.effective.start
        return Piece(contract=contract, days=local_days(contract.calendar.timezone, start, start + timedelta(days=3)))

    def charge(self, contract: Contract, cell: Cell) -> Charge:
        """What the requests of a billed cell cost, exactly."""
        price = price_of(self.piece(contract), cell)
        sums = Tokens()
        sums.add(cell)
        tokens = tuple((kind, count, rate_of(price, kind, contract)) for kind, count in sums.by_kind().items() if count)
        return Charge(tokens=tokens, multiplier=price.multiplier, amount=exact_charge(price, sums, contract))

    def priced(self, contract: Contract, latency_us: int, cell: Cell) -> Priced:
        """A request of this latency, priced."""
        tier, multiplier = band_and_multiplier(contract, cell)
        charge = self.charge(contract, cell)
        is_in_queue = contract is not self.plain
        return Priced(latency_us=latency_us, tier=tier, tier_multiplier=multiplier, charge=charge, is_in_queue=is_in_queue)


def _multiplier(contract: Contract, queue: str) -> Decimal | None:
    return contract.queues.by_name.get(queue, Queue()).multiplier


def illustrate_requests(stage: Stage) -> Found:
    """Latencies, rates, tiers, queues, variants, exemptions and outcomes."""
    _ask_latencies(stage)
    _ask_models(stage)
    _ask_edges(stage)
    _ask_tiers(stage)
    _ask_queues(stage)
    seen: dict[str, int] = {}
    for exemption in stage.contract.exemptions:
        seen[exemption.kind] = seen.get(exemption.kind, 0) + 1
        _ask_exemption(stage, exemption, str(seen[exemption.kind]))
    _ask_outcomes(stage)
    yield from stage.answers()


def _ask_latencies(stage: Stage) -> None:
    """The default on one request; definitions on two, of which one waits long."""
    latency = stage.contract.latency
    asked: list[tuple[Identity, str, tuple[tuple[int, int, int], ...]]] = [((FactCode.DEFAULT_LATENCY, ()), latency.default, MEASURED[:1])]
    asked += [((FactCode.DEFINITION, (name,)), name, MEASURED) for name in latency.define]
    for about, name, measured in asked:

        def make(found: list[Answer], measured: tuple[tuple[int, int, int], ...] = measured) -> list[Illustration]:
            return [
                Measured(queue_us=queue, prefill_us=prefill, decode_us=decode, latency_us=request.latency_us)
                for (queue, prefill, decode), request in zip(measured, found[0], strict=True)
            ]

        requests = [stage.request(None, queue_us=queue, prefill_us=prefill, decode_us=decode) for queue, prefill, decode in measured]
        contract = stage.told.model_copy(update={"latency": latency.model_copy(update={"default": name, "by_queue": {}})})
        stage.ask(about, [Question(contract=contract, requests=tuple(requests))], make)


def is_any_forgiven(contract: Contract) -> bool:
    """Whether a breach can be forgiven; else neither the budget nor the tolerance decides anything."""
    return contract.error_budget.breaches > 0 and contract.error_budget.up_to > 1


def representative_us(tier: Tier) -> int:
    """A latency well inside the tier, in whole milliseconds where it has one."""
    span = tier.latency
    last_us = span.until_us - 1 if span.until_us is not None else span.from_us * 13 // 9 or 333_333
    inside = span.from_us + (last_us - span.from_us) * 3 // 4
    rounded = round(inside, -3)
    return rounded if span.from_us <= rounded and (span.until_us is None or rounded < span.until_us) else inside


def _ask_models(stage: Stage) -> None:
    plain, dearest = stage.plain, max(stage.plain.pricing.tiers, key=lambda tier: tier.multiplier)
    latency_us = representative_us(dearest)
    for name, model in plain.models.items():
        served = (model.served_as or (name,))[0]
        cached = {"cached_input_tokens": INPUT // 5}
        question = stage.alone(plain, latency_us, model=served, **cached)
        stage.ask((FactCode.RATES, (name,)), [question], lambda found: [stage.priced(plain, latency_us, found[0][0].cell)])
        for variant in model.degraded:
            question = stage.alone(plain, latency_us, model=variant)
            stage.ask((FactCode.VARIANT, (name, variant)), [question], lambda found: [stage.priced(plain, latency_us, found[0][0].cell)])


def _ask_edges(stage: Stage) -> None:
    """Two latencies a microsecond apart at the target, at its tolerance and where each tier begins."""
    tiers, target_us = stage.plain.pricing.tiers, stage.plain.objective.target_us
    written = {edge for tier in tiers for edge in tier.latency.edges_us} | {target_us}
    abouts: list[tuple[Identity, int]] = [
        ((FactCode.TIER, (tier.name,)), tier.latency.from_us - 1) for tier in tiers if tier.latency.from_us
    ]
    for about, below_us in [((FactCode.PROMISE, ()), target_us), *abouts]:

        def make(found: list[Answer], below_us: int = below_us) -> list[Illustration]:
            below, above = (answer[0].cell for answer in found)
            edge = Edge(
                below_us=below_us,
                below_tier=band_and_multiplier(stage.plain, below)[0],
                below_late=below.late,
                above_tier=band_and_multiplier(stage.plain, above)[0],
                above_late=above.late,
                is_written_below=below_us in written,
            )
            return [edge]

        stage.ask(about, [stage.alone(stage.plain, latency_us) for latency_us in (below_us, below_us + 1)], make)
    limit_us = terms_of(stage.plain).over_from_us - 1
    if not is_any_forgiven(stage.contract) or limit_us >= LARGEST_RESULT_US:  # which no latency exceeds
        return
    stage.ask(
        (FactCode.TOLERANCE, ()),
        [stage.alone(stage.plain, latency_us) for latency_us in (limit_us, limit_us + 1)],
        lambda found: [Tolerance(limit_us=limit_us, limit_over=found[0][0].over, beyond_over=found[1][0].over)],
    )


def _ask_tiers(stage: Stage) -> None:
    for tier in stage.plain.pricing.tiers:

        def make(found: list[Answer], latency_us: int = representative_us(tier)) -> list[Illustration]:
            return [stage.priced(stage.plain, latency_us, found[0][0].cell)]

        stage.ask((FactCode.TIER, (tier.name,)), [stage.alone(stage.plain, representative_us(tier))], make)


def _ask_queues(stage: Stage) -> None:
    """The price of a queue in the first and the last tier, without a wait; and around its longest wait, in a tier that such a wait fits."""
    told = stage.told
    ends = (told.pricing.tiers[0], told.pricing.tiers[-1])[: len(told.pricing.tiers)]
    for name, queue in told.queues.by_name.items():
        if queue.multiplier is None:
            continue
        latencies = [representative_us(tier) for tier in ends]

        def make_prices(found: list[Answer], latencies: list[int] = latencies) -> list[Illustration]:
            return [stage.priced(told, latency_us, answer[0].cell) for latency_us, answer in zip(latencies, found, strict=True)]

        questions = [stage.alone(told, latency_us, queue=name, queue_us=0) for latency_us in latencies]
        stage.ask((FactCode.QUEUE, (name,)), questions, make_prices)
        longest_us = queue.max_queue_us
        if longest_us is None or queue.over_limit != "forfeit":
            continue

        def make_waits(found: list[Answer], longest_us: int = longest_us) -> list[Illustration]:
            within, beyond, unknown = (stage.priced(told, longest_us, answer[0].cell) for answer in found)
            assert within.tier is not None
            multipliers = (within.charge.multiplier, beyond.charge.multiplier, unknown.charge.multiplier)
            return [Waits(longest_us=longest_us, tier=within.tier, within=multipliers[0], beyond=multipliers[1], unknown=multipliers[2])]

        waited = [stage.alone(told, longest_us + 100_000, queue=name, queue_us=wait_us) for wait_us in (longest_us, longest_us + 1, None)]
        stage.ask((FactCode.QUEUE, (name,)), waited, make_waits)


def _ask_exemption(stage: Stage, exemption: Exemption, number: str) -> None:
    alone = stage.plain.model_copy(update={"exemptions": (exemption,)})
    match exemption:
        case CircuitBreaker(queues=queues):
            span = Breaker(node=None, start=stage.at, end=stage.at + HOUR)
            instants = (span.start, span.end - MICROSECOND, span.end)
            requests = [stage.request(0, queue=queues[0], received_at=at) for at in instants]
            questions = [Question(contract=alone, requests=(one,), breakers=(span,)) for one in requests]
            stage.ask((FactCode.CIRCUIT_BREAKER, (number,)), questions, lambda found: [BreakerCases(exempt=tuple(map(_is_exempt, found)))])
        case Async(input_tokens=threshold, evidence=evidence):
            limit = threshold.tokens
            counts = [count for count in ((limit - 1, limit) if threshold.op in ("<", ">=") else (limit, limit + 1)) if count >= 0]
            taken = counts[0] if threshold.op in ("<", "<=") else counts[-1]
            cases = [(count, True) for count in counts] + ([(taken, False)] if evidence == "header" else [])
            questions = [stage.alone(alone, 0, input_tokens=count, async_header=header) for count, header in cases]

            def make_async(found: list[Answer]) -> list[Illustration]:
                return [AsyncCases(cases=tuple((*case, _is_exempt(answer)) for case, answer in zip(cases, found, strict=True)))]

            stage.ask((FactCode.ASYNC, (number,)), questions, make_async)
        case ColdStart():
            _ask_cold_start(stage, alone, exemption, number)


def _ask_cold_start(stage: Stage, alone: Contract, exemption: ColdStart, number: str) -> None:
    longest_us = exemption.max_duration_us
    if longest_us > LONGEST_SPAN_US or not 0 < exemption.limit <= MOST_STARTS:
        return
    shared = [(stage.at, stage.at + apart * MICROSECOND) for apart in (longest_us, longest_us + 1)]
    starts = [Question(contract=alone, requests=tuple(stage.request(0, received_at=at, cold_start="a") for at in both)) for both in shared]
    many = [stage.request(0, cold_start=f"{start:03}") for start in range(exemption.limit + 1)]

    def make(found: list[Answer]) -> list[Illustration]:
        exempt = [sum(request.cell.exemption is not None for request in answer) for answer in found]
        apart = ((longest_us, exempt[0]), (longest_us + 1, exempt[1]))
        return [ColdStartCases(apart=apart, of_day=(exemption.limit + 1, exempt[2]))]

    stage.ask((FactCode.COLD_START, (number,)), [*starts, Question(contract=alone, requests=tuple(many))], make)


def _is_exempt(answer: Answer) -> bool:
    return answer[0].cell.exemption is not None


def _ask_outcomes(stage: Stage) -> None:
    """Of a queue in the objective, with its price: it may have none that changes nothing."""
    target_us = stage.told.objective.target_us
    cases: list[tuple[Identity, int, int | None]] = [((FactCode.MISSING_LATENCY, ()), 200, None)]
    cases += [((FactCode.FAILURE, (name,)), status, None) for name, status in STATUSES.items()]
    cases += [((FactCode.CANCELLED, ()), CANCELLED, latency_us) for latency_us in (target_us, target_us + 1)]
    for about, status, latency_us in cases:

        def make(found: list[Answer], status: int = status, latency_us: int | None = latency_us) -> list[Illustration]:
            cell = found[0][0].cell
            charge = stage.charge(stage.told, cell) if is_billed(stage.told, cell) else None
            return [
                Judged(
                    queue=stage.told_queue, status=status, latency_us=latency_us, charge=charge, in_objective=cell.in_objective,
                    late=cell.late,
                )
            ]  # fmt: skip

        stage.ask(about, [stage.alone(stage.told, latency_us, status=status, queue_us=0)], make)
