"""Plays the steps of the books through the command line of ledger, and gives what each close has issued.

The cases of months are those of ../shared/cases-months; tests/oracle/steps.py reads them. The commands run in this process on the database
of a test, each by the clock of its step.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import chdir
from datetime import datetime
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.oracle.steps import AddContracts, AddIntervals, CloseMonth, LoadEvents, Step, VoidRequests

Json = dict[str, Any]
NAMES = ["balance-carried", "late-and-void"]
REASON = ("--reason", "a step of the case")


class StepFailed(Exception):
    """A command of ledger did not do what the step asks."""


def play(steps: Sequence[Step], run_ledger: Callable[..., Result], folder: Path) -> list[list[Json]]:
    """Plays the steps on a fresh database; gives for each close the settlements that it issued, by contract id, as they were shown right
    after it. Documents are written below `folder`. Raises StepFailed, also when a close leaves a contract of its month unclosed, or a
    document is shown otherwise at the end than after its close."""

    def run(at: datetime, *arguments: str | Path) -> str:
        with chdir(folder):
            result = run_ledger(*arguments, now=at.isoformat())
        if result.exit_code != 0:
            raise StepFailed(f"{at:%Y-%m-%d}: `ledger {' '.join(map(str, arguments))}` exits {result.exit_code}: {result.stderr}")
        return result.stdout

    shown: dict[str, str] = {}
    for step in steps:
        if isinstance(step, AddContracts):
            run(step.at, "contract", "add", *step.files)
        elif isinstance(step, AddIntervals):
            run(step.at, "interval", "add", step.file)
        elif isinstance(step, LoadEvents):
            run(step.at, "ingest", step.file)
        elif isinstance(step, VoidRequests):
            ids = folder / "ids.txt"
            ids.write_text("".join(f"{name}\n" for name in step.request_ids), encoding="utf-8")
            run(step.at, "void", "--ids", ids, "--yes", *REASON)
        else:
            run(step.at, "settle", step.period)
            run(step.at, "close", step.period, "--yes")
            shown[step.period] = show_month(run, step)
    for step in steps:
        if isinstance(step, CloseMonth) and show_month(run, CloseMonth(at=steps[-1].at, period=step.period)) != shown[step.period]:
            raise StepFailed(f"{step.period} is shown otherwise after {steps[-1].at:%Y-%m-%d} than after its close")
    return [json.loads(text) for text in shown.values()]


def show_month(run: Callable[..., str], step: CloseMonth) -> str:
    """The JSON of a closed month as it is kept. Raises StepFailed if a contract of it is not closed."""
    text = run(step.at, "settle", step.period, "--format", "json")
    unclosed = [one["contract"] for one in json.loads(text) if one["state"] != "closed"]
    if unclosed:
        raise StepFailed(f"{step.period} is not closed for {', '.join(unclosed)}")
    return text


def without_origin(settlement: Json) -> Json:
    """The settlement without what a case does not say of adjustments: the document that each is of, and its causes."""
    lines = []
    for line in settlement["lines"]:
        kept = {field: value for field, value in line.items() if field not in ("causes", "causes_total")}
        if "of" in kept:
            kept["of"] = {field: value for field, value in kept["of"].items() if field != "invoice"}
        lines.append(kept)
    return {**settlement, "lines": lines}
