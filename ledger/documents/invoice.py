"""The invoice that a customer reads: a self-contained HTML page, made from a statement alone.

Takes a Statement, gives HTML that needs no network and prints on A4. The template in `reports/` gets plain text and numbers only,
every value is escaped, and the page forbids itself to load anything. Source: specification, sections 5 to 8.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from ledger.contract.model import Contract, Rounding
from ledger.documents import wording
from ledger.documents.grouping import BandGroup, ModelGroup, group_lines
from ledger.documents.local_time import month_words, period_words, window_words_local, zone_words
from ledger.documents.number import currency_amount, decimal_text, grouped_amount, grouped_count, percent_text, rate_text
from ledger.documents.templates import render_page
from ledger.printable import printable
from ledger.settlement.calendar import day_start, month_days
from ledger.settlement.statement import Adjusted, Breach, CauseKind, InvoiceLine, LineKind, Statement, Verdict

NOTES = {
    "draft": "For review. This is not a request for payment.",
    "provisional": "The period is not over or may still change. This is not a request for payment.",
}
NAMED_CAUSES = 5
CAUSES = {
    CauseKind.CONTRACT: "contract",
    CauseKind.CORRECT: "corrected requests",
    CauseKind.INTERVAL: "recorded intervals",
    CauseKind.JOIN: "requests completed by their engine's record",
    CauseKind.LATE: "requests that arrived late",
    CauseKind.VOID: "withdrawn requests",
}
ORIGINS = {
    LineKind.USAGE: "usage",
    LineKind.TRUE_UP: "difference to the minimum commitment",
    LineKind.CREDIT: "service credit",
    LineKind.CAP: "limit of service credits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What a statement gets when it is issued: its number, the local day, its seal and the provider's seal before it, if there is one."""

    number: str
    issued_on: date
    seal: str
    previous_seal: str | None


def invoice_html(statement: Statement, issue: Issue | None = None) -> str:
    """The invoice, or the credit note if the total is negative, as one HTML page; a draft without an issue."""
    return render_page("invoice.html.j2", _page(statement, issue))


def _page(statement: Statement, issue: Issue | None) -> dict[str, Any]:
    contract, zone = statement.contract, statement.contract.calendar.timezone
    is_credit_note = statement.totals.total < 0
    return {
        "issue": issue_words(issue) if issue else {},
        "title": "Credit note" if is_credit_note else "Invoice",
        "is_credit_note": is_credit_note,
        "is_test": statement.is_test,
        "mark": "" if issue else statement.state.upper(),
        "note": NOTES.get(statement.state, ""),
        "subject": printable(contract.title or "LLM inference"),
        **parties_words(contract),
        "customer_is": "Billed to",
        "accounts": [printable(account) for account in contract.parties.customer.accounts],
        "month": month_words(statement.start, zone),
        "period": period_words(statement.start, statement.end, zone),
        "zone": zone_words(statement.start, statement.end, zone),
        "currency": contract.money.currency,
        "headline": _headline(statement),
        "requests": _requests(statement),
        "usage": [_model(statement, group) for group in group_lines(statement, LineKind.USAGE)],
        "service_level": _service_level(statement),
        "credits": _credits(statement),
        "adjustments": _adjustments(statement),
        "totals": _totals(statement),
        "payment": _payment(statement, issue),
        "rounding": _rounding(contract),
        "contract": _contract(statement),
    }


def issue_words(issue: Issue) -> dict[str, str]:
    """What the head and the foot of an issued page show."""
    return {
        "number": issue.number,
        "issued_on": day_words(issue.issued_on),
        "seal": issue.seal,
        "previous_seal": issue.previous_seal or "",
    }


def day_words(day: date) -> str:
    """A day as it is written in a sentence: `3 June 2026`."""
    return f"{day.day} {day:%B %Y}"


