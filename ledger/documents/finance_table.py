"""What `ledger settle` prints for finance: per contract the lines, the missed windows, the budget, totals and warnings; then a summary.

Takes statements and a text stream. Tables are as wide as they need to be, so that nothing is ever cut; on a terminal they have colours.
Source: specification, sections 5 to 9.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from ledger.documents import wording
from ledger.documents.grouping import group_lines
from ledger.documents.local_time import month_words, period_words, window_words_local, zone_words
from ledger.documents.number import currency_amount, decimal_text, grouped_amount, grouped_count, percent_text, rate_text
from ledger.documents.text_table import Line, Span, Style, Table, write_lines
from ledger.printable import printable
from ledger.settlement.statement import LineKind, Statement, Verdict


def write_finance_table(statements: Sequence[Statement], stream: TextIO) -> None:
    """Writes the settled period of every contract, in the order given, and a summary if there is more than one."""
    write_lines(_lines(statements), stream)


def warnings_of(statement: Statement) -> list[str]:
    """What finance must know before the period is closed, worst first; empty if there is nothing."""
    unresolved, changed, events = statement.unresolved, statement.changed_afterwards, statement.events
    afterwards = (changed.voids, changed.corrections, changed.repairs, changed.joins, changed.intervals)
    counted = {
        "rows in conflict, service that nobody pays for until they are resolved": unresolved.conflicts,
        "rows in quarantine, not settled": unresolved.quarantined,
        "requests of accounts that no contract covers": unresolved.unassigned,
        "requests of engines that wait for their gateway's row": unresolved.unjoined,
        "billed requests without a measured latency": events.missing_latency,
        "cancelled requests without token counts, billed as 0 tokens": events.cancelled_without_usage,
        "windows with too few requests to be judged": statement.windows.insufficient,
        "windows with more requests than agreed, not judged": statement.windows.overload,
        "changes made after the period had ended": sum(afterwards),
    }
    found = [f"{words}: {grouped_count(count)}" for words, count in counted.items() if count]
    if not events.total:
        found.insert(0, f"no request in the month: is its telemetry loaded?{_minimum_words(statement)}")
    return [*found, "an alert of the error budget is due"] if statement.budget.alert else found


def _minimum_words(statement: Statement) -> str:
    """What is charged of a month without a request."""
    if not statement.totals.true_up:
        return ""
    return f" The minimum is charged all the same, {_amount(statement, statement.totals.true_up)} {statement.contract.money.currency}"


def _commands(statement: Statement) -> Iterator[str]:
    """What shows the rows and requests that wait for somebody."""
    unresolved = statement.unresolved
    if unresolved.conflicts or unresolved.quarantined:
        yield f"ledger quarantine list --contract {statement.contract.id} --period {statement.period}"
    if unresolved.unassigned or unresolved.unjoined:
        yield "ledger status"


def outcome_words(statement: Statement) -> str:
    """What became of the promise, in a few words: `9 of 300 hours missed: 3 forgiven, 6 refunded`."""
    windows, budget = statement.windows, statement.budget
    spans = wording.windows_words(statement.contract.objective.window)
    if not windows.judged:
        return "nothing to judge"
    if not windows.breached:
        return f"the promise was kept in all of {grouped_count(windows.judged)} {spans}"
    missed = f"{grouped_count(windows.breached)} of {grouped_count(windows.judged)} {spans} missed"
    verdicts = [f"{grouped_count(count)} {word}" for count, word in ((budget.used, "forgiven"), (budget.refunded, "refunded")) if count]
    return f"{missed}: {', '.join(verdicts)}"


def _lines(statements: Sequence[Statement]) -> Iterator[Line]:
    for statement in statements:
        yield from _contract(statement)
        yield ()
    if len(statements) > 1:
        yield _line("All contracts", Style.BOLD)
        yield from _summary(statements).lines()
        yield from _counted_once(statements)
    if not statements:
        yield _line("No contract is in force in this period.")


def _contract(statement: Statement) -> Iterator[Line]:
    contract, zone = statement.contract, statement.contract.calendar.timezone
    mark = f"{statement.state.upper()}{' TEST' if statement.is_test else ''}"
    yield _line(f"{printable(contract.parties.customer.name)}  {month_words(statement.start, zone)}  {mark}", Style.BOLD)
    versions = ", ".join(str(version) for version in sorted(statement.contracts))
    dates, offset = period_words(statement.start, statement.end, zone), zone_words(statement.start, statement.end, zone)
    yield _line(f"Contract {contract.id}, version {versions}; {dates} ({offset}); {contract.money.currency}", Style.DIM)
    yield ()
    if statement.lines:
        yield from _invoice_lines(statement).lines()
    else:
        yield _line("  No billable requests.")
    yield ()
    yield from _totals(statement).lines()
    yield ()
    yield from _service_level(statement)
    yield from _counts(statement).lines()
    for warning in warnings_of(statement):
        yield _line(f"  ! {warning}", Style.YELLOW)
    for command in _commands(statement):
        yield _line(f"    see: {command}", Style.DIM)


def _invoice_lines(statement: Statement) -> Table:
    table = Table("Model and band", "Queue", "Token", ">Quantity", ">Per million", ">Factor", f">{statement.contract.money.currency}")
    for kind in LineKind:
        if kind in (LineKind.USAGE, LineKind.CREDIT):
            _add_models(table, statement, kind)
        elif kind is LineKind.ADJUSTMENT:
            _add_adjustments(table, statement)
        else:
            for line in statement.lines:
                if line.kind is kind:
                    table.add_row(kind.replace("_", "-"), "", "", "", "", "", _amount(statement, line.amount_minor), style=Style.BOLD)
    return table


def _add_models(table: Table, statement: Statement, kind: LineKind) -> None:
    for group in group_lines(statement, kind):
        title = f"{'credit: ' if kind is LineKind.CREDIT else ''}{printable(group.model)}"
        version = f" (version {group.version})" if len(statement.contracts) > 1 else ""
        table.add_row(title + version, "", "", "", "", "", _amount(statement, group.amount_minor), style=Style.BOLD)
        for band in group.bands:
            for line in band.lines:
                table.add_row(
                    f"  {line.band}{f' [{printable(line.variant)}]' if line.variant else ''}",
                    f"{line.queue or ''}{' (forfeited)' if line.forfeited else ''}",
                    line.token or "",
                    grouped_count(line.quantity or 0),
                    rate_text(line.rate) if line.rate is not None else "",
                    decimal_text(band.multiplier),
                    _amount(statement, line.amount_minor),
                )


def _add_adjustments(table: Table, statement: Statement) -> None:
    """The adjustments by the document that they are of, each with what it adjusts."""
    adjusted = [(line, line.of) for line in statement.lines if line.of is not None]
    for (period, invoice), group in groupby(adjusted, key=lambda one: (one[1].period, one[1].invoice)):
        lines = [line for line, _ in group]
        amount = _amount(statement, sum(line.amount_minor for line in lines))
        table.add_row(f"adjustment of {period}, {invoice}", "", "", "", "", "", amount, style=Style.BOLD)
        for line in lines:
            parts = [line.origin.replace("_", "-"), *(printable(part) for part in (line.model, line.variant, line.band) if part)]
            table.add_row(
                f"  {' '.join(parts)}",
                f"{line.queue or ''}{' (forfeited)' if line.forfeited else ''}",
                line.token or "",
                "" if line.quantity is None else grouped_count(line.quantity),
                rate_text(line.rate) if line.rate is not None else "",
                decimal_text(line.multiplier) if line.multiplier is not None else "",
                _amount(statement, line.amount_minor),
            )


def _totals(statement: Statement) -> Table:
    totals, tax = statement.totals, statement.contract.money.tax
    table = Table("Totals", f">{statement.contract.money.currency}")
    tax_words = f"{printable(tax.name)} {percent_text(tax.rate)}" if tax else "tax"
    rows = [
        ("charges", totals.charges, Style.PLAIN),
        ("true-up", totals.true_up, Style.PLAIN),
        ("credits", totals.credits, Style.PLAIN),
        ("adjustments", totals.adjustments, Style.PLAIN),
        ("net", totals.net, Style.BOLD),
        (tax_words, totals.tax, Style.PLAIN),
        ("total", totals.total, Style.BOLD),
        ("carried in", totals.carried_in, Style.PLAIN),
        ("due", totals.due, Style.BOLD),
        ("carried out", totals.carried_out, Style.PLAIN),
    ]
    for words, minor, style in rows:
        table.add_row(words, _amount(statement, minor), style=style)
    return table


def _service_level(statement: Statement) -> Iterator[Line]:
    budget, windows = statement.budget, statement.windows
    for promise in dict.fromkeys(wording.promise_words(terms) for _, terms in sorted(statement.contracts.items())):
        yield _line(f"  {promise}", Style.DIM)
    if not windows.judged:
        yield _line(f"  Windows: {'too few requests' if statement.events.total else 'no data'}, nothing was judged.")
    else:
        yield _line(
            f"  Windows: {grouped_count(windows.judged)} judged, {grouped_count(windows.breached)} missed. "
            f"Error budget: {budget.used} of {budget.allowed} used, {budget.refunded} refunded."
        )
    yield ()
    if statement.breaches:
        yield from _breaches(statement).lines()
        yield ()


def _breaches(statement: Statement) -> Table:
    percentile = decimal_text(statement.contract.objective.percentile.scaleb(2))
    table = Table("Missed", "Scope", ">Requests", ">Late", f">P{percentile} ms", "Verdict")
    zone = statement.contract.calendar.timezone
    for breach in statement.breaches:
        when = window_words_local(breach.start, breach.end, (statement.start, statement.end), zone)
        latency = "failed" if breach.percentile_us is None else wording.milliseconds(breach.percentile_us)
        limit = percent_text(statement.contracts[breach.version].error_budget.up_to)
        verdict = f"{breach.verdict}{f', over {limit}' if breach.over else ''}"
        style = Style.GREEN if breach.verdict is Verdict.FORGIVEN else Style.YELLOW
        table.add_row(
            f"{when}{' (pooled)' if breach.pooled else ''}",
            printable(breach.scope),
            grouped_count(breach.requests),
            grouped_count(breach.late),
            latency,
            Span(verdict, style),
        )
    return table


def _counts(statement: Statement) -> Table:
    events = statement.events
    table = Table("Requests", ">Count")
    rows = [("total", events.total), ("billed", events.billed), ("in the objective", events.in_objective), ("late", events.late)]
    rows += [(outcome.replace("_", " "), count) for outcome, count in events.outcomes.items() if count]
    rows += [(f"exempt: {kind.replace('_', ' ')}", count) for kind, count in events.exempt.items() if count]
    for words, count in rows:
        table.add_row(words, grouped_count(count))
    return table


def _summary(statements: Sequence[Statement]) -> Table:
    table = Table("Contract", "Customer", ">Requests", ">Missed", ">Net", ">Tax", ">Total", ">Due", ">To resolve")
    for statement in statements:
        contract, totals, unresolved = statement.contract, statement.totals, statement.unresolved
        currency, digits = contract.money.currency, statement.minor_digits
        waiting = unresolved.conflicts + unresolved.quarantined + unresolved.unjoined
        table.add_row(
            contract.id,
            printable(contract.parties.customer.name),
            grouped_count(statement.events.total),
            grouped_count(statement.windows.breached),
            *(currency_amount(minor, digits, currency) for minor in (totals.net, totals.tax, totals.total, totals.due)),
            grouped_count(waiting),
        )
    return table


def _counted_once(statements: Sequence[Statement]) -> Iterator[Line]:
    """What waits and is no contract's own, so that nobody adds it up."""
    unassigned = max(one.unresolved.unassigned for one in statements)
    if unassigned:
        yield _line(f"  Besides, {_requests(unassigned)} of accounts that no contract covers.", Style.YELLOW)
    if sum(one.unresolved.quarantined > 0 for one in statements) > 1:
        yield _line("  A row whose account or instant cannot be read counts for every contract.", Style.DIM)


def _requests(count: int) -> str:
    return "1 request is" if count == 1 else f"{grouped_count(count)} requests are"


def _line(text: str, style: Style = Style.PLAIN) -> Line:
    return (Span(text, style),)


def _amount(statement: Statement, minor: int) -> str:
    return grouped_amount(minor, statement.minor_digits)
