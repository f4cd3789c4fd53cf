"""Runs the examples of contracts: files in, what each example comes to and which rules none of them reaches out, without a database.

Every example becomes a contract of its own with accounts of its own, so that none disturbs another, and all are classified together by the
plan that settles months, in DuckDB in memory: a few statements, however many examples there are. Source: specification, section 10.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb

from ledger.contract.diagnostic import Diagnostic, Finding, Path
from ledger.contract.example import Example, ExampleEvent, ExampleWindow
from ledger.contract.model import Contract
from ledger.contract.reader import diagnostic_of
from ledger.ingest.stated_event import state_events, stated_events
from ledger.instant import MICROSECOND, since_1970_us
from ledger.rating.classified import ClassifiedRequest, classify_requests, window_cell_of, with_told_latencies
from ledger.rating.plans import plans_of
from ledger.rating.recorded import Breaker, Coverage, ModelLoad
from ledger.settlement.calendar import days_touched, months_anywhere
from ledger.settlement.cell import WindowCell
from ledger.settlement.example import Difference, ExampleFound, WindowFound, differences, request_found, windows_found
from ledger.settlement.example_sketch import quiet_instant, standard_queue
from ledger.settlement.period import Period, Piece, contract_period
from ledger.settlement.stated_rule import StatedRule
from ledger.settlement.stated_rules import stated_rules
from ledger.settlement.windows import judge, window_of
from ledger.workflows.contract import CheckedFile
from ledger.workflows.example_days import in_force, instants_outside

Span = tuple[datetime, datetime]

BETWEEN_EVENTS = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunExample:
    """An example that ran: its place in the contract, what it comes to, and where that is not what it expects."""

    place: int
    found: ExampleFound
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """The examples of a file that ran, why the others could not, and the rules of the contract, each with whether an example that holds
    reaches it; `awaited` are those that only examples reach that fail. Of a file that is no contract there is nothing."""

    checked: CheckedFile
    run: tuple[RunExample, ...] = ()
    wrong: tuple[Diagnostic, ...] = ()
    rules: tuple[tuple[StatedRule, bool], ...] = ()
    awaited: tuple[StatedRule, ...] = ()

    @property
    def not_reached(self) -> tuple[StatedRule, ...]:
        """The rules that no example reaches, not even one that fails."""
        return tuple(rule for rule, is_reached in self.rules if not is_reached and rule not in self.awaited)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """An example about to run: `key` is the id of its contract, by which its accounts and requests begin; `events` are complete, one for
    each event or window; `contract` classifies them."""

    key: str
    file: int
    place: int
    stated: Contract
    contract: Contract
    example: Example
    events: tuple[ExampleEvent, ...]

    @property
    def what(self) -> str:
        return "windows" if self.example.windows else "events"

    def request_id(self, entry: int) -> str:
        return f"{self.key} {entry:05}"

    def account(self, name: str) -> str:
        return f"{self.key} {name}"


def run_examples(checked: Sequence[CheckedFile]) -> tuple[RunFile, ...]:
    """Runs the examples of the files, each by itself; a version is tested on the days of its own `effective`, whatever replaces it.

    An example with an instant outside these days, which `check_contracts` has told, is left out.
    """
    cases = [
        _case(contract, example, file, place)
        for file, one in enumerate(checked)
        if (contract := one.contract) is not None
        for place, example in enumerate(contract.examples)
    ]
    outside = {(file, place) for file, one in enumerate(checked) if one.contract for place in instants_outside(one.contract)}
    wrong: dict[str, list[Finding]] = {case.key: [] for case in cases}
    with duckdb.connect(config={"threads": 1}) as memory:  # so few events are not worth a second one
        for case, entry, detail in _state(memory, cases):
            path: Path = ("examples", case.place, case.what, entry)
            wrong[case.key].append(_wrong(path, detail, "an event that can be", "correct what the example says of it"))
        sound = [case for case in cases if not wrong[case.key] and (case.file, case.place) not in outside]
        classified: dict[str, ClassifiedRequest] = {}
        for batch in _apart(sound):
            classified |= _classify(memory, batch)
    found: dict[str, ExampleFound] = {}
    for case in sound:
        requests = [classified[case.request_id(entry)] for entry in range(len(case.events))]
        if case.example.windows:
            wrong[case.key] += _same_window_twice(case, requests)
        if not wrong[case.key]:
            found[case.key] = _found(case, requests)
    return tuple(_run_file(one, file, cases, found, wrong) for file, one in enumerate(checked))


def _run_file(
    checked: CheckedFile, file: int, cases: Iterable[_Case], found: Mapping[str, ExampleFound], wrong: Mapping[str, Sequence[Finding]]
) -> RunFile:
    own = [case for case in cases if case.file == file]
    run = tuple(
        RunExample(place=case.place, found=found[case.key], differences=tuple(differences(found[case.key])))
        for case in own
        if case.key in found
    )
    holding, failing = ([one.found for one in run if bool(one.differences) is fails] for fails in (False, True))
    rules = () if checked.contract is None else stated_rules(checked.contract)
    return RunFile(
        checked=checked,
        run=run,
        wrong=tuple(diagnostic_of(finding, checked.file, checked.places) for case in own for finding in wrong[case.key]),
        rules=tuple((rule, any(map(rule.is_reached_by, holding))) for rule in rules),
        awaited=tuple(rule for rule in rules if any(map(rule.is_reached_by, failing)) and not any(map(rule.is_reached_by, holding))),
    )


# -- an example's events, complete


def _case(contract: Contract, example: Example, file: int, place: int) -> _Case:
    """Windows become one event each, at the window's instant, whose latency is the percentile that the example gives.

    The given percentile replaces what telemetry measured and nothing else: `_of_windows` leaves out how a latency is measured and what is
    kept out of the objective before, and every rule behind a latency stays the contract's: which window it falls into, whether it is late
    or over, and then, of as many requests as the window has, whether it is judged, breached, forgiven. If all requests of a window have
    one latency, that is its percentile, whichever percentile the contract means.
    """
    complete = [_event_of_window(contract, window) for window in example.windows] or _complete(contract, example)
    return _Case(
        key=f"{file:05}.{place:05}",
        file=file,
        place=place,
        stated=contract,
        contract=with_told_latencies(contract) if example.windows else contract,
        example=example,
        events=tuple(complete),
    )


def _event_of_window(contract: Contract, window: ExampleWindow) -> ExampleEvent:
    event = _with_defaults(contract, ExampleEvent(), window.at)
    return event.model_copy(update={"queue": contract.objective.queues[0], "e2e_us": window.p99_us})


def _complete(contract: Contract, example: Example) -> list[ExampleEvent]:
    """What an event does not say comes from the contract; instants are a second apart in the order of the list, so that the first is the
    first."""
    quiet = quiet_instant(contract, avoiding=[(interval.start, interval.end) for interval in example.intervals])
    return [_with_defaults(contract, event, quiet + place * BETWEEN_EVENTS) for place, event in enumerate(example.events)]


def _with_defaults(contract: Contract, event: ExampleEvent, received_at: datetime) -> ExampleEvent:
    status = 200 if event.status is None else event.status
    is_success = 200 <= status <= 299
    defaults: dict[str, object] = {
        "received_at": received_at,
        "account": contract.parties.customer.accounts[0],
        "model": next(iter(contract.served_names())),
        "queue": standard_queue(contract),
        "status": status,
        # A success has its tokens; of another request they may be unknown.
        "input_tokens": 0 if is_success else None,
        "output_tokens": 0 if is_success else None,
        "async_header": False,
    }
    return event.model_copy(update={name: value for name, value in defaults.items() if getattr(event, name) is None})


def _wrong(path: Path, found: str, expected: str, cure: str) -> Finding:
    return Finding(code="bad_example", path=path, found=found, expected=expected, cure=cure)


def _state(memory: duckdb.DuckDBPyConnection, cases: Sequence[_Case]) -> list[tuple[_Case, int, str]]:
    """Makes the relation of all events; gives those that the rules of events refuse, and why."""
    places = [(case, entry) for case in cases for entry in range(len(case.events))]
    rows = []
    for case, entry in places:
        event = case.events[entry]
        assert event.account is not None and event.received_at is not None
        row = event.model_dump() | {
            "request_id": case.request_id(entry),
            "account": case.account(event.account),
            "received_at": since_1970_us(event.received_at),
        }
        rows.append(row)
    return [(*places[place], detail) for place, detail in state_events(memory, rows).items()]


# -- classification


def _apart(cases: Sequence[_Case]) -> list[list[_Case]]:
    """The cases in batches that one plan can classify: an interval is seen by every event of a batch, so none may reach another case."""
    batches: list[list[_Case]] = []
    for case in cases:
        batch = next((batch for batch in batches if not any(_disturb(case, other) for other in batch)), None)
        if batch is None:
            batches.append([case])
        else:
            batch.append(case)
    return batches


def _disturb(one: _Case, other: _Case) -> bool:
    """Whether an interval of one reaches an event of the other, which does not have the same intervals itself."""
    return set(one.example.intervals) != set(other.example.intervals) and any(
        interval.start <= last and first < interval.end
        for mine, yours in ((one, other), (other, one))
        for interval in mine.example.intervals
        for first, last in [_waits(yours)]
    )


def _waits(case: _Case) -> Span:
    """From the first event's instant to after the last one that some event waits for."""
    waits = [(event.received_at, (event.queue_us or 0) * MICROSECOND) for event in case.events if event.received_at is not None]
    return min(at for at, _ in waits), max(at + wait for at, wait in waits) + MICROSECOND