def parties_words(contract: Contract) -> dict[str, Any]:
    """Who issues a page, and to whom."""
    provider, customer = contract.parties.provider, contract.parties.customer
    return {
        "provider": _party(provider.name, provider.tax_id, provider.address),
        "customer": _party(customer.name, customer.tax_id, customer.address),
    }


def _party(name: str, tax_id: str, address: tuple[str, ...]) -> dict[str, Any]:
    return {"name": printable(name), "tax_id": printable(tax_id), "address": [printable(line) for line in address]}


def _headline(statement: Statement) -> dict[str, str]:
    totals = statement.totals
    if totals.total < 0:
        words, amount = "In your favour", -totals.total
    else:
        words, amount = "Amount due", totals.due
    return {"words": words, "amount": _money(statement, amount)}


def _requests(statement: Statement) -> dict[str, str]:
    events, outcomes = statement.events, statement.events.outcomes
    failed = sum(outcomes.get(outcome, 0) for outcome in ("rate_limited", "client_error", "server_error"))
    cancelled = outcomes.get("cancelled", 0)
    return {
        "total": grouped_count(events.total) if events.total else "",
        "answered": grouped_count(outcomes.get("success", 0)),
        "failed": grouped_count(failed) if failed else "",
        "cancelled": grouped_count(cancelled) if cancelled else "",
    }


def _model(statement: Statement, group: ModelGroup) -> dict[str, Any]:
    return {
        "name": printable(group.model),
        "version": f"contract version {group.version}" if len(statement.contracts) > 1 else "",
        "amount": grouped_amount(group.amount_minor, statement.minor_digits),
        "bands": [_band(statement, group, band) for band in group.bands],
    }


def _band(statement: Statement, group: ModelGroup, band: BandGroup) -> dict[str, Any]:
    contract, first = statement.contracts[group.version], band.lines[0]
    is_credit = first.kind is LineKind.CREDIT
    name, rule = wording.credit_words(contract, first) if is_credit else wording.band_words(contract, first)
    return {
        "name": printable(name),
        "rule": printable(rule),
        "clause": printable(wording.band_clause(contract, first) or ""),
        "lines": [
            {
                "token": wording.token_words(line.token),
                "quantity": grouped_count(line.quantity or 0),
                "rate": rate_text(line.rate) if line.rate is not None else "",
                "multiplier": f"× {decimal_text(band.multiplier)}",
                "amount": grouped_amount(line.amount_minor, statement.minor_digits),
            }
            for line in band.lines
        ],
    }


def _service_level(statement: Statement) -> dict[str, Any]:
    contract, windows, budget = statement.contract, statement.windows, statement.budget
    breaches = [_breach(statement, number, breach) for number, breach in enumerate(statement.breaches, 1)]
    changed = statement.changed_afterwards
    counted = {
        "withdrawn request": changed.voids,
        "correction": changed.corrections,
        "repair": changed.repairs,
        "completed request": changed.joins,
        "recorded interval": changed.intervals,
    }
    return {
        "promises": _promises(statement),
        "spans": wording.windows_words(contract.objective.window),
        "percentile": decimal_text(contract.objective.percentile.scaleb(2)),
        "judged": grouped_count(windows.judged) if windows.judged else "",
        "met": grouped_count(windows.judged - windows.breached),
        "breached": grouped_count(windows.breached),
        "insufficient": grouped_count(windows.insufficient) if windows.insufficient else "",
        "overload": grouped_count(windows.overload) if windows.overload else "",
        "budget": {"allowed": grouped_count(budget.allowed), "used": grouped_count(budget.used)},
        "budget_dots": [index < budget.used for index in range(budget.allowed)] if 0 < budget.allowed <= 12 else [],
        "budget_clause": printable(contract.error_budget.clause or ""),
        "breaches": breaches,
        "has_clauses": any(breach["clause"] for breach in breaches),
        "changed": [f"{grouped_count(count)} {word}{'' if count == 1 else 's'}" for word, count in counted.items() if count],
    }


