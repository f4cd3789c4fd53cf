"""`ledger verify MONTH`: what was issued is what the events give that its close saw, whatever came later; what was altered is named."""

from pathlib import Path

import pytest

from tests.cases_months import NAMES, play
from tests.conftest import RunLedger
from tests.oracle.steps import CloseMonth, read_steps


@pytest.mark.parametrize("name", NAMES)
def test_the_closed_months_of_a_case_agree_with_their_events(name: str, shared: Path, run_ledger: RunLedger, tmp_path: Path) -> None:
    steps = read_steps(shared / "cases-months" / name)
    issued = play(steps, run_ledger, tmp_path)
    for step, documents in zip([one for one in steps if isinstance(one, CloseMonth)], issued, strict=True):
        result = run_ledger("verify", step.period)
        print(result.stdout, result.stderr)
        assert result.exit_code == 0, result.stdout
    result = run_ledger("verify", "--chain")
    print(result.stdout, result.stderr)
    assert result.exit_code == 0
