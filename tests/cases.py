"""Settles every case through the command line, in real processes on a real database, and compares the JSON with what is expected.

Run by `make cases`; `--only NAME` settles one. The cases are those of ../shared/cases, or of tests/golden/cases in a clone that stands
alone. Tests take from here where the cases lie (`read_case`) and how two settlements are compared (`differences`).
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "cases"
GOLDEN = ROOT / "tests" / "golden" / "cases"
NAMES = [
    "alert-without-refund",
    "amendment",
    "breaker-two-models",
    "cap-reached",
    "clocks-back-paris",
    "clocks-forward-paris",
    "cold-start-ties",
    "cold-start-too-long",
    "cold-starts",
    "credit-exceeds-charge",
    "edges",
    "expression-negative",
    "expression-null-branch",
    "expression-ratio",
    "failures-and-overload",
    "half-hour-clock-lord-howe",
    "half-hour-zone",
    "midnight-gap-cairo",
    "midnight-twice-havana",
    "money-jpy",
    "money-kwd",
    "money-usd",
    "month-base-rate",
    "month-charged-rate-cap",
    "month-daily-windows",
    "month-first-token",
    "month-window-cut",
    "month-window-overload",
    "month-window-refund",
    "no-such-day-apia",
    "no-traffic",
    "outcomes-and-breaker",
    "pools-and-shared-cold-start",
    "real-aibrix-2025-03",
    "real-aibrix-2025-05",
    "refused-rows",
    "replaced-version",
    "rounding-half-even",
    "rounding-half-up",
    "settings-per-version",
    "tie-for-the-last",
    "tiers-half-open",
    "tolerance-edge",
    "true-up",
    "unusual-multipliers",
    "variants-and-queues",
]
# A settlement has these besides; they depend on when it was made and what else the database holds.
NOT_IN_CASES = ("state", "unresolved", "changed_afterwards")
NOW = "2026-12-01T00:00:00Z"  # after the grace of every case
WORKERS = 2
LONGEST_S = 300


class CaseMissing(Exception):
    """The folder of the case does not exist. Without ../shared that is so for the large and the measured ones."""

    def __init__(self, name: str) -> None:
        super().__init__(f"case {name}: {SHARED / name} is missing" + ("" if SHARED.is_dir() else f", and so is {GOLDEN / name}"))


@dataclass(frozen=True)
class Case:
    """One folder: the contract's versions in order, events, intervals, the month to settle and the expected settlement."""

    folder: Path

    @cached_property
    def contract_files(self) -> list[Path]:
        return sorted(self.folder.glob("contract*.yaml"), key=lambda file: int(found(r"^version: (\d+)$", file)))

    @property
    def contract_texts(self) -> list[str]:
        return [file.read_text(encoding="utf-8") for file in self.contract_files]

    @property
    def events(self) -> list[dict[str, str]]:
        return read_csv(self.folder / "events.csv")

    @property
    def intervals(self) -> list[dict[str, str]]:
        return read_csv(self.folder / "intervals.csv") if (self.folder / "intervals.csv").exists() else []

    @property
    def period(self) -> str:
        return found(r"^period: (\d{4}-\d{2})$", self.folder / "README.md")

    @property
    def expected(self) -> dict[str, Any]:
        expected: dict[str, Any] = json.loads((self.folder / "expected.json").read_text(encoding="utf-8"))
        return expected


def read_case(name: str) -> Case:
    """The case of that name, from ../shared when that is there. Raises CaseMissing."""
    folder = (SHARED if SHARED.is_dir() else GOLDEN) / name
    if not (folder / "expected.json").exists():
        raise CaseMissing(name)
    return Case(folder)


