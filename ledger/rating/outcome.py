"""The outcome of an event, a number wherever events are looked at: its place among the outcomes, quicker to group by than its name.

Source: specification, section 4, step 1.
"""

from collections.abc import Sequence

from sqlglot import exp

from ledger.rating import sql
from ledger.settlement.cell import Outcome

ANSWERED = (Outcome.SUCCESS, Outcome.CANCELLED)


def outcome_of_status() -> exp.Expr:
    """The outcome by status, in order of precedence."""
    status = sql.column("status")

    def between(low: int, high: int) -> exp.Expr:
        return exp.Between(this=status.copy(), low=sql.number(low), high=sql.number(high))

    return sql.choose(
        [
            (between(200, 299), _place(Outcome.SUCCESS)),
            (is_cancelled(), _place(Outcome.CANCELLED)),
            (exp.EQ(this=status.copy(), expression=sql.number(429)), _place(Outcome.RATE_LIMITED)),
            (between(400, 499), _place(Outcome.CLIENT_ERROR)),
        ],
        _place(Outcome.SERVER_ERROR),
    )


def _place(outcome: Outcome) -> exp.Expr:
    return sql.number(list(Outcome).index(outcome))


def is_outcome(outcome: Outcome) -> exp.Expr:
    """Whether the column of outcomes is this one."""
    return exp.EQ(this=sql.column("outcome"), expression=_place(outcome))


def is_any_of(outcomes: Sequence[Outcome]) -> exp.Expr:
    """Whether the column of outcomes is one of these."""
    return exp.In(this=sql.column("outcome"), expressions=[_place(outcome) for outcome in outcomes])


def is_cancelled() -> exp.Expr:
    """Whether the request was cancelled, by its status: where the outcome is not known yet, or would be found out once more."""
    return exp.EQ(this=sql.column("status"), expression=sql.number(499))
