"""Builds a Statement from the files of a case: its contracts and its expected result, read backwards."""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ledger.contract.model import Contract
from ledger.contract.reader import read_contract
from ledger.settlement.statement import (
    Adjusted,
    Breach,
    Budget,
    ChangedAfterwards,
    EventCounts,
    InvoiceLine,
    LineKind,
    Statement,
    Totals,
    Unresolved,
    Verdict,
    WindowCounts,
)
from ledger.settlement.tax import tax_terms

DIGITS = {"CNY": 2, "EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}


def read_case(folder: Path) -> tuple[dict[str, Any], dict[int, Contract]]:
    """The expected result of a case, and its contracts by version."""
    read = [read_contract(path.read_bytes(), path.name).contract for path in sorted(folder.glob("contract*.yaml"))]
    contracts = {contract.version: contract for contract in read if contract is not None}
    assert len(contracts) == len(read)
    return json.loads((folder / "expected.json").read_text("utf-8")), contracts


def build_statement(expected: dict[str, Any], contracts: dict[int, Contract], *, state: str = "draft", is_test: bool = False) -> Statement:
    """The statement whose JSON `expected` is."""
    digits = DIGITS[expected["currency"]]
    windows = {key: value for key, value in expected["windows"].items() if key != "breaches"}
    return Statement(
        contract=contracts[expected["version"]],
        contracts=contracts,
        contract_hashes={version: f"{version:064x}" for version in contracts},
        period=expected["period"],
        start=_instant(expected["start"]),
        end=_instant(expected["end"]),
        state=state,
        minor_digits=digits,
        events=EventCounts(cancelled_without_usage=0, **expected["events"]),
        lines=tuple(_line(line, digits, contracts[expected["version"]]) for line in expected["lines"]),
        unresolved=Unresolved(**expected.get("unresolved", {})),
        changed_afterwards=ChangedAfterwards(**expected.get("changed_afterwards", {})),
        windows=WindowCounts(**windows),
        breaches=tuple(_breach(breach, expected["version"]) for breach in expected["windows"]["breaches"]),
        budget=Budget(**expected["budget"]),
        totals=Totals(**{name: _minor(amount, digits) for name, amount in expected["totals"].items()}),
        is_test=is_test,
    )


def read_months(folder: Path) -> list[Statement]:
    """The statements of a case of several months, one for each close."""
    contract = read_contract((folder / "contract.yaml").read_bytes(), "contract.yaml").contract
    assert contract is not None
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    return [build_statement(month, {contract.version: contract}) for month in expected]


def _line(line: dict[str, Any], digits: int, contract: Contract) -> InvoiceLine:
    values = {key: line[key] for key in ("version", "model", "variant", "queue", "forfeited", "band", "token", "quantity")}
    exact = {key: None if line[key] is None else Decimal(line[key]) for key in ("rate", "multiplier")}
    of = _adjusted(line["of"], contract) if "of" in line else None
    return InvoiceLine(kind=LineKind(line["kind"]), amount_minor=_minor(line["amount"], digits), of=of, **values, **exact)


def _adjusted(of: dict[str, Any], contract: Contract) -> Adjusted:
    """The months of a case are under one contract, so that all are taxed alike; the numbers of documents are left to who issues them."""
    kind, invoice = LineKind(of["kind"]), f"INV-{of['period']}"
    return Adjusted(period=of["period"], invoice=invoice, kind=kind, tax=tax_terms(contract), causes=(), causes_total=0)


def _breach(breach: dict[str, Any], version: int) -> Breach:
    return Breach(
        start=_instant(breach["start"]),
        end=_instant(breach["end"]),
        scope=breach["scope"],
        version=version,
        requests=breach["requests"],
        late=breach["late"],
        over=breach["over"],
        percentile_us=breach["p99_us"],
        verdict=Verdict(breach["result"]),
        pooled=breach.get("pooled", False),
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _minor(amount: str, digits: int) -> int:
    minor = Decimal(amount).scaleb(digits)
    assert minor == int(minor), f"{amount} has more digits than the currency"
    return int(minor)
