"""The other choice of which a warning speaks, where it is a value of the contract that could be replaced: a contract in, contracts out.

Only warnings of `lint` whose other choice may cost another amount are here. Source: specification, section 3, "Lint".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from ledger.contract.diagnostic import Finding
from ledger.contract.lint import lint
from ledger.contract.model import Async, Contract
from ledger.contract.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The contract with `value`, as a file writes it, in the place that the finding is about."""

    finding: Finding
    value: str
    contract: Contract


def alternatives(contract: Contract) -> tuple[Alternative, ...]:
    """An alternative for each warning that the contract does not accept and that has one, in the order of `lint`."""
    return tuple(found for finding in lint(contract) if (found := _alternative(contract, finding)) is not None)


def _alternative(contract: Contract, finding: Finding) -> Alternative | None:
    match finding.code:
        case "last_token":
            return _latency(contract, finding, "first_token")
        case "inference_latency":
            return _latency(contract, finding, "end_to_end")
        case "base_rate_refund":
            return _put(contract, finding, "charged_rate", refund=_with(contract.refund, valued_at="charged_rate"))
        case "no_cap":
            return _put(contract, finding, "100%", refund=_with(contract.refund, cap=Decimal(1)))
        case "cancelled_free":
            cancelled = _with(contract.outcomes.cancelled, bill="produced")
            return _put(contract, finding, "produced", outcomes=_with(contract.outcomes, cancelled=cancelled))
        case "shedding_free":
            limited = _with(contract.outcomes.rate_limited, objective="late")
            return _put(contract, finding, "late", outcomes=_with(contract.outcomes, rate_limited=limited))
        case "low_percentile":
            return _put(contract, finding, "99", objective=_with(contract.objective, percentile=Decimal("0.99")))
        case "limit_16k":
            return _limit(contract, finding)
        case _:
            return None


def _latency(contract: Contract, finding: Finding, name: str) -> Alternative:
    """Another latency, by default or for the queue that the finding names."""
    latency = contract.latency
    _, key, *queue = finding.path
    changes: Mapping[str, object] = {"by_queue": {**latency.by_queue, str(queue[0]): name}} if queue else {str(key): name}
    return _put(contract, finding, name, latency=_with(latency, **changes))


def _limit(contract: Contract, finding: Finding) -> Alternative:
    """The other of the two numbers that 16k may mean."""
    at = finding.path[1]
    assert isinstance(at, int), "an exemption has a place in the list"
    exemption = contract.exemptions[at]
    assert isinstance(exemption, Async), "no other exemption has a limit of tokens"
    limit = replace(exemption.input_tokens, tokens=16384 if exemption.input_tokens.tokens == 16000 else 16000)
    exemptions = (*contract.exemptions[:at], _with(exemption, input_tokens=limit), *contract.exemptions[at + 1 :])
    return _put(contract, finding, f"{limit.op} {limit.tokens}", exemptions=exemptions)


def _put(contract: Contract, finding: Finding, value: str, **sections: object) -> Alternative:
    return Alternative(finding=finding, value=value, contract=contract.model_copy(update=sections))


def _with(terms: Terms, **changes: object) -> Terms:
    return terms.model_copy(update=changes)
