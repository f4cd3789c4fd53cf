"""The oracle of closed months: what each close issues, with adjustments of the months closed before, in plain loops and fractions.

Takes the steps of the books in order; gives, for each close, the settlements of section 9 and what was reported and not billed. Nothing is
taken from `ledger`. What the steps do not tell (numbers of documents, causes) is left out. Written to be read beside the specification,
section 8, "Late events, voids, corrections after the close".
"""

from collections.abc import Sequence
from csv import DictReader
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.oracle.charges import Json, Money
from tests.oracle.settle import Month, is_taxed, settle_month, settlement, totals_of
from tests.oracle.steps import AddContracts, AddIntervals, CloseMonth, LoadEvents, Step, VoidRequests
from tests.oracle.telemetry import Event, Refused, read_event
from tests.oracle.terms import Terms, read_terms

KEY = ("version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier")
Key = tuple[Any, ...]  # of a line: its kind, the fields of KEY, and how it is taxed


@dataclass(frozen=True)
class Withheld:
    """A difference of a closed month that is reported and not billed: net and tax in minor units."""

    period: str
    gross: int
    reason: str  # too_late | charges_more


@dataclass(frozen=True)
class Closing:
    """One contract's closed month: its settlement, and what is only reported."""

    settlement: Json
    withheld: list[Withheld]


@dataclass
class Books:
    """All that is known of one contract, and what it was billed so far. `posted` has every line of a closed month: those of its own
    settlement and those of later adjustments, by month."""

    versions: list[Terms] = field(default_factory=list)
    posted: dict[str, list[Json]] = field(default_factory=dict)
    balance: int = 0


@dataclass
class Known:
    """What all contracts share: the events that were loaded, the withdrawn ones, the intervals."""

    stored: dict[tuple[str, str], Event] = field(default_factory=dict)
    withdrawn: set[tuple[str, str]] = field(default_factory=set)
    intervals: list[dict[str, str]] = field(default_factory=list)

    def standing(self) -> list[Event]:
        return [event for identity, event in self.stored.items() if identity not in self.withdrawn]


def close_months(steps: Sequence[Step]) -> list[list[Closing]]:
    """Plays the steps; gives for each close what it issues, by contract id. Raises Stopped, section 5."""
    known, books, closes = Known(), dict[str, Books](), list[list[Closing]]()
    for step in steps:
        if isinstance(step, AddContracts):
            for file in step.files:
                terms = read_terms(file.read_text(encoding="utf-8"))
                books.setdefault(terms.contract, Books()).versions.append(terms)
        elif isinstance(step, AddIntervals):
            known.intervals += read_rows(step.file)
        elif isinstance(step, LoadEvents):
            load(known, read_rows(step.file))
        elif isinstance(step, VoidRequests):
            void(known, step.request_ids)
        else:
            closed = [close(books[contract], known, step) for contract in sorted(books)]
            closes.append([closing for closing in closed if closing is not None])
    return closes


def read_rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(DictReader(lines))


def load(known: Known, rows: list[dict[str, str]]) -> None:
    """The first row of an identity stands; equal ones are duplicates, others conflicts, whether it was withdrawn or not."""
    for row in rows:
        try:
            event = read_event(row)
        except Refused:
            continue
        known.stored.setdefault((event.account, event.request_id), event)


def void(known: Known, request_ids: Sequence[str]) -> None:
    wanted = set(request_ids)
    found = [identity for identity in known.stored if identity[1] in wanted]
    assert len(found) == len(wanted), "an id is of no request, or of several accounts"
    known.withdrawn.update(found)