def _classify(memory: duckdb.DuckDBPyConnection, batch: Sequence[_Case]) -> dict[str, ClassifiedRequest]:
    contracts = {(case.key, case.contract.version): case.contract for case in batch}
    coverage = [covered for case in batch for covered in _coverage(case)]
    intervals = list(dict.fromkeys(interval for case in batch for interval in case.example.intervals))
    breakers = [Breaker(node=one.node, start=one.start, end=one.end) for one in intervals if one.kind == "circuit_breaker"]
    loads = [
        ModelLoad(interval_id=f"load {number}", node=one.node, model=one.model, start=one.start, end=one.end)
        for number, one in enumerate(intervals)
        if one.kind == "model_load" and one.node is not None and one.model is not None
    ]
    return classify_requests(memory, plans_of(contracts, coverage, breakers, loads, stated_events(), by_request=True))


def _coverage(case: _Case) -> Iterator[Coverage]:
    """The days of the case's events, for each account that they name."""
    first, last = _waits(case)
    days = days_touched(case.contract.calendar.timezone, first, last)
    start, end = in_force(case.stated)
    for account in sorted({case.account(event.account) for event in case.events if event.account is not None}):
        yield Coverage(
            account=account,
            contract_id=case.key,
            version=case.contract.version,
            start=max(days.starts[0], start),
            end=days.end if end is None else min(days.end, end),
        )


