"""The double entry that an issued document posts: a statement, or a credit note on demand, in; balanced postings out.

Accounts are symbols; what they are called is said when a journal is exported, so that a chart of accounts can change and no sealed entry
does. Source: specification, section 8, "Journal"; decision record journal.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import assert_never

from ledger.settlement.statement import InvoiceLine, LineKind, Statement

RECEIVABLE = "receivable"  # what the customer has to pay
BALANCE = "balance"  # what the provider owes the customer, and sets off
TAX = "tax"
TRUE_UP = "true_up"
SLA_CREDITS = "sla_credits"  # less what the cap takes back
REVENUE = "revenue:"  # and the band
ADJUSTMENTS = "adjustments:"  # and the account of what is adjusted
CREDIT_NOTES = "credit_notes:"  # and the account of what is credited


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """An amount on an account, in integer minor units: a debit above 0, a credit below."""

    account: str
    amount_minor: int
    memo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """The postings of one document, and what a bookkeeper must know of it. `booked_on` is the local day of its issue."""

    booked_on: date
    number: str
    contract: str
    customer: str
    currency: str
    minor_digits: int
    postings: tuple[Posting, ...]


def statement_postings(statement: Statement) -> tuple[Posting, ...]:
    """What a closed period posts, zero amounts left out; empty if nothing is due, set off or left over.

    On one account there is one posting, on one of adjustments one for each document adjusted. The sums by kind of account are the totals
    of the statement: charges, true-up, credits, adjustments, tax.
    """
    totals, period, tax = statement.totals, statement.period, statement.contract.money.tax
    set_off_minor = totals.carried_in - totals.carried_out
    sums: dict[tuple[str, str], int] = {
        (RECEIVABLE, f"due for {period}"): totals.due,
        (BALANCE, f"set off in {period}" if set_off_minor > 0 else f"left over of {period}"): set_off_minor,
    }
    for line in statement.lines:
        key = _line_account(line), _line_memo(line, period)
        sums[key] = sums.get(key, 0) - line.amount_minor
    sums[TAX, "tax" if tax is None else tax.name] = -totals.tax
    return _balanced(Posting(account=account, amount_minor=amount, memo=memo) for (account, memo), amount in sums.items())


def credit_note_postings(line: InvoiceLine, invoice: str, net_minor: int, tax_minor: int) -> tuple[Posting, ...]:
    """What a credit note on demand posts, for a line of the document `invoice`: net and tax, neither below 0, go to the customer's
    balance. Empty for a credit of tokens that come to less than a minor unit."""
    memo = f"credit of {invoice}"
    return _balanced(
        (
            Posting(account=f"{CREDIT_NOTES}{_origin_account(line)}", amount_minor=net_minor, memo=memo),
            Posting(account=TAX, amount_minor=tax_minor, memo=memo),
            Posting(account=BALANCE, amount_minor=-(net_minor + tax_minor), memo=memo),
        )
    )


def _line_account(line: InvoiceLine) -> str:
    return _origin_account(line) if line.of is None else f"{ADJUSTMENTS}{_origin_account(line)}"


def _origin_account(line: InvoiceLine) -> str:
    """The account of a line, and of an adjustment that of what it adjusts."""
    match line.origin:
        case LineKind.USAGE:
            assert line.band is not None, "a band priced every usage"
            return f"{REVENUE}{line.band}"
        case LineKind.TRUE_UP:
            return TRUE_UP
        case LineKind.CREDIT | LineKind.CAP:
            return SLA_CREDITS
        case LineKind.ADJUSTMENT:
            raise AssertionError("an adjustment is of something else")
        case unknown:
            assert_never(unknown)


def _line_memo(line: InvoiceLine, period: str) -> str:
    return period if line.of is None else f"{line.of.period}, adjusts {line.of.invoice}"


def _balanced(postings: Iterable[Posting]) -> tuple[Posting, ...]:
    kept = tuple(posting for posting in postings if posting.amount_minor)
    assert sum(posting.amount_minor for posting in kept) == 0, "debits and credits are equal"
    return kept
