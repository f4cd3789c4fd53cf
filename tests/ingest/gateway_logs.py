"""Logs of a gateway and spans of its engine, as nginx and vLLM write them."""

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def vllm_span(trace: str, span: str, request: str, at_ns: int, **attributes: float | int) -> Row:
    """A span of 0.2 s unless attributes say otherwise."""
    times = {"time_in_queue": 0.01, "time_to_first_token": 0.05, "time_in_model_prefill": 0.04, "time_in_model_decode": 0.14,
             "time_in_model_inference": 0.18, "e2e": 0.2}  # fmt: skip
    values: dict[str, Row] = {"gen_ai.request.id": {"stringValue": request}}
    values |= {f"gen_ai.latency.{name}": {"doubleValue": attributes.pop(name, value)} for name, value in times.items()}
    values |= {f"gen_ai.usage.{name}": {"intValue": str(attributes.pop(name, 100))} for name in ("prompt_tokens", "completion_tokens")}
    assert not attributes
    return {
        "traceId": trace, "spanId": span, "name": "llm_request", "kind": 2, "startTimeUnixNano": str(at_ns),
        "attributes": [{"key": key, "value": value} for key, value in values.items()],
    }  # fmt: skip


def write_vllm_traces(path: Path, spans: list[Row]) -> Path:
    """A line for each of them, as an exporter writes it."""
    lines = [{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "vllm"}, "spans": [span]}]}]} for span in spans]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_nginx_log(path: Path, rows: list[tuple[str, float, int, float, str | None]], account: str) -> Path:
    """A log of these: id, second of the minute, status, seconds that it took, trace."""
    with path.open("w") as file:
        for id_, second, status, took, trace in rows:
            line = {"msec": f"{1778032800 + second + took:.3f}", "request_id": id_, "status": status, "request_time": f"{took:.3f}",
                    "upstream_response_time": f"{took:.3f}" if status == 200 else "-", "customer": account, "model": "deepseek-v4",
                    "traceparent": f"00-{trace}-00f067aa0ba902b7-01" if trace else ""}  # fmt: skip
            file.write(json.dumps(line) + "\n")
    return path
