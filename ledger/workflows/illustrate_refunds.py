"""What a refund gives back of made-up requests: late ones and failed ones. Takes the stage of a contract, gives illustrations."""

from collections.abc import Iterator

from ledger.contract.fact import FactCode, Identity
from ledger.contract.scalar import currency_digits
from ledger.documents.contract_prose.illustration import Credit, Illustration
from ledger.rating.in_memory import classify
from ledger.settlement.charges import usage_lines
from ledger.settlement.credits import credit_lines
from ledger.settlement.period import Period
from ledger.workflows.illustrate_requests import STATUSES, Stage, representative_us

INPUT, OUTPUT = 1_000_000, 500_000


def illustrate_refunds(stage: Stage, period: Period) -> Iterator[tuple[Identity, Illustration]]:
    """`period` is of the stage's told contract: what is given back is of requests in the objective, at the price of their queue."""
    contract, target_us = stage.told, stage.told.objective.target_us
    late = next(tier for tier in contract.pricing.tiers if tier.latency.until_us is None)
    latency_us = max(representative_us(late), target_us + 1)
    tokens = {"input_tokens": INPUT, "output_tokens": OUTPUT, "queue_us": 0}
    questions = [stage.alone(contract, latency_us, **tokens), stage.alone(contract, None, status=STATUSES["server_error"], **tokens)]
    answers = classify(questions)
    digits = currency_digits(contract.money.currency)
    for code, answer, measured_us in ((FactCode.REFUND_VALUE, answers[0], latency_us), (FactCode.REFUND_FAILED, answers[1], None)):
        cells = [request.cell for request in answer]
        lines = tuple(credit_lines(period, cells, digits))
        if lines:
            charged = sum(line.amount_minor for line in usage_lines(period, cells, digits))
            yield (
                (code, ()),
                Credit(
                    queue=stage.told_queue,
                    latency_us=measured_us,
                    tokens={"input": INPUT, "output": OUTPUT},
                    factor=contract.refund.tokens,
                    charged=charged,
                    lines=lines,
                ),
            )