def found(pattern: str, file: Path) -> str:
    match = re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{file}: no {pattern}"
    return match[1]


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def differences(expected: Any, actual: Any) -> list[str]:
    """Where two settlements differ, one line each: the path, what was expected, what was found. Empty when they agree.

    Every key counts, both ways, but for NOT_IN_CASES at the top. Numbers in strings compare as numbers ("2" is "2.0"); a number is never
    equal to its text, nor 0 to false.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        expected = {key: value for key, value in expected.items() if key not in NOT_IN_CASES}
        actual = {key: value for key, value in actual.items() if key not in NOT_IN_CASES}
    return list(compare("", expected, actual))


def compare(path: str, expected: Any, actual: Any) -> list[str]:
    here = path or "the whole"
    if isinstance(expected, dict) and isinstance(actual, dict):
        missing = [f"{path}.{key}".lstrip(".") + ": missing" for key in expected if key not in actual]
        extra = [f"{path}.{key}".lstrip(".") + f": not expected, found {shown(actual[key])}" for key in actual if key not in expected]
        common = [key for key in expected if key in actual]
        return missing + extra + [line for key in common for line in compare(f"{path}.{key}".lstrip("."), expected[key], actual[key])]
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = enumerate(zip(expected, actual, strict=False))
        inside = [line for index, (left, right) in pairs for line in compare(f"{path}[{index}]", left, right)]
        if len(expected) != len(actual):
            inside.append(f"{here}: expected {len(expected)} entries, found {len(actual)}")
        return inside
    if type(expected) is type(actual) and (expected == actual or (isinstance(expected, str) and same_number(expected, actual))):
        return []
    return [f"{here}: expected {shown(expected)}, found {shown(actual)}"]


def same_number(left: str, right: str) -> bool:
    number = re.compile(r"-?\d+(\.\d+)?")
    return bool(number.fullmatch(left) and number.fullmatch(right)) and Decimal(left) == Decimal(right)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]} ..."


class CommandFailed(Exception):
    """A command of ledger ended with another exit code than 0."""


class Ledger:
    """The command line of ledger on a server of its own, in a folder that is thrown away."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LEDGER_")}
        self.environment |= {"LEDGER_HOME": home, "LEDGER_NOW": NOW}

    def run(self, *arguments: str | Path) -> str:
        """What the command prints. Raises CommandFailed."""
        command = [str(Path(sys.executable).with_name("ledger")), *map(str, arguments)]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LONGEST_S)
        if result.returncode != 0:
            words = [str(argument) for argument in arguments if argument != "--database" and "://" not in str(argument)]
            raise CommandFailed(f"`ledger {' '.join(words)}` exits {result.returncode}: {' / '.join(result.stderr.split(chr(10))[-6:])}")
        return result.stdout


def settle_case(ledger: Ledger, url: str, case: Case) -> list[str]:
    """Settles the case in the fresh database at the URL; gives what is wrong with the result, nothing if it is right."""
    try:
        ledger.run("--database", url, "contract", "add", *case.contract_files)
        if case.intervals:
            ledger.run("--database", url, "interval", "add", case.folder / "intervals.csv")
        ledger.run("--database", url, "ingest", case.folder / "events.csv")
        drafts = Path(ledger.home) / "settlements" / case.folder.name
        output = ledger.run("--database", url, "settle", case.period, "--format", "json", "--output", drafts)
        settlements = json.loads(output)
    except (CommandFailed, subprocess.TimeoutExpired, json.JSONDecodeError) as failure:
        return [str(failure)]
    if not isinstance(settlements, list) or len(settlements) != 1:
        return [f"expected an array of one settlement, found {shown(settlements)}"]
    return [f"{key}: missing" for key in NOT_IN_CASES if key not in settlements[0]] + differences(case.expected, settlements[0])


def settle_cases(cases: list[Case]) -> dict[str, list[str]]:
    """Settles each case in a database of its own; gives what is wrong, by name."""
    import psycopg
    from psycopg import sql
    from sqlalchemy.engine import make_url

    with tempfile.TemporaryDirectory(prefix="ledger-") as home:
        ledger = Ledger(home)
        ledger.run("database", "upgrade", "--test")
        try:
            template = make_url(ledger.run("database", "url").strip())
            owner = make_url(ledger.run("database", "url", "--owner").strip())
            assert template.database

            def settle_in_fresh_database(number: int) -> list[str]:
                name = f"case_{number}"
                parts = {"name": sql.Identifier(name), "template": sql.Identifier(template.database or "")}
                admin.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log").format(**parts))
                url = template.set(database=name).render_as_string(hide_password=False)
                wrong = settle_case(ledger, url, cases[number])
                admin.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**parts))
                return wrong

            # One connection for both workers: it makes their CREATE DATABASE wait for each other.
            admin_url = owner.set(database="postgres").render_as_string(hide_password=False)
            with psycopg.connect(admin_url, autocommit=True) as admin, ThreadPoolExecutor(WORKERS) as workers:
                results = workers.map(settle_in_fresh_database, range(len(cases)))
                return {case.folder.name: wrong for case, wrong in zip(cases, results, strict=True)}
        finally:
            ledger.run("database", "stop")


def main() -> int:
    """0 when every case agrees; 1 otherwise, also when a case of the list is missing."""
    parser = argparse.ArgumentParser(description="Settle the cases through the command line.")
    parser.add_argument("--only", metavar="NAME", action="append", help="settle this case (may be repeated)")
    names = parser.parse_args().only or NAMES
    cases, missing = [], []
    for name in names:
        try:
            cases.append(read_case(name))
        except CaseMissing:
            missing.append(name)
    alone = not SHARED.is_dir()
    if missing:
        print(f"{'skipped' if alone else 'missing'}, not in {GOLDEN if alone else SHARED}: {', '.join(missing)}")
    try:
        wrong = settle_cases(cases)
    except CommandFailed as failure:
        print(failure)
        return 1
    failures = {name: lines for name, lines in wrong.items() if lines}
    for name, lines in failures.items():
        print(f"{name}: {lines[0]}" + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""))
    counted = len(cases) if alone else len(names)
    print(f"{len(cases) - len(failures)} of {counted} agree")
    return 0 if cases and not failures and (alone or not missing) else 1


if __name__ == "__main__":
    sys.exit(main())
