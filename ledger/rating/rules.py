"""The rules that are computed per signature and not per event: what finance and the objective make of it.

Takes terms, gives expressions over the columns of a signature. Source: specification, section 4, step 4 and "in the objective".
"""

from bisect import bisect_right

from sqlglot import exp

from ledger.rating import sql
from ledger.rating.outcome import is_any_of, is_outcome
from ledger.rating.terms import Terms
from ledger.settlement.cell import Outcome


def tier_and_objective(terms: Terms) -> dict[str, exp.Expr]:
    """`tier`, `in_objective`, `late` and `over` of a signature: of its queue, outcome, exemption and latency class."""
    outcomes = terms.outcomes

    def reaches(edge_us: int) -> exp.Expr:
        position = bisect_right(terms.edges_us, edge_us)
        return sql.known_or(exp.GTE(this=sql.column("latency_class"), expression=sql.number(position)), sql.boolean(False))

    not_exempt, no_latency = sql.is_null(sql.column("exemption")), sql.is_null(sql.column("latency_class"))
    over_target = reaches(terms.late_from_us)
    failed = is_any_of([outcome for outcome in Outcome if outcome.is_failure])

    priced = [sql.both(is_outcome(Outcome.SUCCESS), sql.is_known(sql.column("latency_class")))]
    if outcomes.cancelled.bill == "produced":
        priced.append(sql.both(is_outcome(Outcome.CANCELLED), over_target))
    from_slowest = sorted(enumerate(terms.tiers_from_us), key=lambda item: item[1], reverse=True)
    tier_of_latency = sql.choose((reaches(from_us), sql.number(position)) for position, from_us in from_slowest)
    tier = sql.choose([(sql.both(not_exempt, sql.either(*priced)), tier_of_latency)])

    judged = [
        sql.both(
            is_outcome(Outcome.SUCCESS),
            sql.boolean(True) if terms.missing_latency == "late" else exp.Not(this=no_latency.copy()),
        )
    ]
    if outcomes.cancelled.objective == "late_if_over_target":
        judged.append(sql.both(is_outcome(Outcome.CANCELLED), over_target))
    failures = {
        Outcome.SERVER_ERROR: outcomes.server_error,
        Outcome.RATE_LIMITED: outcomes.rate_limited,
        Outcome.CLIENT_ERROR: outcomes.client_error,
    }
    judged += [is_outcome(outcome) for outcome, term in failures.items() if term.objective == "late"]
    in_objective = sql.both(sql.among(sql.column("queue"), terms.queues_judged), not_exempt, sql.either(*judged))
    return {
        "tier": exp.cast(tier, "smallint"),
        "in_objective": in_objective,
        "late": sql.both(in_objective, sql.either(over_target, no_latency, failed)),
        "over": sql.both(in_objective, sql.either(reaches(terms.over_from_us), no_latency, failed)),
    }
