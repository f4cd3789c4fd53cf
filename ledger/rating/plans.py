"""The plans that rate contracts: contracts with the days of their accounts in, one plan for all with the same terms out.

Source: decision record one-plan-per-terms.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from fractions import Fraction

from sqlglot import exp

from ledger.contract.model import Contract
from ledger.rating.plan import Plan
from ledger.rating.recorded import Breaker, Coverage, ModelLoad
from ledger.rating.terms import Terms, terms_of
from ledger.settlement.calendar import Days

# Asking every event for its account costs a tenth of classifying it: not worth it unless more than a tenth are of other accounts.
NEARLY_ALL = Fraction(9, 10)


def plans_of(
    contracts: Mapping[tuple[str, int], Contract],
    coverage: Sequence[Coverage],
    breakers: Sequence[Breaker],
    loads: Sequence[ModelLoad],
    source: exp.Query,
    traffic: Mapping[str, int] | None = None,
    *,
    by_request: bool = False,
    days: Days | None = None,
) -> list[Plan]:
    """One plan for each distinct terms of the contracts (by id and version) that the coverage names; none without coverage. `traffic` is
    about how many events of each account the source holds, if that is known; `by_request` keeps each request apart; `days` are those that
    the coverage was recorded with, if they are not those of the zone any more."""
    alike: defaultdict[Terms, list[Coverage]] = defaultdict(list)
    terms = {key: terms_of(contracts[key]) for key in {(one.contract_id, one.version) for one in coverage}}
    for one in coverage:
        alike[terms[one.contract_id, one.version]].append(one)
    return [
        Plan(
            terms=key,
            coverage=tuple(group),
            breakers=breakers,
            loads=loads,
            source=source,
            has_others=_has_others(traffic, {one.account for one in group}),
            by_request=by_request,
            days=days,
        )
        for key, group in alike.items()
    ]


def _has_others(traffic: Mapping[str, int] | None, accounts: Set[str]) -> bool:
    return not traffic or sum(traffic.get(account, 0) for account in accounts) < NEARLY_ALL * sum(traffic.values())
