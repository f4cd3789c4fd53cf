"""The synthetic month of `ledger demo`: May 2026 of two customers who do not exist, as a gateway would have logged it.

Takes a folder, writes the same lines into it every time, on every machine: the dice are seeded and only whole numbers are rolled.
What happens in the month is told by the tables at the top; the contracts it is settled under are in `contracts/`.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import NamedTuple

from ledger.settlement.calendar import zone

PERIOD = "2026-05"
SEED = 202605
DAYS = range(1, 32)
SHANGHAI, LONDON = zone("Asia/Shanghai"), zone("Europe/London")
HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An hour in which requests are slow or fail. Durations in microseconds, both ends included."""

    slow: int = 0
    from_us: int = 0
    to_us: int = 0
    failed: int = 0


# Acme's promise is 300 ms, 120 % of it 360 ms. By local day and hour:
ACME_TROUBLE = {
    (6, 10): Trouble(slow=5, from_us=305_000, to_us=350_000),  # the first breach is forgiven
    (12, 15): Trouble(slow=4, from_us=302_000, to_us=341_000),  # the second too
    (18, 9): Trouble(slow=6, from_us=310_000, to_us=356_000),  # and the third: the error budget is used up
    (23, 13): Trouble(
        slow=14, from_us=320_000, to_us=355_000
    ),  # a quiet Saturday, judged as a whole: mild, but nothing is left to forgive it
    (26, 16): Trouble(slow=3, from_us=500_000, to_us=900_000, failed=17),  # an outage
    (28, 14): Trouble(slow=64, from_us=400_000, to_us=1_900_000),  # an afternoon of overload, far beyond 120 %
    (28, 15): Trouble(slow=118, from_us=400_000, to_us=3_200_000),
    (28, 16): Trouble(slow=41, from_us=365_000, to_us=1_100_000),
}
THIRD_COLD_START = (14, 11)  # two cold starts a day are exempt; the requests of this third one count, and breach the hour
VARIANT_HOURS = [(20, 14), (20, 15)]  # a reduced variant stands in for the model
BREAKER = (12, 2, 90)  # a circuit breaker is open on this day from this hour, for so many minutes
NORTHWIND_TROUBLE = {(21, 12): Trouble(slow=9, from_us=1_010_000, to_us=1_180_000)}  # one mild day, forgiven


class Request(NamedTuple):
    """One line of telemetry. None is written as an empty field. (A tuple, since tens of thousands are made from one another.)"""

    account: str
    request_id: str
    model: str
    received_at: str
    queue_us: int | None = None
    prefill_us: int | None = None
    decode_us: int | None = None
    ttft_us: int | None = None
    e2e_us: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    status: int = 200
    queue: str = "standard"
    cold_start: str | None = None
    async_header: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMonth:
    """The files that were written, and how many lines of telemetry they hold together."""

    telemetry: tuple[Path, ...]
    intervals: Path
    requests: int


def write_demo_month(folder: Path) -> DemoMonth:
    """Writes two telemetry files into `telemetry/` of the folder, and one of breaker intervals beside it. Same lines every time."""
    telemetry = folder / "telemetry"
    telemetry.mkdir(parents=True, exist_ok=True)
    acme, northwind = list(_acme(Dice(SEED))), list(_northwind(Dice(SEED + 1)))
    files = (telemetry / f"acme-bank-{PERIOD}.csv", telemetry / f"northwind-retail-{PERIOD}.jsonl.gz")
    files[0].write_text(_as_csv(acme), "utf-8", newline="")
    # A gzip header holds the time of writing; it is left out, so that a second demo finds the file that it knows.
    files[1].write_bytes(gzip.compress(_as_json_lines(northwind).encode(), compresslevel=1, mtime=0))
    day, hour, minutes = BREAKER
    opened = datetime(2026, 5, day, hour, tzinfo=SHANGHAI)
    intervals = folder / f"breaker-intervals-{PERIOD}.csv"
    line = f"circuit_breaker,,{opened.isoformat()},{(opened + timedelta(minutes=minutes)).isoformat()}"
    intervals.write_text(f"kind,node,start,end\n{line}\n", "utf-8", newline="")
    return DemoMonth(telemetry=files, intervals=intervals, requests=len(acme) + len(northwind))


class Dice:
    """Seeded whole random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def roll(self, low: int, high: int) -> int:
        """Low to high, both included."""
        return low + (self._random.getrandbits(48) * (high - low + 1) >> 48)

    def chance(self, per_thousand: int) -> bool:
        """True so many times in a thousand."""
        return self._random.getrandbits(20) * 1000 < per_thousand << 20

    def skewed(self, median: int, table: tuple[int, ...]) -> int:
        """About lognormal: most near the median, some far above, none beyond the table's end."""
        bits = self._random.getrandbits(32)
        return median * table[(bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)] // 1000


