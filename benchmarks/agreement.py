"""What a settlement and a peer found in the same month, and whether it is the same.

Takes what the processes printed: the JSON of `ledger settle --format json`, the one line of a peer. Source: ../shared/bench/README.md.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass

ACCOUNTS = 20
BANDS = ("async", "cold_start", "fast", "slow", "standard")  # that are billed; the peer has a line of failed requests besides
COMPARED_ROWS = 10_000_000  # below, an hour may have fewer requests than the contract judges by itself, which the peers do not know


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFound:
    """Breached windows of all contracts; how many contract-and-model pairs have each band on their invoice."""

    breaches: int
    bands: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFound:
    """The peer's line: breached windows, lines by account, model and band (`failed` too), its own seconds without the start of Python."""

    lines: int
    breaches: int
    seconds: float


def found_by_ledger(output: str) -> LedgerFound:
    """Of `ledger settle --format json`."""
    statements = json.loads(output)
    usage = {(one["contract"], line["model"], line["band"]) for one in statements for line in one["lines"] if line["kind"] == "usage"}
    return LedgerFound(breaches=sum(len(one["windows"]["breaches"]) for one in statements), bands=Counter(band for _, _, band in usage))


def found_by_peer(output: str) -> PeerFound:
    """Of a peer's only line."""
    match = re.fullmatch(r"(\d+) lines (\d+) breaches ([\d.]+) s\n", output)
    if match is None:
        sys.exit(f"error: not the line of a peer: {output!r}")
    return PeerFound(lines=int(match[1]), breaches=int(match[2]), seconds=float(match[3]))


def compare(rows: int, ledger: LedgerFound, peer: PeerFound) -> str:
    """Says what both found. Ends the benchmark if they must agree and do not: a wrong settlement is not fast."""
    bands = ", ".join(f"{band} {count}" for band, count in sorted(ledger.bands.items()))
    found = (
        f"{rows:,} events: ledger {ledger.breaches} breaches, {ledger.bands.total()} lines by band ({bands}); "
        f"peer_duckdb.py {peer.breaches} breaches, {peer.lines} lines"
    )
    if rows < COMPARED_ROWS:
        return f"{found}: not compared below {COMPARED_ROWS:,} events"
    same_lines = ledger.bands == Counter(dict.fromkeys(BANDS, ACCOUNTS)) and peer.lines == ACCOUNTS * (len(BANDS) + 1)
    if ledger.breaches != peer.breaches or not same_lines:
        sys.exit(f"error: ledger and peer_duckdb.py disagree\n  {found}")
    return f"{found}, {ACCOUNTS} of them failed: they agree"
