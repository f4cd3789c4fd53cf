"""The journal as CSV for accounting software and spreadsheets: one row for each posting, its amount as a debit or a credit.

Takes entries, a chart of accounts and a text stream. A document that posts nothing has no row. Source: specification, section 8, "Journal".
"""

import csv
from collections.abc import Iterable
from typing import TextIO

from ledger.documents.chart_of_accounts import Chart, account_name, chart_account
from ledger.documents.number import amount_text
from ledger.settlement.journal import JournalEntry
from ledger.spreadsheet import defused

COLUMNS = ("date", "number", "contract", "customer", "currency", "account", "debit", "credit", "memo", "symbol")


def write_journal_csv(entries: Iterable[JournalEntry], chart: Chart, stream: TextIO) -> None:
    """Writes the postings of all entries, in the order given. `symbol` is the account that the document's seal has."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in entries:
        for posting in entry.postings:
            line = chart_account(chart, posting.account)
            amount = amount_text(abs(posting.amount_minor), entry.minor_digits)
            debit, credit = (amount, "") if posting.amount_minor > 0 else ("", amount)
            before = (entry.number, entry.contract, entry.customer, entry.currency)
            name = account_name(line, posting.account, contract=entry.contract, customer=entry.customer)
            texts = [defused(text) for text in (*before, name, posting.memo, posting.account)]
            writer.writerow((entry.booked_on.isoformat(), *texts[:5], debit, credit, *texts[5:]))
