"""What `ledger explain` says of the lines of a month, and of one of them: its sum, the rule, and the requests that come to it."""

from collections.abc import Iterator

from ledger.contract.scalar import currency_digits
from ledger.documents.number import amount_text, decimal_text, grouped_count, plain_amount, rate_text
from ledger.documents.request_words import clause_words, exact_text
from ledger.documents.settlement_json import line_to_json
from ledger.documents.text_table import Table
from ledger.documents.wording import band_clause, band_words, credit_words
from ledger.settlement.statement import InvoiceLine, LineKind
from ledger.workflows.explain_line import ExplainedLine, Month

_OTHERS = {
    LineKind.TRUE_UP: "what the charges lack to the minimum commitment",
    LineKind.CAP: "what the credits exceed their cap by, taken back",
}


def month_table(month: Month) -> Table:
    """The month's lines with their places."""
    table = Table(">Line", "Kind", "Of", ">Tokens", ">Amount")
    digits = currency_digits(month.period.last.money.currency)
    for place, line in enumerate(month.lines, start=1):
        tokens = "" if line.quantity is None else grouped_count(line.quantity)
        table.add_row(str(place), line.kind.value, _name(line), tokens, amount_text(line.amount_minor, digits))
    return table


def line_lines(explained: ExplainedLine) -> Iterator[str]:
    """The line's sum and rule."""
    month, line = explained.month, explained.line
    money = month.period.last.money
    amount = plain_amount(line.amount_minor, currency_digits(money.currency), money.currency)
    yield f"{month_title(month)}, line {explained.position} ({line.kind}{', ' if _name(line) else ''}{_name(line)}): {amount}"
    if line.of is not None:
        yield f"  what the {line.of.kind} line of {line.of.period} is now, less what {line.of.invoice} and later documents posted for it"
        yield f"  causes ({grouped_count(line.of.causes_total)}): {', '.join(f'{one.kind} {one.ref}' for one in line.of.causes)}"
    elif line.quantity is None:
        yield f"  {_OTHERS[line.kind]}"
    else:
        yield from _sum(explained, line, money.currency)


def month_json(month: Month) -> dict[str, object]:
    """The lines for programs."""
    digits = currency_digits(month.period.last.money.currency)
    lines = [{"line": place} | line_to_json(line, digits) for place, line in enumerate(month.lines, start=1)]
    return {"contract": month.period.last.id, "period": month.period.name, "document": month.number, "lines": lines}


def line_json(explained: ExplainedLine) -> dict[str, object]:
    """The line for programs; its exact amount is a text."""
    month, digits = explained.month, currency_digits(explained.month.period.last.money.currency)
    return {
        "contract": month.period.last.id,
        "period": month.period.name,
        "document": month.number,
        "line": explained.position,
        **line_to_json(explained.line, digits),
        "requests": explained.requests,
        "exact": None if explained.amount is None else exact_text(explained.amount),
    }


def month_title(month: Month) -> str:
    """Whose month it is, and the number of its document."""
    return f"{month.period.last.id}, {month.period.name}, {'not closed yet' if month.number is None else month.number}"


def _sum(explained: ExplainedLine, line: InvoiceLine, currency: str) -> Iterator[str]:
    assert line.version is not None and line.rate is not None and line.multiplier is not None and line.quantity is not None
    assert explained.amount is not None and explained.requests is not None, "tokens come from requests"
    contract = explained.month.period.by_version[line.version].contract
    _, rule = credit_words(contract, line) if line.kind is LineKind.CREDIT else band_words(contract, line)
    yield f"  rule: {rule}{clause_words(band_clause(contract, line))}"
    price = f"{rate_text(line.rate)} per 1,000,000 × {decimal_text(line.multiplier)}"
    yield f"  sum: {grouped_count(line.quantity)} tokens at {price} = {exact_text(explained.amount)} {currency}, rounded once"
    yield f"  requests: {grouped_count(explained.requests)}, whose tokens and exact amounts come to just this"


def _name(line: InvoiceLine) -> str:
    of = line.of and f"{line.of.period} {line.of.kind}"
    queue = line.queue and f"{line.queue} queue{' (forfeited)' if line.forfeited else ''}"
    return ", ".join(name for name in (of, line.model, line.variant, queue, line.band, line.token) if name)
