"""Rows of canonical columns to settled events: which rows are refused, which are duplicates, which are in conflict, and what is derived.

Takes the rows of events.csv as dicts of text; gives events. Source: specification, sections 1 and 2.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

THIRTY_DAYS_US = 30 * 86_400_000_000
MOST_TOKENS = 10**12
CLAMP_US = 10_000  # 10 ms, both for a wait below zero and for a queue + inference above e2e

INTEGER = re.compile(r"-?[0-9]+")
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates
DURATIONS = ("queue", "prefill", "decode", "inference", "ttft", "e2e")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
PER_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}


class Refused(Exception):
    """The row goes to quarantine; `reason` is the code of section 2."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Event:
    """One row as stored: defaults filled, clamp applied. The derived values are properties, so they take no part in `==`."""

    account: str
    request_id: str
    model: str
    received_at: datetime
    queue_us: int | None
    prefill_us: int | None
    decode_us: int | None
    inference_us: int | None
    ttft_us: int | None
    e2e_us: int | None
    input_tokens: int | None
    cached_input_tokens: int
    output_tokens: int | None
    status: int
    queue: str
    cold_start: str | None  # None: no; "true": one of its own; anything else: the cold start's id
    async_header: bool
    node: str | None

    @property
    def inference(self) -> int | None:
        """inference = inference_us, else prefill_us + decode_us."""
        return self.inference_us if self.inference_us is not None else total(self.prefill_us, self.decode_us)

    @property
    def e2e(self) -> int | None:
        """e2e = e2e_us, else queue_us + inference."""
        return self.e2e_us if self.e2e_us is not None else total(self.queue_us, self.inference)

    @property
    def ttft(self) -> int | None:
        """ttft = ttft_us, else queue_us + prefill_us."""
        return self.ttft_us if self.ttft_us is not None else total(self.queue_us, self.prefill_us)


def total(left: int | None, right: int | None) -> int | None:
    """The sum, null when a part is missing."""
    return None if left is None or right is None else left + right


def read_events(
    rows: list[dict[str, str]], voids: list[tuple[str, str]] | None = None, clock: datetime | None = None
) -> tuple[list[Event], list[str]]:
    """The events that stand, in the order of the rows, and for every row what became of it.

    The second value has one word per row: `new`, `duplicate`, `conflict` or the reason why it was refused. `clock` is the ingesting
    clock; without it no row is in the future.
    """
    stored: dict[tuple[str, str], Event] = {}
    fates = []
    for row in rows:
        try:
            event = read_event(row, clock)
        except Refused as refused:
            fates.append(refused.reason)
            continue
        identity = (event.account, event.request_id)
        if identity not in stored:
            stored[identity] = event
            fates.append("new")
        elif stored[identity] == event:  # "all canonical columns as stored are compared"
            fates.append("duplicate")
        else:
            fates.append("conflict")  # "quarantined, and the stored one stays"
    withdrawn = set(voids or [])
    return [event for identity, event in stored.items() if identity not in withdrawn], fates


def read_event(row: dict[str, str], clock: datetime | None = None) -> Event:
    """The row as an event. Raises Refused with the reason of section 2."""
    for name in ("account", "request_id", "model", "received_at"):
        if not row.get(name):
            raise Refused("missing_field")
    if any(text and UNSTORABLE.search(text) for text in row.values()):
        raise Refused("bad_text")
    if len(row["account"]) > 200 or len(row["request_id"]) > 200:
        raise Refused("bad_text")
    received_at = read_instant(row["received_at"])
    if clock is not None and received_at > clock + timedelta(seconds=60):
        raise Refused("future")

    durations = {name: read_duration(row, name) for name in DURATIONS}
    if durations["queue"] is not None and -CLAMP_US <= durations["queue"] < 0:
        durations["queue"] = 0
    for duration in durations.values():
        if duration is not None and duration < 0:
            raise Refused("negative_duration")
        if duration is not None and duration > THIRTY_DAYS_US:
            raise Refused("too_large")

    tokens = {name: read_integer(row.get(name)) for name in TOKENS}
    for count in tokens.values():
        if count is not None and count < 0:
            raise Refused("negative_tokens")
        if count is not None and count > MOST_TOKENS:
            raise Refused("too_large")
    cached = tokens["cached_input_tokens"] or 0  # "empty means 0"
    if cached > (tokens["input_tokens"] or 0):
        raise Refused("cached_exceeds_input")

    status = read_integer(row.get("status"))
    if status is None:
        status = 200  # "empty means 200"
    if 200 <= status <= 299 and (tokens["input_tokens"] is None or tokens["output_tokens"] is None):
        raise Refused("usage_missing")

    async_header = (row.get("async_header") or "false").lower()
    if async_header not in ("true", "false"):
        raise Refused("bad_text")
    cold_start = row.get("cold_start") or "false"
    if cold_start.lower() in ("true", "false"):
        cold_start = cold_start.lower()

    event = Event(
        account=row["account"],
        request_id=row["request_id"],
        model=row["model"],
        received_at=received_at,
        queue_us=durations["queue"],
        prefill_us=durations["prefill"],
        decode_us=durations["decode"],
        inference_us=durations["inference"],
        ttft_us=durations["ttft"],
        e2e_us=durations["e2e"],
        input_tokens=tokens["input_tokens"],
        cached_input_tokens=cached,
        output_tokens=tokens["output_tokens"],
        status=status,
        queue=row.get("queue") or "standard",
        cold_start=None if cold_start == "false" else cold_start,
        async_header=async_header == "true",
        node=row.get("node") or None,
    )
    waited_and_worked = total(event.queue_us, event.inference)
    if waited_and_worked is not None and event.e2e is not None and waited_and_worked > event.e2e + CLAMP_US:
        raise Refused("inconsistent_timing")
    return event


def read_instant(text: str) -> datetime:
    """RFC 3339 with an offset, in UTC, rounded half even to the microsecond. Naive, 24:00 and second 60 are refused."""
    match = INSTANT.fullmatch(text)
    if not match:
        raise Refused("bad_instant")
    day, time, fraction, offset = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{time}{'+00:00' if offset in 'Zz' else offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refused("bad_instant") from None
    if time.startswith("24"):
        raise Refused("bad_instant")
    return whole + timedelta(microseconds=round(Fraction("0" + fraction) * 1_000_000)) if fraction else whole


def read_duration(row: dict[str, str], name: str) -> int | None:
    """Microseconds of a duration given as `_us` (integer), `_ms` or `_s` (decimal), one of them per row, rounded half even."""
    given = [(unit, row[f"{name}_{unit}"]) for unit in PER_UNIT_US if row.get(f"{name}_{unit}")]
    if not given:
        return None
    if len(given) > 1:
        raise Refused("bad_number")
    [(unit, text)] = given
    if not (INTEGER if unit == "us" else DECIMAL).fullmatch(text):
        raise Refused("bad_number")
    return int(text) if unit == "us" else round(Fraction(text) * PER_UNIT_US[unit])


def read_integer(text: str | None) -> int | None:
    """A whole number in digits; `21073.0`, NaN and `1e400` are refused."""
    if not text:
        return None
    if not INTEGER.fullmatch(text):
        raise Refused("bad_number")
    return int(text)
