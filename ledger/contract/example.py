"""The examples of a contract as frozen types: what stands under `examples` once it has been read.

Source: specification, section 10; of the durations of an event, section 2.
"""

from typing import Literal

from pydantic import Field, model_validator

from ledger.contract.diagnostic import Refusal
from ledger.contract.scalar import microseconds_text
from ledger.contract.terms import Terms
from ledger.contract.types import Clause, Count, Duration, ExactAmount, Identifier, Instant, Line, OptionalMultiplier, YesNo


class ExampleEvent(Terms):
    """An event of an example; what is left out comes from the contract. The file may give a duration as `_us`, `_ms` or `_s`."""

    received_at: Instant | None = None
    account: Line | None = None
    model: Line | None = None
    queue: Identifier | None = None
    status: Count | None = None
    queue_us: Count | None = None
    prefill_us: Count | None = None
    decode_us: Count | None = None
    inference_us: Count | None = None
    ttft_us: Count | None = None
    e2e_us: Count | None = None
    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    cold_start: Line | None = None
    async_header: YesNo | None = None
    node: Line | None = None

    @model_validator(mode="before")
    @classmethod
    def _to_microseconds(cls, value: object) -> object:
        """One unit for each duration, rounded half even to the microsecond as in telemetry."""
        if not isinstance(value, dict):
            return value
        terms = dict(value)
        for name in ("queue", "prefill", "decode", "inference", "ttft", "e2e"):
            given = [key for key in (f"{name}_us", f"{name}_ms", f"{name}_s") if key in terms]
            if len(given) > 1:
                raise Refusal("repeated_entry", "one unit for a duration", "remove one of them", found=" and ".join(given), key=given[1])
            if given and not given[0].endswith("_us"):
                terms[f"{name}_us"] = microseconds_text(terms.pop(given[0]), key=given[0])
        return terms


class ExampleInterval(Terms):
    """A recorded interval [start, end) around an example's events: an open circuit breaker, or a load of a model on a node."""

    kind: Literal["circuit_breaker", "model_load"] = Field(description="What was recorded.")
    node: Line | None = None
    model: Line | None = None
    start: Instant
    end: Instant


class ExampleWindow(Terms):
    """A window of an example: where it lies and the percentile that was measured in it. `requests` None: as many as are judged."""

    at: Instant
    p99_us: Duration = Field(alias="p99")
    requests: Count | None = None


class ExampleExpectation(Terms):
    """What an example must give, one entry per event or window; `charge` is exact, before rounding. The band of an event that is not
    billed is `none`, and so is its multiplier (None)."""

    band: tuple[Line, ...] | None = None
    multiplier: tuple[OptionalMultiplier, ...] | None = None
    objective: tuple[Literal["met", "late", "exclude"], ...] | None = None
    charge: ExactAmount | None = None
    results: tuple[Literal["met", "forgiven", "refunded", "insufficient", "overload"], ...] | None = None


class Example(Terms):
    """A statement about the contract that can be run."""

    it: Line
    clause: Clause = None
    intervals: tuple[ExampleInterval, ...] = ()
    events: tuple[ExampleEvent, ...] = ()
    windows: tuple[ExampleWindow, ...] = ()
    expect: ExampleExpectation
