"""Several small numbers of an event as one: events are grouped by one key then, which costs a fraction of grouping by each.

Takes the number of values of each, gives the constants to add up and the expressions that take the sum apart.
"""

from collections.abc import Iterable

from sqlglot import exp

from ledger.rating import sql


class Code:
    """A number with a place of bits for each part. Parts are (name, how many values it has, from 0); what a value of the first part adds is
    the value itself."""

    def __init__(self, column: str, parts: Iterable[tuple[str, int]]) -> None:
        self._column = sql.column(column)
        self._places: dict[str, tuple[int, int]] = {}  # the first bit, and how many values
        shift = 0
        for name, values in parts:
            self._places[name] = shift, values
            shift += (values - 1).bit_length()
        assert shift < 32, "the code fits in a number as engines add them"

    def summand(self, name: str, value: int) -> exp.Expr:
        """What this value of the part adds to the code: a constant, so that nothing is multiplied for an event."""
        shift, values = self._places[name]
        assert 0 <= value < values
        return sql.number(value << shift)

    def part(self, name: str) -> exp.Expr:
        """The value of the part in the column of codes."""
        shift, values = self._places[name]
        mask = (1 << (values - 1).bit_length()) - 1
        shifted = exp.BitwiseRightShift(this=self._column.copy(), expression=sql.number(shift))
        return exp.paren(exp.BitwiseAnd(this=exp.paren(shifted), expression=sql.number(mask)))