def _skew(sigma: str) -> tuple[int, ...]:
    """Factors in thousandths for the sum of four bytes, which is nearly normal: exp(sigma x deviation), by exact decimals."""
    return tuple(int((Decimal(sigma) * (i - 510) / 148).exp() * 1000) for i in range(1021))


LATENCY, SIZE = _skew("0.23"), _skew("0.55")


def _acme(dice: Dice) -> Iterator[Request]:
    """Acme Bank: a busy working day, quiet nights and week-ends, and everything that a contract has a rule for."""
    for day in DAYS:
        is_weekend = datetime(2026, 5, day).weekday() >= 5
        for hour in range(24):
            is_busy = not is_weekend and 9 <= hour < 21
            start = datetime(2026, 5, day, hour, tzinfo=SHANGHAI)
            trouble = ACME_TROUBLE.get((day, hour), Trouble())
            plain = dice.roll(148, 178) if is_busy else dice.roll(26, 34) if is_weekend else dice.roll(12, 16)
            for number in range(plain):
                yield _acme_request(dice, start, f"a{day:02d}{hour:02d}-{number:03d}", is_busy, (day, hour) in VARIANT_HOURS)
            for number in range(trouble.slow):
                yield _timed(dice, _acme_text(dice, start, f"s{day:02d}{hour:02d}-{number:03d}"), dice.roll(trouble.from_us, trouble.to_us))
            for number in range(trouble.failed):
                yield _acme_text(dice, start, f"f{day:02d}{hour:02d}-{number:03d}")._replace(status=503, output_tokens=None)
            if is_busy and trouble == Trouble() and (day, hour) != THIRD_COLD_START and dice.chance(300):
                yield _straggler(dice, start, f"l{day:02d}{hour:02d}")
            for number in range(dice.roll(9, 13) if is_busy else 2 if is_weekend else 0):
                request = _acme_text(dice, start, f"m{day:02d}{hour:02d}-{number:03d}")
                yield _timed(dice, request._replace(model="deepseek-v4-mini"), dice.skewed(96_000, LATENCY))
        yield from _cold_starts(dice, day)
    yield from _odd_lines(dice)


def _acme_request(dice: Dice, start: datetime, name: str, is_busy: bool, has_variant: bool) -> Request:
    """An ordinary request: mostly interactive, some batch, some for the fast lane, a few long, given up or rejected."""
    request = _acme_text(dice, start, name)
    kind = dice.roll(0, 999)
    if kind < 6:
        long = request._replace(input_tokens=dice.roll(16_001, 64_000), cached_input_tokens=0, async_header="true")
        return _timed(dice, long, dice.roll(2_000_000, 20_000_000))
    if kind < 10:
        produced = None if dice.chance(200) else dice.roll(1, 90)
        return _timed(dice, request._replace(status=499, output_tokens=produced), dice.roll(20_000, 240_000))
    if kind < 14:
        return request._replace(status=429 if dice.chance(800) else 404, input_tokens=None, cached_input_tokens=None, output_tokens=None)
    if kind < 54:
        return _timed(dice, request._replace(queue="vip"), dice.skewed(92_000, LATENCY))
    if kind < 94 or (kind < 400 and not is_busy):
        return _timed(dice, request._replace(queue="batch"), dice.skewed(150_000, LATENCY), wait_us=dice.roll(2_000_000, 90_000_000))
    if kind < 700 and has_variant:
        return _timed(dice, request._replace(model="deepseek-moe-4bit"), dice.roll(48_000, 99_000))
    return _timed(dice, request, dice.skewed(127_000, LATENCY))


def _straggler(dice: Dice, start: datetime, name: str) -> Request:
    """The one request in a hundred that may be late."""
    request = _acme_text(dice, start, name)
    kind = dice.roll(0, 9)
    if kind == 0:
        return request  # nobody measured it
    if kind <= 2:
        return _timed(dice, request._replace(queue="vip"), dice.skewed(110_000, LATENCY), wait_us=dice.roll(500_001, 900_000))
    if kind == 3:
        return _timed(dice, request._replace(status=499, output_tokens=dice.roll(1, 40)), dice.roll(1_000_000, 4_000_000))
    return _timed(dice, request, dice.roll(301_000, 1_400_000))


def _cold_starts(dice: Dice, day: int) -> Iterator[Request]:
    """One or two models load each day, and the requests that came first waited for them."""
    hours = [8, *([13] if dice.chance(500) else [])]
    if day == THIRD_COLD_START[0]:
        hours = [8, 9, THIRD_COLD_START[1]]
    for order, hour in enumerate(hours, 1):
        start = datetime(2026, 5, day, hour, dice.roll(5, 50), tzinfo=SHANGHAI)
        for number in range(dice.roll(4, 6)):
            request = _acme_text(dice, start, f"c{day:02d}{hour:02d}-{number}")._replace(cold_start=f"load-{day:02d}-{order}")
            request = request._replace(received_at=_within(dice, start, 8_000_000))
            yield _timed(dice, request, dice.skewed(140_000, LATENCY), wait_us=dice.roll(3_000_000, 9_000_000))


