"""Why two halves are not joined, or do not meet, and what to do, for people and for programs; the same in every command that tells it."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta

from ledger.instant import instant_text
from ledger.store.kept_apart import KeptApart
from ledger.store.limits import CLOCK_NOISE_US, LARGEST_TOKENS
from ledger.store.pairing import WITHIN
from ledger.store.unmet import Unmet
from ledger.workflows.named_request import request_command


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
        times = " --set e2e_ms=NUMBER" if "times" in apart.reasons else ""
        yield f"  {_requeue(waiting_id, apart.input_tokens, apart.output_tokens)}{times} --reason TEXT"
    else:
        yield "  the gateway's half counts as it is; if it is wrong:"
        for command, options in (("correct", "--set FIELD=VALUE --reason TEXT"), ("void", "--reason TEXT")):
            yield f"  {request_command(f'ledger {command}', apart.request_id, apart.account, options)}"


def unmet_json(unmet: Unmet | None) -> dict[str, object] | None:
    """The engine's record that is too far away, and the row of one that was refused; None if neither is there."""
    if unmet is None:
        return None
    far, refused = unmet.far, unmet.refused
    return {
        "far": far and asdict(far) | {"gateway_at": instant_text(far.gateway_at), "engine_at": instant_text(far.engine_at)},
        "refused": refused and asdict(refused),
    }


def unmet_lines(unmet: Unmet, *, waiting_id: int | None) -> Iterator[str]:
    """Where the engine's record is that a gateway's row has not met, and what to do; `waiting_id` is that of the row if it waits."""
    if far := unmet.far:
        yield f"an engine's record of the same id, {far.engine_request}, is {_away(far.engine_at - far.gateway_at)}:"
        yield f"  further apart than {WITHIN}, so they are not joined; look at the clocks and time zones of both logs"
        if waiting_id is not None:
            yield f"  if it is the same request: {_requeue(waiting_id, far.input_tokens, far.output_tokens)} --reason TEXT"
    if refused := unmet.refused:
        yield f"an engine's record of the same id was refused: {refused.reason}: {refused.detail}"
        yield f"  ledger quarantine show {refused.quarantine_id}; repair it and send it in again, and both can be joined"


def _requeue(waiting_id: int, *tokens: int | None) -> str:
    names = zip(("input_tokens", "output_tokens"), tokens, strict=True)
    return f"ledger quarantine requeue {waiting_id} " + " ".join(
        f"--set {name}={'NUMBER' if count is None else count}" for name, count in names
    )


def _away(span: timedelta) -> str:
    """`3 h 20 min later`, to the minute that has begun."""
    minutes = abs(span) // timedelta(minutes=1)
    days, hours = minutes // (24 * 60), minutes // 60 % 24
    parts = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes % 60, "min")) if count]
    return f"{' '.join(parts)} {'later' if span > timedelta() else 'earlier'}"


def _figure(count: int | None) -> str:
    return "none" if count is None else str(count)