def close(books: Books, known: Known, step: CloseMonth) -> Closing | None:
    """Closes the month of one contract; None if it has none: before its first day, or after its end without adjustments."""
    assert all(period < step.period for period in books.posted), "no period closes after a later one"
    events = known.standing()
    month = settle_month(books.versions, of_accounts(events, books.versions), known.intervals, step.period)
    if month is None:
        return None
    adjustments, withheld = adjust(books, events, known.intervals, month.money, step.at)
    if month.ended and not adjustments:
        return None
    carried_in = books.balance
    books.balance = totals_of(month, adjustments, carried_in)["carried_out"]
    taxed = (month.last.tax_rate, month.last.refund_tax)
    books.posted[step.period] = [{**line, "taxed": taxed} for line in month.lines]
    for line in adjustments:
        books.posted[line["of"]["period"]].append({**line, "kind": line["of"]["kind"]})
    return Closing({**settlement(month, adjustments, carried_in), "state": "closed"}, withheld)


def adjust(
    books: Books, events: list[Event], intervals: list[dict[str, str]], money: Money, at: datetime
) -> tuple[list[Json], list[Withheld]]:
    """The adjustments of all closed months, each of a month whole or not at all, and what is withheld."""
    adjustments, withheld = [], []
    for period, posted in books.posted.items():
        now = settle_month(books.versions, of_accounts(events, books.versions), intervals, period)
        assert now is not None
        lines = difference(now, posted)
        gross = gross_of(lines, money)
        # "`corrections.within` after the month's end nothing is adjusted any more, only reported"
        if at >= now.end + timedelta(microseconds=now.last.within_us):
            reason = "too_late"
        # "`may_charge_more: no`: an adjustment that would sum to more to pay is reported, not billed"
        elif gross > 0 and not now.last.may_charge_more:
            reason = "charges_more"
        else:
            adjustments += lines
            continue
        if lines:
            withheld.append(Withheld(period, gross, reason))
    return adjustments, withheld


def difference(now: Month, posted: list[Json]) -> list[Json]:
    """settle(month, all that is known now) minus what has been posted for that month, line by line: of rounded amounts."""
    taxed = (now.last.tax_rate, now.last.refund_tax)
    now_by_key = sums([{**line, "taxed": taxed} for line in now.lines])
    posted_by_key = sums(posted)
    lines = []
    # Lines that differ in nothing but how they are taxed have no order in section 9: what is taken back stands first.
    for key in [*posted_by_key, *(key for key in now_by_key if key not in posted_by_key)]:
        rate, quantity_now, amount_now = now_by_key.get(key, (None, 0, 0))
        rate_posted, quantity_posted, amount_posted = posted_by_key.get(key, (None, 0, 0))
        quantity, amount = quantity_now - quantity_posted, amount_now - amount_posted
        if quantity == 0 and amount == 0:
            continue
        kind, *values, tax = key
        lines.append(
            {
                "kind": "adjustment",
                "of": {"period": now.period, "kind": kind},
                **dict(zip(KEY, values, strict=True)),
                # "true_up and cap lines have [...] null quantity, rate and multiplier"
                "quantity": None if kind in ("true_up", "cap") else quantity,
                "rate": rate if rate is not None else rate_posted,
                "amount": amount,
                "taxed": tax,
            }
        )
    return lines


def sums(lines: list[Json]) -> dict[Key, tuple[str | None, int, int]]:
    """Of each key the rate, the tokens and the minor units."""
    found: dict[Key, tuple[str | None, int, int]] = {}
    for line in lines:
        key = (line["kind"], *(line[name] for name in KEY), line["taxed"])
        _, quantity, amount = found.get(key, (None, 0, 0))
        found[key] = line["rate"], quantity + (line["quantity"] or 0), amount + line["amount"]
    return found


def gross_of(lines: list[Json], money: Money) -> int:
    """Net and tax of one month's adjustments, each rate rounded once."""
    taxable: dict[Fraction, int] = {}
    for line in lines:
        rate, refund_tax = line["taxed"]
        amount = line["amount"] if is_taxed(line["of"]["kind"], refund_tax) else 0
        taxable[rate] = taxable.get(rate, 0) + amount
    return sum(line["amount"] for line in lines) + sum(money.round(rate * base) for rate, base in taxable.items())


def of_accounts(events: list[Event], versions: list[Terms]) -> list[Event]:
    """The events that the contract may cover: a short cut, classification asks again by day."""
    accounts = {account for terms in versions for account in terms.accounts}
    return [event for event in events if event.account in accounts]
