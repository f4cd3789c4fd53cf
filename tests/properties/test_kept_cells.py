"""Whatever is done to a ledger, in whatever order: what it keeps equals its events after each step, and it settles as the oracle does."""

import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ledger.documents.settlement_json import statement_to_json
from ledger.store.database import Database, open_database
from ledger.store.embedded import Server
from ledger.store.quarantine import RowFilter
from ledger.workflows.correct import correct_request
from ledger.workflows.freshen import freshen
from ledger.workflows.ingest import IngestOptions, ingest
from ledger.workflows.interval import add_intervals
from ledger.workflows.register import register_contracts
from ledger.workflows.requeue import requeue_rows
from ledger.workflows.settle import settle_period
from ledger.workflows.unknown import UnknownNames
from ledger.workflows.verify_cells import verify_cells
from ledger.workflows.void import void_request
from tests.cases import differences
from tests.oracle.settle import settle
from tests.properties.generate import Month, Row, months
from tests.properties.product import fresh_database, write_csv

AUTHOR, REASON = "test", "test"
NOW = datetime(2040, 1, 1, tzinfo=UTC)
LONG_AGO = datetime(1900, 1, 1, tzinfo=UTC)
CHUNK_ROWS = "9"
LOADS, CHANGES, FRESHENS = 4, 6, 3


class Ledger:
    """A ledger on which a month happens step by step; `standing` are the rows that it holds by now, by request; `loaded` as they
    were loaded, `latest` as they were corrected, whether withdrawn or not."""

    def __init__(self, database: Database, month: Month, folder: Path, chance: random.Random) -> None:
        self.database, self.month, self.folder, self.chance = database, month, folder, chance
        self.standing: dict[str, Row] = {}
        self.loaded: dict[str, Row] = {}
        self.latest: dict[str, Row] = {}
        self.files = 0

    def steps(self) -> list[Callable[[], None]]:
        """Everything that happens, in any order that keeps the versions of the contract in theirs."""
        rows = self.month.events
        starts = sorted(self.chance.sample(range(len(rows) + 1), min(LOADS, len(rows))))
        parts = [rows[start:end] for start, end in zip([0, *starts], [*starts, len(rows)], strict=True)]
        others = [
            *(lambda part=part: self.load(part) for part in parts),
            *(lambda one=one: self.add_interval(one) for one in self.month.intervals),
            *[self.void, self.correct] * (CHANGES // 2),
            *[self.freshen] * FRESHENS,
        ]
        self.chance.shuffle(others)
        versions = [lambda text=text: self.add_version(text) for text in self.month.contract_texts]
        places = sorted(self.chance.choices(range(len(others) + 1), k=len(versions)))
        for number, (place, step) in enumerate(zip(places, versions, strict=True)):
            others.insert(place + number, step)
        return others

    def load(self, part: list[Row]) -> None:
        """Load the rows in random order, some of them twice, and some that were loaded before; late clocks refuse them at first."""
        if not part:
            return
        again = self.chance.sample(part, len(part) // 3) + self.chance.sample(list(self.loaded.values()), len(self.loaded) // 4)
        rows = part + again
        self.chance.shuffle(rows)
        path = write_csv(self.file("csv"), rows)
        if self.chance.random() < 0.25:
            middle = sorted(row["received_at"] for row in rows)[len(rows) // 2]
            earlier = replace(self.database, fixed_now=datetime.fromisoformat(middle))
            ingest(earlier, [path], IngestOptions(), author=AUTHOR)
            list(requeue_rows(self.database, RowFilter(), reason=REASON, author=AUTHOR, names=UnknownNames(self.database)))
        else:
            ingest(self.database, [path], IngestOptions(), author=AUTHOR)
        for rows_by_request in (self.loaded, self.latest, self.standing):
            rows_by_request |= {row["request_id"]: row for row in part}

    def add_version(self, text: str) -> None:
        path = self.file("yaml")
        path.write_text(text, encoding="utf-8")
        registered = register_contracts(self.database, [path], author=AUTHOR)
        assert not registered.failed, registered.together

    def add_interval(self, row: Row) -> None:
        add_intervals(self.database, Path(write_csv(self.file("csv"), [row])), author=AUTHOR)

    def void(self) -> None:
        if self.standing:
            request_id = self.chance.choice(sorted(self.standing))
            row = self.standing.pop(request_id)
            void_request(self.database, request_id, account=row["account"], reason=REASON, author=AUTHOR)

    def correct(self) -> None:
        """Move a request, withdrawn or not, to where another one is, or change what it took."""
        if not self.loaded:
            return
        request_id, other = self.chance.choice(sorted(self.loaded)), self.loaded[self.chance.choice(sorted(self.loaded))]
        row = self.latest[request_id]
        values = self.chance.choice(
            [
                {"received_at": (datetime.fromisoformat(other["received_at"]) + timedelta(microseconds=7)).isoformat()},
                {"output_tokens": str(self.chance.randrange(10**6))},
                {"node": self.chance.choice(("n1", "n2", "n3")), "output_tokens": str(self.chance.randrange(10**6))},
                {"cold_start": "cold-9", "received_at": other["received_at"], "output_tokens": str(self.chance.randrange(10**6))},
            ]
        )
        if any(row[name] != value for name, value in values.items()):
            correct_request(self.database, request_id, values, account=row["account"], reason=REASON, author=AUTHOR, revive=True)
            self.latest[request_id] = self.standing[request_id] = row | values

    def freshen(self) -> None:
        """Compute what is stale of a part of the month, or all of it."""
        middle = datetime.fromisoformat(self.chance.choice(self.month.events)["received_at"])
        start, end = self.chance.choice([(LONG_AGO, middle), (middle, NOW), (LONG_AGO, NOW)])
        freshen(self.database, start, end)

    def file(self, ending: str) -> Path:
        self.files += 1
        return self.folder / f"{self.files}.{ending}"


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(month=months(), seed=st.integers(0, 2**32))
def test_what_is_kept_equals_the_events_after_every_step(server: Server, month: Month, seed: int) -> None:
    with (
        fresh_database(server) as url,
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"LEDGER_CHUNK_ROWS": CHUNK_ROWS}),
        open_database(url) as opened,
    ):
        ledger = Ledger(replace(opened, fixed_now=NOW), month, Path(folder), random.Random(seed))
        agree = 0
        for step in ledger.steps():
            step()
            found = verify_cells(ledger.database)
            assert (found.differing, found.accounts) == ((), ())
            agree = max(agree, found.agree)
        event(f"{agree // 3 * 3} or more days agreed at once")
        expected = settle(month.contract_texts, list(ledger.standing.values()), month.intervals, month.period)
        [statement] = settle_period(ledger.database, month.period, author=AUTHOR, output=None, dry_run=True).statements
        assert differences(comparable(expected), comparable(statement_to_json(statement))) == []


def comparable(settlement: dict[str, Any]) -> dict[str, Any]:
    """Without what only the history of the ledger decides."""
    return {key: value for key, value in settlement.items() if key not in ("changed_afterwards", "unresolved")}
