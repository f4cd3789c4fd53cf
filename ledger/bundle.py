"""Finds the folders that ship with ledger beside its code: migrations, ready-made contracts, report templates."""

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).parent


def bundled_folder(name: Literal["migrations", "contracts", "reports"]) -> Path:
    """The folder of that name: inside the installed package, or at the root of a checkout."""
    installed = _PACKAGE / "bundled" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
