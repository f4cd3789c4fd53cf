"""The command in a process of its own that says which modules it imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_watched(arguments: list[str], modules: set[str], **env: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process that says at its end, as the last line of standard error, which of the modules it imported."""
    program = (
        "import sys, atexit\n"
        "from ledger.cli.main import main\n"
        f"atexit.register(lambda: print(sorted({modules!r} & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['ledger', *{arguments!r}]\n"
        "main()\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | env, check=False, cwd=ROOT)
