"""What happens to the books, step by step: contracts, events and intervals come in, requests are withdrawn, months are closed.

Values only, each with the instant at which it happens; files are named by path. Whoever plays them, the oracle or the command line, starts
with nothing.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from tests.oracle.days import month_days


@dataclass(frozen=True, kw_only=True)
class AddContracts:
    """Contract versions are added; it does not matter when their days are."""

    at: datetime
    files: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class AddIntervals:
    """A file of breaker spans and model loads is added."""

    at: datetime
    file: Path


@dataclass(frozen=True, kw_only=True)
class LoadEvents:
    """A file of events in the canonical columns is loaded."""

    at: datetime
    file: Path


@dataclass(frozen=True, kw_only=True)
class VoidRequests:
    """Requests are withdrawn, by ids that no two accounts share."""

    at: datetime
    request_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CloseMonth:
    """A month of all contracts is settled and closed at once."""

    at: datetime
    period: str


Step: TypeAlias = AddContracts | AddIntervals | LoadEvents | VoidRequests | CloseMonth


def read_steps(folder: Path) -> list[Step]:
    """The steps of a case of months, each two days after the end of the month that is closed next: after every zone and its grace."""
    named = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    closes = [step["close"] for step in named if "close" in step]
    contracts = tuple(sorted(folder.glob("contract*.yaml")))
    steps: list[Step] = [AddContracts(at=two_days_after(closes[0]), files=contracts)]
    for step in named:
        at = two_days_after(closes[0]) if closes else steps[-1].at
        [(verb, what)] = step.items()
        if verb == "load":
            steps.append(LoadEvents(at=at, file=folder / what))
        elif verb == "void":
            steps.append(VoidRequests(at=at, request_ids=tuple(what)))
        else:
            assert verb == "close", f"an unknown step: {verb}"
            steps.append(CloseMonth(at=at, period=closes.pop(0)))
    return steps


def two_days_after(period: str) -> datetime:
    """Noon (UTC) of the third day after the month, local days that end late and a grace of a day left out of account."""
    _, next_first = month_days(period)
    return datetime(next_first.year, next_first.month, next_first.day, 12, tzinfo=UTC) + timedelta(days=2)
