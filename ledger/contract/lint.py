"""What a contract probably does not mean. Not complete yet."""

from collections.abc import Iterator

from ledger.contract.diagnostic import Finding
from ledger.contract.model import Contract


def lint(contract: Contract) -> Iterator[Finding]:
    """The warnings that the contract does not accept."""
    return iter(())
