"""A random month: a valid contract, up to 120 requests crowded into a few hours of a few days, and recorded intervals.

`months()` gives a Month: the contract files' texts, rows of events.csv, rows of intervals.csv and the period. Every row is good (none is
refused, none in conflict) and every served name that would be billed is claimed, so the month settles. A request is made from 24 bytes by
taking one choice after another out of them; zero is the plainest request, so a failing month shrinks to plain ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.oracle.days import day_start, month_days
from tests.properties.contracts import ODD_MONTHS, contracts, to_yaml

T = TypeVar("T")
Row = dict[str, str]
NODES = ("", "n1", "n2")
COLD_STARTS = ("",) * 12 + ("true", "cold-1", "Cold-2", "é", "false", "TRUE")
STATUSES = ("", "", "", "200", "", "201", "499", "499", "500", "429", "404", "503", "299", "302", "600", "0")
ANY = ("any",)
COMPLETE = (
    ("queue_us", "prefill_us", "decode_us"),
    ("queue_us", "prefill_us", "decode_us", "inference_us", "ttft_us", "e2e_us"),
    ("queue_us", "prefill_us", "decode_us", "inference_us"),
)
PARTIAL = (
    ("queue_us", "inference_us"),
    ("e2e_us",),
    ("queue_us", "inference_us", "e2e_us"),
    ("inference_us", "ttft_us"),
    ("prefill_us", "decode_us", "e2e_us"),
    ("queue_us",),
    (),
    ANY,
)
UNIT_US = {"ms": 1_000, "us": 1, "1m": 60_000_000}


@dataclass(frozen=True)
class Month:
    """What settles. `contracts` are the same files before they were written as text."""

    contracts: list[dict[str, Any]]
    events: list[Row]
    intervals: list[Row]
    period: str

    @property
    def contract_texts(self) -> list[str]:
        return [to_yaml(contract) for contract in self.contracts]


class Choices:
    """Takes choices out of a number, the least significant first."""

    def __init__(self, chunk: bytes) -> None:
        self.left = int.from_bytes(chunk, "little")

    def of(self, options: Sequence[T]) -> T:
        self.left, index = divmod(self.left, len(options))
        return options[index]

    def one_in(self, times: int) -> bool:
        self.left, index = divmod(self.left, times)
        return index == times - 1


@dataclass(frozen=True)
class Scene:
    """What the requests of a month are chosen from."""

    starts: list[datetime]  # of busy windows
    edges: list[datetime]  # instants at which something changes
    step_us: int  # the length of a busy window
    statuses: Sequence[str]
    shapes: Sequence[tuple[str, ...]]
    latencies_us: list[int]
    waits_us: list[int]
    inputs: list[int]
    models: list[str]
    queues: list[str]
    accounts: list[str]
    unknown_models_pass: bool


@st.composite
def months(draw: st.DrawFn) -> Month:
    """A month that settles."""
    timezone, period, hot_days = draw(st.sampled_from(ODD_MONTHS))
    versions = draw(contracts(timezone, period, hot_days))
    scene = draw(scenes(versions, timezone, period, hot_days))
    intervals = draw(st.lists(st.binary(min_size=12, max_size=12).map(lambda chunk: interval(Choices(chunk), scene)), max_size=4))
    for number, row in enumerate(intervals):
        row["id"] = f"load-{number}" if row["kind"] == "model_load" else ""
    # The size is drawn first: lists of random length would be short most of the time.
    size = draw(st.sampled_from((5, 20, 40, 80, 100, 120)))
    chunks = draw(st.lists(st.binary(min_size=24, max_size=24), min_size=size, max_size=size))
    events = [request(number, Choices(chunk), scene) for number, chunk in enumerate(chunks)]
    return Month(versions, events, intervals, period)


@st.composite
def scenes(draw: st.DrawFn, versions: list[dict[str, Any]], timezone: str, period: str, hot_days: tuple[int, ...]) -> Scene:
    """Two busy hours (or windows) on each day to look at, and the values at which the contract's rules change."""
    first_day, next_first_day = month_days(period)
    year, month = first_day.year, first_day.month
    edges = [day_start(first_day, timezone), day_start(next_first_day, timezone)]
    starts = []
    for number in hot_days:
        day = date(year, month, number)
        start, end = day_start(day, timezone), day_start(day + timedelta(days=1), timezone)
        edges += [start, end]
        for hour in draw(st.sampled_from(((0, 10), (1, 23), (10, 11), (22, 24)))):
            starts.append(start + timedelta(hours=hour))
    calm_us, late_us, over_us = {0, 1, 49_999, 50_000}, set(), {400_000, 400_001, 5_000_000}
    waits = {0, 7_000}
    inputs = {0, 3, 1_000, 15_999, 16_000, 16_001, 1_000_000}
    for version in versions:
        target = microseconds(version["objective"]["target"])
        limit = int(target * Fraction(version["error_budget"]["up_to"].rstrip("%")) / 100)
        calm_us |= {target - 1, target}
        late_us |= {target + 1, limit}
        over_us |= {limit + 1}
        for queue in version["queues"].values():
            wait = microseconds(queue.get("max_queue", "20ms"))
            waits |= {wait, wait + 1}
    # In a rough month nearly every window fails outright; in a mild one it is late by a little, so that a budget can forgive it.
    rough = draw(st.integers(0, 2)) == 0
    latencies = sorted(calm_us) * draw(st.sampled_from((1, 2, 4))) + sorted(late_us) * 4
    if rough or draw(st.booleans()):
        latencies += sorted(over_us)
    claimed = [
        sorted({name for key, model in version["models"].items() for name in [*model.get("served_as", [key]), *model.get("degraded", {})]})
        for version in versions
    ]
    models = [name for name in claimed[0] if all(name in names for names in claimed)]
    # An unclaimed name is only counted where a client's error can neither be billed nor judged.
    unknown_models_pass = all(version["outcomes"]["client_error"]["objective"] == "exclude" for version in versions)
    return Scene(
        starts=draw(st.permutations(starts))[: draw(st.integers(1, 4))],
        edges=edges,
        step_us=draw(st.sampled_from((3_600_000_000, 900_000_000, 60_000_000))),
        statuses=STATUSES if rough else ("",) * 15 * len(STATUSES) + STATUSES,
        shapes=COMPLETE + PARTIAL if rough else COMPLETE * 60 + PARTIAL,
        latencies_us=latencies,
        waits_us=sorted(waits) if rough else [0] * 2 * len(waits) + sorted(waits),
        inputs=sorted(inputs),
        models=models,
        queues=["", "standard", "vip", "batch", "Gold", "standard"],
        accounts=["acct-a"] * 8 + ["acct-b"] * 3 + ["nobody"],
        unknown_models_pass=unknown_models_pass,
    )


