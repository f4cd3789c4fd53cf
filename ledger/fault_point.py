"""Named steps at which a test can kill the process, to prove that a rerun ends as if nothing had happened."""

import os
import signal


def fault_point(step: str) -> None:
    """Die by SIGKILL here if the environment variable LEDGER_FAULT names this step, or this step and its number: `step:2`.

    The number counts passes, from 1. Without the variable this does nothing.
    """
    wanted, _, number = os.environ.get("LEDGER_FAULT", "").partition(":")
    if wanted != step:
        return
    _passes[step] = _passes.get(step, 0) + 1
    if _passes[step] == int(number or 1):
        os.kill(os.getpid(), signal.SIGKILL)


_passes: dict[str, int] = {}
