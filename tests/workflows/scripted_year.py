"""A year of three customers, made from a fixed seed: what may happen to their books between one close and the next.

    acme      Shanghai, CNY. Amended in the middle of March (prices, tax, how credits are taxed); its prices and tax of 10 April to
              19 May are corrected in July. Until the amendment its adjustments may not charge more.
    borealis  Paris, EUR. A minimum, a cap on refunds, and 45 days for corrections, so that requests two months late come too late.
    cirrus    Paris, JPY. So slow in April that its refunds exceed its charges. Its account cirrus-lab is borealis's from 11 June on,
              which is told in July. It ends with August; requests of August come in September and October, and one is withdrawn in
              November.

Each month has requests that come one and two months late and withdrawals, of it and of earlier months; May's file is loaded twice, and an
interval of May is recorded in July. Files are written into a folder; the steps name them.
"""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tests.oracle.days import day_start, month_days
from tests.oracle.steps import AddContracts, AddIntervals, CloseMonth, LoadEvents, Step, VoidRequests, two_days_after
from tests.workflows.base_contract import write_contract

SEED = 2026
MONTHS = [f"2026-{number:02}" for number in range(1, 13)]
ENDED = "2026-09"  # the first month that cirrus has no contract in
ZONES = {"acme": "Asia/Shanghai", "borealis": "Europe/Paris", "cirrus": "Europe/Paris", "cirrus-lab": "Europe/Paris"}
REQUESTS = {"acme": 320, "borealis": 260, "cirrus": 220, "cirrus-lab": 80}
LATE = (5, 3)  # requests of each account that come one month late, and two
BUSY_HOURS = 6  # with most of the requests, so that windows are judged by themselves
HOUR_US = 3_600_000_000
MICROSECOND = timedelta(microseconds=1)
SLOW_MONTH = ("cirrus", "2026-04")
Row = dict[str, str]
Change = tuple[str, str]
PRICES = (("input: 2.00", "input: 200"), ("cached_input: 0.50", "cached_input: 50"), ("output: 8.00", "output: 800"))
JUDGED = (("min_requests: 1\n", "min_requests: 25\n"), ("small_windows: evaluate", "small_windows: pool_day"))
OPEN = ("  until: 2027-01-01\n", "")
COMMON: tuple[Change, ...] = (*PRICES, *JUDGED, OPEN)
ACME: tuple[Change, ...] = (("id: acme-bank-llm", "id: acme"), ("    - acme-bank\n", "    - acme\n"), ("breaches: 3", "breaches: 1"))
ACME_AMENDED: tuple[Change, ...] = (
    *ACME,
    ("output: 8", "output: 9"),
    ("rate: 6%", "rate: 9%"),
    ("  tax: reduces_base", "  tax: outside_scope"),
    ("window: 1h", "window: 2h"),
)
BOREALIS: tuple[Change, ...] = (
    ("id: acme-bank-llm", "id: borealis"),
    ("    - acme-bank\n", "    - borealis\n"),
    ("Asia/Shanghai", "Europe/Paris"),
    ("currency: CNY", "currency: EUR"),
    ("half_up", "half_even"),
    ("rate: 6%", "rate: 20%"),
    ("within: 365d", "within: 45d"),
    ("minimum_commitment: none", "minimum_commitment: 380.00"),
    ("breaches: 3", "breaches: 2"),
    ("of: late_requests", "of: window"),
    ("valued_at: base_rate", "valued_at: charged_rate"),
    ("failed: none", "failed: input_tokens"),
    ("  cap: none", "  cap: 40%"),
)
CIRRUS: tuple[Change, ...] = (
    ("id: acme-bank-llm", "id: cirrus"),
    ("Asia/Shanghai", "Europe/Paris"),
    ("currency: CNY", "currency: JPY"),
    ("input: 200\n", "input: 20000\n"),
    ("output: 800", "output: 80000"),
    ("rate: 6%", "rate: 10%"),
    ("missing_latency:\n    multiplier: 1.0\n    objective: exclude", "missing_latency:\n    multiplier: 1.0\n    objective: late"),
    ("breaches: 3", "breaches: 0"),
    ("tokens: 2x", "tokens: 9x"),
)
BOTH_ACCOUNTS = ("    - acme-bank\n", "    - cirrus\n    - cirrus-lab\n")


