"""The specimens of logs of gateways and engines, below FORMATS, and what is said of those that cannot be settled."""

SPECIMENS = ("litellm.jsonl", "envoy.jsonl", "envoy-ai-gateway.jsonl", "nginx.jsonl", "sglang.log", "sglang-otlp.json", "vllm-otlp.jsonl")
REFUSED = {
    "otlp-logs.jsonl": "OTLP logs, which cannot be settled",
    "otlp-metrics.jsonl": "OTLP metrics, which cannot be settled",
    "otlp-profiles.jsonl": "OTLP profiles, which cannot be settled",
    "otlp-traces.jsonl": "OTLP traces without a span of vLLM or SGLang, which cannot be settled",
    "sglang-without-metrics.log": "Request metrics of SGLang from a server without --enable-metrics, which cannot be settled",
}