def request(number: int, choices: Choices, scene: Scene) -> Row:
    """One good row of events.csv."""
    if choices.one_in(8):
        received_at = choices.of(scene.edges) + timedelta(microseconds=choices.of((0, -1, 1)))
    else:
        offset_us = choices.of((1_000_000, 0, scene.step_us - 1, scene.step_us, 60_000_000, 60_000_001, 1_000_001, scene.step_us // 2))
        received_at = choices.of(scene.starts) + timedelta(microseconds=offset_us)
    status = choices.of(scene.statuses)
    success = status == "" or status.startswith("2")
    row = {
        "account": choices.of(scene.accounts),
        "request_id": f"r{number:03}",
        "model": choices.of(scene.models),
        "received_at": received_at.isoformat(),
        "status": status,
        "queue": choices.of(scene.queues),
        "node": choices.of(NODES),
        "cold_start": choices.of(COLD_STARTS),
        "async_header": choices.of(("", "true", "false", "True")),
        **timing(choices, choices.of(scene.shapes), choices.of(scene.latencies_us), choices.of(scene.waits_us)),
    }
    inputs = choices.of(scene.inputs)
    row["input_tokens"] = str(inputs)
    row["cached_input_tokens"] = choices.of(("", "", str(inputs), str(inputs // 3), "0"))
    row["output_tokens"] = choices.of(("500", "0", "3", "1000000", "1000000000000"))
    if not success and choices.one_in(3):
        row["output_tokens"] = ""
    if not success and choices.one_in(3):
        row["input_tokens"] = row["cached_input_tokens"] = ""
    if status == "404" and scene.unknown_models_pass:
        row["model"] = choices.of((row["model"], "no-such-model"))
    return row


def timing(choices: Choices, shape: tuple[str, ...], latency_us: int, wait_us: int) -> Row:
    """Durations that agree with one another, or are missing, in every combination."""
    wait_us = min(wait_us, latency_us)
    work_us = latency_us - wait_us
    prefill_us = work_us // choices.of((3, 1, 2, 4))
    parts = {
        "queue_us": wait_us,
        "prefill_us": prefill_us,
        "decode_us": work_us - prefill_us,
        "inference_us": work_us,
        "ttft_us": wait_us + prefill_us,
        "e2e_us": latency_us,
    }
    given = tuple(name for name in parts if choices.one_in(2)) if shape is ANY else shape
    row = {name: str(value) if name in given else "" for name, value in parts.items()}
    if "e2e_us" in given and choices.one_in(6):
        # Clocks may disagree by up to 10 ms.
        row["e2e_us"] = str(max(latency_us - 10_000, 0))
    if "queue_us" in given and wait_us == 0 and choices.one_in(3):
        row["queue_us"] = "-10000"
    return row


def interval(choices: Choices, scene: Scene) -> Row:
    """A breaker interval, with or without a node, or a load of a model on a node."""
    start = choices.of(scene.starts) + timedelta(microseconds=choices.of((0, 1_000_000, 60_000_000, -1)))
    length = choices.of((timedelta(seconds=61), timedelta(minutes=20), timedelta(microseconds=1), timedelta(0), timedelta(hours=30)))
    kind = choices.of(("circuit_breaker", "model_load"))
    loads = kind == "model_load"
    return {
        "id": "",
        "kind": kind,
        "node": choices.of(NODES[1:] if loads else NODES),
        "model": choices.of(scene.models) if loads else "",
        "start": start.astimezone(UTC).isoformat(),
        "end": (start + length).astimezone(UTC).isoformat(),
    }


def microseconds(text: str) -> int:
    return int(text[:-2]) * UNIT_US[text[-2:]]