def _odd_lines(dice: Dice) -> Iterator[Request]:
    """What real files hold too: lines sent twice, lines that cannot be right, and an account without a contract."""
    start = datetime(2026, 5, 29, 10, tzinfo=SHANGHAI)
    twice = _timed(dice, _acme_text(dice, start, "twice"), 120_000)
    yield from (twice, twice, twice)
    yield twice._replace(request_id="cached-exceeds-input", input_tokens=900, cached_input_tokens=4_000)
    yield twice._replace(request_id="negative-wait", queue_us=-40_000)
    yield twice._replace(request_id="no-usage", input_tokens=None, cached_input_tokens=None, output_tokens=None)
    yield from (twice._replace(account="trial-0417", request_id=f"trial-{number}") for number in range(4))


def _acme_text(dice: Dice, start: datetime, name: str) -> Request:
    size = min(dice.skewed(4_200, SIZE), 15_900)
    return Request(
        account="acme-bank",
        request_id=f"acme-{name}",
        model="deepseek-v4" if dice.chance(850) else "deepseek-ai/DeepSeek-V4",
        received_at=_within(dice, start, HOUR_US - 1),
        input_tokens=size,
        cached_input_tokens=size * dice.roll(20, 90) // 100 if dice.chance(350) else None,
        output_tokens=dice.skewed(240, SIZE),
        node=f"gpu-{dice.roll(1, 8):02d}",
    )


def _within(dice: Dice, start: datetime, span_us: int) -> str:
    """An instant up to `span_us` after the start, with the offset of its zone."""
    return (start + timedelta(microseconds=dice.roll(0, span_us))).isoformat(timespec="microseconds")


def _timed(dice: Dice, request: Request, total_us: int, wait_us: int | None = None) -> Request:
    """The request with its spans: `total_us` from end to end, or of inference alone after a wait of its own."""
    queue_us = min(dice.roll(2_000, 16_000), total_us // 4) if wait_us is None else wait_us
    inference_us = total_us if wait_us is not None else total_us - queue_us
    prefill_us = inference_us * dice.roll(18, 40) // 100
    return request._replace(queue_us=queue_us, prefill_us=prefill_us, decode_us=inference_us - prefill_us)


def _northwind(dice: Dice) -> Iterator[Request]:
    """Northwind Retail: a shop assistant that answers all day, judged by its first token."""
    for day in DAYS:
        for hour in range(24):
            start = datetime(2026, 5, day, hour, tzinfo=LONDON)
            trouble = NORTHWIND_TROUBLE.get((day, hour), Trouble())
            for number in range(dice.roll(38, 46) if 8 <= hour < 22 else dice.roll(4, 8)):
                yield _shop_request(dice, start, f"{day:02d}{hour:02d}-{number:03d}", dice.skewed(390_000, LATENCY))
            for number in range(trouble.slow):
                yield _shop_request(dice, start, f"{day:02d}{hour:02d}-s{number:02d}", dice.roll(trouble.from_us, trouble.to_us))


def _shop_request(dice: Dice, start: datetime, name: str, ttft_us: int) -> Request:
    size = min(dice.skewed(3_000, SIZE), 15_900)
    return Request(
        account="northwind-retail",
        request_id=f"shop-{name}",
        model="shop-assistant",
        received_at=_within(dice, start, HOUR_US - 1),
        queue_us=min(dice.roll(1_000, 30_000), ttft_us),
        ttft_us=ttft_us,
        e2e_us=ttft_us + dice.skewed(1_600_000, SIZE),
        input_tokens=size,
        cached_input_tokens=size * dice.roll(40, 95) // 100 if dice.chance(600) else None,
        output_tokens=dice.skewed(180, SIZE),
        node=f"edge-{dice.roll(1, 3)}",
    )


_ACME_COLUMNS = [
    *("account", "request_id", "model", "received_at", "queue_us", "prefill_us", "decode_us", "input_tokens", "cached_input_tokens"),
    *("output_tokens", "status", "queue", "cold_start", "async_header", "node"),
]
_NORTHWIND_COLUMNS = [
    *("account", "request_id", "model", "received_at", "queue_us", "ttft_us", "e2e_us", "input_tokens", "cached_input_tokens"),
    *("output_tokens", "status", "node"),
]


def _as_csv(requests: list[Request]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_ACME_COLUMNS)
    writer.writerows(map(attrgetter(*_ACME_COLUMNS), requests))
    return text.getvalue()


def _as_json_lines(requests: list[Request]) -> str:
    values_of = attrgetter(*_NORTHWIND_COLUMNS)
    return "".join(json.dumps(dict(zip(_NORTHWIND_COLUMNS, values_of(request), strict=True))) + "\n" for request in requests)
