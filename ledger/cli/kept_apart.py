"""Why two halves are not joined and what to do, for people and for programs; the same in every command that tells it."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict

from ledger.store.kept_apart import KeptApart
from ledger.store.limits import CLOCK_NOISE_US, LARGEST_TOKENS


def apart_json(apart: KeptApart | None) -> dict[str, object] | None:
    """Whose halves they are, the reasons and the figures; None if they are joined, or one is missing."""
    return None if apart is None else asdict(apart)


def apart_lines(apart: KeptApart, *, waiting_id: int | None) -> Iterator[str]:
    """What they contradict each other in, with the figures that they have together, and what to do; `waiting_id` is that of the gateway's
    row if it waits in quarantine."""
    yield f"its halves are both there and stay apart: the gateway's {apart.request_id} and the engine's {apart.engine_request}"
    said = {
        "times": f"times contradict: queue_us={apart.queue_us} and inference_us={apart.inference_us} exceed e2e_us={apart.e2e_us} "
        f"by more than {CLOCK_NOISE_US}",
        "cached_input_tokens": f"cached_input_tokens={apart.cached_input_tokens} exceed input_tokens={apart.input_tokens or 0}",
        "output_tokens": f"output_tokens={apart.output_tokens} exceed {LARGEST_TOKENS}",
        "no_tokens": "neither half says all tokens: "
        f"input_tokens={_figure(apart.input_tokens)}, output_tokens={_figure(apart.output_tokens)}",
    }
    yield from (f"  {said[reason]}" for reason in apart.reasons)
    if waiting_id is not None:
        tokens = " ".join(
            f"--set {name}={'NUMBER' if count is None else count}"
            for name, count in (("input_tokens", apart.input_tokens), ("output_tokens", apart.output_tokens))
        )
        times = " --set e2e_ms=NUMBER" if "times" in apart.reasons else ""
        yield f"  ledger quarantine requeue {waiting_id} {tokens}{times} --reason TEXT"
    else:
        request = f"{shlex.quote(apart.request_id)} --account {shlex.quote(apart.account)}"
        yield "  the gateway's half counts as it is; if it is wrong:"
        yield f"  ledger correct {request} --set FIELD=VALUE --reason TEXT"
        yield f"  ledger void {request} --reason TEXT"


def _figure(count: int | None) -> str:
    return "none" if count is None else str(count)
