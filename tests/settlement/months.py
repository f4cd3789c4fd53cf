"""A month of the ready-made contract and its cells, so that a test writes only what it is about."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ledger.contract.reader import read_contract
from ledger.settlement.cell import Cell, Outcome, WindowCell
from ledger.settlement.period import Period, contract_period

CONTRACT = (Path(__file__).parents[2] / "contracts" / "acme-bank.yaml").read_text("utf-8")
MONTH = "2026-05"
MONTH_START = datetime(2026, 4, 30, 16, tzinfo=UTC)  # midnight of 1 May in Shanghai
FAST, STANDARD, SLOW = range(3)  # tiers, by their place in the contract
BREAKER, ASYNC, COLD_START = range(3)  # exemptions, likewise


def month(*changes: tuple[str, str]) -> Period:
    """May 2026 under the contract, with texts of the file replaced; each must be there. Examples and accepted warnings are left out."""
    text = re.sub(r"\naccept:.*", "", CONTRACT, flags=re.S)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    result = read_contract(text.encode(), "contract.yaml")
    assert result.contract is not None, [str(diagnostic) for diagnostic in result.diagnostics]
    period = contract_period([result.contract], MONTH)
    assert period is not None
    return period


def hour(number: int) -> datetime:
    """The start of the month's hour of this number, from 0."""
    return MONTH_START + timedelta(hours=number)


def cell(requests: int = 1, **changes: Any) -> Cell:
    """Successful requests of the standard queue that met the target, each of 1,000,000 input tokens; or what is given."""
    values: dict[str, Any] = {
        "version": 1,
        "model": "deepseek-v4",
        "queue": "standard",
        "forfeited": False,
        "outcome": Outcome.SUCCESS,
        "exemption": None,
        "tier": STANDARD,
        "in_objective": True,
        "late": False,
        "requests": requests,
        "requests_without_usage": 0,
        "tokens_input": 1_000_000 * requests,
        "tokens_cached_input": 0,
        "tokens_output": 0,
    }
    return Cell(**(values | changes))


def late(requests: int, **changes: Any) -> Cell:
    """The same, above the target."""
    return cell(requests, **({"tier": SLOW, "late": True} | changes))


def window_cell(requests: int, late: int = 0, **changes: Any) -> WindowCell:
    """Requests in the objective of the first hour; the late ones have a latency and are within 120 % of the target, or what is given."""
    values: dict[str, Any] = {
        "window_start": hour(0),
        "model": "deepseek-v4",
        "requests": requests,
        "late": late,
        "late_measured": late,
        "over": 0,
    }
    return WindowCell(**(values | changes))