def _promises(statement: Statement) -> list[dict[str, str]]:
    """The promise of each contract version, told once for those that promise the same."""
    versions: dict[tuple[str, str], list[str]] = {}
    for version, terms in sorted(statement.contracts.items()):
        versions.setdefault((wording.promise_words(terms), terms.objective.clause or ""), []).append(str(version))
    return [
        {
            "version": f"Contract version {wording.and_list(numbers)}: " if len(versions) > 1 else "",
            "words": printable(words),
            "clause": printable(clause),
        }
        for (words, clause), numbers in versions.items()
    ]


def _breach(statement: Statement, number: int, breach: Breach) -> dict[str, Any]:
    terms = statement.contracts[breach.version]
    is_forgiven = breach.verdict is Verdict.FORGIVEN
    beyond = f"beyond {percent_text(terms.error_budget.up_to)} of the target"
    zone = statement.contract.calendar.timezone
    return {
        "number": str(number),
        "window": window_words_local(breach.start, breach.end, (statement.start, statement.end), zone),
        "pooled": breach.pooled,
        "scope": "all models" if terms.objective.scope == "contract" else printable(breach.scope),
        "requests": grouped_count(breach.requests),
        "late": grouped_count(breach.late),
        "latency": "failed" if breach.percentile_us is None else wording.milliseconds(breach.percentile_us),
        "is_forgiven": is_forgiven,
        "verdict": "Forgiven" if is_forgiven else "Credited",
        "reason": "within the error budget" if is_forgiven else beyond if breach.over else "error budget used up",
        "clause": printable((terms.error_budget.clause if is_forgiven else terms.refund.clause) or ""),
    }


def _credits(statement: Statement) -> dict[str, Any]:
    refunded = [number for number, breach in enumerate(statement.breaches, 1) if breach.verdict is Verdict.REFUNDED]
    cap = sum(line.amount_minor for line in statement.lines if line.kind is LineKind.CAP)
    refund = statement.contract.refund
    return {
        "models": [_model(statement, group) for group in group_lines(statement, LineKind.CREDIT)],
        "for_breaches": _ranges(refunded),
        "cap": grouped_amount(cap, statement.minor_digits) if cap else "",
        "cap_rule": f"credits are limited to {percent_text(refund.cap)} of the period's charges" if refund.cap is not None else "",
        "cap_clause": printable(refund.clause or ""),
        "total": grouped_amount(statement.totals.credits, statement.minor_digits),
    }


def _adjustments(statement: Statement) -> list[dict[str, Any]]:
    """The adjustments by the month that they are of, each with its causes and the lines that changed."""
    adjusted, zone = [(line, line.of) for line in statement.lines if line.of is not None], statement.contract.calendar.timezone
    months = []
    for (period, invoice), group in groupby(adjusted, key=lambda one: (one[1].period, one[1].invoice)):
        lines = list(group)
        of = lines[0][1]
        months.append(
            {
                "month": month_words(day_start(zone, month_days(period)[0]), zone),
                "invoice": invoice,
                "amount": grouped_amount(sum(line.amount_minor for line, _ in lines), statement.minor_digits),
                "causes": _causes(of),
                "lines": [_adjustment(statement, line) for line, _ in lines],
            }
        )
    return months


def _causes(of: Adjusted) -> list[str]:
    """What changed, by kind, each with a few of what it is about."""
    words = []
    for kind, group in groupby(of.causes, key=lambda cause: cause.kind):
        refs = [printable(cause.ref) for cause in group]
        named = ", ".join(refs[:NAMED_CAUSES])
        more = f" and {grouped_count(len(refs) - NAMED_CAUSES)} more" if len(refs) > NAMED_CAUSES else ""
        words.append(f"{CAUSES[kind]} {named}{more}")
    unnamed = of.causes_total - len(of.causes)
    return [*words, f"and {grouped_count(unnamed)} more"] if unnamed else words


