"""The lines of a statement as CSV for spreadsheets: a row for each line, exact numbers as text, which sum to the statement's net.

Takes a Statement, gives bytes. A line's place is that which `explain` and the invoice count by. Source: specification, section 9.
"""

import csv
from io import StringIO

from ledger.documents.settlement_json import line_to_json
from ledger.settlement.statement import Statement
from ledger.spreadsheet import defused

OF_LINE = ("kind", "version", "model", "variant", "queue", "forfeited", "band", "token", "quantity", "rate", "multiplier", "amount")
COLUMNS = ("contract", "period", "currency", "line", *OF_LINE, "of_period", "of_invoice", "of_kind", "causes", "causes_total")


def lines_csv(statement: Statement) -> bytes:
    """The header and all lines, in their order; a value that a line does not have is an empty cell."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    contract = statement.contract
    for place, line in enumerate(statement.lines, start=1):
        shown = line_to_json(line, statement.minor_digits)
        of = shown.get("of", {})
        causes = "; ".join(f"{cause['kind']} {cause['ref']}" for cause in shown.get("causes", ()))
        behind = (of.get("period"), of.get("invoice"), of.get("kind"), causes, shown.get("causes_total"))
        cells = (contract.id, statement.period, contract.money.currency, place, *(shown[name] for name in OF_LINE), *behind)
        writer.writerow([_cell(value) for value in cells])
    return stream.getvalue().encode()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case _:
            return defused(str(value))
