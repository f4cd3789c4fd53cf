"""Results of `vllm bench serve --save-result --save-detailed`: one object whose arrays hold a value for each request.

Gives a record for each request, numbered from 1: input_len, output_len, status, and ttft_s, e2e_s and since_start_s as texts, in seconds.
The texts of answers and errors are left behind. A result is read whole, so it has at most LARGEST_BYTES. Source: vLLM,
vllm/benchmarks/serve.py and lib/endpoint_request_func.py.
"""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation, localcontext
from http import HTTPStatus
from typing import Any

from ledger.ingest.unfolding import Broken

LARGEST_BYTES = 128_000_000
MOST_DIGITS = 100
ARRAYS = ("input_lens", "output_lens", "ttfts", "itls", "errors")
OPTIONAL_ARRAYS = ("latencies", "start_times")

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
# How a failed request is told: the words of its status, or a traceback.
_STATUSES = {status.phrase.lower(): int(status) for status in HTTPStatus}


def fits(start: bytes) -> bool:
    """Whether it is such an object."""
    return _START.match(start) is not None and b'"request_throughput"' in start and b'"input_lens"' in start


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The requests, in order. Raises Broken if the file is too large, holds several runs, or its arrays do not belong together."""
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > LARGEST_BYTES:
            raise Broken(f"a benchmark result of more than {LARGEST_BYTES // 1_000_000} MB; leave out its generated_texts")
    try:
        result = json.loads(content.decode("utf-8-sig", errors="replace"), parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        several = error.msg == "Extra data"
        raise Broken(
            "several benchmark results, each with a clock of its own; put each into a file" if several else f"no JSON: {error.msg}"
        ) from error
    except RecursionError as error:
        raise Broken("nested too deep") from error
    arrays = {name: result.get(name) for name in ARRAYS} | {name: result[name] for name in OPTIONAL_ARRAYS if name in result}
    lengths = {name: len(values) if isinstance(values, list) else None for name, values in arrays.items()}
    if len(set(lengths.values())) != 1 or None in lengths.values():
        shown = ", ".join(f"{name} {'missing' if length is None else length}" for name, length in lengths.items())
        raise Broken(f"arrays that do not belong together: {shown}")
    starts = [_decimal(start) for start in arrays.get("start_times", ())]
    first = min((start for start in starts if start is not None and start.is_finite()), default=None)
    for at in range(len(arrays["input_lens"])):
        one = {name: values[at] for name, values in arrays.items()}
        record = {"model_id": result.get("model_id"), "request": str(at + 1), **_request(one)}
        if starts:
            start = starts[at]
            record["since_start_s"] = one["start_times"] if start is None or first is None else _difference(start, first)
        yield at + 1, json.dumps(record).encode()


def _request(one: dict[str, Any]) -> dict[str, Any]:
    """A failed request is told by its error, or by an answer without a first token; its zeros are no measurements."""
    error = one["errors"] if isinstance(one["errors"], str) else ""
    failed = bool(error) or (_decimal(one["output_lens"]) == 0 and _decimal(one["ttfts"]) == 0)
    e2e = one.get("latencies")
    if e2e is None and not failed:
        e2e = _sum([one["ttfts"], *(one["itls"] if isinstance(one["itls"], list) else [one["itls"]])])
    return {
        "input_len": one["input_lens"],
        "output_len": one["output_lens"],
        "ttft_s": None if _decimal(one["ttfts"]) == 0 else one["ttfts"],
        "e2e_s": None if _decimal(e2e) == 0 else e2e,
        "status": _STATUSES.get(error.strip().lower(), 500) if failed else 200,
    }


def _decimal(value: object) -> Decimal | None:
    """The number; None if it is none, or one that would be written with more than MOST_DIGITS digits."""
    try:
        number = Decimal(value) if isinstance(value, str) and len(value) <= MOST_DIGITS else None
    except InvalidOperation:
        return None
    exponent = number.as_tuple().exponent if number is not None else 0
    return None if isinstance(exponent, int) and abs(exponent) > MOST_DIGITS else number


def _difference(later: Decimal, earlier: Decimal) -> str:
    with localcontext(prec=100):
        return f"{later - earlier:f}"


def _sum(values: list[object]) -> object:
    """The sum as text; the first value that is no number, if there is one."""
    numbers = [_decimal(value) for value in values]
    wrong = next((value for value, number in zip(values, numbers, strict=True) if number is None or not number.is_finite()), None)
    if wrong is not None or None in numbers:
        return wrong
    with localcontext(prec=100):
        return f"{sum(number for number in numbers if number is not None):f}"