def _adjustment(statement: Statement, line: InvoiceLine) -> dict[str, str]:
    return {
        "name": line_words(line),
        "origin": ORIGINS[line.origin],
        "quantity": "" if line.quantity is None else grouped_count(line.quantity),
        "amount": grouped_amount(line.amount_minor, statement.minor_digits),
    }


def line_words(line: InvoiceLine) -> str:
    """What a line is about, in one row: `deepseek-v4, standard, fast, input tokens`."""
    parts = [line.model, line.variant, line.queue, line.band, line.token and wording.token_words(line.token)]
    return ", ".join(printable(part) for part in parts if part) or ORIGINS[line.origin]


def _totals(statement: Statement) -> list[dict[str, str]]:
    """The rows from charges to the amount due; rows that are zero and say nothing are left out."""
    totals, tax = statement.totals, statement.contract.money.tax
    refund_is_outside = statement.contract.refund.tax == "outside_scope" and totals.credits != 0
    rows = [("Usage", totals.charges, "", True)]
    minimum = statement.contract.minimum_commitment
    if minimum is not None:
        rows.append(("Difference to the minimum commitment", totals.true_up, f"of {minimum:,f} a month", totals.true_up != 0))
    rows += [
        ("Service credits", totals.credits, "", totals.credits != 0),
        ("Adjustments of earlier months", totals.adjustments, "", totals.adjustments != 0),
        ("Net", totals.net, "", True),
        (printable(tax.name) if tax else "Tax", totals.tax, _tax_note(statement, refund_is_outside), tax is not None or totals.tax != 0),
        ("Total", totals.total, "", True),
        ("Balance from earlier periods", -totals.carried_in, "", totals.carried_in != 0),
    ]
    shown = [_total_row(statement, words, minor, note) for words, minor, note, is_shown in rows if is_shown]
    shown.append(_total_row(statement, "Amount due", totals.due, "") | {"class": "due"})
    if totals.carried_out:
        shown.append(_total_row(statement, "Balance carried to the next period, in your favour", totals.carried_out, ""))
    return shown


def _tax_note(statement: Statement, refund_is_outside: bool) -> str:
    tax = statement.contract.money.tax
    if tax is None:
        return ""
    return f"{percent_text(tax.rate)}{' of the net without service credits' if refund_is_outside else ''}"


def _total_row(statement: Statement, words: str, minor: int, note: str) -> dict[str, str]:
    strong = {"Net": "sum", "Total": "sum"}
    return {"words": words, "note": note, "amount": grouped_amount(minor, statement.minor_digits), "class": strong.get(words, "")}


def _payment(statement: Statement, issue: Issue | None) -> dict[str, str]:
    payment = statement.contract.payment
    if payment is None or statement.totals.due == 0:
        return {}
    due_on = day_words(issue.issued_on + timedelta(microseconds=payment.due_us)) if issue else ""
    return {"due": wording.duration_words(payment.due_us), "due_on": due_on, "details": printable(payment.details)}


def _rounding(contract: Contract) -> str:
    half = "up, away from zero" if contract.money.rounding is Rounding.HALF_UP else "to the even neighbour"
    return (
        f"Each line is tokens × rate ÷ 1,000,000 × factor, computed exactly and rounded once to {contract.money.currency}'s smallest unit "
        f"(halves {half}); totals are sums of these rounded lines, so the page adds up."
    )


def _contract(statement: Statement) -> dict[str, Any]:
    contract = statement.contract
    return {
        "id": contract.id,
        "versions": [{"number": str(version), "sha256": digest} for version, digest in sorted(statement.contract_hashes.items())],
        "governing_text": printable(contract.governing_text.document) if contract.governing_text else "",
    }


def _money(statement: Statement, minor: int) -> str:
    return currency_amount(minor, statement.minor_digits, statement.contract.money.currency)


def _ranges(numbers: list[int]) -> str:
    """Numbers in words, neighbours joined: [1, 4, 5, 6] is `1 and 4–6`. Empty for none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return wording.and_list(words) if words else ""
