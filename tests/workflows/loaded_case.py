"""A case loaded through the command line, so that a test writes only what it does with it."""

import pytest

from tests.cases import NOW, Case, CaseMissing, read_case
from tests.conftest import RunLedger
from tests.workflows.issued_months import done

# Small cases that have every kind of line and window.
SMALL = (
    *("edges", "variants-and-queues", "unusual-multipliers", "outcomes-and-breaker", "cold-starts", "cold-start-ties"),
    *("pools-and-shared-cold-start", "tolerance-edge", "money-jpy", "expression-null-branch", "replaced-version", "month-window-cut"),
)


def load_case(run_ledger: RunLedger, name: str) -> Case:
    """Contracts, intervals and events are in the database; skips the test if the case is missing."""
    try:
        case = read_case(name)
    except CaseMissing as missing:
        pytest.skip(str(missing))
    done(run_ledger("contract", "add", *case.contract_files, now=NOW))
    if case.intervals:
        done(run_ledger("interval", "add", case.folder / "intervals.csv", now=NOW))
    done(run_ledger("ingest", case.folder / "events.csv", now=NOW))
    return case
