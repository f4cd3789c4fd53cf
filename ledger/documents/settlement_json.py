"""A statement as the JSON of `settle --format json`: same keys, same order, exact numbers as text.

Takes a Statement, gives plain dicts and lists, or their canonical bytes. Source: specification, section 9.
"""

import json
from collections.abc import Mapping
from typing import Any

from ledger.contract.model import ExemptionKind
from ledger.documents.number import amount_text, decimal_text, rate_text
from ledger.instant import instant_text
from ledger.settlement.cell import Outcome
from ledger.settlement.statement import Adjusted, Breach, InvoiceLine, Statement


def statement_to_json(statement: Statement) -> dict[str, Any]:
    """The statement as one object of the settle output. Lines and breaches keep the statement's order."""
    contract, events, unresolved, changed = statement.contract, statement.events, statement.unresolved, statement.changed_afterwards
    return {
        "contract": contract.id,
        "version": contract.version,
        "period": statement.period,
        "start": instant_text(statement.start),
        "end": instant_text(statement.end),
        "timezone": contract.calendar.timezone,
        "currency": contract.money.currency,
        "state": statement.state,
        "events": {
            "total": events.total,
            "billed": events.billed,
            "in_objective": events.in_objective,
            "late": events.late,
            "missing_latency": events.missing_latency,
            "outcomes": {outcome.value: events.outcomes.get(outcome, 0) for outcome in Outcome},
            "exempt": {kind.value: events.exempt.get(kind, 0) for kind in ExemptionKind},
        },
        "lines": [line_to_json(line, statement.minor_digits) for line in statement.lines],
        "unresolved": {
            "conflicts": unresolved.conflicts,
            "quarantined": unresolved.quarantined,
            "unassigned": unresolved.unassigned,
            "unjoined": unresolved.unjoined,
        },
        "changed_afterwards": {
            "voids": changed.voids,
            "corrections": changed.corrections,
            "repairs": changed.repairs,
            "joins": changed.joins,
            "intervals": changed.intervals,
        },
        "windows": {
            "judged": statement.windows.judged,
            "breached": statement.windows.breached,
            "insufficient": statement.windows.insufficient,
            "overload": statement.windows.overload,
            "breaches": [_breach(breach) for breach in statement.breaches],
        },
        "budget": {
            "allowed": statement.budget.allowed,
            "used": statement.budget.used,
            "refunded": statement.budget.refunded,
            "alert": statement.budget.alert,
        },
        "totals": _totals(statement),
    }


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON that depends on the content alone: keys in code point order, no spaces, no floats, text written as it is.

    Raises TypeError for a float anywhere: no binary fraction belongs into a document that is hashed.
    """
    _refuse_floats(document)
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def line_to_json(line: InvoiceLine, digits: int) -> dict[str, Any]:
    """One line; an adjustment says what it is of, and why."""
    return {
        "kind": line.kind.value,
        "version": line.version,
        "model": line.model,
        "variant": line.variant,
        "queue": line.queue,
        "forfeited": line.forfeited,
        "band": line.band,
        "token": line.token,
        "quantity": line.quantity,
        "rate": None if line.rate is None else rate_text(line.rate),
        "multiplier": None if line.multiplier is None else decimal_text(line.multiplier),
        "amount": amount_text(line.amount_minor, digits),
        **_adjusted(line.of),
    }


def _adjusted(of: Adjusted | None) -> dict[str, Any]:
    if of is None:
        return {}
    return {
        "of": {"period": of.period, "invoice": of.invoice, "kind": of.kind.value},
        "causes": [{"kind": cause.kind.value, "ref": cause.ref} for cause in of.causes],
        "causes_total": of.causes_total,
    }


def _breach(breach: Breach) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "start": instant_text(breach.start),
        "end": instant_text(breach.end),
        "scope": breach.scope,
        "requests": breach.requests,
        "late": breach.late,
        "over": breach.over,
        "p99_us": breach.percentile_us,
        "result": breach.verdict.value,
    }
    return shape | {"pooled": True} if breach.pooled else shape


def _totals(statement: Statement) -> dict[str, str]:
    totals, digits = statement.totals, statement.minor_digits
    return {
        name: amount_text(getattr(totals, name), digits)
        for name in ("charges", "true_up", "credits", "adjustments", "net", "tax", "total", "carried_in", "due", "carried_out")
    }


def _refuse_floats(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a binary fraction; write exact numbers as text")
    if isinstance(value, Mapping):
        for member in value.values():
            _refuse_floats(member)
    elif isinstance(value, list | tuple):
        for member in value:
            _refuse_floats(member)