def scripted_year(folder: Path) -> list[Step]:
    """Writes the year's files into the folder; gives its steps in order of time."""
    random = Random(SEED)
    steps: list[Step] = [*_contract_steps(folder)]
    breaker = folder / "breaker.csv"
    breaker.write_text("kind,node,model,start,end\ncircuit_breaker,,,2026-05-11T00:00:00Z,2026-05-13T00:00:00Z\n", encoding="utf-8")
    steps.append(AddIntervals(at=_at("2026-07-15"), file=breaker))

    late: list[list[Row]] = [[], []]  # what comes with the next close, and with the one after it
    known: list[Row] = []
    withdrawn: set[str] = set()
    for month in MONTHS:
        in_time, one_late, two_late = _requests(random, month)
        closes_at = two_days_after(month)
        arrived, late = late[0], [late[1] + one_late, two_late]
        for name, rows in ((month, in_time), (f"late-{month}", arrived)):
            if rows:
                steps.append(LoadEvents(at=closes_at - timedelta(hours=3), file=_write_rows(folder / f"{name}.csv", rows)))
        known += in_time + arrived
        chosen = _to_withdraw(random, month, known, withdrawn)
        withdrawn.update(chosen)
        steps.append(VoidRequests(at=closes_at - timedelta(hours=2), request_ids=chosen))
        steps.append(CloseMonth(at=closes_at, period=month))
    steps.append(LoadEvents(at=_at("2026-08-01"), file=folder / "2026-05.csv"))
    return sorted(steps, key=lambda step: step.at)


def _contract_steps(folder: Path) -> Iterator[Step]:
    def version(name: str, number: int, from_on: str, *changes: Change, until: str | None = None, replaces: int | None = None) -> Path:
        numbered = f"version: {number}\n" + (f"replaces: {replaces}\n" if replaces else "")
        days = f"from: {from_on}" + (f"\n  until: {until}" if until else "")
        given = (("version: 1\n", numbered), ("from: 2026-01-01", days))
        return write_contract(folder, *COMMON, *changes, *given, name=f"{name}-v{number}.yaml")

    no_more = ("may_charge_more: yes", "may_charge_more: no")
    first = (
        version("acme", 1, "2026-01-01", *ACME, no_more),
        version("borealis", 1, "2026-01-01", *BOREALIS),
        version("cirrus", 1, "2026-01-01", *CIRRUS, BOTH_ACCOUNTS),
    )
    yield AddContracts(at=_at("2026-01-02"), files=first)
    yield AddContracts(at=_at("2026-03-10"), files=(version("acme", 2, "2026-03-16", *ACME_AMENDED),))
    moved = (
        version("cirrus", 2, "2026-06-11", *CIRRUS, ("    - acme-bank\n", "    - cirrus\n"), until=f"{ENDED}-01"),
        version("borealis", 2, "2026-06-11", *BOREALIS, ("    - borealis\n", "    - borealis\n    - cirrus-lab\n")),
    )
    yield AddContracts(at=_at("2026-07-10"), files=moved)
    corrected = (*ACME_AMENDED, ("output: 900", "output: 640"), ("rate: 9%", "rate: 8%"))
    yield AddContracts(at=_at("2026-07-20"), files=(version("acme", 3, "2026-04-10", *corrected, until="2026-05-20", replaces=2),))


def _requests(random: Random, month: str) -> tuple[list[Row], list[Row], list[Row]]:
    """The month's requests of all accounts: those that come in time, one month late and two."""
    in_time: list[Row] = []
    one_late: list[Row] = []
    two_late: list[Row] = []
    for account in REQUESTS:
        rows = _requests_of(random, account, month)
        one, two = LATE if len(rows) > sum(LATE) else (0, 0)
        one_late += rows[:one]
        two_late += rows[one : one + two]
        in_time += rows[one + two :]
    return in_time, one_late, two_late


