"""Credits: the tokens of refunded windows given back, failed requests, and the cap.

Source: specification, section 7.
"""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from ledger.contract.model import Contract
from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.charges import Price, Tokens, line_at, price_of
from ledger.settlement.money import to_minor
from ledger.settlement.period import Period
from ledger.settlement.statement import InvoiceLine, LineKind

REFUND_BAND = "refund"
FAILED_BAND = "failed"


def credit_lines(period: Period, refunded: Iterable[Cell], minor_digits: int) -> list[InvoiceLine]:
    """The credit lines, negative, each rounded once; lines without tokens are left out. `refunded` are the cells of refunded windows."""
    sums: defaultdict[Price, Tokens] = defaultdict(Tokens)
    for cell in refunded:
        if not cell.in_objective:
            continue
        piece = period.by_version[cell.version]
        contract, terms = piece.contract, piece.contract.refund
        model, _ = piece.served_names[cell.model]
        if cell.outcome is Outcome.SUCCESS and (cell.late or terms.of == "window"):
            at_base = Price(version=contract.version, model=model, band=REFUND_BAND)
            sums[at_base if terms.valued_at == "base_rate" else price_of(piece, cell)].add(cell)
        elif cell.outcome.is_failure and terms.failed == "input_tokens":
            # Cached tokens included: a failed request was not served from anything.
            sums[Price(version=contract.version, model=model, band=FAILED_BAND)].input += cell.tokens_input + cell.tokens_cached_input
    return [
        _credit(price, token, quantity, period.by_version[price.version].contract, minor_digits)
        for price, tokens in sums.items()
        for token, quantity in tokens.by_kind().items()
        if quantity
    ]


def _credit(price: Price, token: str, quantity: int, contract: Contract, minor_digits: int) -> InvoiceLine:
    return line_at(LineKind.CREDIT, price, token, quantity * contract.refund.tokens, contract, minor_digits)


def cap_line(last: Contract, charges_minor: int, credits_minor: int, minor_digits: int) -> InvoiceLine | None:
    """The line that takes back what credits (negative) exceed the cap by; None if they do not, or there is no cap."""
    if last.refund.cap is None:
        return None
    excess_minor = Fraction(-credits_minor) - Fraction(last.refund.cap) * charges_minor
    amount_minor = to_minor(excess_minor / 10**minor_digits, minor_digits, last.money.rounding)
    return amount_line(LineKind.CAP, amount_minor) if amount_minor > 0 else None


def true_up_line(last: Contract, charges_minor: int, minor_digits: int) -> InvoiceLine | None:
    """The line that lifts the charges to the minimum commitment; None if they reach it, or there is none."""
    if last.minimum_commitment is None:
        return None
    missing_minor = int(Fraction(last.minimum_commitment) * 10**minor_digits) - charges_minor
    return amount_line(LineKind.TRUE_UP, missing_minor) if missing_minor > 0 else None


def amount_line(kind: LineKind, amount_minor: int) -> InvoiceLine:
    """A line that is an amount and nothing else."""
    return InvoiceLine(
        kind=kind,
        version=None,
        model=None,
        variant=None,
        queue=None,
        forfeited=False,
        band=None,
        token=None,
        quantity=None,
        rate=None,
        multiplier=None,
        amount_minor=amount_minor,
    )
