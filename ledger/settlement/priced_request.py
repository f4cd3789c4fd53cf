"""What a contract makes of a single request: its price and what it costs, exact.

Takes the cell of one classified request and the piece of its period. Pure. Source: specification, sections 4 and 5.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ledger.settlement.cell import Cell
from ledger.settlement.charges import Price, charge_of, is_billed, price_of, uncapped_multiplier
from ledger.settlement.period import Piece

NOT_BILLED = "none"  # as the band, and the multiplier, of a request that is not billed


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRequest:
    """A request with its cell. `price` None: it is not billed; `charge` is exact; `uncapped` is the multiplier before the cap of a degraded
    variant. `status` and `queue_us` are those of its event, as far as rules look at them that the cell does not tell."""

    status: int
    queue_us: int | None
    cell: Cell
    latency_us: int | None
    price: Price | None
    uncapped: Decimal | None
    charge: Fraction

    @property
    def band(self) -> str:
        return NOT_BILLED if self.price is None else self.price.band

    @property
    def multiplier(self) -> Decimal | None:
        return None if self.price is None else self.price.multiplier

    @property
    def is_capped(self) -> bool:
        return self.uncapped != self.multiplier

    @property
    def objective(self) -> str:
        """How it counts: outside the objective, late, or met."""
        if not self.cell.in_objective:
            return "exclude"
        return "late" if self.cell.late else "met"


def priced_request(piece: Piece, cell: Cell, latency_us: int | None, *, status: int, queue_us: int | None) -> PricedRequest:
    """The price and charge of a request, whose model and queue the contract knows if it is billed."""
    billed = is_billed(piece.contract, cell)
    return PricedRequest(
        status=status,
        queue_us=queue_us,
        cell=cell,
        latency_us=latency_us,
        price=price_of(piece, cell) if billed else None,
        uncapped=uncapped_multiplier(piece.contract, cell)[1] if billed else None,
        charge=charge_of(piece, cell),
    )
