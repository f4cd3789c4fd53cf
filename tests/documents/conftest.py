"""The cases that documents are tested with."""

from pathlib import Path

import pytest


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"