# -- what it comes to


def _found(case: _Case, requests: Sequence[ClassifiedRequest]) -> ExampleFound:
    if case.example.windows:
        return ExampleFound(contract=case.stated, example=case.example, windows=tuple(_windows(case, requests)))
    piece = Piece(contract=case.stated, days=days_touched(case.stated.calendar.timezone, *_waits(case)))
    return ExampleFound(
        contract=case.stated,
        example=case.example,
        requests=tuple(
            request_found(piece, event, request.cell, request.latency_us) for event, request in zip(case.events, requests, strict=True)
        ),
    )


def _windows(case: _Case, requests: Sequence[ClassifiedRequest]) -> list[WindowFound]:
    """The windows in the order of the example; those of one month share its budget."""
    found: dict[int, WindowFound] = {}
    by_month: dict[str, tuple[Period, list[tuple[int, ExampleWindow, WindowCell]]]] = {}
    for entry, (window, request) in enumerate(zip(case.example.windows, requests, strict=True)):
        period = _period(case.contract, window.at)
        cell = window_cell_of(request, _requests(case.stated) if window.requests is None else window.requests)
        by_month.setdefault(period.name, (period, []))[1].append((entry, window, cell))
    for period, entries in by_month.values():
        judgement = judge(period, [cell for _, _, cell in entries], period.end)
        results = windows_found(period, [(window, cell) for _, window, cell in entries], judgement)
        found |= {entry: result for (entry, _, _), result in zip(entries, results, strict=True)}
    return [found[entry] for entry in range(len(requests))]


def _requests(contract: Contract) -> int:
    """As many requests as a window needs to be judged, as far as so many are."""
    least = max(contract.objective.min_requests, 1)
    most = contract.objective.max_requests
    return least if most is None else max(min(least, most), 1)


def _period(contract: Contract, at: datetime) -> Period:
    periods = (contract_period([contract], name) for name in months_anywhere(at))
    return next(period for period in periods if period is not None and period.start <= at < period.end)


def _same_window_twice(case: _Case, requests: Sequence[ClassifiedRequest]) -> Iterator[Finding]:
    seen: dict[tuple[str, object], int] = {}
    for entry, (window, request) in enumerate(zip(case.example.windows, requests, strict=True)):
        period = _period(case.contract, window.at)
        key = period.name, window_of(period, window_cell_of(request, 1))
        if key in seen:
            path: Path = ("examples", case.place, "windows", entry, "at")
            found = f"a second percentile of the window of entry {seen[key] + 1}"
            yield _wrong(path, found, "each window once", "move it into another window, or leave it out")
        seen.setdefault(key, entry)
