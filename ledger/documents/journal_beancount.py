"""The journal as a beancount file: the accounts opened, then a transaction for each document, also for one that posts nothing.

Takes entries and a chart of accounts, gives text. Names that beancount does not allow are changed as little as can be; what they were
stands in the metadata. Source: beancount 3, "Beancount Language Syntax" and `core/account.py`; specification, section 8, "Journal".
"""

import unicodedata
from collections.abc import Sequence
from datetime import date

from ledger.documents.chart_of_accounts import Chart, ChartAccount, account_name, chart_account, refusal
from ledger.documents.number import amount_text
from ledger.printable import brief, printable
from ledger.settlement.journal import JournalEntry

ROOTS = ("Assets", "Liabilities", "Equity", "Income", "Expenses")


def beancount_text(entries: Sequence[JournalEntry], chart: Chart, *, is_opening: bool = True) -> str:
    """The file, in the order of the entries; without opening its accounts if another file does. Raises ChartRefused for a name that is
    under none of beancount's five accounts, or that two accounts would have by what had to be changed of them."""
    names = _Names(chart)
    transactions = ["\n".join(_transaction(entry, names)) for entry in entries]
    opened = ["\n".join(_opening(name, names)) for name in sorted(names.originals)] if is_opening else []
    return "\n".join(f"{directive}\n" for directive in (*opened, *transactions))


class _Names:
    """The accounts that were named so far: by name what the chart calls it, the first day, and the currencies."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.originals: dict[str, str] = {}
        self.days: dict[str, date] = {}
        self.currencies: dict[str, set[str]] = {}

    def name_of(self, account: str, entry: JournalEntry) -> str:
        line = chart_account(self.chart, account)
        original = account_name(line, account, contract=entry.contract, customer=entry.customer)
        # A colon of the customer's begins no account below.
        below = account_name(line, account, contract=entry.contract, customer=entry.customer.replace(":", "-"))
        root, *parts = below.split(":")
        if root not in ROOTS or not parts:
            found = f"`{brief(original)}`"
            raise refusal(self.chart, line, found, f"an account below {', '.join(ROOTS)}", f"begin it with {ROOTS[3]}: or another of these")
        name = ":".join((root, *(_component(part) for part in parts)))
        self._keep(name, original, line, entry)
        return name

    def _keep(self, name: str, original: str, line: ChartAccount, entry: JournalEntry) -> None:
        if self.originals.setdefault(name, original) != original:
            found = f"`{brief(self.originals[name])}` and `{brief(original)}`, which beancount would both call {name}"
            raise refusal(
                self.chart,
                line,
                found,
                "names that differ in letters and digits",
                "give one of them a line of its own, or leave out what varies",
            )
        self.days[name] = min(entry.booked_on, self.days.get(name, entry.booked_on))
        self.currencies.setdefault(name, set()).add(entry.currency)


def _opening(name: str, names: _Names) -> list[str]:
    original = names.originals[name]
    lines = [f"{names.days[name].isoformat()} open {name} {','.join(sorted(names.currencies[name]))}"]
    return lines if original == name else [*lines, f"  name: {_quoted(original)}"]


def _transaction(entry: JournalEntry, names: _Names) -> list[str]:
    lines = [
        f"{entry.booked_on.isoformat()} * {_quoted(entry.customer)} {_quoted(entry.number)}",
        f"  number: {_quoted(entry.number)}",
        f"  contract: {_quoted(entry.contract)}",
    ]
    for posting in entry.postings:
        amount = amount_text(posting.amount_minor, entry.minor_digits)
        lines.append(f"  {names.name_of(posting.account, entry)}  {amount} {entry.currency}")
        lines += [f"    symbol: {_quoted(posting.account)}", f"    memo: {_quoted(posting.memo)}"]
    return lines


def _component(text: str) -> str:
    """The text as a part of an account's name: it begins with a capital letter or a digit, and has letters, digits and - after it."""
    safe = "".join(c if _is_letter(c) or _is_digit(c) else "-" for c in unicodedata.normalize("NFC", text))
    first = safe[:1].upper()
    if len(first) == 1 and (unicodedata.category(first) == "Lu" or _is_digit(first)):
        return first + safe[1:]
    return f"X{safe}"


def _is_letter(character: str) -> bool:
    return unicodedata.category(character).startswith("L")


def _is_digit(character: str) -> bool:
    return unicodedata.category(character) == "Nd"


def _quoted(text: str) -> str:
    """The text as beancount writes one."""
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
