"""Usage lines: cells to charges, by band and token kind. The only place where a multiplier is put together.

Source: specification, sections 4 (steps 4 and 5) and 5.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ledger.contract.model import Contract
from ledger.settlement.cell import Cell, Outcome
from ledger.settlement.money import exact_product, to_minor, without_trailing_zeros
from ledger.settlement.period import Period, Piece
from ledger.settlement.statement import InvoiceLine, LineKind

ONE = Decimal(1)
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What priced requests have in common: an invoice line without its token kind. A credit at base rate knows no queue."""

    version: int
    model: str
    variant: str | None = None
    queue: str | None = None
    forfeited: bool = False
    band: str
    multiplier: Decimal = ONE


@dataclass(slots=True)
class Tokens:
    """Token sums by the three kinds that have a rate."""

    input: int = 0  # uncached
    cached_input: int = 0
    output: int = 0

    def add(self, cell: Cell) -> None:
        self.input += cell.tokens_input
        self.cached_input += cell.tokens_cached_input
        self.output += cell.tokens_output

    def by_kind(self) -> dict[str, int]:
        return {"input": self.input, "cached_input": self.cached_input, "output": self.output}


def is_billed(contract: Contract, cell: Cell) -> bool:
    """Whether the requests of the cell are billed: successes, and cancelled ones if the contract bills what was produced."""
    return cell.outcome is Outcome.SUCCESS or (cell.outcome is Outcome.CANCELLED and contract.outcomes.cancelled.bill == "produced")


def band_and_multiplier(contract: Contract, cell: Cell) -> tuple[str, Decimal]:
    """The band of a billed cell, and that band's own multiplier."""
    if cell.exemption is not None:
        exemption = contract.exemptions[cell.exemption]
        return exemption.kind.value, exemption.multiplier
    if cell.tier is not None:
        tier = contract.pricing.tiers[cell.tier]
        return tier.name, tier.multiplier
    if cell.outcome is Outcome.CANCELLED:
        return Outcome.CANCELLED.value, ONE
    return "missing_latency", contract.pricing.missing_latency.multiplier


def price_of(piece: Piece, cell: Cell) -> Price:
    """The price of a billed cell: band, then queue unless forfeited, then the cap of a degraded variant."""
    contract = piece.contract
    model, variant = piece.served_names[cell.model]
    band, multiplier = uncapped_multiplier(contract, cell)
    if variant is not None:
        multiplier = min(multiplier, contract.models[model].degraded[variant].max_multiplier)
    return Price(
        version=contract.version,
        model=model,
        variant=variant,
        queue=cell.queue,
        forfeited=cell.forfeited,
        band=band,
        multiplier=without_trailing_zeros(multiplier),
    )


def uncapped_multiplier(contract: Contract, cell: Cell) -> tuple[str, Decimal]:
    """The band of a billed cell, and its multiplier before the cap of a degraded variant."""
    band, multiplier = band_and_multiplier(contract, cell)
    return band, multiplier_in_queue(contract, multiplier, cell.queue, forfeited=cell.forfeited)


def multiplier_in_queue(contract: Contract, multiplier: Decimal, queue: str, *, forfeited: bool) -> Decimal:
    """The multiplier of a band combined with that of a queue, before the cap of a degraded variant."""
    terms = contract.queues.by_name[queue]
    if terms.multiplier is None or forfeited:
        return multiplier
    return exact_product(multiplier, terms.multiplier) if terms.combine == "multiply" else max(multiplier, terms.multiplier)


def charge_of(piece: Piece, cell: Cell) -> Fraction:
    """What the requests of the cell cost, exact, before the rounding of their lines; 0 if they are not billed."""
    if not is_billed(piece.contract, cell):
        return Fraction(0)
    price, tokens = price_of(piece, cell), Tokens()
    tokens.add(cell)
    return exact_charge(price, tokens, piece.contract)


def exact_charge(price: Price, tokens: Tokens, contract: Contract) -> Fraction:
    """What the tokens of all kinds cost at a price, before any rounding."""
    kinds = tokens.by_kind().items()
    return sum((exact_amount(quantity, rate_of(price, token, contract), price.multiplier) for token, quantity in kinds), Fraction(0))


def usage_lines(period: Period, cells: Iterable[Cell], minor_digits: int) -> list[InvoiceLine]:
    """The usage lines of the period, each rounded once; lines without tokens are left out."""
    sums: defaultdict[Price, Tokens] = defaultdict(Tokens)
    for cell in cells:
        piece = period.by_version[cell.version]
        if is_billed(piece.contract, cell):
            sums[price_of(piece, cell)].add(cell)
    return [
        line_at(LineKind.USAGE, price, token, quantity, period.by_version[price.version].contract, minor_digits)
        for price, tokens in sums.items()
        for token, quantity in tokens.by_kind().items()
        if quantity
    ]


def rate_of(price: Price, token: str, contract: Contract) -> Decimal:
    """The rate of the price's model for this kind of token, per million of them."""
    rate: Decimal = getattr(contract.models[price.model].per_million_tokens, token)
    return rate


def exact_amount(quantity: int, rate: Decimal, multiplier: Decimal) -> Fraction:
    """What that many tokens cost before the one rounding.

    >>> exact_amount(1000, Decimal("2.00"), Decimal("0.3"))
    Fraction(3, 5000)
    """
    return Fraction(quantity) * Fraction(rate) / MILLION * Fraction(multiplier)


def line_at(kind: LineKind, price: Price, token: str, quantity: int, contract: Contract, minor_digits: int) -> InvoiceLine:
    """A line of `quantity` tokens at a price; credits (of positive quantities) are negative."""
    rate = rate_of(price, token, contract)
    amount_minor = to_minor(exact_amount(quantity, rate, price.multiplier), minor_digits, contract.money.rounding)
    return InvoiceLine(
        kind=kind,
        version=price.version,
        model=price.model,
        variant=price.variant,
        queue=price.queue,
        forfeited=price.forfeited,
        band=price.band,
        token=token,
        quantity=quantity,
        rate=rate,
        multiplier=price.multiplier,
        amount_minor=-amount_minor if kind is LineKind.CREDIT else amount_minor,
    )
