"""A rule of a contract that its examples should reach: what it says, an example for it, and whether examples that were run reach it.

An example reaches a rule of a multiplier if it expects multipliers or a charge, one of a band if it expects one of these or bands, and one
of the objective if it expects `objective`: else the rule could change and no example would fail. Source: specification, section 10.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ledger.settlement.example import ExampleFound, RequestFound, WindowFound
from ledger.settlement.example_sketch import Sketch

IsReached = Callable[[ExampleFound], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRule:
    """`name` says what the rule is about, in the contract's words; `sketch` is an example for it, as the file writes one."""

    name: str
    clause: str | None
    sketch: Sketch
    is_reached_by: IsReached


def of_band(holds: Callable[[RequestFound], bool]) -> IsReached:
    """Of the band that prices an event: some event holds, and the example says its band or what follows from that."""
    multiplied = of_multiplier(holds)
    return lambda found: multiplied(found) or (found.example.expect.band is not None and any(map(holds, found.requests)))


def of_multiplier(holds: Callable[[RequestFound], bool]) -> IsReached:
    """Of a multiplier: some event holds, and the example says the multipliers or the charge."""

    def is_reached(found: ExampleFound) -> bool:
        expect = found.example.expect
        return (expect.multiplier is not None or expect.charge is not None) and any(map(holds, found.requests))

    return is_reached


def of_objective(holds: Callable[[RequestFound], bool]) -> IsReached:
    """Of the objective: some event holds, and the example says how it counts."""
    return lambda found: found.example.expect.objective is not None and any(map(holds, found.requests))


def of_window(holds: Callable[[WindowFound], bool]) -> IsReached:
    """Of windows: some window holds; their results are always expected."""
    return lambda found: any(map(holds, found.windows))
