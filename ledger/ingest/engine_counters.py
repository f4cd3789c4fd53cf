"""The counters of vLLM that can be held against a ledger: which series of Prometheus they are, by model. Pure.

Source: telemetry of vLLM, "Prometheus: names, and how to reconcile a ledger with them".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from statistics import median_low

from ledger.ingest.prometheus import NAME, Series, exact, merged
from ledger.ingest.span import step_us

MODEL_LABEL = "model_name"
_LATENCY = "vllm:e2e_request_latency_seconds_bucket"


class Counter(StrEnum):
    """A sum that engines keep, by its metric; the two of `request_success_total` with how the requests finished."""

    FINISHED = "vllm:request_success_total (not abort, not error)"
    ABORTED = 'vllm:request_success_total{finished_reason="abort"}'
    PROMPT_OF_FINISHED = "vllm:request_prompt_tokens_sum"
    PROMPT = "vllm:prompt_tokens_total"
    GENERATION_OF_FINISHED = "vllm:request_generation_tokens_sum"
    GENERATION = "vllm:generation_tokens_total"
    QUEUE_SECONDS = "vllm:request_queue_time_seconds_sum"


_FINISHED_METRIC = "vllm:request_success_total"
METRICS = (_FINISHED_METRIC, _LATENCY, *(one.value for one in Counter if one not in (Counter.FINISHED, Counter.ABORTED)))
SELECTOR = f'{{{NAME}=~"{"|".join(METRICS)}"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounters:
    """The counters of one model, and its latency buckets by their edge in microseconds. No counter has an empty list of series."""

    counters: dict[Counter, list[Series]]
    buckets: dict[Fraction, list[Series]]

    def series(self) -> Iterable[Series]:
        """All series."""
        return [one for some in (*self.counters.values(), *self.buckets.values()) for one in some]


def counters_by_model(series: Iterable[Series]) -> dict[str, EngineCounters]:
    """The counters by the model that the engines say they serve; series of other metrics and without a model are left alone."""
    found: dict[str, EngineCounters] = {}
    for one in merged(one for one in series if one.name in METRICS and one.labels.get(MODEL_LABEL)):
        model = found.setdefault(one.labels[MODEL_LABEL], EngineCounters(counters={}, buckets={}))
        if one.name == _LATENCY:
            edge = _edge_us(one.labels.get("le", ""))
            if edge is not None:
                model.buckets.setdefault(edge, []).append(one)
        elif one.name != _FINISHED_METRIC:
            model.counters.setdefault(Counter(one.name), []).append(one)
        elif (reason := one.labels.get("finished_reason")) != "error":
            model.counters.setdefault(Counter.ABORTED if reason == "abort" else Counter.FINISHED, []).append(one)
    return found


def scrape_step_us(series: Iterable[Series]) -> int:
    """How far apart the samples usually are, 0 if no series has two."""
    steps = [step_us(one.at_us) for one in series if len(one.at_us) > 1]
    return median_low(steps) if steps else 0


def _edge_us(text: str) -> Fraction | None:
    try:
        edge = exact(text)
    except ValueError:
        return None
    return None if edge is None else Fraction(edge) * 1_000_000
