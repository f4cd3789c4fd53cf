"""The cases that documents are tested with."""

from pathlib import Path

import pytest

CASES = Path(__file__).parents[3] / "shared" / "cases"


@pytest.fixture
def cases() -> Path:
    if not CASES.is_dir():
        pytest.skip("../shared/cases is missing")
    return CASES
