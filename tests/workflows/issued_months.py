"""Months of the base contract that are settled and closed through the command line, so that a test writes only what it does with them."""

from collections.abc import Sequence
from pathlib import Path

from click.testing import Result

from tests.conftest import RunLedger
from tests.workflows.base_contract import request, write_contract, write_events

PROVIDER = "91110000TEST000001"
CLOSED_AT = {"2026-05": "2026-06-03T02:00:00Z", "2026-06": "2026-07-03T02:00:00Z", "2026-07": "2026-08-03T02:00:00Z"}


def done(result: Result) -> Result:
    """What a command gave that has done its work."""
    assert result.exit_code == 0, result.stderr
    return result


def load_months(run_ledger: RunLedger, folder: Path, *changes: tuple[str, str], requests: int = 100) -> None:
    """The base contract with texts replaced, and as many requests in each month of CLOSED_AT, of a million input tokens each."""
    done(run_ledger("contract", "add", write_contract(folder, *changes)))
    rows = [request(10_000 * at + n, f"{month}-15T10:00:00+08:00") for at, month in enumerate(CLOSED_AT) for n in range(requests)]
    done(run_ledger("ingest", write_events(folder, rows)))


def close_month(run_ledger: RunLedger, folder: Path, month: str, *contract: str) -> Result:
    """Settles the month and closes it, a few days after its end."""
    options = ("--output", folder / "out", *contract)
    done(run_ledger("settle", month, *options, now=CLOSED_AT[month]))
    return done(run_ledger("close", month, "--yes", *options, now=CLOSED_AT[month]))


def close_months(run_ledger: RunLedger, folder: Path, months: Sequence[str] = tuple(CLOSED_AT)) -> None:
    """Closes the months in order."""
    for month in months:
        close_month(run_ledger, folder, month)
