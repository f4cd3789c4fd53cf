"""Which requests a cold-start exemption takes: the only rule that needs an order, ranked by itself before the sums.

Source: specification, section 4, "Cold starts" and "Loads of a model are intervals too".
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlglot import exp

from ledger.contract.model import ColdStart
from ledger.instant import MICROSECOND
from ledger.rating import sql

OWN = "true"  # the value of `cold_start` that makes a request a cold start of its own


def identity(loads: Sequence[tuple[str, str, str, datetime, datetime]]) -> exp.Expr:
    """The id of the cold start that delayed an event, null for none: its own, else the first load (id, node, model, start, end) of
    its node and model that overlaps its wait [received_at, received_at + queue_us)."""
    own, received_at, wait_us = sql.column("cold_start"), sql.column("received_at"), sql.column("queue_us")
    wait_end = exp.Add(this=received_at, expression=exp.Mul(this=wait_us, expression=sql.span(MICROSECOND)))
    overlapping = [
        (
            sql.both(
                exp.EQ(this=sql.column("node"), expression=sql.text(node)),
                exp.EQ(this=sql.column("model"), expression=sql.text(model)),
                exp.GT(this=wait_us.copy(), expression=sql.number(0)),
                exp.LT(this=received_at.copy(), expression=sql.instant(end)),
                exp.GT(this=wait_end.copy(), expression=sql.instant(start)),
            ),
            sql.text(load_id),
        )
        for load_id, node, model, start, end in sorted(loads, key=lambda load: (load[3], load[0]))
        if start < end
    ]
    return sql.choose([(sql.is_known(own), own), *overlapping]) if overlapping else own


def candidate(position: int) -> str:
    """The name of the relation of requests that the exemption at this position could take."""
    return f"cold_start_candidate_{position}"


def relation(position: int) -> str:
    """The name of the relation of requests that the exemption at this position takes."""
    return f"cold_start_{position}"


def is_exempt(position: int) -> exp.Expr:
    """Whether the exemption at this position takes the event."""
    taken = exp.select(sql.column("account"), sql.column("request_id")).from_(exp.to_table(relation(position)))
    return exp.In(this=exp.Tuple(expressions=[sql.column("account"), sql.column("request_id")]), query=taken.subquery())


def exempt_requests(exemption: ColdStart, candidates: str) -> exp.Query:
    """(account, request_id) of the requests that the exemption takes, of the relation of candidates: contract_id, day_start, account,
    request_id, received_at, cold_start_id.

    Requests with one id on one day of a contract are one occurrence, except that `true` makes each its own. The first `limit` occurrences
    of a day, by earliest request, then id, then account, are exempt with their requests received up to `max_duration` after the first.
    """
    is_own = exp.EQ(this=sql.column("cold_start_id"), expression=sql.text(OWN))
    identified = exp.select(
        *(sql.column(name) for name in ("contract_id", "day_start", "account", "request_id", "received_at")),
        sql.named(is_own, "is_own"),
        sql.named(sql.choose([(is_own, sql.column("request_id"))], sql.column("cold_start_id")), "occurrence"),
        sql.named(sql.choose([(is_own, sql.column("account"))], sql.text("")), "owner"),
    ).from_(exp.to_table(candidates), copy=False)
    occurrence = ("contract_id", "day_start", "is_own", "occurrence", "owner")
    from_first = exp.select(
        exp.Star(),
        *(
            sql.named(_over(exp.FirstValue(this=sql.column(name)), occurrence, ("received_at", "account", "request_id")), f"first_{name}")
            for name in ("received_at", "account")
        ),
    ).from_(identified.subquery("identified", copy=False), copy=False)
    rank = _over(exp.DenseRank(), ("contract_id", "day_start"), ("first_received_at", "occurrence", "first_account", "is_own"))
    ranked = exp.select(exp.Star(), sql.named(rank, "rank")).from_(from_first.subquery("from_first", copy=False), copy=False)
    last_at = exp.Add(this=sql.column("first_received_at"), expression=sql.span(timedelta(microseconds=exemption.max_duration_us)))
    return (
        exp.select(sql.column("account"), sql.column("request_id"))
        .from_(ranked.subquery("ranked", copy=False), copy=False)
        .where(
            exp.LTE(this=sql.column("rank"), expression=sql.number(exemption.limit)),
            exp.LTE(this=sql.column("received_at"), expression=last_at),
        )
    )


def _over(function: exp.Expr, partition: Sequence[str], order: Sequence[str]) -> exp.Expr:
    return exp.Window(
        this=function,
        partition_by=[sql.column(name) for name in partition],
        order=exp.Order(expressions=[exp.Ordered(this=sql.column(name), nulls_first=False) for name in order]),
    )
