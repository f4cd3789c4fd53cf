"""Requests to priced lines: quantities summed by key, rounded once. Source: specification, section 5."""

from fractions import Fraction
from math import floor
from typing import Any

from tests.oracle.classification import Request
from tests.oracle.telemetry import Event

Json = dict[str, Any]
# ISO 4217: the currencies whose minor unit is not a hundredth.
MINOR_DIGITS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG"), 0),
    **dict.fromkeys(("RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}


class Money:
    """Rounding to minor units, and amounts as text."""

    def __init__(self, digits: int, rule: str) -> None:
        self.digits = digits
        self.rule = rule

    def minor(self, amount: Fraction) -> int:
        """Currency units to minor units."""
        return self.round(amount * 10**self.digits)

    def round(self, minor: Fraction) -> int:
        """To a whole minor unit: `half_up` is half away from zero, `half_even` is banker's."""
        if self.rule == "half_even":
            return round(minor)
        away = floor(abs(minor) + Fraction(1, 2))
        return away if minor >= 0 else -away

    def text(self, minor: int) -> str:
        """With the currency's digits: `-12.34`."""
        digits = str(abs(minor)).zfill(self.digits + 1)
        sign = "-" if minor < 0 else ""
        return f"{sign}{digits[: len(digits) - self.digits]}.{digits[len(digits) - self.digits :]}" if self.digits else sign + digits


def tokens_of(event: Event) -> dict[str, int]:
    """The billed token counts: input is uncached, null counts as 0."""
    return {
        "input": (event.input_tokens or 0) - event.cached_input_tokens,
        "cached_input": event.cached_input_tokens,
        "output": event.output_tokens or 0,
    }


def usage_key(request: Request) -> tuple[Any, ...]:
    """The key of a usage line, but for the token kind."""
    return (request.terms.version, request.model, request.variant, request.event.queue, request.forfeited, request.band, request.multiplier)


def usage_lines(requests: list[Request], money: Money) -> list[Json]:
    """One line per key and token kind: quantity x rate / 1,000,000 x multiplier, rounded once."""
    quantities: dict[tuple[Any, ...], int] = {}
    rates: dict[tuple[Any, ...], str] = {}
    for request in requests:
        if request.billed:
            assert request.model is not None
            for token, quantity in tokens_of(request.event).items():
                key = (*usage_key(request), token)
                quantities[key] = quantities.get(key, 0) + quantity
                rates[key] = request.terms.rates[request.model, token]
    return priced_lines("usage", quantities, rates, money)


def priced_lines(kind: str, quantities: dict[tuple[Any, ...], int], rates: dict[tuple[Any, ...], str], money: Money) -> list[Json]:
    """Lines of the summed quantities; credits are negative. Lines with quantity 0 are left out."""
    lines = []
    for key, quantity in quantities.items():
        if quantity != 0:
            version, model, variant, queue, forfeited, band, multiplier, token = key
            exact = money.minor(quantity * Fraction(rates[key]) / 1_000_000 * multiplier)
            lines.append(
                {
                    "kind": kind,
                    "version": version,
                    "model": model,
                    "variant": variant,
                    "queue": queue,
                    "forfeited": forfeited,
                    "band": band,
                    "token": token,
                    "quantity": quantity,
                    "rate": rates[key],
                    "multiplier": multiplier,
                    "amount": exact if kind == "usage" else -exact,
                }
            )
    return lines


def plain_line(kind: str, amount: int) -> Json:
    """A `true_up` or `cap` line: "null in every key field but `kind` and `forfeited` (false), and null quantity, rate and multiplier"."""
    empty = dict.fromkeys(("version", "model", "variant", "queue", "band", "token", "quantity", "rate", "multiplier"))
    return {"kind": kind, "forfeited": False, "amount": amount, **empty}