def _requests_of(random: Random, account: str, month: str) -> list[Row]:
    """An account's requests of the month, most of them in a few busy hours; in no order of time."""
    count = REQUESTS[account]
    if account == "cirrus" and month >= ENDED:
        count = 5 if month == ENDED else 0  # they go on for a moment; no contract covers them
    first_on, next_on = month_days(month)
    start = day_start(first_on, ZONES[account])
    span_us = (day_start(next_on, ZONES[account]) - start) // MICROSECOND
    busy = [(random.randrange(span_us - HOUR_US), random.choice([0, 0.03, 0.1])) for _ in range(BUSY_HOURS)]
    rows = []
    for number in range(count):
        begin_us, slow_share = random.choice(busy)
        at_us = begin_us + random.randrange(HOUR_US)
        if random.random() < 0.2:
            at_us, slow_share = random.randrange(span_us), 0.02
        if (account, month) == SLOW_MONTH:
            slow_share = 0.5
        rows.append(_request(random, account, f"{account}-{month}-{number:03}", start + at_us * MICROSECOND, slow_share))
    return rows


def _request(random: Random, account: str, request_id: str, at: datetime, slow_share: float) -> Row:
    """One request; one of `slow_share` misses the target of 300 ms."""
    inference_us = random.choice([random.randint(40_000, 99_999), random.randint(100_000, 290_000), random.randint(100_000, 290_000)])
    if random.random() < slow_share:
        inference_us = random.choice([random.randint(300_001, 360_000), random.randint(360_001, 900_000)])
    input_tokens = random.randint(100, 8_000)
    row = {
        "account": account,
        "request_id": request_id,
        "model": random.choices(["deepseek-v4", "deepseek-ai/DeepSeek-V4", "deepseek-moe-4bit"], [6, 2, 1])[0],
        "received_at": at.isoformat(),
        "queue_us": str(random.randint(0, 5_000)),
        "prefill_us": str(inference_us // 3),
        "decode_us": str(inference_us - inference_us // 3),
        "input_tokens": str(input_tokens),
        "cached_input_tokens": random.choice(["", str(input_tokens // 2)]),
        "output_tokens": str(random.randint(1, 900)),
        "status": str(random.choices([200, 499, 429, 404, 500], [92, 3, 1, 1, 3])[0]),
        "queue": random.choices(["standard", "vip", "batch"], [8, 1, 1])[0],
        "cold_start": random.choices(["", "true", f"start-{at:%d}"], [96, 2, 2])[0],
        "async_header": "",
    }
    if random.random() < 0.03:
        row |= {"input_tokens": str(random.randint(15_990, 20_000)), "async_header": "true"}
    if random.random() < 0.02:
        row |= {"queue_us": "", "prefill_us": "", "decode_us": ""}  # not measured
    return row


def _to_withdraw(random: Random, month: str, known: list[Row], withdrawn: set[str]) -> tuple[str, ...]:
    """What is withdrawn before the close of the month: some requests of it and of earlier ones, and what the year tells by name."""
    standing = [row["request_id"] for row in known if row["request_id"] not in withdrawn]
    # Of what was cirrus's nothing but the one that is told, once it has ended: so it has months with adjustments and months without.
    over = ("cirrus-",) if month >= ENDED else ()
    of_month = [name for name in standing if month in name and not name.startswith(over)]
    earlier = [name for name in standing if month not in name and not name.startswith(over)]
    chosen = random.sample(of_month, 4) + random.sample(earlier, min(len(earlier), 5))
    if month == "2026-08":  # so many that February comes to less, late requests included
        chosen += [name for name in earlier if name.startswith("acme-2026-02")][:25]
    if month == "2026-11":
        chosen.append(next(name for name in standing if name.startswith("cirrus-2026-08")))
    return tuple(dict.fromkeys(chosen))


def _write_rows(file: Path, rows: list[Row]) -> Path:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def _at(day: str) -> datetime:
    """Noon of the day."""
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
