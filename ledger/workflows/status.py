"""Status: what is in the database, and what waits for somebody. Takes an open database, gives a `Status`, and computes nothing anew.

Source: specification, section 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ledger.instant import MICROSECOND
from ledger.settlement.calendar import month_at, months_between
from ledger.store.cells import stale_spans, unranked_days
from ledger.store.database import Database
from ledger.store.drafts import DraftOfPeriod, drafts
from ledger.store.overview import (
    FileLoaded,
    MonthOfAccount,
    Unjoined,
    last_loads,
    months_of_accounts,
    unjoined_requests,
    waiting_by_reason,
)
from ledger.workflows.checklist import MonthEnd, month_end
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.unrated import UnratedInMonth, unrated_in_months
from ledger.workflows.versions import listed_versions

FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
CONFLICT = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFresh:
    """Of a contract, what the next settlement computes again first: spans of time, from the first to the end of the last of them, and days
    whose cold starts have to be ranked. `months` are those of the spans, local to the contract: until they are computed again, nobody
    knows of all models and queues in them whether the contract has them."""

    contract: str
    spans: int
    start: datetime | None
    end: datetime | None
    months: tuple[str, ...]
    unranked_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All of one state of the database. `quarantine` counts rows that wait by reason, conflicts left out, `unapproved` the versions of
    contracts that hold up a settlement, `unrated` what stops one; instants are in UTC."""

    months: tuple[MonthOfAccount, ...]
    quarantine: dict[str, int]
    conflicts: int
    unjoined: Unjoined
    unrated: tuple[UnratedInMonth, ...]
    unapproved: int
    not_fresh: tuple[NotFresh, ...]
    month_end: MonthEnd
    drafts: tuple[DraftOfPeriod, ...]
    loads: tuple[FileLoaded, ...]

    @property
    def requests(self) -> int:
        """Standing events."""
        return sum(one.requests for one in self.months)

    @property
    def unassigned(self) -> int:
        """Standing events that no contract covers."""
        return sum(one.unassigned for one in self.months)


def ledger_status(database: Database) -> Status:
    """What the database holds now."""
    now = database.now()
    with any_snapshot(database) as connection:
        waiting = waiting_by_reason(connection)
        conflicts = waiting.pop(CONFLICT, 0)
        spans, unranked = stale_spans(connection), unranked_days(connection, None, FIRST, LAST)
        versions, kept = listed_versions(connection), drafts(connection)
        zones = {one.stored.contract.id: one.stored.contract.calendar.timezone for one in versions}
        return Status(
            months=tuple(months_of_accounts(connection)), quarantine=waiting, conflicts=conflicts, unjoined=unjoined_requests(connection),
            unrated=tuple(unrated_in_months(connection, [one.stored.contract for one in versions], spans)),
            unapproved=sum(one.holds_up for one in versions),
            not_fresh=tuple(
                NotFresh(
                    contract=contract, spans=len(spans.get(contract, ())), start=spans[contract][0][0] if contract in spans else None,
                    end=spans[contract][-1][1] if contract in spans else None,
                    months=_months(spans.get(contract, ()), zones[contract]), unranked_days=sum(one == contract for one, _ in unranked),
                )
                for contract in sorted({*spans, *(one for one, _ in unranked)})
            ),
            month_end=month_end(connection, [one.stored for one in versions], kept, now), drafts=tuple(kept),
            loads=tuple(last_loads(connection)),
        )  # fmt: skip


def _months(spans: Sequence[tuple[datetime, datetime]], timezone: str) -> tuple[str, ...]:
    """The local months that the spans touch, in order."""
    found: set[str] = set()
    for start, end in spans:
        first, last = (month_at(timezone, one) for one in (start, end - MICROSECOND))
        found |= {first, *months_between(first, last), last}
    return tuple(sorted(found))
