"""Which instants of a contract's examples lie on no day of its version: a contract in, findings out, without a database.

Source: specification, section 10; the starts of days are those of `settlement/calendar`.
"""

from collections.abc import Iterator
from datetime import datetime

from ledger.contract.diagnostic import Finding, Path
from ledger.contract.model import Contract
from ledger.contract.reader import Places
from ledger.settlement.calendar import day_start


def check_example_days(contract: Contract, places: Places) -> Iterator[Finding]:
    """An error for each example that has an instant outside the days of the version, at the first one, as its file writes it."""
    days = f"from {contract.effective.start}" + ("" if contract.effective.until is None else f" to before {contract.effective.until}")
    for paths in instants_outside(contract).values():
        more = f" and {len(paths) - 1} more of this example" if len(paths) > 1 else ""
        yield Finding(
            code="bad_example",
            path=paths[0],
            found=f"the instant `{places.text_of(paths[0])}`{more}",
            expected=f"instants within `effective`, {days} in {contract.calendar.timezone}",
            cure="move the example onto these days",
        )


def instants_outside(contract: Contract) -> dict[int, list[Path]]:
    """By the place of the example, where they stand."""
    start, end = in_force(contract)
    outside: dict[int, list[Path]] = {}
    for place, example in enumerate(contract.examples):
        stated = [("events", entry, "received_at", event.received_at) for entry, event in enumerate(example.events)]
        stated += [("windows", entry, "at", window.at) for entry, window in enumerate(example.windows)]
        for what, entry, key, at in stated:
            if at is not None and (at < start or (end is not None and at >= end)):
                outside.setdefault(place, []).append(("examples", place, what, entry, key))
    return outside


def in_force(contract: Contract) -> tuple[datetime, datetime | None]:
    """The days of `effective` as a span of instants, whatever replaces the version."""
    zone, until = contract.calendar.timezone, contract.effective.until
    return day_start(zone, contract.effective.start), None if until is None else day_start(zone, until)
