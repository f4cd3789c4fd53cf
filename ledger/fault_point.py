"""Named steps at which a test can kill the process or another one, to prove that a rerun ends as if nothing had happened."""

import os
import signal


def fault_point(step: str) -> None:
    """Die by SIGKILL here if the environment variable LEDGER_FAULT names this step, or this step and its number: `step:2`.

    The number counts passes, from 1. Without the variable this does nothing. LEDGER_FAULT_VICTIM names another process to kill instead,
    such as the database's server.
    """
    wanted, _, number = os.environ.get("LEDGER_FAULT", "").partition(":")
    if wanted != step:
        return
    _passes[step] = _passes.get(step, 0) + 1
    if _passes[step] == int(number or 1):
        os.kill(int(os.environ.get("LEDGER_FAULT_VICTIM") or os.getpid()), signal.SIGKILL)


_passes: dict[str, int] = {}
