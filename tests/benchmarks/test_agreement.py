"""A benchmark ends with an error if ledger and the peer found different things, and with a figure that says how it was measured if not."""

import json
from collections import Counter

import pytest

from benchmarks.agreement import BANDS, COMPARED_ROWS, LedgerFound, PeerFound, compare, found_by_ledger, found_by_peer
from benchmarks.figures import Figure

LEDGER = LedgerFound(breaches=904, bands=Counter(dict.fromkeys(BANDS, 20)))
PEER = PeerFound(lines=120, breaches=904, seconds=1.0)


def test_the_same_breaches_and_bands_agree() -> None:
    assert compare(COMPARED_ROWS, LEDGER, PEER).endswith("they agree")


@pytest.mark.parametrize(
    "ledger",
    [
        LedgerFound(breaches=903, bands=LEDGER.bands),
        LedgerFound(breaches=904, bands=LEDGER.bands - Counter({"slow": 1})),
        LedgerFound(breaches=904, bands=LEDGER.bands + Counter({"failed": 20})),
        LedgerFound(breaches=904, bands=LEDGER.bands - Counter({"slow": 1}) + Counter({"fast": 1})),
    ],
    ids=["a breach missing", "a band missing", "failed requests billed", "a band of another account"],
)
def test_a_difference_ends_the_benchmark(ledger: LedgerFound) -> None:
    with pytest.raises(SystemExit, match="disagree"):
        compare(COMPARED_ROWS, ledger, PEER)


def test_a_line_that_only_the_peer_has_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="disagree"):
        compare(COMPARED_ROWS, LEDGER, PeerFound(lines=121, breaches=904, seconds=1.0))


def test_small_months_are_shown_and_not_compared() -> None:
    assert compare(COMPARED_ROWS - 1, LEDGER, PeerFound(lines=1, breaches=1, seconds=1.0)).endswith("not compared below 10,000,000 events")


def test_what_ledger_printed_is_counted_by_contract_model_and_band() -> None:
    def line(band: str, token: str, kind: str = "usage") -> dict[str, str]:
        return {"kind": kind, "model": "deepseek-v4", "band": band, "token": token}

    lines = [line("fast", "input"), line("fast", "output"), line("slow", "input"), line("slow", "input", kind="credit")]
    statements = [{"contract": name, "lines": lines, "windows": {"breaches": [{}, {}]}} for name in ("a", "b")]
    assert found_by_ledger(json.dumps(statements)) == LedgerFound(breaches=4, bands=Counter(fast=2, slow=2))


def test_the_line_of_a_peer_is_read_and_nothing_else() -> None:
    assert found_by_peer("120 lines 904 breaches 4.68 s\n") == PeerFound(lines=120, breaches=904, seconds=4.68)
    with pytest.raises(SystemExit, match="not the line of a peer"):
        found_by_peer("Traceback\n120 lines 904 breaches 4.68 s\n")


def test_a_figure_is_the_median_with_its_spread() -> None:
    assert str(Figure((9.0, 1.0, 2.0, 4.0, 120.0))) == "4.00 (1.00 to 120)"
    assert str(Figure((61.04,))) == "61.0 (once)"


def test_a_ratio_is_taken_round_by_round() -> None:
    assert Figure((2.0, 4.0, 9.0)).ratio_to(Figure((1.0, 4.0, 3.0))) == Figure((2.0, 1.0, 3.0))
    assert Figure((2.0, 4.0, 9.0)).ratio_to(Figure((4.0,))) == Figure((0.5,))
